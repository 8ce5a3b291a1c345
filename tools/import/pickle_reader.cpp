// The stack machine behind PickleDocument; see the header for what it accepts.
#include "tools/import/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/error.h"

namespace k3sim {

class PickleMachine {
 public:
  using Id = PickleDocument::Id;
  using Kind = PickleDocument::Kind;

  PickleMachine(std::string bytes, const std::string& file) : file_(file) { doc_.bytes_ = std::move(bytes); }

  PickleDocument run() {
    while (step(take_byte())) {
    }
    return std::move(doc_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("{} (byte {} of {})", what, opcode_at_, doc_.bytes_.size()), {}, Place{file_, 0, 0});
  }

  void need(std::size_t n) const {
    if (n > doc_.bytes_.size() - at_) fail("the pickle is truncated");
  }
  std::uint8_t take_byte() {
    opcode_at_ = at_;
    need(1);
    return static_cast<std::uint8_t>(doc_.bytes_[at_++]);
  }
  // Little-endian unsigned number of n <= 8 bytes.
  std::uint64_t take(std::size_t n) {
    need(n);
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < n; ++i)
      v |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(doc_.bytes_[at_ + i])) << (8 * i);
    at_ += n;
    return v;
  }

  Id add(Kind kind, std::int64_t number = 0) {
    if (doc_.values_.size() >= 0xfffffff0U) fail("too many values");
    doc_.values_.push_back({});
    doc_.values_.back().kind = kind;
    doc_.values_.back().number = number;
    return static_cast<Id>(doc_.values_.size() - 1);
  }
  void push(Kind kind, std::int64_t number = 0) { stack_.push_back(add(kind, number)); }
  void push_container(Kind kind, std::vector<Id> items = {}) {
    const Id id = add(kind);
    doc_.values_[id].extent = static_cast<std::uint32_t>(doc_.containers_.size());
    doc_.containers_.push_back(std::move(items));
    stack_.push_back(id);
  }
  void push_text(Kind kind, std::uint64_t length) {
    if (length > doc_.bytes_.size()) fail("the pickle is truncated");
    if (length > 0xffffffffU) fail("a text of more than 4 GiB");
    need(static_cast<std::size_t>(length));
    const Id id = add(kind, static_cast<std::int64_t>(at_));
    doc_.values_[id].extent = static_cast<std::uint32_t>(length);
    at_ += static_cast<std::size_t>(length);
    stack_.push_back(id);
  }
  void push_long(std::uint64_t bytes) {
    if (bytes > 9) fail(fmt::format("an integer of {} bytes does not fit 64 bits", bytes));
    const auto n = static_cast<std::size_t>(bytes);
    need(n);
    std::uint64_t v = take(std::min<std::size_t>(n, 8));
    if (n == 9 && take(1) != 0) fail("an integer does not fit 64 bits");
    const bool negative = n > 0 && n < 8 && (v >> (8 * n - 1)) != 0;
    if (negative) v |= ~std::uint64_t{0} << (8 * n);
    push(Kind::kInteger, static_cast<std::int64_t>(v));
  }

  Id pop() {
    if (stack_.empty()) fail("the pickle takes a value from an empty stack");
    const Id id = stack_.back();
    stack_.pop_back();
    if (doc_.values_[id].kind == Kind::kMark) fail("the pickle takes a mark for a value");
    return id;
  }
  Id top() const {
    if (stack_.empty() || doc_.values_[stack_.back()].kind == Kind::kMark) fail("the pickle's stack holds no value");
    return stack_.back();
  }
  std::vector<Id> pop_to_mark() {
    std::size_t mark = stack_.size();
    while (mark > 0 && doc_.values_[stack_[mark - 1]].kind != Kind::kMark) --mark;
    if (mark == 0) fail("the pickle refers to a mark that is not there");
    std::vector<Id> items(stack_.begin() + static_cast<std::ptrdiff_t>(mark), stack_.end());
    stack_.resize(mark - 1);
    return items;
  }
  std::vector<Id> pop_n(std::size_t n) {
    std::vector<Id> items(n);
    for (std::size_t i = n; i-- > 0;) items[i] = pop();
    return items;
  }
  void extend(Kind kind, const std::vector<Id>& items) {
    const Id id = top();
    if (doc_.values_[id].kind != kind) fail("the pickle adds elements to a value that holds none");
    if (kind == Kind::kDict && items.size() % 2 != 0) fail("the pickle stores a key without a value");
    auto& into = doc_.containers_[doc_.values_[id].extent];
    into.insert(into.end(), items.begin(), items.end());
  }
  void memoize(std::uint64_t slot) {
    if (slot > doc_.bytes_.size()) fail(fmt::format("memo slot {} is out of range", slot));
    const auto index = static_cast<std::size_t>(slot);
    if (index >= memo_.size()) memo_.resize(index + 1, kEmptySlot);
    if (memo_[index] == kEmptySlot) ++memo_filled_;
    memo_[index] = top();
  }
  void recall(std::uint64_t slot) {
    if (slot >= memo_.size() || memo_[slot] == kEmptySlot) fail(fmt::format("memo slot {} was never filled", slot));
    stack_.push_back(memo_[slot]);
  }

  // One opcode; false after STOP. Split by what the opcodes build.
  bool step(std::uint8_t op) {
    if (op == '.') {
      doc_.root_ = pop();
      return false;
    }
    if (!scalar(op) && !text(op) && !container(op) && !elements(op) && !bookkeeping(op)) refuse(op);
    return true;
  }

  bool scalar(std::uint8_t op) {
    switch (op) {
      case 'N':
        push(Kind::kNone);
        return true;
      case 0x88:
        push(Kind::kBool, 1);
        return true;
      case 0x89:
        push(Kind::kBool, 0);
        return true;
      case 'J':
        push(Kind::kInteger, static_cast<std::int32_t>(take(4)));
        return true;
      case 'K':
        push(Kind::kInteger, static_cast<std::int64_t>(take(1)));
        return true;
      case 'M':
        push(Kind::kInteger, static_cast<std::int64_t>(take(2)));
        return true;
      case 0x8a:
        push_long(take(1));
        return true;
      case 0x8b:
        push_long(take(4));
        return true;
      case 'G':  // big-endian
        push(Kind::kReal, static_cast<std::int64_t>(__builtin_bswap64(take(8))));
        return true;
      default:
        return false;
    }
  }

  bool text(std::uint8_t op) {
    switch (op) {
      case 0x8c:
        push_text(Kind::kText, take(1));
        return true;
      case 'X':
        push_text(Kind::kText, take(4));
        return true;
      case 0x8d:
        push_text(Kind::kText, take(8));
        return true;
      case 'U':
        push_text(Kind::kText, take(1));
        return true;
      case 'T':
        push_text(Kind::kText, take(4));
        return true;
      case 'C':
        push_text(Kind::kBytes, take(1));
        return true;
      case 'B':
        push_text(Kind::kBytes, take(4));
        return true;
      case 0x8e:
        push_text(Kind::kBytes, take(8));
        return true;
      default:
        return false;
    }
  }

  bool container(std::uint8_t op) {
    switch (op) {
      case ']':
        push_container(Kind::kList);
        return true;
      case '}':
        push_container(Kind::kDict);
        return true;
      case ')':
        push_container(Kind::kTuple);
        return true;
      case 0x8f:
        push_container(Kind::kSet);
        return true;
      case 'l':
        push_container(Kind::kList, pop_to_mark());
        return true;
      case 't':
        push_container(Kind::kTuple, pop_to_mark());
        return true;
      case 0x91:
        push_container(Kind::kSet, pop_to_mark());
        return true;
      case 0x85:
        push_container(Kind::kTuple, pop_n(1));
        return true;
      case 0x86:
        push_container(Kind::kTuple, pop_n(2));
        return true;
      case 0x87:
        push_container(Kind::kTuple, pop_n(3));
        return true;
      default:
        return false;
    }
  }

  bool elements(std::uint8_t op) {
    switch (op) {
      case 'd': {
        const std::vector<Id> items = pop_to_mark();
        push_container(Kind::kDict);
        extend(Kind::kDict, items);
        return true;
      }
      case 'a':
        extend(Kind::kList, pop_n(1));
        return true;
      case 'e':
        extend(Kind::kList, pop_to_mark());
        return true;
      case 's':
        extend(Kind::kDict, pop_n(2));
        return true;
      case 'u':
        extend(Kind::kDict, pop_to_mark());
        return true;
      case 0x90:
        extend(Kind::kSet, pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  bool bookkeeping(std::uint8_t op) {
    switch (op) {
      case 0x80:
        if (const std::uint64_t protocol = take(1); protocol < 2 || protocol > 5)
          fail(fmt::format("pickle protocol {} is not supported, only 2 to 5", protocol));
        return true;
      case 0x95:
        need(static_cast<std::size_t>(take(8)));
        return true;
      case '(':
        push(Kind::kMark);
        return true;
      case '0':
        pop();
        return true;
      case '1':
        pop_to_mark();
        return true;
      case '2':
        stack_.push_back(top());
        return true;
      case 0x94:
        memoize(memo_filled_);
        return true;
      case 'q':
        memoize(take(1));
        return true;
      case 'r':
        memoize(take(4));
        return true;
      case 'h':
        recall(take(1));
        return true;
      case 'j':
        recall(take(4));
        return true;
      default:
        return false;
    }
  }

  [[noreturn]] void refuse(std::uint8_t op) const {
    static const std::map<std::uint8_t, const char*> kNames = {
        {'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},       {'b', "BUILD"},
        {'i', "INST"},      {'o', "OBJ"},           {0x81, "NEWOBJ"},      {0x92, "NEWOBJ_EX"},
        {0x82, "EXT1"},     {0x83, "EXT2"},         {0x84, "EXT4"},        {'P', "PERSID"},
        {'Q', "BINPERSID"}, {0x96, "BYTEARRAY8"},   {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"}};
    if (const auto it = kNames.find(op); it != kNames.end())
      fail(fmt::format("the pickle wants to import or build an object ({}); only plain data is read", it->second));
    fail(fmt::format("not a pickle of plain data: unknown opcode 0x{:02x}", op));
  }

  std::string file_;
  PickleDocument doc_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  std::vector<Id> stack_;
  static constexpr Id kEmptySlot = 0xffffffffU;
  std::vector<Id> memo_;
  std::uint64_t memo_filled_ = 0;  // MEMOIZE numbers its slot by the entries so far
};

PickleDocument PickleDocument::parse(std::string bytes, const std::string& file) {
  return PickleMachine(std::move(bytes), file).run();
}

std::string_view PickleDocument::text(Id id) const {
  const Value& v = values_[id];
  return std::string_view(bytes_).substr(static_cast<std::size_t>(v.number), v.extent);
}

std::optional<PickleDocument::Id> PickleDocument::find(Id dict, std::string_view key) const {
  const std::vector<Id>& entries = items(dict);
  for (std::size_t i = entries.size(); i >= 2; i -= 2)
    if (kind(entries[i - 2]) == Kind::kText && text(entries[i - 2]) == key) return entries[i - 1];
  return std::nullopt;
}

}  // namespace k3sim
