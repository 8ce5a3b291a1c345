// Pieces of work that several threads, or the ranks of an MPI job (tools/sweep/mpi_runner.cpp), take from one counter.
// Afterwards everybody has every result, so that what follows is the same for any number of threads and ranks.
// Source: engine-design section 9 (self-scheduling).
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <vector>

namespace k3sim {

class WorkShare {
 public:
  virtual ~WorkShare() = default;
  // Calls work(i) once for every i in [0, n), somewhere; it fills the i-th of n records of `size` bytes at `results`.
  // `work` must not throw.
  virtual void run(std::size_t n, std::size_t size, void* results, const std::function<void(std::size_t)>& work) = 0;
  virtual bool writes() const { return true; }  // this process prints and writes files
  virtual int rank() const { return 0; }
  virtual void barrier() {}  // returns when all ranks are here

  template <class T, class F>
  std::vector<T> results(std::size_t n, const F& make) {
    static_assert(std::is_trivially_copyable_v<T>, "results travel between processes as bytes");
    std::vector<T> out(n);
    run(n, sizeof(T), out.data(), [&](std::size_t i) { out[i] = make(i); });
    return out;
  }
};

class ThreadShare final : public WorkShare {
 public:
  explicit ThreadShare(int threads) : threads_(threads) {}
  void run(std::size_t n, std::size_t size, void* results, const std::function<void(std::size_t)>& work) override;

 private:
  int threads_;
};

}  // namespace k3sim
