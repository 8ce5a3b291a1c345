// "Did you mean ...?": the nearest of a list of known words by edit distance.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace k3sim {

// Damerau-Levenshtein distance (restricted), case-insensitive.
int edit_distance(std::string_view a, std::string_view b);

// "did you mean 'x'?" for the closest candidate within a third of the word's length (at least 2), else empty.
// Ties go to the earlier candidate.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace k3sim
