// A WorkShare that keeps every finished result on disk, so that a search whose process or rank died goes on where it
// was: the search is the same sequence of shared lists whatever the number of threads and ranks, and a result is known
// by (number of the list, place in it). Results are plain bytes; the journal's digest names the space, the options and
// the release of the program. Each process appends to a journal of its own.
// Source: engine-design section 9 (append finished rows, merge by configuration).
#pragma once

#include <memory>
#include <string>

#include "tools/planner/work_share.h"
#include "tools/sweep/journal.h"

namespace k3sim {

class JournalShare final : public WorkShare {
 public:
  // Under MPI every rank has its own share over the same folder: `resume` reads the journals of all ranks, before any
  // rank writes. Without it the folder's journals are removed.
  JournalShare(WorkShare& inner, const std::string& folder, const std::string& digest, bool resume);
  void run(std::size_t n, std::size_t size, void* results, const std::function<void(std::size_t)>& work) override;
  bool writes() const override { return inner_.writes(); }
  int rank() const override { return inner_.rank(); }
  void barrier() override { inner_.barrier(); }
  std::size_t known() const { return known_.size(); }  // results that were on disk at the start

 private:
  WorkShare& inner_;
  Rows known_;
  std::unique_ptr<Journal> journal_;
  std::int64_t lists_ = 0;
};

}  // namespace k3sim
