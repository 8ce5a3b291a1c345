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
  Time restart = Time::ms(600'000);
};

struct Goodput {
  double share = 1;               // useful / wall time
  double hours_between = 0;       // mean time between interruptions, hours
  double checkpoint_every_s = 0;  // tau
};

// Requires: gpus > 0 and positive rates.
Goodput daly_goodput(double gpus, const FailureRates& rates = {});

}  // namespace k3sim
