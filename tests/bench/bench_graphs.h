// Task graphs of the speed tables. one_f_one_b: 1F1B over P ranks, M micro-batches, L kernels per stage pass, one
// stream per rank. 2 P M L tasks and 2 (P - 1) M edges, one per hand-over between neighbours. Others below.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/base/fingerprint.h"
#include "sim/graph/graph_builder.h"

namespace k3sim::bench {

struct PipelineSize {
  std::uint32_t ranks = 16;
  std::uint32_t micro_batches = 64;
  std::uint32_t kernels = 1;  // per stage pass
};

// Kernel durations differ a little from each other, so that completions do not all fall on one instant.
inline Time kernel_time(std::uint32_t rank, std::uint32_t kernel) {
  return Time::ns(20'000 + 37 * (kernel % 61)) + Time::ps(101 * rank);
}

inline BuiltGraph one_f_one_b(const PipelineSize& size) {
  GraphBuilder b;
  const std::size_t passes = std::size_t{size.ranks} * size.micro_batches;
  b.reserve(2 * passes * size.kernels, 2 * passes);
  std::vector<TaskId> forward_end(passes), backward_end(passes), forward_begin(passes), backward_begin(passes);
  for (std::uint32_t r = 0; r < size.ranks; ++r) {
    const StreamId stream = b.add_stream({RankId(std::size_t{r}), 0});
    const auto pass = [&](std::uint32_t m, TaskKind kind, std::vector<TaskId>& begin, std::vector<TaskId>& end) {
      for (std::uint32_t k = 0; k < size.kernels; ++k) {
        const TaskId t = b.add(stream, kind, kernel_time(r, k) * (kind + 1));
        if (k == 0) begin[std::size_t{r} * size.micro_batches + m] = t;
        end[std::size_t{r} * size.micro_batches + m] = t;
      }
    };
    const std::uint32_t warm_up = std::min(size.ranks - r - 1, size.micro_batches);
    for (std::uint32_t m = 0; m < warm_up; ++m) pass(m, 0, forward_begin, forward_end);
    for (std::uint32_t m = warm_up; m < size.micro_batches; ++m) {
      pass(m, 0, forward_begin, forward_end);
      pass(m - warm_up, 1, backward_begin, backward_end);
    }
    for (std::uint32_t m = size.micro_batches - warm_up; m < size.micro_batches; ++m) {
      pass(m, 1, backward_begin, backward_end);
    }
  }
  for (std::size_t p = size.micro_batches; p < passes; ++p) {
    const std::size_t above = p - size.micro_batches;
    b.depend(forward_end[above], forward_begin[p]);
    b.depend(backward_end[p], backward_begin[above]);
  }
  return std::move(b).build();
}

// Independent streams whose tasks last 20-60 us, spread by a hash.
inline Time spread_time(std::uint64_t index) {
  return Time::ps(static_cast<std::int64_t>(20'000'000 + Fingerprint::mix(index) % 40'000'000));
}

inline BuiltGraph wide_graph(std::uint32_t streams, std::uint32_t length) {
  GraphBuilder b;
  for (std::uint32_t s = 0; s < streams; ++s) {
    const StreamId stream = b.add_stream({RankId(std::size_t{s}), 0});
    for (std::uint32_t i = 0; i < length; ++i) b.add(stream, 0, spread_time(b.task_count()));
  }
  return std::move(b).build();
}

// Per device a compute and a communication stream; each communication waits for a kernel and runs beside the next ones.
inline BuiltGraph overlapped_graph(std::uint32_t devices, std::uint32_t length) {
  GraphBuilder b;
  for (std::uint32_t d = 0; d < devices; ++d) {
    const StreamId compute = b.add_stream({RankId(std::size_t{d}), 0});
    const StreamId network = b.add_stream({RankId(std::size_t{d}), 1});
    for (std::uint32_t i = 0; i < length; ++i) {
      const Time work = spread_time(b.task_count());
      const TaskId kernel = b.add({.stream = compute, .kind = 0, .duration = work, .resource = 1});
      const Time transfer = spread_time(b.task_count());
      b.depend(kernel, b.add({.stream = network, .kind = 1, .duration = transfer, .resource = 2}));
    }
  }
  return std::move(b).build();
}

}  // namespace k3sim::bench
