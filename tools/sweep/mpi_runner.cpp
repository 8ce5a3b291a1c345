// Many ranks, one counter: every rank takes the next configuration with MPI_Fetch_and_op on a window of rank 0, appends
// the row to its own journal and goes on; rank 0 joins the journals when all are done. A rank that dies takes the job
// down, but its rows are on disk: the same command with --resume evaluates only what is missing, with any number of
// ranks. `plan` shares its evaluations the same way and joins their results. Built when MPI is found (K3SIM_MPI); other
// builds refuse to run under mpirun. Source: MPI-3 one-sided communication; engine-design section 9 (self-scheduling).
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "sim/base/error.h"
#include "tools/sweep/journal.h"
#include "tools/sweep/sweep.h"

#ifdef K3SIM_HAS_MPI
#include <mpi.h>
#endif

namespace k3sim {

bool started_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name)) return true;
  return false;
}

#ifdef K3SIM_HAS_MPI

namespace {

class World {
 public:
  World() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  ~World() { MPI_Finalize(); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  void barrier() const { MPI_Barrier(MPI_COMM_WORLD); }
  int rank = 0, size = 1;
};

// One number at rank 0 that every rank may take and advance.
class SharedCounter {
 public:
  explicit SharedCounter(const World& world) {
    const MPI_Aint bytes = world.rank == 0 ? static_cast<MPI_Aint>(sizeof(std::int64_t)) : 0;
    MPI_Win_allocate(bytes, sizeof(std::int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &value_, &window_);
    if (world.rank == 0) *value_ = 0;
    world.barrier();
    MPI_Win_lock_all(0, window_);
  }
  ~SharedCounter() {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;
  std::int64_t take() {
    const std::int64_t one = 1;
    std::int64_t before = 0;
    MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, window_);
    MPI_Win_flush(0, window_);
    return before;
  }

 private:
  std::int64_t* value_ = nullptr;
  MPI_Win window_{};
};

std::int64_t evaluate_share(RowMaker& maker, const World& world, const std::string& folder, bool resume,
                            const std::vector<std::int64_t>& left, const Advance& advance) {
  Journal journal(fmt::format("{}/journal-rank-{}-of-{}.csv", folder, world.rank, world.size), maker.digest(), !resume);
  SharedCounter counter(world);
  std::int64_t made = 0;
  for (std::int64_t k = counter.take(); k < static_cast<std::int64_t>(left.size()); k = counter.take(), ++made) {
    const std::int64_t index = left[static_cast<std::size_t>(k)];
    journal.add(index, maker.row(index));
    if (advance) advance(world.size);
  }
  return made;
}

// Ranks take indices from the counter; their records are joined bytewise: every record has one author.
class MpiShare final : public WorkShare {
 public:
  void run(std::size_t n, std::size_t size, void* results, const std::function<void(std::size_t)>& work) override {
    auto* records = static_cast<unsigned char*>(results);
    std::vector<unsigned char> own(n * size, 0);
    {
      SharedCounter counter(world_);
      for (std::int64_t k = counter.take(); k < static_cast<std::int64_t>(n); k = counter.take()) {
        const auto i = static_cast<std::size_t>(k);
        work(i);
        std::memcpy(own.data() + i * size, records + i * size, size);
      }
    }
    MPI_Allreduce(own.data(), records, static_cast<int>(n * size), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  }
  bool writes() const override { return world_.rank == 0; }
  int rank() const override { return world_.rank; }
  void barrier() override { world_.barrier(); }

 private:
  World world_;
};

}  // namespace

std::unique_ptr<WorkShare> mpi_share() {
  return std::make_unique<MpiShare>();
}

SweepOutcome run_sweep_mpi(RowMaker& maker, const SweepRequest& request, const Advance& advance) {
  if (request.sharded) throw ConfigError("--shard and mpirun exclude each other: the ranks share the work themselves");
  const World world;
  if (world.rank == 0) {
    std::filesystem::create_directories(request.folder);
    if (!request.resume) remove_journals(request.folder);
  }
  world.barrier();
  Rows rows;
  if (request.resume) rows = read_journals(request.folder, maker.digest());
  std::vector<std::int64_t> left;
  for (std::int64_t i = 0; i < maker.space().size(); ++i)
    if (!rows.count(i)) left.push_back(i);
  world.barrier();  // everybody has read before anybody writes
  std::int64_t made = evaluate_share(maker, world, request.folder, request.resume, left, advance), all = 0;
  MPI_Reduce(&made, &all, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  SweepOutcome out{maker.space().size(), all, {}};
  if (world.rank == 0) {
    rows = read_journals(request.folder, maker.digest());
    std::string text = maker.header();
    for (std::int64_t i = 0; i < maker.space().size(); ++i) text += rows.at(i);
    out.file = request.folder + "/sweep.csv";
    write_table(out.file, text);
    remove_journals(request.folder);
  }
  world.barrier();
  return out;
}

#else

std::unique_ptr<WorkShare> mpi_share() {
  throw ConfigError("started with several ranks, but this build has no MPI; start one process, or build with Open MPI");
}

SweepOutcome run_sweep_mpi(RowMaker&, const SweepRequest&, const Advance&) {
  throw ConfigError("started with several ranks, but this build has no MPI; use --shard i/n, or build with Open MPI");
}

#endif

}  // namespace k3sim
