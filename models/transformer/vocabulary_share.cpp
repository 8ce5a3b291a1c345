// One pipeline rank's share of the vocabulary layers, when both tables are split over the p ranks of the pipeline.
//   head       forward (pass S): the last stage's output X is broadcast, every rank makes the logits of its V / p rows
//              and their softmax statistics; backward (pass T): gradients of its rows and of X, which is reduced
//   embedding  every rank looks up its rows; 1 / p of the traffic
// Volumes over the pipeline group, s b tokens: X out and its gradient back 2 s b h bytes each, statistics 8 s b bytes
// (maximum and sum, FP32). The order of S and T between the pipeline's passes costs one interval per barrier; the
// schedule's extra warm-up stands for that. With `overlap` (Vocab-1, Vocab-2) the collectives have their own stream;
// without (interlaced, as tensor parallelism does it) every rank waits for them.
// Source: arXiv:2411.05288 sections 3 to 5 (passes S and T, barriers C0 to C2, interlaced pipeline).
#include <algorithm>

#include "models/transformer/layers.h"
#include "models/transformer/parts.h"

namespace k3sim {
namespace {

Item pipeline_collective(const char* name, Pass pass, CommKind kind, Bytes bytes) {
  Item item;
  item.name = name;
  item.lane = Lane::tp_comm;
  item.module = Module::head;
  item.pass = pass;
  item.is_comm = true;
  item.comm.kind = kind;
  item.comm.group = GroupKind::pp;
  item.comm.bytes = bytes;
  return item;
}

// Behind the first item, waiting for it alone; what followed it keeps waiting for it and not for the collective.
void insert_beside(std::vector<Item>& items, Item collective) {
  if (items.empty()) return;
  for (Item& i : items)
    for (std::uint16_t& a : i.after)
      if (a >= 1) ++a;
  if (items.size() > 1 && items[1].after.empty()) items[1].after = {0};
  collective.after = {0};
  items.insert(items.begin() + 1, std::move(collective));
}

void insert_before(std::vector<Item>& items, Item collective) {
  for (Item& i : items)
    for (std::uint16_t& a : i.after) ++a;
  items.insert(items.begin(), std::move(collective));
}

}  // namespace

LayerProgram embedding_share_program(const ModelSpec& model, const SplitConfig& split, const VocabularySplit& share) {
  SplitConfig rows = split;
  rows.tokens = std::max<std::int64_t>(1, split.tokens / share.ranks);
  return embedding_program(model, rows);
}

LayerProgram head_share_program(const ModelSpec& model, const SplitConfig& split, const VocabularySplit& share) {
  ModelSpec part = model;
  part.vocab = (model.vocab + share.ranks - 1) / share.ranks;
  LayerProgram program = head_program(part, split);
  const Bytes rows = tensor_bytes(split.tokens, model.hidden);
  const Item out = pipeline_collective("vocabulary_broadcast", Pass::forward, CommKind::all_gather, rows);
  const Item statistics =
      pipeline_collective("vocabulary_statistics", Pass::forward, CommKind::all_reduce, Bytes(8 * split.tokens));
  const Item back = pipeline_collective("vocabulary_reduce", Pass::input_grad, CommKind::reduce_scatter, rows);
  if (share.overlap) {
    insert_beside(program.forward, statistics);
    insert_beside(program.forward, out);
    insert_beside(program.backward, back);
  } else {
    insert_before(program.forward, out);
    program.forward.push_back(statistics);
    program.backward.push_back(back);
  }
  return program;
}

}  // namespace k3sim
