// Expert exchange tables (category moe_comm): DeepEP's normal kernels by the dispatcher models, low-latency kernels as
// a dense all_to_all of every (token, k) copy. Published rates count rows to the own node (one domain: to the own rank)
// as well, so a rate becomes a time with the expected number of distinct nodes (ranks) of the same model.
// Source: validation/README.md; DeepEP README (what its rates count). Balanced routing.
#include <cstdlib>
#include <regex>

#include "models/moe/dispatcher.h"
#include "models/moe/volumes.h"
#include "tools/validation/collective_tables.h"

namespace k3sim {
namespace {

struct Exchange {
  int ranks = 8;
  int experts = 256, topk = 8;
  int tokens = 4096, hidden = 7168;
  int limit = 0;  // domains per token, 0: all
  int sms = 20;
  bool second_version = false;
  double dispatch_bytes_per_value = 1.0 + 4.0 / 128;
};

int number_in(const std::string& text, const char* pattern, int otherwise) {
  std::smatch m;
  return std::regex_search(text, m, std::regex(pattern)) ? std::stoi(m[1]) : otherwise;
}

int cell_or(const KernelTable& t, std::size_t row, const char* column, int otherwise) {
  const std::string v = t.cell(row, column);
  return v.empty() ? otherwise : std::atoi(v.c_str());
}

Exchange exchange_of(const KernelTable& t, std::size_t row) {
  Exchange e;
  const int usual = t.op.find("low-latency") != std::string::npos ? 128 : 4096;  // as in the library's own tests
  e.tokens = cell_or(t, row, "tokens_per_rank", number_in(t.op, "([0-9]+) tokens", usual));
  e.hidden = cell_or(t, row, "hidden", number_in(t.op, "hidden ([0-9]+)", 7168));
  e.topk = cell_or(t, row, "topk", number_in(t.op, "top-([0-9]+)", 8));
  e.experts = cell_or(t, row, "experts", 256);
  e.ranks = cell_or(t, row, "ep", number_in(t.op, "EP([0-9]+)", number_in(t.op, "([0-9]+) nodes", 1) * 8));
  e.sms = cell_or(t, row, "sms", 20);
  if (const std::string topology = t.cell(row, "topology"); !topology.empty()) {
    e.ranks = number_in(topology, "([0-9]+)x", 8) * number_in(topology, "x([0-9]+)", 1);
  }
  e.second_version = t.op.find("V2") != std::string::npos;
  // Group-limited routing (top-4 of 8 groups) is a limit on nodes when a node holds one group.
  if (t.op.find("top-4 groups") != std::string::npos && e.ranks == 64) e.limit = 4;
  return e;
}

struct Times {
  double dispatch_us, combine_us;
};

Times dispatcher_times(const Exchange& e, const std::string& gpu) {
  DispatchWorkload w;
  w.counts = ExpertCounts(e.ranks, e.experts);
  const int copies = e.tokens * e.topk;
  for (int r = 0; r < e.ranks; ++r) {
    for (int x = 0; x < e.experts; ++x) w.counts.at(r, x) = copies / e.experts + (x < copies % e.experts ? 1 : 0);
  }
  w.topk = e.topk;
  w.width = e.hidden;
  w.dispatch_bytes_per_value = e.dispatch_bytes_per_value;
  w.domain_limit = e.limit;
  const Dispatcher& d = find_dispatcher(e.second_version ? "deepep_v2" : "deepep");
  DispatchPolicy policy;
  policy.sms = e.sms;
  const DispatchResult r = d.run(w, policy, dispatch_rates(gpu));
  return {r.time.dispatch.microseconds(), r.time.combine.microseconds()};
}

// Copies of one token that the published rates count.
double counted_copies(const Exchange& e) {
  const int parts = e.ranks > 8 ? e.ranks / 8 : e.ranks;
  return e.limit > 0 ? expected_distinct_limited(parts, e.limit, e.experts, e.topk)
                     : expected_distinct(parts, e.experts, e.topk);
}

double us_of_rate(const Exchange& e, double bytes_per_value, double rate_GBps) {
  return e.tokens * counted_copies(e) * e.hidden * bytes_per_value / (rate_GBps * 1e3);
}

double low_latency_us(const Exchange& e, const CommModel& m, double bytes_per_copy) {
  const Bytes all = Bytes::ceil(static_cast<double>(e.tokens) * e.topk * bytes_per_copy);
  return collective_time(m, Collective::all_to_all, all, comm_group(e.ranks, 8)).time.microseconds();
}

void add(const KernelTable& t, std::size_t row, const char* phase, const Exchange& e, double measured, double predicted,
         std::vector<CollectiveRow>& out) {
  CollectiveRow r = start_row(t, row);
  r.id += std::string("/") + phase;
  r.kind = phase;
  r.family = "expert exchange";
  r.ranks = e.ranks;
  r.nodes = (e.ranks + 7) / 8;
  r.bytes = static_cast<std::int64_t>(e.tokens) * e.hidden;
  finish_row(r, measured, predicted);
  out.push_back(std::move(r));
}

void skip(const KernelTable& t, std::size_t row, const char* reason, std::vector<CollectiveRow>& out) {
  CollectiveRow r = start_row(t, row);
  r.family = "skipped";
  skip_row(r, reason);
  out.push_back(std::move(r));
}

void low_latency_rows(const KernelTable& t, ProfileCache& profiles, std::vector<CollectiveRow>& out) {
  for (std::size_t i = 0; i < t.rows.size(); ++i) {
    const Exchange e = exchange_of(t, i);
    const CommModel& m = profiles.model(profile_of_hardware(t.hardware), "");
    const double dispatch = low_latency_us(e, m, e.hidden + e.hidden / 32.0 + 16);
    const double combine = low_latency_us(e, m, 2.0 * e.hidden);
    if (const double both = std::atof(t.cell(i, "time_us").c_str()); both > 0) {
      add(t, i, "dispatch+combine", e, both, dispatch + combine, out);
      continue;
    }
    add(t, i, "dispatch", e, std::atof(t.cell(i, "dispatch_us").c_str()), dispatch, out);
    add(t, i, "combine", e, std::atof(t.cell(i, "combine_us").c_str()), combine, out);
  }
}

void normal_rows(const KernelTable& t, std::vector<CollectiveRow>& out) {
  const std::string gpu = profile_of_hardware(t.hardware);
  for (std::size_t i = 0; i < t.rows.size(); ++i) {
    const Exchange e = exchange_of(t, i);
    if (e.ranks > 8 && t.hardware.find("EFA") != std::string::npos) {
      skip(t, i, "the message rate of this transport has no profile", out);
      continue;
    }
    const Times p = dispatcher_times(e, gpu);
    const double d_us = std::atof(t.cell(i, "dispatch_us").c_str()), c_us = std::atof(t.cell(i, "combine_us").c_str());
    const double d_rate = std::atof(t.cell(i, "dispatch_gb_per_s").c_str());
    const double c_rate = std::atof(t.cell(i, "combine_gb_per_s").c_str());
    if (d_us > 0 || d_rate > 0) {
      add(t, i, "dispatch", e, d_us > 0 ? d_us : us_of_rate(e, e.dispatch_bytes_per_value, d_rate), p.dispatch_us, out);
    }
    if (c_us > 0 || c_rate > 0)
      add(t, i, "combine", e, c_us > 0 ? c_us : us_of_rate(e, 2.0, c_rate), p.combine_us, out);
  }
}

// One operation per row: "combine", "dispatch bf16", "dispatch fp8" with the RDMA rate.
void user_rows(const KernelTable& t, std::vector<CollectiveRow>& out) {
  for (std::size_t i = 0; i < t.rows.size(); ++i) {
    Exchange e = exchange_of(t, i);
    const std::string op = t.cell(i, "op");
    const double rate = std::atof(t.cell(i, "rdma_gb_per_s").c_str());
    if (rate <= 0) {
      skip(t, i, "not a rate of one phase", out);
      continue;
    }
    const bool combine = op.find("combine") != std::string::npos;
    if (op.find("bf16") != std::string::npos) e.dispatch_bytes_per_value = 2.0;
    const Times p = dispatcher_times(e, profile_of_hardware(t.hardware));
    const double width = combine ? 2.0 : e.dispatch_bytes_per_value;
    add(t, i, combine ? "combine" : "dispatch", e, us_of_rate(e, width, rate), combine ? p.combine_us : p.dispatch_us,
        out);
  }
}

}  // namespace

void validate_exchange_table(const KernelTable& t, ProfileCache& profiles, std::vector<CollectiveRow>& out) {
  const bool low_latency = t.op.find("low-latency") != std::string::npos && t.column("op") < 0;
  if (low_latency || t.id == "deepep-lowlat-h800-user") return low_latency_rows(t, profiles, out);
  if (t.column("dispatch_us") >= 0 || t.column("dispatch_gb_per_s") >= 0) return normal_rows(t, out);
  if (t.column("rdma_gb_per_s") >= 0) return user_rows(t, out);
  for (std::size_t i = 0; i < t.rows.size(); ++i) skip(t, i, "shapes or phases are not stated", out);
}

}  // namespace k3sim
