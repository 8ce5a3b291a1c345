// Share of wall time that advances training when the job is interrupted now and then.
//   M = hours per interruption / GPUs (mean time between interruptions of the whole job)
//   tau = sqrt(2 delta M) (1 + 1/3 sqrt(delta / 2M) + delta / 18M) - delta   best time between checkpoints (Daly),
//   delta < 2M wall time per useful time = M e^(R/M) (e^((tau + delta)/M) - 1) / tau;   goodput = its inverse
// delta: what a checkpoint blocks (asynchronous: only the copy to host memory); R: detect, reschedule, load, warm up.
// Defaults: 50,700 GPU-hours per unexpected interruption (Llama 3 405B: 419 in 54 days on 16,384 H100), delta 5 s,
// R 10 min. Valid for independent interruptions; gives 91.9 % at 16,384 GPUs, where more than 90 % was reported.
// Source: Daly 2006; hardware notes section 6.1 and 6.5; engine-design section 15.
#pragma once

#include "sim/base/units.h"

namespace k3sim {

struct FailureRates {
  double gpu_hours_per_interruption = 50'700;
  Time checkpoint_block = Time::ms(5'000);
  Time checkpoint_write{};  // asynchronous: until it is safe; checkpoints cannot follow faster than that
  Time restart = Time::ms(600'000);
};

struct Goodput {
  double share = 1;               // useful / wall time
  double hours_between = 0;       // mean time between interruptions, hours
  double checkpoint_every_s = 0;  // tau
};

// Requires: gpus > 0 and positive rates.
Goodput daly_goodput(double gpus, const FailureRates& rates = {});

// Mean hours between failures of one part. lambda = N_gpu / gpu + N_node / node + N_link / link + N_gpu / software.
// Defaults: the 419 unexpected interruptions of Llama 3 in 21.2 M GPU-hours by what broke: 268 GPUs (with their memory,
// sensors and silent corruption), 53 hosts (maintenance, NIC, disk, power, board, CPU, DRAM), 35 switches and cables,
// 63 software; one scale-out link per GPU. Source: hardware notes section 6.2.
struct FailureCauses {
  double gpu = 79'200, node = 50'100, link = 607'000, software = 337'000;
  double links_per_gpu = 1;
};
double gpu_hours_per_interruption(const FailureCauses& causes, int gpus_per_node);

// Time from an interruption to training again: 1 min detection, 2 min localisation, and re-queueing, starting and
// loading as ByteRobust reports them: 454 s on 2,048 GPUs, 768 s on 16,384, a straight line over log2(GPUs) in between
// and beyond. Source: hardware notes section 6.4.
Time restart_time(double gpus);

// What a checkpoint costs. Blocking: training waits until the state is in storage. Asynchronous: it waits for the copy
// to host memory, storage follows in the background. `state`: bytes of the whole job.
struct CheckpointCost {
  Time blocks, writes;
};
CheckpointCost checkpoint_cost(Bytes state, double gpus, Bandwidth storage, Bandwidth host_link, bool asynchronous);

// Nodes out for repair are Poisson with mean = failures per hour that need a repair x hours of repair. The least number
// of spares that covers them with this probability. Source: hardware notes 6.1 and 6.3 (5.5 days on average, about half
// of the interruptions are hardware: plan 3 to 5 % spares).
double nodes_in_repair(double nodes, double repairs_per_node_hour, double repair_hours);
int spares_needed(double mean_out, double probability);
double share_covered(double mean_out, int spares);  // probability that no more nodes than spares are out

}  // namespace k3sim
