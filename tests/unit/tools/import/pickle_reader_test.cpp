#include "tools/import/pickle_reader.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sim/base/error.h"

using namespace k3sim;
using namespace std::string_literals;
using Kind = PickleDocument::Kind;

namespace {

std::string bytes_of(const std::string& name) {
  std::ifstream in(std::string(K3SIM_TEST_DATA) + "/allocator/" + name, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string refusal(std::string bytes) {
  try {
    PickleDocument::parse(std::move(bytes), "x.pickle");
  } catch (const ConfigError& e) {
    return to_string(e.problems().at(0));
  }
  return "accepted";
}

}  // namespace

TEST_CASE("pickle: data written by Python with protocols 2, 4 and 5 reads the same") {
  for (const char* name : {"snapshot_protocol2.pickle", "snapshot_protocol4.pickle", "snapshot_protocol5.pickle"}) {
    CAPTURE(name);
    const PickleDocument doc = PickleDocument::parse(bytes_of(name), name);
    REQUIRE(doc.kind(doc.root()) == Kind::kDict);
    CHECK(doc.integer(*doc.find(doc.root(), "big")) == -(std::int64_t{1} << 40));
    CHECK(doc.integer(*doc.find(doc.root(), "neg")) == -3);
    CHECK(doc.real(*doc.find(doc.root(), "half")) == 0.5);
    CHECK(doc.kind(*doc.find(doc.root(), "nothing")) == Kind::kNone);
    const auto traces = *doc.find(doc.root(), "device_traces");
    REQUIRE(doc.items(traces).size() == 2);
    const auto first = doc.items(doc.items(traces)[1])[0];
    CHECK(doc.text(*doc.find(first, "action")) == "segment_alloc");
    CHECK(doc.integer(*doc.find(first, "addr")) == 0x7f0000000000);
    CHECK_FALSE(doc.find(first, "no such key"));
  }
}

TEST_CASE("pickle: a file that wants to call a function is refused and nothing runs") {
  CHECK(refusal(bytes_of("hostile_reduce.pickle")).find("STACK_GLOBAL") != std::string::npos);
  CHECK(refusal(bytes_of("hostile_global.pickle")).find("GLOBAL") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists("unsafe_pickle_was_run"));
}

TEST_CASE("pickle: every truncation of a valid file is an error with the byte offset") {
  const std::string whole = bytes_of("snapshot_protocol4.pickle");
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    const std::string what = refusal(whole.substr(0, n));
    REQUIRE(what.find("x.pickle") != std::string::npos);
    REQUIRE(what.find("byte") != std::string::npos);
  }
}

TEST_CASE("pickle: damaged bytes never crash, they parse or are refused") {
  const std::string whole = bytes_of("snapshot_protocol4.pickle");
  for (std::size_t i = 0; i < whole.size(); i += 3)
    for (const char flip : {'\x01', '\x40', '\xff'}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      refusal(std::move(damaged));
    }
}

TEST_CASE("pickle: stack errors, bad memo slots and oversize lengths are named") {
  CHECK(refusal("\x80\x04."s).find("empty stack") != std::string::npos);
  CHECK(refusal("\x80\x04h\x05."s).find("memo slot 5") != std::string::npos);
  CHECK(refusal("\x80\x04t."s).find("mark") != std::string::npos);
  CHECK(refusal("\x80\x04K\x01K\x02\x61."s).find("holds none") != std::string::npos);
  CHECK(refusal("\x80\x04}(K\x01u."s).find("without a value") != std::string::npos);
  CHECK(refusal("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f."s).find("truncated") != std::string::npos);
  CHECK(refusal("\x80\x04\x8a\x0a\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01."s).find("64 bits") != std::string::npos);
  CHECK(refusal("\x80\x07N."s).find("protocol 7") != std::string::npos);
  CHECK(refusal("\x80\x04r\xff\xff\xff\xffN."s).find("out of range") != std::string::npos);
  CHECK(refusal("hello"s) != "accepted");
}

TEST_CASE("pickle: a list that contains itself and deep nesting are harmless") {
  CHECK(refusal("\x80\x04]\x94h\x00\x61."s) == "accepted");
  std::string deep = "\x80\x04"s;
  for (int i = 0; i < 200000; ++i) deep += "]";
  for (int i = 0; i < 199999; ++i) deep += "a";
  CHECK(refusal(deep + ".") == "accepted");
}
