// Colour refinement on ranks: labels are 64-bit hashes of (own label, sorted neighbourhood) and are replaced by class
// numbers only at the end; check_folding compares the hashed things themselves.
// Source: Weisfeiler and Leman 1968; engine-design notes section 7.
#include "sim/graph/folding.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace k3sim {

namespace {

// What one rank sees of one peer: direction, relation, class of the peer.
using Seen = std::tuple<bool, std::uint64_t, std::uint64_t>;

// By rank, sorted. `label` by rank.
std::vector<std::vector<Seen>> neighbourhoods(const std::vector<PeerRelation>& peers,
                                              const std::vector<std::uint64_t>& label) {
  std::vector<std::vector<Seen>> seen(label.size());
  for (const PeerRelation& p : peers) {
    CS_CHECK(p.from.value < label.size() && p.to.value < label.size(), "peers {} and {} of {} ranks", p.from.value,
             p.to.value, label.size());
    seen[p.to.value].emplace_back(false, p.relation, label[p.from.value]);
    seen[p.from.value].emplace_back(true, p.relation, label[p.to.value]);
  }
  for (std::vector<Seen>& s : seen) std::sort(s.begin(), s.end());
  return seen;
}

std::uint64_t hash(const RankSignature& s) {
  Fingerprint f;
  f.add(s.program);
  f.add(s.cost);
  f.add(s.placement);
  return f.value();
}

std::vector<std::uint64_t> refine(const std::vector<std::uint64_t>& label, const std::vector<PeerRelation>& peers) {
  const auto seen = neighbourhoods(peers, label);
  std::vector<std::uint64_t> out;
  for (std::size_t r = 0; r < label.size(); ++r) {
    Fingerprint f;
    f.add(label[r]);
    for (const auto& [outgoing, relation, peer] : seen[r]) {
      f.add(std::uint64_t{outgoing});
      f.add(relation);
      f.add(peer);
    }
    out.push_back(f.value());
  }
  return out;
}

const char* difference(const RankSignature& a, const RankSignature& b) {
  if (a.program != b.program) return "runs another program";
  if (a.cost != b.cost) return "has other costs";
  return a.placement != b.placement ? "is placed differently in the fabric" : nullptr;
}

}  // namespace

Folding folding_from_labels(std::span<const std::uint64_t> label_by_rank) {
  Folding out;
  std::map<std::uint64_t, std::uint32_t> class_of_label;
  for (std::size_t r = 0; r < label_by_rank.size(); ++r) {
    const auto next = static_cast<std::uint32_t>(out.representative.size());
    const auto [at, inserted] = class_of_label.try_emplace(label_by_rank[r], next);
    if (inserted) {
      out.representative.push_back(RankId(r));
      out.multiplicity.push_back(0);
    }
    out.class_of.push_back(at->second);
    ++out.multiplicity[at->second];
  }
  return out;
}

Folding no_folding(std::size_t ranks) {
  std::vector<std::uint64_t> label(ranks);
  for (std::size_t r = 0; r < ranks; ++r) label[r] = r;
  return folding_from_labels(label);
}

Folding fold(const RankDescription& ranks) {
  std::vector<std::uint64_t> label;
  for (const RankSignature& s : ranks.signatures) label.push_back(hash(s));
  Folding out = folding_from_labels(label);
  for (std::size_t before = 0; before != out.representative.size();) {
    before = out.representative.size();
    label = refine(label, ranks.peers);
    out = folding_from_labels(label);
  }
  // Guards against a collision of two 64-bit hashes: the check compares what was hashed.
  CS_CHECK(check_folding(out, ranks).empty(), "refinement of {} ranks gave an invalid folding", label.size());
  return out;
}

std::vector<FoldingViolation> check_folding(const Folding& folding, const RankDescription& ranks) {
  CS_CHECK(folding.class_of.size() == ranks.signatures.size(), "folding of {} ranks, description of {}",
           folding.class_of.size(), ranks.signatures.size());
  const std::vector<std::uint64_t> label(folding.class_of.begin(), folding.class_of.end());
  const auto seen = neighbourhoods(ranks.peers, label);
  std::vector<FoldingViolation> out;
  for (std::size_t r = 0; r < label.size(); ++r) {
    const RankId rep = folding.representative[folding.class_of[r]];
    const char* what = difference(ranks.signatures[rep.value], ranks.signatures[r]);
    if (what == nullptr && seen[r] != seen[rep.value]) what = "talks to other classes of peers";
    if (what == nullptr) continue;
    out.push_back({RankId(r), rep, fmt::format("rank {} {} than rank {}", r, what, rep.value)});
  }
  return out;
}

}  // namespace k3sim
