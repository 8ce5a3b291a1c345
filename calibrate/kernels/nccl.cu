// NCCL collectives between the GPUs of the host, copy-engine peer copies, and GEMM beside an all-reduce.
//   bytes is the total buffer as nccl-tests count it. Up to 20 calls back to back make one sample, timed with events on
//   every GPU. One host thread drives all GPUs, so below 16 MiB the time would be the host's: there every GPU replays a
//   CUDA graph of 50 calls (rows *_stream are the same calls enqueued one by one).
// Source: hardware.md sections 3.2, 3.4; rows comparable with the shipped nccl rows.
#include <algorithm>
#include <functional>
#include <memory>

#include "calibrate/kernels/bench.h"
#include "calibrate/kernels/compare.h"
#include "calibrate/kernels/lt_matmul.h"
#include "calibrate/kernels/multi_gpu.h"
#include "calibrate/kernels/nccl_library.h"
#include "calibrate/kernels/random_fill.h"

namespace k3sim {

namespace {

struct Gpu {
  DeviceBuffer<bf16> in, out;
  cudaStream_t stream = nullptr;
  NcclComm comm = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
};

struct Ring {
  NcclLibrary lib;
  std::vector<Gpu> gpus;

  Ring(Bench& b, std::size_t elements) : gpus(b.options().gpus) {
    const auto comms = lib.init_all(int(gpus.size()));
    for (std::size_t d = 0; d < gpus.size(); ++d) {
      K3_CUDA(cudaSetDevice(int(d)));
      gpus[d] = {random_buffer<bf16>(elements, b.next_seed()),
                 DeviceBuffer<bf16>(elements),
                 nullptr,
                 comms[d],
                 nullptr,
                 nullptr};
      K3_CUDA(cudaEventCreate(&gpus[d].begin));
      K3_CUDA(cudaEventCreate(&gpus[d].end));
      K3_CUDA(cudaStreamCreateWithFlags(&gpus[d].stream, cudaStreamNonBlocking));
    }
    K3_CUDA(cudaSetDevice(0));
  }
  ~Ring() {
    for (auto& g : gpus) lib.destroy(g.comm), cudaStreamDestroy(g.stream);
  }
  int size() const { return int(gpus.size()); }

  // Time of what `start` enqueues, by the events of the slowest GPU.
  double timed(const std::function<void()>& start) const {
    synchronize_all(size());
    const auto record = [&](bool end) {
      for (int d = 0; d < size(); ++d) {
        K3_CUDA(cudaSetDevice(d));
        K3_CUDA(cudaEventRecord(end ? gpus[d].end : gpus[d].begin, gpus[d].stream));
      }
    };
    record(false);
    start();
    record(true);
    synchronize_all(size());
    K3_CUDA(cudaSetDevice(0));
    float slowest = 0;
    for (const auto& g : gpus) {
      float ms = 0;
      K3_CUDA(cudaEventElapsedTime(&ms, g.begin, g.end));
      slowest = std::max(slowest, ms);
    }
    return double(slowest) * 1e3;
  }

  // Captures what `start` enqueues into one graph per GPU. Throws CudaFailure where the library cannot be captured.
  std::vector<cudaGraphExec_t> capture(const std::function<void()>& start) const {
    synchronize_all(size());
    for (int d = 0; d < size(); ++d) {
      K3_CUDA(cudaSetDevice(d));
      K3_CUDA(cudaStreamBeginCapture(gpus[d].stream, cudaStreamCaptureModeRelaxed));
    }
    start();
    std::vector<cudaGraphExec_t> graphs(gpus.size());
    for (int d = 0; d < size(); ++d) {
      K3_CUDA(cudaSetDevice(d));
      cudaGraph_t graph = nullptr;
      K3_CUDA(cudaStreamEndCapture(gpus[d].stream, &graph));
      K3_CUDA(cudaGraphInstantiate(&graphs[d], graph, 0));
      K3_CUDA(cudaGraphDestroy(graph));
    }
    return graphs;
  }

  void replay(const std::vector<cudaGraphExec_t>& graphs) const {
    for (int d = 0; d < size(); ++d) {
      K3_CUDA(cudaSetDevice(d));
      K3_CUDA(cudaGraphLaunch(graphs[d], gpus[d].stream));
    }
  }

  // Calls f(rank) inside one NCCL group.
  void group(const std::function<void(int)>& f) const {
    lib.group_start();
    for (int r = 0; r < size(); ++r) f(r);
    lib.group_end();
  }
};

constexpr NcclType kType = NcclType::kBfloat16;

struct Collective {
  const char* name;
  std::function<void(Ring&, std::size_t)> start;  // n: elements of the total buffer
};

std::vector<Collective> collectives() {
  return {
      {"all_reduce",
       [](Ring& w, std::size_t n) {
         w.group([&](int r) {
           auto& g = w.gpus[r];
           w.lib.all_reduce(g.in.get(), g.out.get(), n, kType, g.comm, g.stream);
         });
       }},
      {"all_gather",
       [](Ring& w, std::size_t n) {
         w.group([&](int r) {
           auto& g = w.gpus[r];
           w.lib.all_gather(g.in.get(), g.out.get(), n / w.size(), kType, g.comm, g.stream);
         });
       }},
      {"reduce_scatter",
       [](Ring& w, std::size_t n) {
         w.group([&](int r) {
           auto& g = w.gpus[r];
           w.lib.reduce_scatter(g.in.get(), g.out.get(), n / w.size(), kType, g.comm, g.stream);
         });
       }},
      {"all_to_all",
       [](Ring& w, std::size_t n) {
         const std::size_t part = n / w.size();
         w.group([&](int r) {
           auto& g = w.gpus[r];
           for (int p = 0; p < w.size(); ++p) {
             w.lib.send(g.in.get() + p * part, part, kType, p, g.comm, g.stream);
             w.lib.recv(g.out.get() + p * part, part, kType, p, g.comm, g.stream);
           }
         });
       }},
      {"sendrecv_bidir",
       [](Ring& w, std::size_t n) {
         w.group([&](int r) {
           auto& g = w.gpus[r];
           w.lib.send(g.in.get(), n, kType, (r + 1) % w.size(), g.comm, g.stream);
           w.lib.recv(g.out.get(), n, kType, (r + w.size() - 1) % w.size(), g.comm, g.stream);
         });
       }},
      {"send_unidir",
       [](Ring& w, std::size_t n) {
         w.group([&](int r) {
           auto& g = w.gpus[r];
           if (r == 0) w.lib.send(g.in.get(), n, kType, 1, g.comm, g.stream);
           if (r == 1) w.lib.recv(g.out.get(), n, kType, 0, g.comm, g.stream);
         });
       }},
  };
}

void check(Bench& b, Ring& w) {
  const std::size_t n = 1 << 16, part = n / w.size();
  std::vector<std::vector<double>> in;
  for (auto& g : w.gpus) {
    in.push_back(download_double(g.in));
    in.back().resize(n);
  }
  for (const auto& c : collectives()) {
    const std::string name = c.name;
    for (auto& g : w.gpus) g.out.poison();
    synchronize_all(w.size());
    c.start(w, n);
    synchronize_all(w.size());
    std::vector<double> want, got;
    for (int r = 0; r < w.size(); ++r) {
      if (name == "send_unidir" && r != 1) continue;
      auto out = download_double(w.gpus[r].out);
      const std::size_t valid = name == "reduce_scatter" ? part : n;
      for (std::size_t i = 0; i < valid; ++i) {
        double v = 0;
        const std::size_t at = name == "reduce_scatter" ? r * part + i : i;
        if (name == "all_reduce" || name == "reduce_scatter")
          for (const auto& x : in) v += x[at];
        else if (name == "all_gather")
          v = in[i / part][i % part];
        else if (name == "all_to_all")
          v = in[i / part][r * part + i % part];
        else
          v = in[(r + w.size() - 1) % w.size()][i];
        want.push_back(v);
        got.push_back(out[i]);
      }
    }
    b.verify("nccl " + name, relative_error(got, want), 5e-3);
  }
  K3_CUDA(cudaSetDevice(0));
}

KernelId collective_id(const std::string& name, const Ring& w, std::size_t bytes) {
  return {"nccl", name, "fwd", "bf16", concat("ranks=", w.size(), ";bytes=", bytes), 0, double(bytes)};
}

// Small sizes: replayed from graphs, so that the host's launches stay out of the time.
void time_replayed(Bench& b, Ring& w, const Collective& c, std::size_t bytes) {
  constexpr int kCalls = 50;
  const KernelId id = collective_id(c.name, w, bytes);
  if (b.skip(id)) return;
  const auto graphs = w.capture([&] {
    for (int i = 0; i < kCalls; ++i) c.start(w, bytes / 2);
  });
  b.time_with(id, [&] { return w.timed([&] { w.replay(graphs); }) / kCalls; });
  for (const auto graph : graphs) K3_CUDA(cudaGraphExecDestroy(graph));
}

void time_enqueued(Bench& b, Ring& w, const Collective& c, std::size_t bytes, const std::string& name) {
  const int repeat = int(std::clamp<std::size_t>((std::size_t(1) << 30) / bytes, 1, 20));
  b.time_with(collective_id(name, w, bytes), [&] {
    return w.timed([&] {
      for (int i = 0; i < repeat; ++i) c.start(w, bytes / 2);
    }) / repeat;
  });
}

void time_collectives(Bench& b, Ring& w, std::size_t largest) {
  for (std::size_t bytes = 1 << 10; bytes <= largest; bytes *= 4) {
    const bool small = bytes < (16u << 20);
    for (const auto& c : collectives()) {
      if (small) time_replayed(b, w, c, bytes);
      time_enqueued(b, w, c, bytes, small ? concat(c.name, "_stream") : std::string(c.name));
    }
    Gpu &a = w.gpus[0], &z = w.gpus[1];
    const int peers = 1;
    b.time(
        {"nccl", "peer_copy_ce", "fwd", "u8", concat("bytes=", bytes), 0, double(bytes)},
        [&] { K3_CUDA(cudaMemcpyPeerAsync(z.out.get(), peers, a.in.get(), 0, bytes, b.stream())); }, Cache::kWarm);
  }
}

void time_overlap(Bench& b, Ring& w) {
  struct Product {
    DeviceBuffer<bf16> x, y, z;
    cudaStream_t stream = nullptr;
    std::unique_ptr<LtMatmul> lt;
  };
  const int m = 4096, n = 12288, k = 7168;
  std::vector<Product> products(w.gpus.size());
  for (int d = 0; d < w.size(); ++d) {
    K3_CUDA(cudaSetDevice(d));
    auto& p = products[d];
    p.x = random_buffer<bf16>(std::size_t(m) * k, b.next_seed()),
    p.y = random_buffer<bf16>(std::size_t(n) * k, b.next_seed());
    p.z = DeviceBuffer<bf16>(std::size_t(m) * n);
    K3_CUDA(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
    p.lt = std::make_unique<LtMatmul>(LtShape{.m = m, .n = n, .k = k, .b_transposed = true});
  }
  const auto gemm = [&](int d) {
    for (int i = 0; i < 6; ++i)
      products[d].lt->run(products[d].x.get(), products[d].y.get(), nullptr, products[d].z.get(), products[d].stream);
  };
  const auto all_to_all = collectives()[3], all_reduce = collectives()[0];
  const std::size_t elements = std::size_t(256) << 20;
  const std::string params = concat("ranks=", w.size(), ";commbytes=536870912;M=4096;N=12288;K=7168;rep=6");
  const auto row = [&](const char* name, bool compute, const Collective* comm, int times) {
    b.time_with({"overlap", name, "fwd", "bf16", params, 0, 0}, [&] {
      return wall_time_us(w.size(), [&](int d) {
        if (d == 0 && comm != nullptr)
          for (int i = 0; i < times; ++i) comm->start(w, elements);
        K3_CUDA(cudaSetDevice(d));
        if (compute) gemm(d);
      });
    });
  };
  row("k3_gemm6_all_gpus", true, nullptr, 0);
  row("k3_all_reduce_x2", false, &all_reduce, 2);
  row("k3_gemm6+all_reduce_x2", true, &all_reduce, 2);
  row("k3_all_to_all_x4", false, &all_to_all, 4);
  row("k3_gemm6+all_to_all_x4", true, &all_to_all, 4);
  for (int d = 0; d < w.size(); ++d) cudaStreamDestroy(products[d].stream);
}

}  // namespace

void run_nccl(Bench& b) {
  if (!enable_peer_access(b.options().gpus))
    b.note("nccl: no peer access between the GPUs, NCCL goes through the host");
  const std::size_t largest = b.options().check_only ? 1 << 20 : b.options().quick ? 64u << 20 : 1u << 30;
  Ring ring(b, largest / 2);
  check(b, ring);
  if (b.options().check_only) return;
  time_collectives(b, ring, largest);
  if (!b.options().quick) time_overlap(b, ring);
  K3_CUDA(cudaSetDevice(0));
}

}  // namespace k3sim
