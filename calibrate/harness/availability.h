// What can run on this machine, and the sentence that says why something cannot. Pure decisions over a description of
// the machine, so that they are tested without a GPU.
// Source: issue text ("picks what can run; says what it skipped and why"), k3-facts.md section 3.1 (MoonEP domain).
#pragma once

#include <string>
#include <vector>

namespace k3sim {

struct MachineFacts {
  int gpus = 0;                // that will be used
  int compute_capability = 0;  // 90 for Hopper
  double free_memory_gib = 0;  // of the fullest GPU
  bool peer_access = false;    // every pair can map the other's memory
  std::string nccl_problem;    // empty: libnccl was loaded
};

struct Needs {
  int gpus = 1;
  int compute_capability = 80;
  double memory_gib = 0;
  bool peer_access = false;
  bool nccl = false;
};

// Empty when the family can run; otherwise all reasons in one sentence.
std::string skip_reason(const Needs& needs, const MachineFacts& machine);

}  // namespace k3sim
