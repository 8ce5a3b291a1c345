// The task graph of the speed tables: 1F1B over P ranks, M micro-batches, L kernels per stage pass, one stream per
// rank. 2 P M L tasks and 2 (P - 1) M edges, one per hand-over between neighbours.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

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

}  // namespace k3sim::bench
