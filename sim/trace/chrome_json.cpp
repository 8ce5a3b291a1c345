#include "sim/trace/chrome_json.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iterator>

namespace k3sim {

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

namespace {

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace) {
    for (const std::string& n : trace.names) quoted_.push_back(json_quoted(n));
  }

  std::string text() {
    out_ = "{\"displayTimeUnit\":\"ms\",\"otherData\":{";
    const char* comma = "";
    for (const auto& [key, value] : trace_.about) {
      add("{}{}:{}", comma, json_quoted(key), json_quoted(value));
      comma = ",";
    }
    out_ += "},\"traceEvents\":[\n";
    names();
    for (const TraceSlice& s : trace_.slices) slice(s);
    for (std::size_t i = 0; i < trace_.flows.size(); ++i) flow(trace_.flows[i], i + 1);
    for (const TraceSample& s : trace_.samples) sample(s);
    out_.erase(out_.size() - 2);  // the last comma
    out_ += "\n]}\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void time(const char* key, std::int64_t ns) { add("\"{}\":{}.{:03}", key, ns / 1000, ns % 1000); }

  void place(std::uint32_t thread) { add(",\"pid\":{},\"tid\":{},", trace_.threads[thread].process + 1, thread + 1); }

  void names() {
    for (std::size_t p = 0; p < trace_.processes.size(); ++p) {
      add("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":{}}}}},\n", p + 1,
          json_quoted(trace_.processes[p]));
      add("{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{},\"args\":{{\"sort_index\":{}}}}},\n", p + 1, p);
    }
    for (std::size_t t = 0; t < trace_.threads.size(); ++t) {
      const std::uint32_t pid = trace_.threads[t].process + 1;
      add("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}},\n", pid, t + 1,
          json_quoted(trace_.threads[t].name));
      add("{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{},\"tid\":{},\"args\":{{\"sort_index\":{}}}}},\n",
          pid, t + 1, t);
    }
  }

  void slice(const TraceSlice& s) {
    add("{{\"ph\":\"X\",\"name\":{},\"cat\":{}", quoted_[s.name], quoted_[s.category]);
    place(s.thread);
    time("ts", trace_ns(s.start));
    out_ += ',';
    time("dur", trace_ns(s.finish) - trace_ns(s.start));
    if (s.detail != 0) add(",\"args\":{{\"what\":{}}}", quoted_[s.detail]);
    out_ += "},\n";
  }

  void flow(const TraceFlow& f, std::size_t id) {
    const auto end = [&](const char* phase, const TraceSlice& s) {
      add("{{\"ph\":\"{}\",\"id\":{},\"name\":{},\"cat\":\"flow\"", phase, id, quoted_[f.name]);
      place(s.thread);
      if (phase[0] == 'f') out_ += "\"bp\":\"e\",";
      time("ts", trace_ns(s.start));
      out_ += "},\n";
    };
    end("s", trace_.slices[f.from]);
    end("f", trace_.slices[f.to]);
  }

  void sample(const TraceSample& s) {
    const TraceCounter& c = trace_.counters[s.counter];
    add("{{\"ph\":\"C\",\"name\":{},\"pid\":{},", json_quoted(c.name), c.process + 1);
    time("ts", trace_ns(s.time));
    add(",\"args\":{{{}:{:.6g}}}}},\n", json_quoted(c.unit), s.value);
  }

  const Trace& trace_;
  std::vector<std::string> quoted_;
  std::string out_;
};

}  // namespace

std::string chrome_json(const Trace& trace) {
  return Writer(trace).text();
}

}  // namespace k3sim
