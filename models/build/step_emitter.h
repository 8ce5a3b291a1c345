// Emits the tasks of one rank: layer passes on lanes, host launches, transfers. Internal to models/build.
// Source: step_graph.h.
#pragma once

#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "models/build/step_graph.h"

namespace k3sim {

inline constexpr TaskId kNoTask{};

// Streams carry (pipeline rank, represented replica) in one id.
constexpr std::int32_t kReplicasPerStage = 1'000'000;
inline RankId stream_rank(int rank, int replica) {
  return RankId(rank * kReplicasPerStage + replica);
}
inline int stage_of(RankId id) {
  return static_cast<int>(id.value) / kReplicasPerStage;
}

// Walks the items of a list of passes (the layers of one chunk in execution order) one by one, so that two walks can be
// merged for overlapped pairs.
struct PassStep {
  const TimedPass* pass = nullptr;
  int chunk = -1, part = -1;
  TaskId gather;               // parameters must be there before the first item
  TaskId onload;               // offloaded tensors must be back before the first item
  TaskId buffer;               // gradient buffer that must be free before the first item
  Time contention;             // added compute time because parameter traffic runs beside it
  bool last_gradient = false;  // weight gradients of the part are complete after this pass
};

struct PassWalk {
  std::vector<PassStep> steps;
  std::size_t step = 0, item = 0;
  std::vector<TaskId> ids;    // tasks of the current pass
  std::vector<TaskId> entry;  // what the current pass waits for
  TaskId first, tail, last_compute, last_input, last_weight;
  std::int64_t launches = 0;  // of the current pass so far
  bool done() const { return step == steps.size(); }
};

class RankEmitter {
 public:
  RankEmitter(GraphBuilder& builder, const Machine& machine, StepGraph& graph, StepGraphOptions::Detail detail)
      : builder_(builder), machine_(machine), graph_(graph), detail_(detail) {}

  void open_rank(int rank, int replica);
  // To come back to a rank after others were opened.
  struct RankMark {
    std::array<StreamId, kRankStreams> streams{};
    std::uint32_t together = 0;
  };
  RankMark mark_rank() const { return {streams_, together_count_}; }
  void reopen_rank(int rank, int replica, const RankMark& mark) {
    rank_ = rank, replica_ = replica, streams_ = mark.streams, together_count_ = mark.together;
  }
  StreamId stream(StreamRole role) const { return streams_[static_cast<std::size_t>(role)]; }
  TaskId add(StreamRole role, StepTask kind, Time duration, std::uint32_t label = 0);
  // A communication or copy: with flows in force the bytes decide how long it takes, else the duration. `together`: the
  // same task of all simulated replicas starts and ends with it.
  TaskId add_flow(StreamRole role, StepTask kind, Time duration, std::uint32_t label, const TrafficList& traffic,
                  bool together = false);
  bool flows() const { return graph_.flows; }
  void depend(TaskId before, TaskId after);

  // Emits items until the walk ends or (when `until_comm`) an expert-communication item has been emitted.
  template <class OnPassEnd>
  void run(PassWalk& walk, bool until_comm, const OnPassEnd& on_pass_end) {
    while (!walk.done()) {
      const bool was_comm = emit_next(walk);
      if (walk.item == walk.steps[walk.step].pass->items.size() || detail_ == StepGraphOptions::Detail::step)
        end_pass(walk, on_pass_end);
      if (until_comm && was_comm) return;
    }
  }
  std::uint32_t label(const char* name, const ParameterCount& parameters = {}, Bytes payload = Bytes());

  // Collectives of unfolded groups, by (group kind, running number, replica): resolved by the graph builder.
  struct Collective {
    GroupKind group;
    int rank, replica;
    std::uint32_t number;
    TaskId arrive, task;
    std::size_t flow;  // in StepGraph::flow_tasks; kNoFlow
  };
  static constexpr std::size_t kNoFlow = static_cast<std::size_t>(-1);
  std::vector<Collective> collectives;
  bool rendezvous = false;
  Time host_action{};  // added to the first pass of an action

 private:
  // Collectives of a stage's own replicas meet when these are unfolded; those over the pipeline (vocabulary) do not.
  bool arrives(const TimedItem& item) const { return item.is_comm && rendezvous && item.group != GroupKind::pp; }
  bool emit_next(PassWalk& walk);
  void emit_whole_pass(PassWalk& walk);
  TaskId add_item(const TimedItem& item, std::uint32_t label);
  void connect_item(PassWalk& walk, const TimedItem& item, TaskId id);
  std::uint32_t pass_label(const PassStep& step);
  void emit_host(PassWalk& walk);

  template <class OnPassEnd>
  void end_pass(PassWalk& walk, const OnPassEnd& on_pass_end) {
    emit_host(walk);
    on_pass_end(walk.steps[walk.step], walk);
    if (walk.tail != kNoTask) {
      walk.entry.assign(1, walk.tail);
      if (walk.last_input != kNoTask && walk.last_input != walk.tail) walk.entry.push_back(walk.last_input);
    }
    walk.ids.clear();
    walk.item = 0;
    walk.launches = 0;
    walk.last_compute = kNoTask;
    walk.last_weight = kNoTask;
    ++walk.step;
  }

  GraphBuilder& builder_;
  const Machine& machine_;
  StepGraph& graph_;
  StepGraphOptions::Detail detail_;
  std::array<StreamId, kRankStreams> streams_{};
  int rank_ = 0, replica_ = 0;
  std::map<std::tuple<const TimedPass*, int, int>, std::uint32_t> pass_labels_;
  std::map<std::tuple<std::string_view, std::int64_t, std::int64_t, std::int64_t>, std::uint32_t> plain_labels_;
  std::map<std::tuple<GroupKind, int, int>, std::uint32_t> collective_count_;
  std::map<StageTraffic, std::uint32_t> traffic_index_;
  std::map<std::pair<int, std::uint32_t>, std::uint32_t> joint_index_;  // by (rank, running number)
  std::uint32_t together_count_ = 0;                                    // on the open rank
};

}  // namespace k3sim
