// Source: mlcommons/chakra schema/protobuf/et_def.proto (field numbers); see chakra.h.
#include "sim/trace/chakra.h"

#include <array>

#include "sim/trace/wire.h"

namespace k3sim {
namespace {

// Field numbers of Node and of AttributeProto's values.
enum NodeField : std::uint32_t { kId = 1, kName, kType, kCtrlDeps, kDataDeps, kStart, kDuration, kAttribute = 10 };
enum ValueField : std::uint32_t {
  kInt32 = 7,
  kInt64 = 9,
  kUint32 = 11,
  kUint64 = 13,
  kSint32 = 15,
  kSint64 = 17,
  kFixed32 = 19,
  kFixed64 = 21,
  kSfixed32 = 23,
  kSfixed64 = 25,
  kBool = 27,
  kText = 29
};

constexpr std::array<const char*, kChakraTypes> kTypeNames{
    "INVALID_NODE",   "METADATA_NODE",  "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",      "COMM_SEND_NODE",
    "COMM_RECV_NODE", "COMM_COLL_NODE", "STORAGE_NODE",  "BATCH_NODE",     "CHECKPOINT_NODE"};
constexpr std::array<const char*, kChakraCollectives> kCollectiveNames{
    "ALL_REDUCE", "REDUCE",         "ALL_GATHER",           "GATHER", "SCATTER", "BROADCAST",
    "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"};

void packed(WireWriter& w, std::uint32_t field, const std::vector<std::uint64_t>& values) {
  if (values.empty()) return;
  WireWriter inner;
  for (std::uint64_t v : values) inner.varint(v);
  w.message(field, inner);
}

// proto3 writes repeated numbers packed; older files hold them one by one.
void read_repeated(const WireField& f, std::vector<std::uint64_t>& out) {
  if (f.type == 0) {
    out.push_back(f.value);
    return;
  }
  for (WireReader r(f.bytes); !r.done();) out.push_back(r.varint());
}

std::string encode_node(const ChakraNode& n) {
  WireWriter w;
  if (n.id != 0) w.number(kId, n.id);
  if (!n.name.empty()) w.text(kName, n.name);
  if (n.type != ChakraType::invalid) w.number(kType, static_cast<std::uint64_t>(n.type));
  packed(w, kCtrlDeps, n.ctrl_deps);
  packed(w, kDataDeps, n.data_deps);
  if (n.start_us != 0) w.number(kStart, n.start_us);
  if (n.duration_us != 0) w.number(kDuration, n.duration_us);
  WireWriter attributes;
  for (const ChakraAttribute& a : n.attributes) attributes.text(kAttribute, a.value);
  return w.bytes() + n.values + attributes.bytes() + n.later;
}

ChakraAttribute read_attribute(std::string_view bytes) {
  ChakraAttribute a;
  a.value = std::string(bytes);
  for (WireReader r(bytes); !r.done();)
    if (const WireField f = r.next(); f.number == 1 && f.type == 2) a.name = std::string(f.bytes);
  return a;
}

ChakraNode read_node(std::string_view bytes) {
  ChakraNode n;
  for (WireReader r(bytes); !r.done();) {
    const std::string_view before = r.rest();
    const WireField f = r.next();
    switch (f.number) {
      case kId:
        n.id = f.value;
        break;
      case kName:
        n.name = std::string(f.bytes);
        break;
      case kType:
        if (f.value >= kChakraTypes) throw WireError("node type " + std::to_string(f.value));
        n.type = static_cast<ChakraType>(f.value);
        break;
      case kCtrlDeps:
        read_repeated(f, n.ctrl_deps);
        break;
      case kDataDeps:
        read_repeated(f, n.data_deps);
        break;
      case kStart:
        n.start_us = f.value;
        break;
      case kDuration:
        n.duration_us = f.value;
        break;
      case kAttribute:
        n.attributes.push_back(read_attribute(f.bytes));
        break;
      default:
        (f.number < kAttribute ? n.values : n.later) += before.substr(0, before.size() - r.rest().size());
    }
  }
  return n;
}

template <class Put>
void set(ChakraNode& n, const char* key, const Put& put) {
  WireWriter w;
  w.text(1, key);
  put(w);
  n.attributes.push_back({key, w.bytes()});
}

const ChakraAttribute* find(const ChakraNode& n, std::string_view key) {
  for (const ChakraAttribute& a : n.attributes)
    if (a.name == key) return &a;
  return nullptr;
}

std::int64_t zigzag(std::uint64_t v) {
  return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

}  // namespace

const char* to_string(ChakraType t) {
  return kTypeNames[static_cast<std::size_t>(t)];
}

const char* to_string(ChakraCollective c) {
  return kCollectiveNames[static_cast<std::size_t>(c)];
}

// proto3 leaves a zero out, but a oneof member that was set is written even then: readers tell "false" from "missing".
void ChakraNode::set_int32(const char* key, std::int32_t v) {
  set(*this, key, [&](WireWriter& w) { w.number(kInt32, static_cast<std::uint64_t>(std::int64_t{v})); });
}
void ChakraNode::set_int64(const char* key, std::int64_t v) {
  set(*this, key, [&](WireWriter& w) { w.number(kInt64, static_cast<std::uint64_t>(v)); });
}
void ChakraNode::set_uint64(const char* key, std::uint64_t v) {
  set(*this, key, [&](WireWriter& w) { w.number(kUint64, v); });
}
void ChakraNode::set_bool(const char* key, bool v) {
  set(*this, key, [&](WireWriter& w) { w.number(kBool, v ? 1 : 0); });
}
void ChakraNode::set_text(const char* key, std::string_view v) {
  set(*this, key, [&](WireWriter& w) { w.text(kText, v); });
}

std::optional<std::int64_t> ChakraNode::integer(std::string_view key) const {
  const ChakraAttribute* a = find(*this, key);
  if (!a) return std::nullopt;
  std::optional<std::int64_t> out;
  for (WireReader r(a->value); !r.done();) {
    const WireField f = r.next();
    switch (f.number) {
      case kInt32:
      case kInt64:
      case kUint32:
      case kUint64:
      case kFixed32:
      case kFixed64:
      case kSfixed64:
      case kBool:
        out = static_cast<std::int64_t>(f.value);
        break;
      case kSfixed32:
        out = static_cast<std::int32_t>(f.value);
        break;
      case kSint32:
      case kSint64:
        out = zigzag(f.value);
        break;
      default:
        break;
    }
  }
  return out;
}

std::optional<std::string> ChakraNode::text(std::string_view key) const {
  const ChakraAttribute* a = find(*this, key);
  if (!a) return std::nullopt;
  std::optional<std::string> out;
  for (WireReader r(a->value); !r.done();)
    if (const WireField f = r.next(); f.number == kText && f.type == 2) out = std::string(f.bytes);
  return out;
}

std::string ChakraTrace::version() const {
  for (WireReader r(metadata); !r.done();)
    if (const WireField f = r.next(); f.number == 1 && f.type == 2) return std::string(f.bytes);
  return "";
}

std::string chakra_metadata(std::string_view version) {
  WireWriter w;
  w.text(1, version);
  return w.bytes();
}

std::string write_chakra(const ChakraTrace& trace) {
  WireWriter w;
  w.varint(trace.metadata.size());
  std::string out = w.bytes() + trace.metadata;
  for (const ChakraNode& n : trace.nodes) {
    const std::string node = encode_node(n);
    w.clear();
    w.varint(node.size());
    out += w.bytes();
    out += node;
  }
  return out;
}

ChakraTrace read_chakra(std::string_view bytes) {
  ChakraTrace trace;
  WireReader r(bytes);
  std::size_t at = 0;
  bool first = true;
  try {
    while (!r.done()) {
      at = bytes.size() - r.rest().size();
      const std::string_view message = r.take(r.varint());
      if (first) {
        trace.metadata = std::string(message);
        trace.version();  // parses it
      } else {
        trace.nodes.push_back(read_node(message));
      }
      first = false;
    }
  } catch (const WireError& e) {
    throw WireError("message at byte " + std::to_string(at) + ": " + e.what());
  }
  return trace;
}

}  // namespace k3sim
