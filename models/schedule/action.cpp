// Text of actions, in the spelling of PyTorch's schedule files.
// Source: torch/distributed/pipelining/schedules.py (_Action.__repr__), engine-design section 11.1.
#include "models/schedule/action.h"

namespace k3sim {

const char* kind_text(ActionKind kind) {
  switch (kind) {
    case ActionKind::kIdle:
      return "";
    case ActionKind::kForward:
      return "F";
    case ActionKind::kInputGrad:
      return "I";
    case ActionKind::kWeightGrad:
      return "W";
    case ActionKind::kBackward:
      return "B";
    case ActionKind::kOverlap:
      return "OVERLAP_F_B";
    case ActionKind::kSendForward:
      return "SEND_F";
    case ActionKind::kRecvForward:
      return "RECV_F";
    case ActionKind::kSendBackward:
      return "SEND_B";
    case ActionKind::kRecvBackward:
      return "RECV_B";
    case ActionKind::kUnshard:
      return "UNSHARD";
    case ActionKind::kReshard:
      return "RESHARD";
    case ActionKind::kReduceGrad:
      return "REDUCE_GRAD";
    case ActionKind::kOffload:
      return "OFFLOAD";
    case ActionKind::kOnload:
      return "ONLOAD";
    case ActionKind::kVisionForward:
      return "VF";
    case ActionKind::kVisionBackward:
      return "VB";
  }
  return "?";
}

std::string to_string(const Action& action) {
  if (action.kind == ActionKind::kIdle) return {};
  if (action.kind == ActionKind::kOverlap)
    return "(" + to_string(first_half(action)) + ";" + to_string(second_half(action)) + ")OVERLAP_F_B";
  std::string text = std::to_string(action.stage) + kind_text(action.kind);
  if (action.microbatch >= 0) text += std::to_string(action.microbatch);
  return text;
}

}  // namespace k3sim
