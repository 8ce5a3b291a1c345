#include "sim/trace/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <stdexcept>

#include "sim/base/check.h"

namespace k3sim {

namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip header and trailer
constexpr std::size_t kBlock = std::size_t{1} << 18;

// Feeds all of `bytes` through `run` (deflate or inflate) and collects what comes out; the last code of `run`.
template <class Run>
int pump(z_stream& z, std::string_view bytes, std::string& out, const Run& run) {
  int code = Z_OK;
  do {
    if (z.avail_in == 0 && !bytes.empty()) {
      const std::size_t n = std::min(bytes.size(), std::size_t{1} << 30);
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      z.avail_in = static_cast<uInt>(n);
      bytes.remove_prefix(n);
    }
    const std::size_t before = out.size();
    out.resize(before + kBlock);
    z.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    z.avail_out = static_cast<uInt>(kBlock);
    code = run(&z, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.resize(before + kBlock - z.avail_out);
  } while (code == Z_OK || (code == Z_BUF_ERROR && z.avail_out == 0));
  return code;
}

}  // namespace

std::string gzip(std::string_view bytes, int level) {
  z_stream z{};
  CS_CHECK(deflateInit2(&z, level, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib level {}", level);
  std::string out;
  const int code = pump(z, bytes, out, deflate);
  deflateEnd(&z);
  CS_CHECK(code == Z_STREAM_END, "deflate ended with {}", code);
  return out;
}

std::string gunzip(std::string_view bytes) {
  z_stream z{};
  CS_CHECK(inflateInit2(&z, kGzipWindow) == Z_OK, "zlib window {}", kGzipWindow);
  std::string out;
  const int code = pump(z, bytes, out, inflate);
  inflateEnd(&z);
  if (code != Z_STREAM_END) throw std::runtime_error("damaged gzip data");
  return out;
}

}  // namespace k3sim
