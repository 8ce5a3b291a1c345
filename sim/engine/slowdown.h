// Slow-down of tasks that run at the same time on one device (communication kernels take SMs and HBM from compute).
//   factor(a | others) = product over classes b active on the device besides the task itself of matrix[a][b]
// A class-a task that runs at full speed in w ps needs ceil(w * factor). A class counts once however many of its tasks
// are active; matrix[a][a] applies when another task of class a is active. Factors are kept as integers in units of
// 2^-20 (rounded up), so that progress is integer arithmetic and equal on every machine. The matrix is measured:
// compute kind x communication kind. Source: engine-design notes section 4. Valid for factors in [1, 1024]; not for
// effects that depend on the order of starts.
#pragma once

#include <array>
#include <cstdint>

#include "sim/base/units.h"
#include "sim/graph/task_graph.h"

namespace k3sim {

inline constexpr std::size_t kSharedClasses =
    kMaxSharedClass + std::size_t{1};  // class 0 is exclusive: always factor 1

// matrix[a][b]: by how much class a slows down while class b is active. Index 0 is unused.
using SlowdownMatrix = std::array<std::array<double, kSharedClasses>, kSharedClasses>;
SlowdownMatrix no_slowdown();

class SlowdownTable {
 public:
  static constexpr std::int64_t kUnit = std::int64_t{1} << 20;

  SlowdownTable() : SlowdownTable(no_slowdown()) {}
  // Requires: every factor in [1, 1024].
  explicit SlowdownTable(const SlowdownMatrix& matrix);

  bool trivial() const { return trivial_; }  // nothing slows anything down

  // Factor in units of 1 / kUnit; bit b of `others` says that class b is active besides the task itself.
  std::int64_t factor(ResourceClass a, std::uint32_t others) const { return factor_[a][others]; }

  // Wall time that `work` at full speed takes, rounded up; and the whole picoseconds of work done in `elapsed`.
  // progress(time_for(w, f), f) == w for every w >= 0: a task never ends before its work is done.
  static Time time_for(Time work, std::int64_t factor);
  static Time progress(Time elapsed, std::int64_t factor);

 private:
  std::array<std::array<std::int64_t, std::size_t{1} << kSharedClasses>, kSharedClasses> factor_{};
  bool trivial_ = true;
};

}  // namespace k3sim
