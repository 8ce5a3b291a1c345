// Source: see chakra_export.h.
#include "tools/import/chakra_export.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>

#include "models/build/step_emitter.h"
#include "sim/base/check.h"
#include "tools/import/step_items.h"

namespace k3sim {
namespace {

constexpr GroupKind kKinds[] = {GroupKind::tp,  GroupKind::cp, GroupKind::ep,
                                GroupKind::etp, GroupKind::dp, GroupKind::expert_dp};
constexpr int kWorldGroup = 0;

StepTask kind_of(const TaskGraph& g, TaskId t) {
  return static_cast<StepTask>(g.kind(t));
}

std::uint64_t whole_microseconds(Time t) {
  return static_cast<std::uint64_t>(std::llround(t.microseconds()));
}

ChakraCollective collective_of(CommKind kind) {
  switch (kind) {
    case CommKind::all_reduce:
      return ChakraCollective::all_reduce;
    case CommKind::all_gather:
    case CommKind::ring_exchange:
      return ChakraCollective::all_gather;
    case CommKind::reduce_scatter:
      return ChakraCollective::reduce_scatter;
    case CommKind::all_to_all:
    case CommKind::dispatch:
    case CommKind::combine:
      return ChakraCollective::all_to_all;
  }
  CS_CHECK(false, "unknown communication kind {}", static_cast<int>(kind));
}

struct CollectiveNode {
  ChakraCollective kind = ChakraCollective::all_reduce;
  GroupKind group = GroupKind::dp;
  Bytes bytes;  // what one rank puts in
  Time duration;
  Bytes network, nvlink;  // of a deduplicated exchange
};

}  // namespace

// Nodes of one rank. Every task becomes a run of nodes; what waits for it waits for the last one.
struct ChakraExport::Writer {
  const ChakraExport& e;
  const int rank, stage, replica;
  ChakraTrace trace;
  std::map<TaskId, std::uint64_t> last;  // by task: its last node
  std::uint64_t next_id = 1;

  Writer(const ChakraExport& of, int world_rank)
      : e(of),
        rank(world_rank),
        stage(world_rank / of.plan_.placement->replicas()),
        replica(world_rank % of.plan_.placement->replicas()) {
    trace.metadata = chakra_metadata("0.0.4");
  }

  int peer(int other_stage) const { return other_stage * e.plan_.placement->replicas() + replica; }

  ChakraNode& add(ChakraType type, const char* name, Time start, Time duration, const std::vector<std::uint64_t>& after,
                  bool on_host = false) {
    ChakraNode n;
    n.id = next_id++;
    n.name = name;
    n.type = type;
    n.data_deps = after;
    n.start_us = whole_microseconds(start);
    n.duration_us = whole_microseconds(start + duration) - n.start_us;  // errors of rounding do not add up
    n.set_bool("is_cpu_op", on_host);
    n.set_uint64("duration_nanos", static_cast<std::uint64_t>(duration.picoseconds() / 1000));
    trace.nodes.push_back(std::move(n));
    return trace.nodes.back();
  }

  void transfer(ChakraType type, Bytes bytes, int from, int to, TaskId tag, ChakraNode& n) const {
    n.set_int64("comm_size", std::max<std::int64_t>(1, bytes.count()));
    n.set_int32("comm_src", from);
    n.set_int32("comm_dst", to);
    n.set_int32("comm_tag", static_cast<std::int32_t>(tag.value));
    n.set_int64("stream", type == ChakraType::comm_recv ? kRankStreams : stream_of(tag));
  }

  std::int64_t stream_of(TaskId t) const {
    const TaskGraph& g = e.graph_.built.graph;
    return g.info(g.stream(t)).role;
  }

  Bytes payload(TaskId t) const { return e.graph_.labels[e.graph_.built.graph.tag(t)].payload; }

  // What the task waits for on this rank; a task of another stage is waited for by receiving from there.
  std::vector<std::uint64_t> waits(TaskId t) {
    std::vector<std::uint64_t> after;
    if (const TaskId b = e.stream_before_[t.value]; b != kNoTask && last.count(b)) after.push_back(last.at(b));
    for (TaskId b : e.before_[t.value]) {
      const int from = e.stage_of(b);
      if (from >= 0 && from != stage) {
        if (e.stage_of(t) < 0) continue;  // a global task is a collective or the same on all ranks
        ChakraNode& n = add(ChakraType::comm_recv, "receive", e.times_.finish[b.value], Time(), {});
        transfer(ChakraType::comm_recv, payload(b), peer(from), rank, b, n);
        after.push_back(n.id);
      } else if (const auto it = last.find(b); it != last.end()) {
        after.push_back(it->second);
      }
    }
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    return after;
  }

  std::vector<int> receivers(TaskId t) const {
    std::vector<int> out;
    for (TaskId s : e.graph_.built.graph.successors(t))
      if (const int to = e.stage_of(s); to >= 0 && to != e.stage_of(t) && e.stage_of(t) >= 0) out.push_back(to);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }

  CollectiveNode item_collective(const TimedItem& item) const {
    CollectiveNode c{collective_of(item.comm), item.group, item.buffer, item.time, {}, {}};
    if (item.comm == CommKind::dispatch || item.comm == CommKind::combine) {
      c.network = item.network;
      c.nvlink = item.nvlink;
      c.bytes = item.network + item.nvlink;
    } else if (c.kind == ChakraCollective::all_gather) {
      c.bytes = item.buffer.share(e.plan_.placement->group(item.group).ranks);
    }
    return c;
  }

  std::vector<CollectiveNode> parameter_collectives(const ParameterCount& p, bool gather) const {
    const OptimizerConfig& o = e.plan_.scenario.optimizer;
    std::vector<CollectiveNode> out;
    const auto one = [&](std::int64_t parameters, GroupKind group, Time time) {
      if (parameters == 0 || time == Time()) return;
      CollectiveNode c;
      c.group = group;
      c.duration = time;
      c.kind = gather        ? ChakraCollective::all_gather
               : o.zero == 0 ? ChakraCollective::all_reduce
                             : ChakraCollective::reduce_scatter;
      c.bytes = gather ? e.data_parallel_.gathered_bytes(parameters).share(e.data_parallel_.shard_ranks(group))
                       : parameters * o.gradient_bytes;
      out.push_back(c);
    };
    const DataParallel& d = e.data_parallel_;
    const ParameterCount dense{p.dense, 0}, experts{0, p.experts};
    one(p.dense, GroupKind::dp, (gather ? d.gather(dense) : d.reduce(dense)).time);
    one(p.experts, GroupKind::expert_dp, (gather ? d.gather(experts) : d.reduce(experts)).time);
    return out;
  }

  void put(const CollectiveNode& c, const char* name, int group, std::int64_t stream, Time start,
           const std::vector<std::uint64_t>& after) {
    ChakraNode& n = add(ChakraType::comm_coll, name, start, c.duration, after);
    n.set_int64("comm_type", static_cast<std::int64_t>(c.kind));
    n.set_int64("comm_size", std::max<std::int64_t>(1, c.bytes.count()));
    n.set_text("pg_name", std::to_string(group));
    n.set_int64("stream", stream);
    if (c.network + c.nvlink == Bytes()) return;
    n.set_int64("network_bytes", c.network.count());
    n.set_int64("nvlink_bytes", c.nvlink.count());
  }

  void task(TaskId t) {
    const TaskGraph& g = e.graph_.built.graph;
    const TaskLabel& label = e.graph_.labels[g.tag(t)];
    const StepTask kind = kind_of(g, t);
    const Time start = e.times_.start[t.value], duration = e.graph_.built.durations[t.value];
    std::vector<std::uint64_t> after = waits(t);
    const TimedItem* item = e.items_[g.tag(t)];
    const bool parameters = kind == StepTask::param_gather || kind == StepTask::grad_reduce;
    std::vector<CollectiveNode> collectives;
    if (item && item->is_comm && e.group_name(item->group, rank) >= 0) collectives.push_back(item_collective(*item));
    if (parameters) collectives = parameter_collectives(label.parameters, kind == StepTask::param_gather);
    const std::vector<int> to = receivers(t);
    if (kind == StepTask::barrier) {
      put({ChakraCollective::all_reduce, GroupKind::dp, Bytes(8), duration, {}, {}}, label.name, kWorldGroup,
          kRankStreams, start, after);
    } else if (!collectives.empty()) {
      Time at = start;
      for (const CollectiveNode& c : collectives) {
        put(c, label.name, e.group_name(c.group, rank), stream_of(t), at, after);
        after = {next_id - 1};
        at += c.duration;
      }
    } else if (kind == StepTask::transfer && !to.empty()) {
      ChakraNode& n = add(ChakraType::comm_send, label.name, start, duration, after);
      transfer(ChakraType::comm_send, label.payload, rank, peer(to.front()), t, n);
    } else {
      ChakraNode& n = add(ChakraType::comp, label.name, start, duration, after, kind == StepTask::host);
      n.set_int64("stream", stream_of(t));
      if (item) n.set_int64("num_ops", static_cast<std::int64_t>(item->flops.value()));
    }
    last[t] = next_id - 1;
  }
};

ChakraExport::ChakraExport(const StepPlan& plan, const Machine& machine, const StepGraph& graph, const TaskTimes& times)
    : plan_(plan), machine_(machine), graph_(graph), times_(times), data_parallel_(plan, machine) {
  CS_CHECK(graph.replicas.size() == 1, "{} replicas; only a folded graph is exported", graph.replicas.size());
  index_tasks();
  number_groups();
}

int ChakraExport::stage_of(TaskId t) const {
  const RankId rank = graph_.built.graph.info(graph_.built.graph.stream(t)).rank;
  return rank.valid() ? static_cast<int>(rank.value / 1'000'000) : -1;
}

void ChakraExport::index_tasks() {
  const TaskGraph& g = graph_.built.graph;
  tasks_.resize(static_cast<std::size_t>(plan_.placement->pp()));
  before_.resize(g.task_count());
  stream_before_.assign(g.task_count(), kNoTask);
  for (std::uint32_t i = 0; i < g.task_count(); ++i) {
    const TaskId t(i);
    const int stage = stage_of(t);
    for (std::size_t s = 0; s < tasks_.size(); ++s)
      if (stage < 0 || stage == static_cast<int>(s)) tasks_[s].push_back(t);
    for (TaskId s : g.successors(t)) before_[s.value].push_back(t);
  }
  for (std::uint32_t s = 0; s < g.stream_count(); ++s) {
    TaskId previous = kNoTask;
    for (TaskId t : g.stream_tasks(StreamId(s))) {
      stream_before_[t.value] = previous;
      previous = t;
    }
  }
  const auto key = [&](TaskId t) { return std::tuple(times_.start[t.value], times_.finish[t.value], t); };
  for (std::vector<TaskId>& list : tasks_)
    std::sort(list.begin(), list.end(), [&](TaskId a, TaskId b) { return key(a) < key(b); });
  items_ = items_by_label(graph_);
}

void ChakraExport::number_groups() {
  const Placement& p = *plan_.placement;
  groups_.emplace_back();
  for (int r = 0; r < world(); ++r) groups_.back().push_back(r);
  for (GroupKind kind : kKinds) {
    if (p.group(kind).ranks <= 1) continue;
    for (int r = 0; r < world(); ++r) {
      const int base = r / p.replicas() * p.replicas();
      std::vector<int> members = p.members(kind, r % p.replicas());
      for (int& m : members) m += base;
      if (members.front() != r) continue;
      group_of_[{static_cast<int>(kind), r}] = static_cast<int>(groups_.size());
      groups_.push_back(std::move(members));
    }
  }
}

int ChakraExport::group_name(GroupKind kind, int world_rank) const {
  const Placement& p = *plan_.placement;
  if (kind == GroupKind::pp || p.group(kind).ranks <= 1) return -1;
  const int base = world_rank / p.replicas() * p.replicas();
  const int leader = base + p.members(kind, world_rank % p.replicas()).front();
  return group_of_.at({static_cast<int>(kind), leader});
}

ChakraTrace ChakraExport::rank(int world_rank) const {
  Writer writer(*this, world_rank);
  for (TaskId t : tasks_[static_cast<std::size_t>(writer.stage)]) writer.task(t);
  return std::move(writer.trace);
}

std::string ChakraExport::groups_json() const {
  nlohmann::ordered_json j;
  for (std::size_t i = 0; i < groups_.size(); ++i) j[std::to_string(i)] = groups_[i];
  return j.dump() + "\n";
}

}  // namespace k3sim
