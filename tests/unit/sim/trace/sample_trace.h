// A small trace with everything in it, and a random one of any size, for the tests of the writers.
#pragma once

#include <fmt/format.h>

#include "sim/base/rng.h"
#include "sim/trace/trace.h"

namespace k3sim {

inline Trace sample_trace() {
  Trace t;
  t.about["program"] = "k3sim \"test\"";
  const std::uint32_t first = t.add_process("rank 0"), second = t.add_process("rank 1");
  const std::uint32_t compute = t.add_thread(first, "compute"), send = t.add_thread(first, "send");
  const std::uint32_t other = t.add_thread(second, "compute");
  const std::uint32_t memory = t.add_counter(first, "memory", "GiB");
  t.slices.push_back({Time::us(0), Time::us(10), compute, t.name("gemm"), t.name("forward"), t.name("F0")});
  t.slices.push_back({Time::us(10), Time::ps(12'345'678), send, t.name("activation"), t.name("transfer"), 0});
  t.slices.push_back({Time::us(13), Time::us(20), other, t.name("gemm"), t.name("forward"), 0});
  t.flows.push_back({1, 2, t.name("activation")});
  t.samples = {{Time::us(0), memory, 1.5}, {Time::us(10), memory, 2.25}, {Time::us(20), memory, 1.5}};
  return t;
}

// Back-to-back and spaced slices of random length on `threads` threads.
inline Trace random_trace(std::uint64_t seed, int threads, int slices_each) {
  Trace t;
  for (int i = 0; i < threads; ++i) {
    const std::uint32_t thread = t.add_thread(t.add_process(fmt::format("rank {}", i)), "compute");
    Time now;
    for (int k = 0; k < slices_each; ++k) {
      const std::uint64_t r =
          random_bits({.seed = seed, .entity = static_cast<std::uint64_t>(i)}, static_cast<std::uint64_t>(k));
      now += Time::ps(static_cast<std::int64_t>(r % 3 == 0 ? 0 : r % 5000));
      const Time finish = now + Time::ps(static_cast<std::int64_t>(r >> 20 & 0xffff));
      t.slices.push_back({now, finish, thread, t.name(fmt::format("kernel {}", r % 17)), t.name("forward"), 0});
      now = finish;
    }
  }
  return t;
}

}  // namespace k3sim
