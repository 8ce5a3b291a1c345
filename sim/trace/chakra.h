// Chakra execution traces: one file per rank, a stream of protobuf messages with their length before them (varint),
// first the GlobalMetadata, then one Node per operation. Written and read by hand; attributes keep their bytes, so that
// a file read and written again is the same file.
//
// Attributes that mean something to ASTRA-sim's feeder: is_cpu_op (bool), comm_type and comm_size (int64: what one rank
// puts in, so a shard for an all-gather), comm_src, comm_dst and comm_tag (int32), pg_name (a number as text),
// num_ops (int64) and tensor_size (uint64). Ours beside them: stream (int64, as the PyTorch converter writes it) and
// duration_nanos (uint64; Chakra's own field holds whole microseconds).
// Source: mlcommons/chakra schema/protobuf/et_def.proto, src/third_party/utils/protolib.py,
// src/feeder/et_feeder_node.cpp; astra-sim/astra-sim astra-sim/workload/Workload.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k3sim {

enum class ChakraType : std::uint8_t {
  invalid,
  metadata,
  mem_load,
  mem_store,
  comp,
  comm_send,
  comm_recv,
  comm_coll,
  storage,
  batch,
  checkpoint
};
constexpr int kChakraTypes = 11;
const char* to_string(ChakraType t);

enum class ChakraCollective : std::uint8_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier
};
constexpr int kChakraCollectives = 10;
const char* to_string(ChakraCollective c);

struct ChakraAttribute {
  std::string name;
  std::string value;  // the AttributeProto as it stands, name included
};

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  ChakraType type = ChakraType::invalid;
  std::vector<std::uint64_t> ctrl_deps, data_deps;
  std::uint64_t start_us = 0, duration_us = 0;
  std::vector<ChakraAttribute> attributes;
  std::string values;  // inputs and outputs as they stand
  std::string later;   // fields after the attributes (storage) as they stand

  void set_int32(const char* key, std::int32_t v);
  void set_int64(const char* key, std::int64_t v);
  void set_uint64(const char* key, std::uint64_t v);
  void set_bool(const char* key, bool v);
  void set_text(const char* key, std::string_view v);
  // Any integer or boolean form of the attribute; nothing when it is missing or of another kind.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
};

struct ChakraTrace {
  std::string metadata;  // GlobalMetadata as it stands
  std::vector<ChakraNode> nodes;
  std::string version() const;
};

std::string chakra_metadata(std::string_view version);
std::string write_chakra(const ChakraTrace& trace);
// Throws WireError (wire.h) that names the byte of the message that could not be read.
ChakraTrace read_chakra(std::string_view bytes);

}  // namespace k3sim
