#include "tools/sweep/sweep.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "sim/base/error.h"
#include "tools/sweep/journal.h"

namespace k3sim {

namespace fs = std::filesystem;

namespace {

std::string shard_name(int shard, int shards) {
  return fmt::format("shard-{}-of-{}.csv", shard, shards);
}

// Runs work(i) for i in [0, n) on some threads; the first exception stops all and is thrown again.
void for_each_index(std::size_t n, int threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto loop = [&] {
    for (std::size_t i = next++; i < n; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure) failure = std::current_exception();
        next = n;
      }
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(loop);
  loop();
  for (std::thread& t : pool) t.join();
  if (failure) std::rethrow_exception(failure);
}

std::vector<std::int64_t> own_indices(std::int64_t size, const SweepRequest& request) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = request.shard; i < size; i += request.shards) out.push_back(i);
  return out;
}

std::string table(const RowMaker& maker, const Rows& rows, const std::vector<std::int64_t>& indices) {
  std::string out = maker.header();
  for (std::int64_t i : indices) out += rows.at(i);
  return out;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line + "\n");
  return out;
}

// n of the first file named shard-?-of-n.csv; 0: none.
int find_shards(const std::string& folder) {
  int shards = 0, i = 0, n = 0;
  std::error_code error;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, error))
    if (std::sscanf(e.path().filename().c_str(), "shard-%d-of-%d.csv", &i, &n) == 2) {
      if (shards != 0 && shards != n)
        throw ConfigError(fmt::format("holds shards of {} and of {}", shards, n), {}, {folder, 0, 0});
      shards = n;
    }
  return shards;
}

}  // namespace

void write_table(const std::string& path, const std::string& content) {
  const std::string temporary = path + ".tmp";
  {
    std::ofstream out(temporary, std::ios::binary);
    out << content;
    if (!out.flush()) throw ConfigError("cannot be written", {}, {path, 0, 0});
  }
  fs::rename(temporary, path);
}

SweepOutcome run_sweep(RowMaker& maker, const SweepRequest& request, const Advance& advance) {
  fs::create_directories(request.folder);
  const std::string name = request.sharded ? shard_name(request.shard, request.shards) : "sweep.csv";
  const std::string journal_path = request.folder + "/journal-" + name, digest = maker.digest();
  const std::vector<std::int64_t> indices = own_indices(maker.space().size(), request);
  Rows rows;
  if (request.resume) rows = read_journals(request.folder, digest);
  std::vector<std::int64_t> left;
  for (std::int64_t i : indices)
    if (!rows.count(i)) left.push_back(i);
  if (advance) advance(static_cast<std::int64_t>(indices.size() - left.size()));
  std::vector<std::string> made(left.size());
  {
    Journal journal(journal_path, digest, !request.resume);
    for_each_index(left.size(), request.threads, [&](std::size_t k) {
      made[k] = maker.row(left[k]);
      journal.add(left[k], made[k]);
      if (advance) advance(1);
    });
  }
  for (std::size_t k = 0; k < left.size(); ++k) rows[left[k]] = std::move(made[k]);
  SweepOutcome out{static_cast<std::int64_t>(indices.size()), static_cast<std::int64_t>(left.size()),
                   request.folder + "/" + name};
  write_table(out.file, table(maker, rows, indices));
  std::error_code error;
  fs::remove(journal_path, error);
  if (!request.sharded) remove_journals(request.folder);
  return out;
}

SweepOutcome merge_shards(const RowMaker& maker, const std::string& folder) {
  const int shards = find_shards(folder);
  if (shards == 0) throw ConfigError("holds no shard-i-of-n.csv", {}, {folder, 0, 0});
  std::string text = maker.header();
  std::vector<std::vector<std::string>> files;
  for (int s = 0; s < shards; ++s) {
    const std::string path = folder + "/" + shard_name(s, shards);
    if (!fs::exists(path)) throw ConfigError(fmt::format("shard {} of {} is missing", s, shards), {}, {path, 0, 0});
    files.push_back(lines_of(path));
    if (files.back().empty() || files.back().front() != maker.header())
      throw ConfigError("belongs to another space: its header differs", {}, {path, 0, 0});
  }
  const std::int64_t size = maker.space().size();
  for (std::int64_t i = 0; i < size; ++i) {
    const std::vector<std::string>& file = files[static_cast<std::size_t>(i % shards)];
    const auto line = static_cast<std::size_t>(i / shards) + 1;
    const std::string path = folder + "/" + shard_name(static_cast<int>(i % shards), shards);
    if (line >= file.size())
      throw ConfigError(
          fmt::format("is incomplete: {} rows, {} expected", file.size() - 1, (size + shards - 1) / shards), {},
          {path, 0, 0});
    if (!file[line].starts_with(maker.space().id(i) + ","))
      throw ConfigError("belongs to another space: its configurations differ", {},
                        {path, static_cast<int>(line) + 1, 1});
    text += file[line];
  }
  SweepOutcome out{size, 0, folder + "/sweep.csv"};
  write_table(out.file, text);
  return out;
}

}  // namespace k3sim
