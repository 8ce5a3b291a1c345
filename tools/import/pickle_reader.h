// Reads data-only Python pickles (protocols 2 to 5) without Python and without running anything.
// A pickle is a program for a stack machine; we execute only the opcodes that build numbers, text, bytes, lists,
// tuples, sets and dictionaries. Opcodes that import a name, call or build an object (GLOBAL, REDUCE, BUILD, ...) are
// refused, so a hostile file can do nothing. Values live in one flat table, so depth is no danger and memory is
// proportional to the file. Every damaged or truncated input gives a ConfigError with the byte offset. Source: Python
// Lib/pickletools.py (opcode table), PEP 307, PEP 3154, PEP 574.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace k3sim {

class PickleDocument {
 public:
  using Id = std::uint32_t;
  enum class Kind : std::uint8_t { kNone, kBool, kInteger, kReal, kText, kBytes, kList, kTuple, kSet, kDict, kMark };

  // Takes the bytes; `file` is for error messages only.
  static PickleDocument parse(std::string bytes, const std::string& file);

  PickleDocument(PickleDocument&&) = default;
  PickleDocument& operator=(PickleDocument&&) = default;
  PickleDocument(const PickleDocument&) = delete;  // texts point into bytes_
  PickleDocument& operator=(const PickleDocument&) = delete;

  Id root() const { return root_; }
  Kind kind(Id id) const { return values_[id].kind; }
  bool is_sequence(Id id) const { return kind(id) == Kind::kList || kind(id) == Kind::kTuple; }
  std::int64_t integer(Id id) const { return values_[id].number; }                // kInteger, kBool
  double real(Id id) const { return std::bit_cast<double>(values_[id].number); }  // kReal
  std::string_view text(Id id) const;                                             // kText, kBytes
  // Elements of a list, tuple or set; keys and values in turn of a dictionary.
  const std::vector<Id>& items(Id id) const { return containers_[values_[id].extent]; }
  // Last value stored under this text key. Requires: a dictionary.
  std::optional<Id> find(Id dict, std::string_view key) const;

 private:
  friend class PickleMachine;
  struct Value {
    std::int64_t number = 0;   // integer, bits of a real, or offset of a text
    std::uint32_t extent = 0;  // length of a text, or index of a container
    Kind kind = Kind::kNone;
  };
  PickleDocument() = default;

  std::string bytes_;
  std::vector<Value> values_;
  std::vector<std::vector<Id>> containers_;
  Id root_ = 0;
};

}  // namespace k3sim
