#include "sim/base/error.h"

namespace k3sim {

std::string to_string(const Problem& p) {
  std::string out = "error: ";
  if (!p.place.file.empty()) {
    out += p.place.file + ":";
    if (p.place.line > 0) out += std::to_string(p.place.line) + ":";
    if (p.place.line > 0 && p.place.column > 0) out += std::to_string(p.place.column) + ":";
    out += " ";
  }
  if (!p.key.empty()) out += p.key + ": ";
  out += p.what;
  if (!p.hint.empty()) out += " (" + p.hint + ")";
  return out;
}

namespace {
std::string join(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& p : problems) out += (out.empty() ? "" : "\n") + to_string(p);
  return out;
}
}  // namespace

ConfigError::ConfigError(std::vector<Problem> problems)
    : std::runtime_error(join(problems)), problems_(std::move(problems)) {}

}  // namespace k3sim
