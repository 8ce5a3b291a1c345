// The protobuf wire format, as much of it as traces need: varints, fixed 32- and 64-bit numbers, doubles and
// length-delimited fields. The reader is strict: it throws WireError for truncated fields, varints over ten bytes and
// unknown types.
// Source: protobuf encoding specification.
#pragma once

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace k3sim {

class WireWriter {
 public:
  void varint(std::uint64_t v) {
    while (v >= 0x80) {
      bytes_ += static_cast<char>(v | 0x80);
      v >>= 7;
    }
    bytes_ += static_cast<char>(v);
  }
  void number(std::uint32_t field, std::uint64_t v) {
    varint(std::uint64_t{field} << 3);
    varint(v);
  }
  void fixed64(std::uint32_t field, std::uint64_t v) {
    varint(std::uint64_t{field} << 3 | 1);
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(v >> shift & 0xff);
  }
  void real(std::uint32_t field, double v) { fixed64(field, std::bit_cast<std::uint64_t>(v)); }
  void text(std::uint32_t field, std::string_view v) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(v.size());
    bytes_ += v;
  }
  void message(std::uint32_t field, const WireWriter& inner) { text(field, inner.bytes_); }
  void clear() { bytes_.clear(); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct WireError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct WireField {
  std::uint32_t number = 0;
  int type = 0;             // 0 varint, 1 fixed 64, 2 length-delimited, 5 fixed 32
  std::uint64_t value = 0;  // types 0, 1 and 5
  std::string_view bytes;   // type 2
  double real() const { return std::bit_cast<double>(value); }
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  WireField next() {
    WireField f;
    const std::uint64_t key = varint();
    f.number = static_cast<std::uint32_t>(key >> 3);
    f.type = static_cast<int>(key & 7);
    if (f.number == 0) throw WireError("field number 0");
    if (f.type == 0) {
      f.value = varint();
    } else if (f.type == 1 || f.type == 5) {
      const std::string_view raw = take(f.type == 1 ? 8 : 4);
      for (std::size_t i = raw.size(); i-- > 0;) f.value = f.value << 8 | static_cast<unsigned char>(raw[i]);
    } else if (f.type == 2) {
      f.bytes = take(varint());
    } else {
      throw WireError("wire type " + std::to_string(f.type));
    }
    return f;
  }

  // For streams of messages without tags around them.
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      v |= std::uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return v;
    }
    throw WireError("varint over ten bytes");
  }
  std::string_view take(std::uint64_t n) {
    if (n > rest_.size()) throw WireError("field runs over the end");
    const std::string_view out = rest_.substr(0, static_cast<std::size_t>(n));
    rest_.remove_prefix(static_cast<std::size_t>(n));
    return out;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace k3sim
