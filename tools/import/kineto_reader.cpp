// Source: pytorch/kineto libkineto/src/output_json.cpp; nlohmann-json SAX interface; see kineto_reader.h.
#include "tools/import/kineto_reader.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "sim/base/error.h"

namespace k3sim {
namespace {

// zlib reads plain files as they are.
class GzipBuffer : public std::streambuf {
 public:
  explicit GzipBuffer(const std::string& path) : in_(gzopen(path.c_str(), "rb"), gzclose) {
    if (!in_) throw ConfigError("cannot read the file", {}, Place{path, 0, 0});
    gzbuffer(in_.get(), 1 << 17);
  }
  bool failed() const { return failed_; }

 private:
  int_type underflow() override {
    const int n = gzread(in_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    failed_ = failed_ || n < 0;
    if (n <= 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + n);
    return traits_type::to_int_type(buffer_[0]);
  }
  std::unique_ptr<gzFile_s, int (*)(gzFile)> in_;
  std::array<char, 1 << 16> buffer_{};
  bool failed_ = false;
};

std::int64_t element_bytes(const std::string& dtype) {
  if (dtype.find("Float8") != std::string::npos || dtype == "Byte" || dtype == "Char" || dtype == "Bool") return 1;
  if (dtype == "BFloat16" || dtype == "Half") return 2;
  return dtype == "Long" || dtype == "Double" ? 8 : 4;
}

struct RawEvent {
  std::string ph, cat, name, collective, dtype, dims, type;
  double ts = 0, dur = 0;
  std::int64_t tid = 0, pid = 0, device = -1, stream = -1, correlation = -1, elements = 0, group = 0, external = -1;
};

// Follows the nesting: level 2 is an element of traceEvents, level 3 its args.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(KinetoTrace& trace) : trace_(trace) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t v) override { return number(static_cast<double>(v), v); }
  bool number_unsigned(number_unsigned_t v) override {
    return number(static_cast<double>(v), static_cast<std::int64_t>(v));
  }
  bool number_float(number_float_t v, const string_t&) override { return number(v, static_cast<std::int64_t>(v)); }
  bool binary(binary_t&) override { return true; }

  bool string(string_t& v) override {
    if (in_event()) {
      if (depth_ == 2) {
        if (key_ == "ph") event_.ph = v;
        if (key_ == "cat") event_.cat = v;
        if (key_ == "name") event_.name = v;
      } else if (depth_ == 3) {
        if (key_ == "Collective name") event_.collective = v;
        if (key_ == "dtype") event_.dtype = v;
        if (key_ == "Input type" && event_.type.empty()) event_.type = v;
      }
    } else if (top_ == "deviceProperties" && key_ == "name" && trace_.gpu_name.empty()) {
      trace_.gpu_name = v;
    }
    return true;
  }
  bool start_object(std::size_t) override {
    ++depth_;
    if (in_events_ && depth_ == 2) event_ = RawEvent();
    return true;
  }
  bool end_object() override {
    if (in_events_ && depth_ == 2) finish();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if ((depth_ == 1 && key_ == "traceEvents") || depth_ == 0) in_events_ = true, array_depth_ = depth_, depth_ = 1;
    if (in_events_ && depth_ == 3 && key_ == "Input Dims") open_dims();
    return true;
  }
  bool end_array() override {
    if (dims_ > 0) event_.dims += ']', --dims_;
    if (in_events_ && depth_ == 1) in_events_ = false, depth_ = array_depth_;
    return true;
  }
  bool key(string_t& v) override {
    dims_ = 0;
    key_ = v;
    if (depth_ == 1 && !in_events_) top_ = v;
    return true;
  }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception& e) override {
    trace_.truncated = true;
    trace_.damage = fmt::format("byte {}: {}", at, e.what());
    return false;
  }

  void link_launches() {
    for (std::size_t i = 0; i < trace_.events.size(); ++i)
      if (const auto it = launches_.find(correlation_[i]); it != launches_.end())
        trace_.events[i].launched_ns = it->second;
    for (std::size_t i = 0; i < trace_.events.size(); ++i)
      if (const auto it = shaped_.find(external_[i]); it != shaped_.end()) trace_.events[i].operation = it->second;
  }

 private:
  bool in_event() const { return in_events_; }

  bool number(double value, std::int64_t whole) {
    if (dims_ > 0) {
      if (event_.dims.back() != '[') event_.dims += ',';
      event_.dims += std::to_string(whole);
    } else if (in_events_ && depth_ == 2) {
      if (key_ == "ts") event_.ts = value;
      if (key_ == "dur") event_.dur = value;
      if (key_ == "tid") event_.tid = whole;
      if (key_ == "pid") event_.pid = whole;
    } else if (in_events_ && depth_ == 3) {
      if (key_ == "correlation") event_.correlation = whole;
      if (key_ == "External id") event_.external = whole;
      if (key_ == "device") event_.device = whole;
      if (key_ == "stream") event_.stream = whole;
      if (key_ == "In msg nelems") event_.elements = whole;
      if (key_ == "Group size") event_.group = whole;
    } else if (top_ == "distributedInfo") {
      if (key_ == "rank") trace_.rank = static_cast<int>(whole);
      if (key_ == "world_size") trace_.world_size = static_cast<int>(whole);
    }
    return true;
  }

  void open_dims() {
    if (!event_.dims.empty() && event_.dims.back() == ']') event_.dims += ',';
    event_.dims += '[';
    ++dims_;
  }

  void keep_shapes() {
    constexpr std::array<std::string_view, 4> kWords{"mm", "matmul", "attention", "Attn"};
    const auto known = [&](std::string_view w) { return event_.name.find(w) != std::string::npos; };
    if (event_.external < 0 || std::none_of(kWords.begin(), kWords.end(), known)) return;
    shaped_[event_.external] = static_cast<std::int32_t>(trace_.operations.size());
    trace_.operations.push_back({intern(event_.name), intern(event_.dims), intern(event_.type)});
  }

  void finish() {
    ++trace_.events_read;
    if (event_.ph != "X") return;
    const std::string& c = event_.cat;
    if (c == "kernel" || c == "Kernel")
      keep(GpuEventKind::kernel);
    else if (c == "gpu_memcpy" || c == "Memcpy")
      keep(GpuEventKind::memcpy);
    else if (c == "gpu_memset" || c == "Memset")
      keep(GpuEventKind::memset);
    else if (c == "cuda_runtime" || c == "cuda_driver" || c == "Runtime")
      launches_[event_.correlation] = nanoseconds(event_.ts + event_.dur);
    else if (c == "cpu_op" && !event_.dims.empty())
      keep_shapes();
    else if (c == "user_annotation" || c == "gpu_user_annotation")
      trace_.annotations.push_back({nanoseconds(event_.ts), nanoseconds(event_.ts + event_.dur), intern(event_.name),
                                    c[0] == 'g' ? static_cast<std::int32_t>(event_.pid) : -1});
  }

  void keep(GpuEventKind kind) {
    GpuEvent e;
    e.kind = kind;
    e.start_ns = nanoseconds(event_.ts);
    e.end_ns = e.start_ns + std::max<std::int64_t>(0, std::llround(event_.dur * 1000));
    e.name = intern(event_.name);
    e.device = static_cast<std::int32_t>(event_.device >= 0 ? event_.device : event_.pid);
    e.stream = static_cast<std::int32_t>(event_.stream >= 0 ? event_.stream : event_.tid);
    if (!event_.collective.empty()) e.collective = intern(event_.collective);
    e.group_size = static_cast<std::int32_t>(event_.group);
    e.message_bytes = event_.elements * element_bytes(event_.dtype);
    trace_.events.push_back(e);
    correlation_.push_back(event_.correlation);
    external_.push_back(event_.external);
  }

  // Relative to the first time seen, so that microseconds since 1970 keep their decimals in a double.
  std::int64_t nanoseconds(double ts) {
    if (!based_) base_ = std::floor(ts), based_ = true;
    return std::llround((ts - base_) * 1000);
  }

  std::int32_t intern(const std::string& name) {
    const auto [it, is_new] = index_.emplace(name, static_cast<std::int32_t>(trace_.names.size()));
    if (is_new) trace_.names.push_back(name);
    return it->second;
  }

  KinetoTrace& trace_;
  int depth_ = 0, array_depth_ = 0;
  int dims_ = 0;  // open brackets of "Input Dims"
  bool in_events_ = false, based_ = false;
  double base_ = 0;
  std::string key_, top_;
  RawEvent event_;
  std::vector<std::int64_t> correlation_, external_;
  std::unordered_map<std::int64_t, std::int64_t> launches_;  // looked up only, never iterated
  std::unordered_map<std::int64_t, std::int32_t> shaped_;
  std::unordered_map<std::string, std::int32_t> index_;
};

}  // namespace

KinetoTrace load_kineto(const std::string& path) {
  KinetoTrace trace;
  GzipBuffer buffer(path);
  std::istream in(&buffer);
  Handler handler(trace);
  nlohmann::json::sax_parse(in, &handler, nlohmann::json::input_format_t::json, true);
  if (buffer.failed()) {
    trace.truncated = true;
    if (trace.damage.empty()) trace.damage = "the compressed data is damaged";
  }
  if (trace.events.empty())
    throw ConfigError(trace.truncated ? fmt::format("no GPU event could be read ({})", trace.damage)
                                      : std::string("no GPU event in this trace"),
                      {}, Place{path, 0, 0});
  handler.link_launches();
  std::stable_sort(trace.events.begin(), trace.events.end(),
                   [](const GpuEvent& a, const GpuEvent& b) { return a.start_ns < b.start_ns; });
  return trace;
}

}  // namespace k3sim
