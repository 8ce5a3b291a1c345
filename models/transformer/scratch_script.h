// The order in which one operation asks for memory while it runs, when one lump of scratch would not show what an
// allocator sees: scratch tensors are made and dropped by slot, and a mark says where the operation's own results are
// made. Slots that are still there at the end are dropped. Sizes add up to the operation's scratch bytes at the peak.
// Source: the kernels' host code, named where a script is written.
#pragma once

#include <vector>

#include "sim/base/units.h"

namespace k3sim {

struct ScratchStep {
  enum class Kind : std::uint8_t { make, drop, result };
  Kind kind = Kind::make;
  int slot = 0;  // of make and drop; result: the input whose gradient is made (backward), unused in forward
  Bytes bytes{0};
};

class ScratchScript {
 public:
  // Returns the slot.
  int make(Bytes bytes) {
    steps_.push_back({ScratchStep::Kind::make, slots_, bytes});
    return slots_++;
  }
  void drop(int slot) { steps_.push_back({ScratchStep::Kind::drop, slot, Bytes(0)}); }
  void result(int input = 0) { steps_.push_back({ScratchStep::Kind::result, input, Bytes(0)}); }
  bool empty() const { return steps_.empty(); }
  int slots() const { return slots_; }
  const std::vector<ScratchStep>& steps() const { return steps_; }

 private:
  std::vector<ScratchStep> steps_;
  int slots_ = 0;
};

}  // namespace k3sim
