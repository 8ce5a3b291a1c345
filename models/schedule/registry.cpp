// The array of schedules. A new schedule is one generator file and one entry here.
// Source: engine-design section 11 (table of bubbles and activations), the papers named in the entries.
#include "models/schedule/registry.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "models/schedule/generators.h"
#include "sim/base/error.h"
#include "sim/base/suggest.h"

namespace k3sim {

const std::vector<ScheduleInfo>& schedule_registry() {
  static const std::vector<ScheduleInfo> kSchedules = {
      {"gpipe", "all forwards, then all backwards", "(p-1)(F+B+W)", "published, any m", "m", "arXiv 1811.06965",
       generate_gpipe, 1},
      {"1f1b", "one forward, one backward in turn", "(p-1)(F+B+W)", "published, any m", "p - rank",
       "arXiv 2006.09503, Megatron-LM", generate_1f1b, 1, true},
      {"interleaved", "1F1B over v chunks per rank, Megatron's order", "(p-1)(F+B+W)/v",
       "published for p | m, reached for any m >= p", "p(1+(p-1)/(p v)) for p | m", "arXiv 2104.04473, Megatron-LM",
       generate_interleaved, 0, true},
      {"looped_bfs", "chunk after chunk, all micro-batches each; fewest parameter gathers", "(p-1)(F+B+W)/v",
       "published, m >= p", "m", "arXiv 2211.05953", generate_looped_bfs, 0},
      {"zb_h1", "1F1B with split backward; weight gradients fill the cool-down", "(p-1)(F+B-W)", "published, m >= p",
       "p", "arXiv 2401.10241", generate_zb_h1, 1, true},
      {"zb_h2", "as zb_h1 with twice the warm-up: no bubble for F = B = W", "(p-1)(F+B-2W) + max(0,2p-1-m)W",
       "published for m >= 2p-1, derived below", "2p-1", "arXiv 2401.10241", generate_zb_h2, 1, true},
      {"zb_v", "split backward on a V of two chunks per rank", "max(0,2p-1-m)F/2 for F = B = W",
       "published for m >= 2p-1, derived below; + (p-1)(B-W) for W <= F <= B derived", "p", "arXiv 2401.10241, PyTorch",
       generate_zb_v, 2},
      {"v_half", "V pattern with half the activations of 1F1B", "about (p-1)(F+B+W)/2 for F = B = W",
       "published as about; exactly 3p-4, 3p-7 for even p, in (F+B+W)/6 by the authors' scheduler", "floor((p+2)/2)",
       "arXiv 2405.15362", generate_v_half, 2},
      {"v_min", "V pattern with a third of the activations of 1F1B", "about 2(p-1)(F+B+W)/3 for F = B = W",
       "published as about; exactly 4p-5, 4p-7 if 3 | p, in (F+B+W)/6 by the authors' scheduler", "floor((p+4)/3)",
       "arXiv 2405.15362", generate_v_min, 2},
      {"dualpipe", "two directions, forward overlapped with backward", "(p/2-1)(F&B+(B+W)-3W)",
       "published for even p, even m >= 2p; exact for F = B, derived for others", "p+1, parameters twice",
       "arXiv 2412.19437, deepseek-ai/DualPipe", generate_dualpipe, 2},
      {"dualpipe_v", "DualPipe folded into a V: p ranks hold what DualPipe spreads over 2p", "(p-1)(F&B+(B+W)-3W)/2",
       "published for m >= 2p; exact for F = B, derived for others", "p+1/2", "deepseek-ai/DualPipe, PyTorch",
       generate_dualpipe_v, 2},
      {"bpipe", "1F1B that lends activations from early to late ranks", "(p-1)(F+B+W)", "published, any m",
       "ceil((p+2)/2)", "ICML 2023", generate_bpipe, 1},
      {"hanayo", "v/2 waves: v chunks per rank, folded back and forth", "2(p-1)(B+W)/v",
       "derived, optimal within p micro-batches; m > p, or m = p and B+W >= 2F (one wave: Chimera's published form)",
       "p for one wave or p | m", "arXiv 2308.15762, arXiv 2107.06925", generate_hanayo, 0},
      {"seq1f1b", "1F1B over k slices of every sequence", "(p-1)(F+B+W)/k", "published, slices of equal time",
       "(p-1+k)/k", "arXiv 2406.03488", generate_seq1f1b, 1, true},
      {"k3", "interleaved 1F1B, routed experts' weight gradients apart, dispatch re-run in backward", "(p-1)(F+B)/v",
       "derived, m >= p (with split_wgrad)", "p(1+(p-1)/(p v)) for p | m", "arXiv 2607.24653 section 5.2", generate_k3,
       0, true},
      {"automatic", "shortest order found for given F, I, W, transfer times and memory limit",
       "what the search reaches", "searched, no form", "memory_limit", "arXiv 2401.10241 section 3, arXiv 2405.15362",
       generate_automatic, 0},
  };
  return kSchedules;
}

const ScheduleInfo& find_schedule(const std::string& name) {
  std::vector<std::string> names;
  for (const ScheduleInfo& info : schedule_registry()) {
    if (name == info.name) return info;
    names.emplace_back(info.name);
  }
  Problem unknown;
  unknown.key = "schedule.name";
  unknown.what = fmt::format("unknown schedule '{}'", name);
  unknown.hint = did_you_mean(name, names);
  throw ConfigError(std::vector<Problem>{std::move(unknown)});
}

int stages_per_rank(const ScheduleSpec& spec) {
  const ScheduleInfo& info = find_schedule(spec.name);
  return info.fixed_chunks > 0 ? info.fixed_chunks : spec.chunks;
}

namespace {
void check_numbers(const ScheduleSpec& spec, const ScheduleInfo& info) {
  const std::pair<const char*, int> minimums[] = {
      {"ranks", spec.ranks}, {"chunks", spec.chunks}, {"microbatches", spec.microbatches}, {"slices", spec.slices}};
  for (const auto& [key, value] : minimums)
    if (value < 1) refuse_schedule(spec, key, fmt::format("needs at least 1, got {}", value));
  if (spec.extra_warmup < 0) refuse_schedule(spec, "extra_warmup", fmt::format("cannot be {}", spec.extra_warmup));
  if (spec.extra_warmup > 0 && !info.takes_extra_warmup)
    refuse_schedule(spec, "extra_warmup", "has a fixed warm-up and takes no extra micro-batches");
  if (spec.group_size < 0) refuse_schedule(spec, "group_size", fmt::format("cannot be {}", spec.group_size));
  if (spec.group_size > 0 && info.generate != generate_interleaved && info.generate != generate_k3)
    refuse_schedule(spec, "group_size", "takes the micro-batches in groups of its own");
  if (!(spec.memory_limit >= 0) || std::isinf(spec.memory_limit))
    refuse_schedule(spec, "memory_limit", fmt::format("cannot be {}", spec.memory_limit));
  if (info.fixed_chunks > 1 && spec.chunks > 1 && spec.chunks != info.fixed_chunks)
    refuse_schedule(spec, "chunks", fmt::format("has {} chunks per rank, got {}", info.fixed_chunks, spec.chunks));
}

// Stages are 16-bit numbers; the action count keeps a slip of the finger from filling the memory.
void check_size(const ScheduleSpec& spec, const ScheduleInfo& info) {
  constexpr double kMostStages = 32000, kMostActions = 2e8;
  const double stages = static_cast<double>(spec.ranks) * (info.fixed_chunks > 0 ? info.fixed_chunks : spec.chunks);
  if (stages > kMostStages)
    refuse_schedule(spec, "ranks", fmt::format("would have {} stages, at most {}", stages, kMostStages));
  const double actions = 3 * stages * spec.microbatches * spec.slices;
  if (actions > kMostActions)
    refuse_schedule(spec, "microbatches",
                    fmt::format("would have {:.3g} actions, at most {:.3g}", actions, kMostActions));
}
}  // namespace

Schedule make_schedule(const ScheduleSpec& spec) {
  const ScheduleInfo& info = find_schedule(spec.name);
  check_numbers(spec, info);
  check_size(spec, info);
  return info.generate(spec);
}

}  // namespace k3sim
