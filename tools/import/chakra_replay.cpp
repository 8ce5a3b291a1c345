// Source: see chakra_replay.h.
#include "tools/import/chakra_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "sim/base/error.h"
#include "sim/graph/graph_builder.h"
#include "sim/graph/longest_path.h"

namespace k3sim {
namespace {

constexpr TaskId kNone{};

struct Vertex {
  std::size_t trace = 0;
  const ChakraNode* node = nullptr;
  std::vector<std::uint32_t> next, before;
  std::uint32_t waits = 0;
  std::uint32_t instance = 0;  // of a collective, from 1; 0: none
  TaskId task = kNone;
};

struct Instance {
  std::string group;
  std::vector<std::uint32_t> members;
  std::size_t ready = 0;
};

bool is_communication(ChakraType t) {
  return t == ChakraType::comm_coll || t == ChakraType::comm_send || t == ChakraType::comm_recv;
}

Time recorded(const ChakraNode& n) {
  if (const auto ns = n.integer("duration_nanos")) return Time::ns(*ns);
  return Time::us(static_cast<std::int64_t>(n.duration_us));
}

ChakraCollective kind_of(const ChakraNode& n) {
  const std::int64_t type = n.integer("comm_type").value_or(0);
  if (type < 0 || type >= kChakraCollectives) throw ConfigError(fmt::format("node {}: comm_type {}", n.id, type));
  return static_cast<ChakraCollective>(type);
}

class Replay {
 public:
  Replay(const ChakraFiles& files, const ReplayOptions& options) : files_(files), options_(options) {
    add_vertices();
    match_collectives();
    match_transfers();
    emit_in_order();
  }

  ReplayResult run() && {
    auto [graph, durations] = std::move(builder_).build();
    const TaskTimes times = longest_path(graph, durations);
    result_.makespan = times.makespan;
    for (std::size_t t = 0; t < files_.ranks.size(); ++t) result_.ranks.push_back(rank_times(t, times, durations));
    for (auto& [key, c] : collectives_) {
      c.bytes = Bytes(c.bytes.count() / std::max<std::int64_t>(1, c.count));
      result_.collectives.push_back(c);
    }
    return std::move(result_);
  }

 private:
  void add_vertices() {
    for (std::size_t t = 0; t < files_.traces.size(); ++t) {
      std::unordered_map<std::uint64_t, std::uint32_t> by_id;  // looked up only
      const std::size_t first = vertices_.size();
      for (const ChakraNode& n : files_.traces[t].nodes) {
        if (!by_id.emplace(n.id, static_cast<std::uint32_t>(vertices_.size())).second)
          throw ConfigError(fmt::format("rank {}: two nodes have the id {}", files_.ranks[t], n.id));
        vertices_.push_back({t, &n, {}, {}, 0, 0, kNone});
      }
      for (std::size_t v = first; v < vertices_.size(); ++v)
        for (const auto* list : {&vertices_[v].node->data_deps, &vertices_[v].node->ctrl_deps})
          for (std::uint64_t id : *list) {
            const auto it = by_id.find(id);
            if (it == by_id.end())
              throw ConfigError(fmt::format("rank {}: node {} ({}) waits for node {}, which is not in the trace",
                                            files_.ranks[t], vertices_[v].node->id, vertices_[v].node->name, id));
            connect(it->second, static_cast<std::uint32_t>(v));
          }
    }
  }

  void connect(std::uint32_t before, std::uint32_t after) {
    vertices_[before].next.push_back(after);
    vertices_[after].before.push_back(before);
    ++vertices_[after].waits;
  }

  std::string group_of(const ChakraNode& n) const {
    if (const auto name = n.text("pg_name")) return *name;
    if (const auto number = n.integer("pg_name")) return std::to_string(*number);
    return "";
  }

  std::vector<int> members_of(const std::string& group) const {
    if (const auto it = files_.groups.find(group); it != files_.groups.end() && !it->second.empty()) return it->second;
    std::vector<int> all;
    for (int r = 0; r < files_.world; ++r) all.push_back(r);
    return all;
  }

  // The n-th collective of a group on one rank is the n-th on all others.
  void match_collectives() {
    instances_.emplace_back();
    std::map<std::pair<std::string, std::size_t>, std::uint32_t> known;
    std::map<std::pair<std::size_t, std::string>, std::size_t> counted;
    for (std::uint32_t v = 0; v < vertices_.size(); ++v) {
      const ChakraNode& n = *vertices_[v].node;
      if (n.type != ChakraType::comm_coll) continue;
      const std::string group = group_of(n);
      const std::size_t number = counted[{vertices_[v].trace, group}]++;
      const auto [it, fresh] = known.try_emplace({group, number}, static_cast<std::uint32_t>(instances_.size()));
      if (fresh) instances_.push_back({group, {}, 0});
      instances_[it->second].members.push_back(v);
      vertices_[v].instance = it->second;
    }
  }

  void match_transfers() {
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::size_t>, std::uint32_t> sends;
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, bool>, std::size_t> counted;
    const auto key_of = [&](std::uint32_t v, bool sending) {
      const ChakraNode& n = *vertices_[v].node;
      const std::int64_t self = files_.ranks[vertices_[v].trace];
      return std::tuple(n.integer("comm_src").value_or(sending ? self : -1),
                        n.integer("comm_dst").value_or(sending ? -1 : self), n.integer("comm_tag").value_or(0));
    };
    for (bool sending : {true, false})
      for (std::uint32_t v = 0; v < vertices_.size(); ++v) {
        if (vertices_[v].node->type != (sending ? ChakraType::comm_send : ChakraType::comm_recv)) continue;
        const auto [src, dst, tag] = key_of(v, sending);
        const std::size_t number = counted[{src, dst, tag, sending}]++;
        if (sending) {
          sends[{src, dst, tag, number}] = v;
        } else if (const auto it = sends.find({src, dst, tag, number}); it != sends.end()) {
          connect(it->second, v);
        } else {
          ++unmatched_;
        }
      }
    if (unmatched_ > 0)
      result_.notes.push_back(fmt::format("{} receives without a send in these files end when they start", unmatched_));
  }

  // (recorded start, rank, id) among what can run.
  void emit_in_order() {
    using Key = std::tuple<std::uint64_t, std::size_t, std::uint64_t, std::uint32_t>;
    std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
    const auto offer = [&](std::uint32_t v) {
      const Vertex& x = vertices_[v];
      ready.push({x.node->start_us, x.trace, x.node->id, v});
    };
    const auto released = [&](std::uint32_t v) {
      const std::uint32_t i = vertices_[v].instance;
      if (i == 0) return offer(v);
      if (++instances_[i].ready == instances_[i].members.size())
        for (std::uint32_t m : instances_[i].members) offer(m);
    };
    std::size_t emitted = 0;
    for (std::uint32_t v = 0; v < vertices_.size(); ++v)
      if (vertices_[v].waits == 0) released(v);
    while (!ready.empty()) {
      const std::uint32_t v = std::get<3>(ready.top());
      ready.pop();
      ++emitted;
      emit(v);
      for (std::uint32_t next : vertices_[v].next)
        if (--vertices_[next].waits == 0) released(next);
    }
    if (emitted != vertices_.size()) report_deadlock();
  }

  [[noreturn]] void report_deadlock() const {
    for (const Vertex& v : vertices_)
      if (v.task == kNone && v.instance != 0 && instances_[v.instance].ready < instances_[v.instance].members.size() &&
          v.waits == 0)
        throw ConfigError(
            fmt::format("deadlock: rank {} is in collective node {} ({}) of group '{}', which {} of {} "
                        "members reach",
                        files_.ranks[v.trace], v.node->id, v.node->name, instances_[v.instance].group,
                        instances_[v.instance].ready, instances_[v.instance].members.size()));
    for (const Vertex& v : vertices_)
      if (v.task == kNone)
        throw ConfigError(fmt::format("deadlock: rank {} node {} ({}) waits for a node that waits for it",
                                      files_.ranks[v.trace], v.node->id, v.node->name));
    throw ConfigError("deadlock");
  }

  StreamId stream_of(const Vertex& v) {
    const ChakraNode& n = *v.node;
    const bool host = n.integer("is_cpu_op").value_or(0) != 0;
    std::string name = host ? "host" : n.type == ChakraType::comm_coll ? "comm " + group_of(n) : "gpu";
    if (n.type == ChakraType::comm_send) name = "send";
    if (n.type == ChakraType::comm_recv)
      name = fmt::format("receive {}", n.id);  // posted at once, never in order
    else if (const auto stream = n.integer("stream"))
      name = fmt::format("{} {}", host ? "host" : "stream", *stream);
    const auto [it, fresh] = streams_.try_emplace({v.trace, name}, StreamId());
    if (fresh) it->second = builder_.add_stream({RankId(static_cast<int>(v.trace)), 0});
    return it->second;
  }

  TaskId add(const Vertex& v, StreamId stream, Time duration, std::uint32_t tag) {
    return builder_.add(stream, static_cast<TaskKind>(v.node->type), duration, tag);
  }

  void emit(std::uint32_t v) {
    Vertex& x = vertices_[v];
    const StreamId stream = stream_of(x);
    if (x.instance != 0) {
      // Members arrive, a hub waits for all of them, then each member takes its time.
      const TaskId arrival = add(x, stream, Time(), v);
      wait_for_all(x, arrival);
      Instance& i = instances_[x.instance];
      auto [it, fresh] = hubs_.try_emplace(x.instance, kNone);
      if (fresh) it->second = builder_.add(builder_.add_stream({RankId(), 1}), 0, Time());
      builder_.depend(arrival, it->second);
      x.task = add(x, stream, duration_of(x), v);
      builder_.depend(it->second, x.task);
      count(x, static_cast<int>(members_of(i.group).size()));
    } else {
      x.task = add(x, stream, duration_of(x), v);
      wait_for_all(x, x.task);
      if (x.node->type == ChakraType::comm_send) count(x, 2);
    }
  }

  void wait_for_all(const Vertex& v, TaskId task) {
    for (std::uint32_t before : v.before) builder_.depend(vertices_[before].task, task);
  }

  Time duration_of(const Vertex& v) const {
    const ChakraNode& n = *v.node;
    if (n.type == ChakraType::metadata || n.type == ChakraType::invalid) return Time();
    if (n.type == ChakraType::comm_recv) return Time();
    if (n.type == ChakraType::comm_coll) return options_.network ? collective(n) : recorded(n);
    if (n.type == ChakraType::comm_send) return options_.network ? send(n, files_.ranks[v.trace]) : recorded(n);
    const Time time = recorded(n);
    if (time == Time() && n.integer("num_ops").value_or(0) + n.integer("tensor_size").value_or(0) > 0)
      return scale(roofline(n), options_.compute_scale);
    return n.integer("is_cpu_op").value_or(0) != 0 ? time : scale(time, options_.compute_scale);
  }

  Time roofline(const ChakraNode& n) const {
    Time t;
    const auto operations = static_cast<double>(n.integer("num_ops").value_or(0));
    if (options_.peak.value() > 0) t = Flops(operations) / options_.peak;
    if (options_.hbm.value() > 0) t = std::max(t, Bytes(n.integer("tensor_size").value_or(0)) / options_.hbm);
    return t;
  }

  CommGroup place(const std::vector<int>& members) const {
    std::map<int, int> per_node;
    for (int m : members) ++per_node[m / options_.network->gpus_per_node];
    CommGroup g;
    g.ranks = static_cast<int>(members.size());
    g.nodes = static_cast<int>(per_node.size());
    for (const auto& [node, count] : per_node) g.ranks_per_node = std::max(g.ranks_per_node, count);
    g.network_share = options_.network->network_share;
    return g;
  }

  Time collective(const ChakraNode& n) const {
    const ReplayNetwork& net = *options_.network;
    const std::vector<int> members = members_of(group_of(n));
    const CommGroup g = place(members);
    const Bytes bytes(n.integer("comm_size").value_or(0));
    if (const auto network = n.integer("network_bytes")) {
      const double nic = net.comm.scale_out.nic_payload.value() * net.network_share;
      const double seconds =
          std::max(static_cast<double>(*network) / nic,
                   static_cast<double>(n.integer("nvlink_bytes").value_or(0)) / net.comm.p2p_rate.value());
      return Time::from_seconds_ceil(seconds / net.ep_efficiency);
    }
    const auto timed = [&](Collective kind, Bytes buffer) {
      return scale(collective_time(net.comm, kind, buffer, g).time, 1.0 / net.efficiency);
    };
    switch (kind_of(n)) {
      case ChakraCollective::all_gather:
      case ChakraCollective::gather:
        return timed(Collective::all_gather, bytes * g.ranks);
      case ChakraCollective::reduce_scatter:
      case ChakraCollective::reduce_scatter_block:
      case ChakraCollective::scatter:
        return timed(Collective::reduce_scatter, bytes);
      case ChakraCollective::all_to_all:
        return timed(Collective::all_to_all, bytes);
      case ChakraCollective::broadcast:
        return timed(Collective::broadcast, bytes);
      case ChakraCollective::barrier:
        return timed(Collective::all_reduce, Bytes(8));
      case ChakraCollective::all_reduce:
      case ChakraCollective::reduce:
        return timed(Collective::all_reduce, bytes);
    }
    return Time();
  }

  Time send(const ChakraNode& n, int rank) const {
    const auto to = static_cast<int>(n.integer("comm_dst").value_or(rank));
    const Bytes bytes(n.integer("comm_size").value_or(0));
    return collective_time(options_.network->comm, Collective::send_recv, bytes, place({rank, to})).time;
  }

  void count(const Vertex& v, int ranks) {
    const bool send = v.node->type == ChakraType::comm_send;
    const std::string kind = send ? "SEND" : to_string(kind_of(*v.node));
    ReplayCollective& c = collectives_[{kind, ranks}];
    c.kind = kind;
    c.ranks = ranks;
    ++c.count;
    c.bytes += Bytes(v.node->integer("comm_size").value_or(0));
    c.recorded += recorded(*v.node);
    c.replayed += duration_of(v);
  }

  ReplayRank rank_times(std::size_t trace, const TaskTimes& times, const std::vector<Time>& durations) const {
    ReplayRank r;
    r.rank = files_.ranks[trace];
    std::vector<std::pair<Time, Time>> compute;
    for (const Vertex& v : vertices_) {
      if (v.trace != trace) continue;
      const Time d = durations[v.task.value];
      r.end = std::max(r.end, times.finish[v.task.value]);
      if (is_communication(v.node->type))
        r.communication += d;
      else if (v.node->integer("is_cpu_op").value_or(0) == 0)
        compute.emplace_back(times.start[v.task.value], times.finish[v.task.value]);
    }
    std::sort(compute.begin(), compute.end());
    Time until;
    for (const auto& [start, finish] : compute) {
      if (finish > until) r.compute += finish - std::max(start, until);
      until = std::max(until, finish);
    }
    r.exposed = r.end - r.compute;
    return r;
  }

  const ChakraFiles& files_;
  const ReplayOptions& options_;
  ReplayResult result_;
  GraphBuilder builder_;
  std::vector<Vertex> vertices_;
  std::vector<Instance> instances_;
  std::map<std::uint32_t, TaskId> hubs_;
  std::map<std::pair<std::size_t, std::string>, StreamId> streams_;
  std::map<std::pair<std::string, int>, ReplayCollective> collectives_;
  std::size_t unmatched_ = 0;
};

}  // namespace

ReplayResult replay_chakra(const ChakraFiles& files, const ReplayOptions& options) {
  return Replay(files, options).run();
}

}  // namespace k3sim
