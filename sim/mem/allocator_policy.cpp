// Parsing of the allocator's settings string and the two size rules. See the header for formulas and sources.
#include "sim/mem/allocator_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {
namespace {

[[noreturn]] void fail(std::string_view key, const std::string& what, std::string hint = {}) {
  std::vector<Problem> problems(1);
  problems[0].key = "alloc_conf." + std::string(key);
  problems[0].what = what;
  problems[0].hint = std::move(hint);
  throw ConfigError(std::move(problems));
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Splits at commas that are not inside [ ].
std::vector<std::string_view> split_items(std::string_view text) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c != ',' || (depth > 0 && i < text.size())) continue;
    if (const auto item = trim(text.substr(begin, i - begin)); !item.empty()) items.push_back(item);
    begin = i + 1;
  }
  return items;
}

std::int64_t to_integer(std::string_view key, std::string_view value) {
  value = trim(value);
  std::int64_t out = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (code != std::errc{} || end != value.data() + value.size() || out < 0 || out > (std::int64_t{1} << 40))
    fail(key, fmt::format("'{}' is not a whole number", value));
  return out;
}

double to_fraction(std::string_view key, std::string_view value, bool allow_one) {
  double out = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), out);
  const bool ok = code == std::errc{} && end == value.data() + value.size() && std::isfinite(out);
  if (!ok || out <= 0.0 || out > 1.0 || (out == 1.0 && !allow_one))
    fail(key, fmt::format("'{}' must lie in (0, 1{}", value, allow_one ? "]" : ")"));
  return out;
}

bool to_bool(std::string_view key, std::string_view value) {
  if (value == "True" || value == "true") return true;
  if (value == "False" || value == "false") return false;
  fail(key, fmt::format("'{}' is neither True nor False", value));
}

Bytes to_split_limit(const AllocatorConstants& constants, std::string_view key, std::string_view value) {
  const Bytes limit = Bytes::mib(to_integer(key, value));
  if (limit.count() < constants.min_max_split_size)
    fail(key, fmt::format("{} MiB is too small, at least {} MiB", value, constants.min_max_split_size >> 20));
  return limit;
}

std::int64_t to_divisions(std::string_view key, std::string_view value) {
  const std::int64_t d = to_integer(key, value);
  if (d != 0 && !std::has_single_bit(static_cast<std::uint64_t>(d)))
    fail(key, fmt::format("{} divisions: must be a power of two, or 0 for off", d));
  return d;
}

// "4" for all sizes, or "[256:1,512:2,>:8]" with sizes in MiB; sizes below the first entry take its divisions and
// sizes after the last explicit one keep 0 unless '>' is given (so upstream).
void set_divisions(AllocatorPolicy& policy, std::string_view key, std::string_view value) {
  auto& table = policy.roundup_power2_divisions;
  if (value.empty() || value.front() != '[') return table.fill(to_divisions(key, value));
  if (value.back() != ']') fail(key, "'[' without ']'");
  std::size_t last = 0;
  bool first = true;
  for (const std::string_view item : split_items(value.substr(1, value.size() - 2))) {
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) fail(key, fmt::format("'{}' is not SIZE:DIVISIONS", item));
    const std::string_view size = trim(item.substr(0, colon));
    const std::int64_t divisions = to_divisions(key, item.substr(colon + 1));
    if (size == ">") {
      std::fill(table.begin() + static_cast<std::ptrdiff_t>(last), table.end(), divisions);
      continue;
    }
    const std::int64_t mib = to_integer(key, size);
    if (!std::has_single_bit(static_cast<std::uint64_t>(mib)))
      fail(key, fmt::format("{} MiB: interval starts must be powers of two", mib));
    last = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(mib))),
                                 table.size() - 1);
    if (first) std::fill(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(last), divisions);
    first = false;
    table[last] = divisions;
  }
}

void set_option(AllocatorPolicy& policy, std::string_view key, std::string_view value) {
  // Options of other subsystems (pinned host memory, locks, graph capture) leave device memory as it is.
  static const std::vector<std::string> kKnown = {"expandable_segments",
                                                  "max_split_size_mb",
                                                  "max_non_split_rounding_mb",
                                                  "garbage_collection_threshold",
                                                  "per_process_memory_fraction",
                                                  "roundup_power2_divisions",
                                                  "backend",
                                                  "release_lock_on_cudamalloc",
                                                  "pinned_use_cuda_host_register",
                                                  "pinned_num_register_threads",
                                                  "pinned_use_background_threads",
                                                  "pinned_reserve_segment_size_mb",
                                                  "graph_capture_record_stream_reuse"};
  if (key == "expandable_segments") {
    policy.expandable_segments = to_bool(key, value);
  } else if (key == "max_split_size_mb") {
    policy.max_split_size = to_split_limit(*policy.constants, key, value);
  } else if (key == "max_non_split_rounding_mb") {
    policy.max_non_split_rounding = to_split_limit(*policy.constants, key, value);
  } else if (key == "garbage_collection_threshold") {
    policy.garbage_collection_threshold = to_fraction(key, value, false);
  } else if (key == "per_process_memory_fraction") {
    policy.memory_fraction = to_fraction(key, value, true);
  } else if (key == "roundup_power2_divisions") {
    set_divisions(policy, key, value);
  } else if (key == "backend") {
    if (value != "native") fail(key, fmt::format("backend '{}' is not emulated, only native", value));
  } else if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) {
    fail(key, "unknown option", did_you_mean(key, kKnown));
  }
}

}  // namespace

AllocatorPolicy parse_alloc_conf(const std::string& text) {
  AllocatorPolicy policy;
  for (const std::string_view item : split_items(text)) {
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) fail(item, "expected KEY:VALUE");
    set_option(policy, trim(item.substr(0, colon)), trim(item.substr(colon + 1)));
  }
  return policy;
}

std::int64_t round_request(const AllocatorPolicy& policy, std::int64_t size) {
  const AllocatorConstants& k = *policy.constants;
  if (size < k.min_block) return k.min_block;
  const auto bits = static_cast<std::uint64_t>(size);
  const int log2 = 63 - std::countl_zero(bits);
  const int interval = std::clamp(log2 - k.power2_interval_first, 0, k.power2_intervals - 1);
  const std::int64_t divisions = policy.roundup_power2_divisions[static_cast<std::size_t>(interval)];
  std::int64_t step = k.min_block;
  if (divisions > 1 && size > k.min_block * divisions) {
    if (std::has_single_bit(bits)) return size;
    step = (std::int64_t{1} << log2) / divisions;
  }
  return (size + step - 1) / step * step;
}

std::int64_t segment_size(const AllocatorPolicy& policy, std::int64_t rounded) {
  const AllocatorConstants& k = *policy.constants;
  if (rounded <= k.small_limit) return k.small_segment;
  if (rounded < k.min_large) return k.large_segment;
  return (rounded + k.large_rounding - 1) / k.large_rounding * k.large_rounding;
}

}  // namespace k3sim
