#include "sim/base/suggest.h"

#include <algorithm>
#include <cctype>

namespace k3sim {

namespace {
int lower(char c) {
  return std::tolower(static_cast<unsigned char>(c));
}
}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const std::size_t n = b.size();
  std::vector<int> prev2(n + 1), prev(n + 1), row(n + 1);
  for (std::size_t j = 0; j <= n; ++j) prev[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= n; ++j) {
      const int cost = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      row[j] = std::min({row[j - 1] + 1, prev[j] + 1, prev[j - 1] + cost});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], prev2[j - 2] + 1);
    }
    prev2.swap(prev);
    prev.swap(row);
  }
  return prev[n];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  int best = std::max<int>(2, static_cast<int>(word.size() / 3)) + 1;
  const std::string* found = nullptr;
  for (const std::string& c : candidates) {
    const int d = edit_distance(word, c);
    if (d < best) best = d, found = &c;
  }
  return found ? "did you mean '" + *found + "'?" : std::string();
}

}  // namespace k3sim
