// Loading of the two snapshot forms into one structure; see the header.
#include "tools/import/memory_snapshot.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sim/base/error.h"
#include "tools/import/pickle_reader.h"

namespace k3sim {
namespace {

constexpr std::size_t kLargestSnapshot = std::size_t{4} << 30;  // inflated; guards against compression bombs
constexpr std::int64_t kLargestNumber = std::int64_t{1} << 60;  // sums of sizes stay far from overflow

constexpr std::array<std::pair<const char*, SnapshotAction>, 8> kActions = {{
    {"alloc", SnapshotAction::kAlloc},
    {"free_requested", SnapshotAction::kFreeRequested},
    {"free_completed", SnapshotAction::kFreeCompleted},
    {"segment_alloc", SnapshotAction::kSegmentAlloc},
    {"segment_free", SnapshotAction::kSegmentFree},
    {"segment_map", SnapshotAction::kSegmentMap},
    {"segment_unmap", SnapshotAction::kSegmentUnmap},
    {"oom", SnapshotAction::kOutOfMemory},
}};

[[noreturn]] void fail(const std::string& file, const std::string& key, const std::string& what) {
  throw ConfigError(what, key, Place{file, 0, 0});
}

SnapshotAction action_from(std::string_view name) {
  for (const auto& [text, action] : kActions)
    if (name == text) return action;
  return SnapshotAction::kOther;
}

std::string read_file(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> in(gzopen(path.c_str(), "rb"), gzclose);
  if (!in) fail(path, {}, "cannot open the memory snapshot");
  std::string bytes;
  std::vector<char> buffer(1 << 18);
  for (;;) {
    const int n = gzread(in.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
    if (n > 0) bytes.append(buffer.data(), static_cast<std::size_t>(n));
    if (bytes.size() > kLargestSnapshot) fail(path, {}, "the memory snapshot is larger than 4 GiB");
    if (n < static_cast<int>(buffer.size())) break;
  }
  int code = Z_OK;
  const char* message = gzerror(in.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END) fail(path, {}, fmt::format("cannot read the file: {}", message));
  if (bytes.empty()) fail(path, {}, "the file is empty");
  return bytes;
}

BlockState state_from(const std::string& file, std::string_view state) {
  if (state == "inactive") return BlockState::kInactive;
  if (state == "active_allocated") return BlockState::kAllocated;
  if (state == "active_awaiting_free" || state == "active_pending_free") return BlockState::kAwaitingFree;
  fail(file, "segments.blocks.state", fmt::format("unknown block state '{}'", state));
}

void check_event(const std::string& file, const SnapshotEvent& e, std::size_t index) {
  if (e.action == SnapshotAction::kOther || e.action == SnapshotAction::kOutOfMemory) return;
  if (e.size <= 0 || e.size > kLargestNumber || e.address < 0 || e.address > kLargestNumber)
    fail(file, fmt::format("trace[{}]", index),
         fmt::format("size {} at address {} is out of range", e.size, e.address));
}

void check_segments(MemorySnapshot& snapshot) {
  for (MemorySegment& s : snapshot.segments) {
    std::int64_t sum = 0;
    s.allocated_size = s.active_size = 0;
    for (const SegmentBlock& b : s.blocks) {
      if (b.size <= 0 || b.size > kLargestNumber - sum)
        fail(snapshot.file, "segments.blocks",
             fmt::format("a block of {} bytes in the segment at {}", b.size, s.address));
      sum += b.size;
      if (b.state == BlockState::kAllocated) s.allocated_size += b.size;
      if (b.state != BlockState::kInactive) s.active_size += b.size;
    }
    if (sum != s.total_size)
      fail(
          snapshot.file, "segments.blocks",
          fmt::format("blocks of the segment at {} sum to {} bytes, the segment has {}", s.address, sum, s.total_size));
  }
  std::sort(snapshot.segments.begin(), snapshot.segments.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
}

// ---- JSON form ----

using Json = nlohmann::json;

MemorySegment json_segment(const std::string& file, const Json& j) {
  MemorySegment s;
  s.address = j.at(0).get<std::int64_t>();
  s.total_size = j.at(1).get<std::int64_t>();
  s.small = j.at(4).get<std::string>() == "small";
  s.stream = j.at(5).get<std::int64_t>();
  for (const Json& b : j.at(6))
    s.blocks.push_back({b.at(0).get<std::int64_t>(), 0, state_from(file, b.at(1).get_ref<const std::string&>())});
  return s;
}

std::optional<Bytes> json_bytes(const Json& j, const char* key) {
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return std::nullopt;
  return Bytes(it->get<std::int64_t>());
}

MemorySnapshot from_json(const std::string& text, const std::string& path) {
  MemorySnapshot snapshot;
  snapshot.file = path;
  try {
    const Json j = Json::parse(text);
    snapshot.torch_version = j.value("torch", "");
    snapshot.alloc_conf = j.value("alloc_conf", "");
    snapshot.peak_allocated = json_bytes(j, "peak_allocated");
    snapshot.peak_reserved = json_bytes(j, "peak_reserved");
    for (const Json& e : j.at("trace")) {
      snapshot.trace.push_back({action_from(e.at(0).get_ref<const std::string&>()), e.at(1).get<std::int64_t>(),
                                e.at(2).get<std::int64_t>(), e.at(3).get<std::int64_t>()});
      check_event(path, snapshot.trace.back(), snapshot.trace.size() - 1);
    }
    for (const Json& s : j.at("segments")) snapshot.segments.push_back(json_segment(path, s));
  } catch (const Json::exception& e) {
    fail(path, {}, fmt::format("not a memory snapshot in JSON form: {}", e.what()));
  }
  return snapshot;
}

// ---- pickle form ----

class PickleForm {
 public:
  PickleForm(const PickleDocument& doc, const std::string& file) : doc_(doc), file_(file) {}

  MemorySnapshot read(int device) {
    MemorySnapshot snapshot;
    snapshot.file = file_;
    if (doc_.kind(doc_.root()) != Kind::kDict) fail(file_, {}, "not a memory snapshot: the pickle holds no dictionary");
    if (device < 0) device = busiest_device();
    snapshot.alloc_conf = settings();
    for (const Id s : sequence(doc_.root(), "segments")) {
      if (integer(s, "device", 0) != device) continue;
      snapshot.segments.push_back(segment(s));
      if (in_private_pool(s)) ++snapshot.private_pool_segments;
    }
    const std::vector<Id>& traces = sequence(doc_.root(), "device_traces");
    if (device >= static_cast<int>(traces.size()))
      fail(file_, "device_traces", fmt::format("no device {}, the snapshot has {}", device, traces.size()));
    if (!doc_.is_sequence(traces[static_cast<std::size_t>(device)]))
      fail(file_, "device_traces", "not a list of lists");
    for (const Id e : doc_.items(traces[static_cast<std::size_t>(device)])) {
      snapshot.trace.push_back(event(e));
      check_event(file_, snapshot.trace.back(), snapshot.trace.size() - 1);
    }
    if (snapshot.trace.empty())
      fail(file_, "device_traces",
           "the trace is empty: call torch.cuda.memory._record_memory_history() before the run");
    return snapshot;
  }

 private:
  using Id = PickleDocument::Id;
  using Kind = PickleDocument::Kind;

  Id member(Id dict, std::string_view key) const {
    if (doc_.kind(dict) != Kind::kDict) fail(file_, std::string(key), "expected a dictionary around this key");
    const auto id = doc_.find(dict, key);
    if (!id) fail(file_, std::string(key), "this key is missing from the snapshot");
    return *id;
  }
  const std::vector<Id>& sequence(Id dict, std::string_view key) const {
    const Id id = member(dict, key);
    if (!doc_.is_sequence(id)) fail(file_, std::string(key), "expected a list");
    return doc_.items(id);
  }
  std::int64_t integer(Id dict, std::string_view key) const {
    const Id id = member(dict, key);
    if (doc_.kind(id) != Kind::kInteger) fail(file_, std::string(key), "expected a whole number");
    return doc_.integer(id);
  }
  std::int64_t integer(Id dict, std::string_view key, std::int64_t otherwise) const {
    return doc_.kind(dict) == Kind::kDict && doc_.find(dict, key) ? integer(dict, key) : otherwise;
  }
  std::string_view text(Id dict, std::string_view key) const {
    const Id id = member(dict, key);
    if (doc_.kind(id) != Kind::kText) fail(file_, std::string(key), "expected text");
    return doc_.text(id);
  }

  int busiest_device() const {
    std::size_t most = 0;
    int best = 0;
    const std::vector<Id>& traces = sequence(doc_.root(), "device_traces");
    for (std::size_t i = 0; i < traces.size(); ++i) {
      if (!doc_.is_sequence(traces[i]) || doc_.items(traces[i]).size() <= most) continue;
      most = doc_.items(traces[i]).size();
      best = static_cast<int>(i);
    }
    return best;
  }

  std::string settings() const {
    const auto settings = doc_.find(doc_.root(), "allocator_settings");
    if (!settings || doc_.kind(*settings) != Kind::kDict) return {};
    for (const char* key : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})
      if (const auto id = doc_.find(*settings, key); id && doc_.kind(*id) == Kind::kText)
        return std::string(doc_.text(*id));
    const auto expandable = doc_.find(*settings, "expandable_segments");
    return expandable && doc_.kind(*expandable) == Kind::kBool && doc_.integer(*expandable) != 0
               ? "expandable_segments:True"
               : "";
  }

  MemorySegment segment(Id id) const {
    MemorySegment s;
    s.address = integer(id, "address");
    s.total_size = integer(id, "total_size");
    s.stream = integer(id, "stream", 0);
    s.small = text(id, "segment_type") == "small";
    if (const auto e = doc_.find(id, "is_expandable"); e && doc_.kind(*e) == Kind::kBool)
      s.expandable = doc_.integer(*e) != 0;
    for (const Id b : sequence(id, "blocks"))
      s.blocks.push_back({integer(b, "size"), integer(b, "requested_size", 0), state_from(file_, text(b, "state"))});
    return s;
  }

  // The default pool has the id (0, 0).
  bool in_private_pool(Id segment) const {
    const auto pool = doc_.find(segment, "segment_pool_id");
    if (!pool || !doc_.is_sequence(*pool)) return false;
    for (const Id part : doc_.items(*pool))
      if (doc_.kind(part) == Kind::kInteger && doc_.integer(part) != 0) return true;
    return false;
  }

  SnapshotEvent event(Id id) const {
    SnapshotEvent e;
    e.action = action_from(text(id, "action"));
    if (e.action == SnapshotAction::kOther || e.action == SnapshotAction::kOutOfMemory) {
      e.size = integer(id, "size", 0);
      return e;
    }
    e.address = integer(id, "addr");
    e.size = integer(id, "size");
    e.stream = integer(id, "stream", 0);
    return e;
  }

  const PickleDocument& doc_;
  std::string file_;
};

}  // namespace

const char* to_string(SnapshotAction action) {
  for (const auto& [text, a] : kActions)
    if (a == action) return text;
  return "other";
}

MemorySnapshot load_memory_snapshot(const std::string& path, int device) {
  std::string bytes = read_file(path);
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  MemorySnapshot snapshot;
  if (first != std::string::npos && bytes[first] == '{') {
    snapshot = from_json(bytes, path);
  } else if (bytes[0] == '\x80') {
    const PickleDocument doc = PickleDocument::parse(std::move(bytes), path);
    snapshot = PickleForm(doc, path).read(device);
  } else {
    fail(path, {}, "neither a pickle (torch.cuda.memory._dump_snapshot) nor JSON");
  }
  check_segments(snapshot);
  return snapshot;
}

}  // namespace k3sim
