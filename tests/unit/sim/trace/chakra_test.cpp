#include "sim/trace/chakra.h"

#include <doctest/doctest.h>

#include "sim/trace/wire.h"

using namespace k3sim;

namespace {

// A node as protobuf writes it, with every scalar attribute kind of et_def.proto and a field of a later schema.
std::string foreign_node() {
  WireWriter node, attribute, inputs;
  node.number(1, 300);
  node.text(2, "aten::mm");
  node.number(3, 4);
  node.number(5, 7);  // unpacked, as proto2 writers do
  node.number(5, 9);
  node.number(6, 1'000'000);
  node.number(7, 12);
  inputs.text(1, "[[1, 2]]");
  node.message(8, inputs);
  const auto put = [&](const char* name, const auto& value) {
    attribute.clear();
    attribute.text(1, name);
    value();
    node.message(10, attribute);
  };
  put("sint64", [&] { attribute.number(17, 5); });  // zigzag of -3
  put("fixed64", [&] { attribute.fixed64(21, 42); });
  put("double", [&] { attribute.real(3, 0.5); });
  put("bool", [&] { attribute.number(27, 0); });
  put("negative", [&] { attribute.number(7, static_cast<std::uint64_t>(-4)); });
  put("text", [&] { attribute.text(29, "group 7"); });
  node.text(11, "storage of a later schema");
  return node.bytes();
}

std::string file_of(const std::string& node) {
  WireWriter w;
  const std::string metadata = chakra_metadata("0.0.4");
  w.varint(metadata.size());
  std::string out = w.bytes() + metadata;
  w.clear();
  w.varint(node.size());
  return out + w.bytes() + node;
}

}  // namespace

TEST_CASE("chakra: every kind of attribute is read, and unknown fields survive a rewrite") {
  const ChakraTrace trace = read_chakra(file_of(foreign_node()));
  CHECK(trace.version() == "0.0.4");
  REQUIRE(trace.nodes.size() == 1);
  const ChakraNode& n = trace.nodes[0];
  CHECK(n.id == 300);
  CHECK(n.type == ChakraType::comp);
  CHECK(n.data_deps == std::vector<std::uint64_t>{7, 9});
  CHECK(n.duration_us == 12);
  CHECK(n.integer("sint64") == -3);
  CHECK(n.integer("fixed64") == 42);
  CHECK(n.integer("bool") == 0);
  CHECK(n.integer("negative") == -4);
  CHECK(n.text("text") == "group 7");
  CHECK_FALSE(n.integer("double").has_value());
  CHECK_FALSE(n.integer("missing").has_value());
  const std::string once = write_chakra(trace);
  CHECK(write_chakra(read_chakra(once)) == once);
  CHECK(once.find("storage of a later schema") != std::string::npos);
  CHECK(once.find("[[1, 2]]") != std::string::npos);
}

TEST_CASE("chakra: what is written can be read, and a cut file names the byte") {
  ChakraTrace trace;
  trace.metadata = chakra_metadata("0.0.4");
  ChakraNode n;
  n.id = 1;
  n.type = ChakraType::comm_coll;
  n.ctrl_deps = {3, 1'000'000'000'000};
  n.set_bool("is_cpu_op", false);
  n.set_int32("comm_tag", -1);
  n.set_uint64("tensor_size", ~std::uint64_t{0} >> 1);
  n.set_text("pg_name", "0");
  trace.nodes.push_back(n);
  const std::string bytes = write_chakra(trace);
  const ChakraNode back = read_chakra(bytes).nodes.at(0);
  CHECK(back.ctrl_deps == n.ctrl_deps);
  CHECK(back.integer("is_cpu_op") == 0);
  CHECK(back.integer("comm_tag") == -1);
  CHECK(back.text("pg_name") == "0");
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    const std::size_t metadata_end = 1 + trace.metadata.size();
    if (cut == metadata_end) continue;  // a whole file without nodes
    CHECK_THROWS_AS(read_chakra(bytes.substr(0, cut)), WireError);
  }
}
