// Checked symmetry folding: simulate one representative per class of interchangeable ranks, with a multiplicity.
//
// Ranks are interchangeable when they run the same program at the same cost, sit in the same distance class of the
// fabric, and talk in the same way to the same classes of peers. fold() finds the coarsest such partition by colour
// refinement: start from the signatures, split classes whose members see different multisets of (relation, peer class),
// repeat until nothing splits, O(rounds * (ranks + peers log peers)). By induction along dependencies all members of a
// class then have equal times, so the folded run is exact, not an approximation (tests/property/sim/engine).
// A dimension that is not symmetric (straggler, odd placement) simply ends up unfolded; check_folding() says why.
// Source: engine-design notes section 7; colour refinement: Weisfeiler and Leman 1968. Knows no LLM: what a signature
// hashes is the caller's business, and a signature that leaves something out makes the result wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/ids.h"

namespace k3sim {

struct RankSignature {
  std::uint64_t program = 0;    // what it runs, in which order
  std::uint64_t cost = 0;       // how long each of it takes
  std::uint64_t placement = 0;  // distance class of its groups in the fabric, background load
  friend bool operator==(const RankSignature&, const RankSignature&) = default;
};

// `to` depends on `from`; `relation` tells apart what for (which message, which group, which distance class).
struct PeerRelation {
  RankId from;
  RankId to;
  std::uint64_t relation = 0;
};

struct RankDescription {
  std::vector<RankSignature> signatures;  // by rank
  std::vector<PeerRelation> peers;
};

struct Folding {
  std::vector<std::uint32_t> class_of;      // by rank
  std::vector<RankId> representative;       // by class: its smallest rank; ascending
  std::vector<std::uint32_t> multiplicity;  // by class; sums to the number of ranks
};

struct FoldingViolation {
  RankId rank;
  RankId representative;
  std::string what;
};

// The coarsest valid folding. Requires: peers name existing ranks.
Folding fold(const RankDescription& ranks);

// A folding from proposed class labels (any numbers), to be checked; and the one in which every rank stands for itself.
Folding folding_from_labels(std::span<const std::uint64_t> label_by_rank);
Folding no_folding(std::size_t ranks);

// Every rank that is not interchangeable with its representative, in rank order; empty: the folding is valid.
std::vector<FoldingViolation> check_folding(const Folding& folding, const RankDescription& ranks);

}  // namespace k3sim
