// The dispatchers, one file each; use them through dispatchers() of dispatcher.h.
// Source: see each file. Valid as said there.
#pragma once

#include "models/moe/dispatcher.h"

namespace k3sim {

DispatchResult dispatch_nccl(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_nccl_drop(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_deepep(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_deepep_v2(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_copy_free(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_moonep(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_moonep_tolerant(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_moonep_hierarchical(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_eplb(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);

// Every expert computed by its owner: group rows, rows and padded rows filled in.
DispatchResult result_at_home(const DispatchWorkload& w);

}  // namespace k3sim
