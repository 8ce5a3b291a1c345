// The dispatchers by name, for the registry and for each other (eplb uses DeepEP's transport). Everybody else goes
// through dispatchers() of dispatcher.h.
// Source: formulas, sources and validity are stated in each dispatcher's file.
#pragma once

#include "models/moe/dispatcher.h"

namespace k3sim {

DispatchResult dispatch_alltoall(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_alltoall_drop(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_allgather(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_deepep(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_deepep_v2(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_copy_free(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_moonep(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_moonep_tolerance(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_moonep_hierarchical(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);
DispatchResult dispatch_eplb(const DispatchWorkload&, const DispatchPolicy&, const DispatchRates&);

// Every expert computed by its owner: group rows, rows and padded rows filled in.
DispatchResult result_at_home(const DispatchWorkload& w);

}  // namespace k3sim
