// What one communication of a step moves, apart from how long it takes alone: enough to put its bytes on links.
// Source: engine-design section 6 (level L1: phases as flows, calibrated when links are free).
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "models/comm/collectives.h"
#include "models/transformer/program.h"

namespace k3sim {

enum class TrafficKind : std::uint8_t {
  none,        // nothing crosses a link
  collective,  // `collective` by `algorithm` over a group
  two_hop,     // expert exchange: rows once per destination node, fanned out over NVLink
  hop,         // every rank of a stage to the rank of the same position in the stage `peer`
  to_host,
  from_host,
};

struct Traffic {
  TrafficKind kind = TrafficKind::none;
  Collective collective = Collective::send_recv;
  Algorithm algorithm = Algorithm::direct;
  GroupKind group = GroupKind::pp;
  bool inner = true;  // subgroup: neighbouring members, or those one inner subgroup apart; hop: towards the peer
  std::int32_t subgroup = 0;  // members of it; 0: the whole group
  std::int32_t peer = -1;     // pipeline rank
  double bytes = 0;           // collective: nccl-tests size; two_hop: leaving a rank over the network; else the message
  double nvlink = 0;          // two_hop: leaving a rank over NVLink
  Time latency{};             // part of `alone` before the first byte
  Time alone{};               // duration on a free network that is not oversubscribed
  friend auto operator<=>(const Traffic&, const Traffic&) = default;
};

using TrafficList = std::vector<Traffic>;  // one after the other

// The share f of a communication that is not hidden elsewhere.
inline void shrink(Traffic& t, double f) {
  t.bytes *= f;
  t.nvlink *= f;
  t.latency = scale(t.latency, f);
  t.alone = scale(t.alone, f);
}

}  // namespace k3sim
