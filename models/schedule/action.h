// The one intermediate form of every pipeline schedule: per rank an ordered list of actions.
//
// An action is 16 plain bytes: what is done (kind), for which model stage and micro-batch. An overlapped pair carries
// two compute actions that run as one unit (first on `stage`, second on `other_stage`). Offload and onload name the
// rank that keeps the data in `other_stage` (-1: host memory). Full backward B = input gradient I + weight gradient W.
// Source: torch/distributed/pipelining/schedules.py (_Action), engine-design section 11; offload, onload and vision
// actions are ours (k3-facts section 2.2) and cannot be written to a PyTorch CSV.
#pragma once

#include <cstdint>
#include <string>

namespace k3sim {

enum class ActionKind : std::uint8_t {
  kIdle,           // empty cell: one time step without work
  kForward,        // F
  kInputGrad,      // I
  kWeightGrad,     // W
  kBackward,       // B = I + W
  kOverlap,        // (first;second)OVERLAP_F_B
  kSendForward,    // stage output to stage + 1
  kRecvForward,    // stage input from stage - 1
  kSendBackward,   // input gradient to stage - 1
  kRecvBackward,   // output gradient from stage + 1
  kUnshard,        // all-gather of the stage's parameters
  kReshard,        // free of the gathered parameters
  kReduceGrad,     // gradient reduction of the stage
  kOffload,        // activation of (stage, micro-batch) leaves this rank
  kOnload,         // and comes back before its backward
  kVisionForward,  // vision encoder of the micro-batch, on the stage's rank
  kVisionBackward,
};

// Annotations that change what an action costs, never its order or its dependencies.
enum ActionFlag : std::uint8_t {
  kFlagNone = 0,
  kFlagRedispatch = 1,     // backward re-runs the expert dispatch to rebuild the grouped-GEMM inputs
  kFlagRoutedWeights = 2,  // W holds the routed experts' weight gradients only; I carries all other weight gradients
  kFlagOverlapsSend = 4,   // W may run beside the pipeline send of its own backward
  kFlagGatherBefore = 8,   // stage parameters are gathered before this action (start of a run of the same stage)
  kFlagReduceAfter = 16,   // last gradient of the stage: reduction may start after it
};

struct Action {
  ActionKind kind = ActionKind::kIdle;
  ActionKind first_kind = ActionKind::kIdle;   // overlapped pairs only
  ActionKind second_kind = ActionKind::kIdle;  // overlapped pairs only
  std::uint8_t flags = kFlagNone;
  std::int16_t stage = -1;
  std::int16_t other_stage = -1;  // stage of a pair's second half; rank that keeps offloaded data
  std::int32_t microbatch = -1;   // -1: none (unshard, reshard, reduce-grad, idle)
  std::int32_t other_microbatch = -1;

  friend bool operator==(const Action&, const Action&) = default;
};
static_assert(sizeof(Action) == 16);

constexpr Action make_action(ActionKind kind, int stage, int microbatch = -1, std::uint8_t flags = kFlagNone) {
  Action a;
  a.kind = kind;
  a.flags = flags;
  a.stage = static_cast<std::int16_t>(stage);
  a.microbatch = microbatch;
  return a;
}

// Both halves must be plain compute actions.
constexpr Action make_overlap(const Action& first, const Action& second) {
  Action a = first;
  a.kind = ActionKind::kOverlap;
  a.first_kind = first.kind;
  a.second_kind = second.kind;
  a.other_stage = second.stage;
  a.other_microbatch = second.microbatch;
  return a;
}

constexpr Action first_half(const Action& pair) {
  return make_action(pair.first_kind, pair.stage, pair.microbatch);
}
constexpr Action second_half(const Action& pair) {
  return make_action(pair.second_kind, pair.other_stage, pair.other_microbatch);
}

// F, I, W or B; an overlapped pair is compute but not plain.
constexpr bool is_plain_compute(ActionKind k) {
  return k == ActionKind::kForward || k == ActionKind::kInputGrad || k == ActionKind::kWeightGrad ||
         k == ActionKind::kBackward;
}
constexpr bool is_compute(ActionKind k) {
  return is_plain_compute(k) || k == ActionKind::kOverlap;
}
constexpr bool is_transfer(ActionKind k) {
  return k >= ActionKind::kSendForward && k <= ActionKind::kRecvBackward;
}
constexpr bool is_send(ActionKind k) {
  return k == ActionKind::kSendForward || k == ActionKind::kSendBackward;
}
// The action produces the gradient that the stage before waits for.
constexpr bool yields_input_grad(ActionKind k) {
  return k == ActionKind::kInputGrad || k == ActionKind::kBackward;
}
constexpr bool yields_weight_grad(ActionKind k) {
  return k == ActionKind::kWeightGrad || k == ActionKind::kBackward;
}

// Calls visit(plain action) once, or twice for an overlapped pair.
template <class Visit>
constexpr void for_each_part(const Action& a, Visit&& visit) {
  if (a.kind == ActionKind::kOverlap) {
    visit(first_half(a));
    visit(second_half(a));
  } else {
    visit(a);
  }
}

// PyTorch spelling of the kind ("F", "SEND_F", "OVERLAP_F_B"); ours for the rest ("OFFLOAD", "VF").
const char* kind_text(ActionKind kind);
// PyTorch spelling of the action: "2F0", "1UNSHARD", "(0F7;7B3)OVERLAP_F_B"; "" for idle.
std::string to_string(const Action& action);

}  // namespace k3sim
