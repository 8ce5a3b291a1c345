// Patterns and words of storage rules. Source: storage_rules.h.
#include "models/memory/storage_rules.h"

#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {

namespace {

struct Word {
  const char* name;
  TensorTreatment treatment;
};

constexpr Word kWords[] = {{"keep", {}},
                           {"recompute", {true, false, StoragePlace::gpu}},
                           {"fp8", {false, true, StoragePlace::gpu}},
                           {"offload", {false, false, StoragePlace::host}},
                           {"remote_offload", {false, false, StoragePlace::remote}},
                           {"fp8+offload", {false, true, StoragePlace::host}},
                           {"fp8+remote_offload", {false, true, StoragePlace::remote}}};

}  // namespace

bool name_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = std::string_view::npos, mark = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

const std::vector<std::string>& treatment_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Word& w : kWords) out.emplace_back(w.name);
    return out;
  }();
  return names;
}

TensorTreatment parse_treatment(const std::string& text, const std::string& key) {
  for (const Word& w : kWords)
    if (text == w.name) return w.treatment;
  throw ConfigError({Problem{{}, key, "unknown treatment '" + text + "'", did_you_mean(text, treatment_names())}});
}

const char* to_string(const TensorTreatment& t) {
  for (const Word& w : kWords)
    if (t == w.treatment) return w.name;
  return "recompute";
}

}  // namespace k3sim
