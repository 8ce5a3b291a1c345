// See journal_share.h. Source: engine-design section 9.
#include "tools/sweep/journal_share.h"

#include <fmt/format.h>

#include <charconv>
#include <exception>
#include <filesystem>
#include <mutex>

#include "sim/base/error.h"

namespace k3sim {

namespace {

constexpr std::int64_t kListSize = std::int64_t{1} << 32;

// Rows end as those of tables do.
std::string to_row(const unsigned char* bytes, std::size_t size) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out + "\r\n";
}

bool from_row(const std::string& row, unsigned char* bytes, std::size_t size) {
  if (row.size() != 2 * size + 2) return false;
  for (std::size_t i = 0; i < size; ++i) {
    const char* first = row.data() + 2 * i;
    if (std::from_chars(first, first + 2, bytes[i], 16).ptr != first + 2) return false;
  }
  return true;
}

}  // namespace

JournalShare::JournalShare(WorkShare& inner, const std::string& folder, const std::string& digest, bool resume)
    : inner_(inner) {
  std::filesystem::create_directories(folder);
  if (!resume && writes()) remove_journals(folder);
  inner_.barrier();
  if (resume) known_ = read_journals(folder, digest);
  inner_.barrier();  // everybody has read before anybody writes
  journal_ = std::make_unique<Journal>(fmt::format("{}/journal-rank-{}.csv", folder, rank()), digest, !resume);
}

void JournalShare::run(std::size_t n, std::size_t size, void* results, const std::function<void(std::size_t)>& work) {
  const std::int64_t list = lists_++ * kListSize;
  std::exception_ptr failure;
  std::mutex mutex;
  inner_.run(n, size, results, [&](std::size_t i) {
    unsigned char* own = static_cast<unsigned char*>(results) + i * size;
    const std::int64_t index = list + static_cast<std::int64_t>(i);
    if (const auto found = known_.find(index); found != known_.end() && from_row(found->second, own, size)) return;
    work(i);
    try {
      journal_->add(index, to_row(own, size));
    } catch (...) {  // `work` of a share must not throw
      const std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace k3sim
