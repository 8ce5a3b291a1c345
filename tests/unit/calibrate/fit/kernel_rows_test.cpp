// Rows of a measurement file become the kernels that the simulator would ask for.
#include "calibrate/fit/kernel_rows.h"

#include <doctest/doctest.h>

#include "models/cost/curve_key.h"
#include "models/cost/group_sizes.h"

using namespace k3sim;

namespace {

KernelRow row(const char* section, const char* kernel, const char* pass, const char* dtype, const char* params,
              double us = 10, double bytes = 0) {
  Measurement m;
  m.id = {section, kernel, pass, dtype, params, 0, bytes};
  m.median_us = us;
  return kernel_rows({m}).front();
}

}  // namespace

TEST_CASE("a row and the simulator's kernel are priced by the same curve") {
  const KernelRow rows[] = {
      row("gemm", "linear", "wgrad", "bf16", "M=4096;N=7168;K=3584"),
      row("gemm", "scaled_mm_rowwise", "fwd", "fp8", "M=4096;N=7168;K=3584"),
      row("grouped", "grouped_mm_up", "fwd", "bf16", "G=28;tokens=14336;N=6144;K=3584;skew=uniform"),
      row("attn", "sdpa_cudnn", "bwd", "bf16", "B=1;H=64;S=4096;dqk=192;dv=128"),
      row("kda", "fla_chunk_kda", "bwd", "bf16", "T=4096;H=96;D=128;nseq=1"),
      row("mem", "rms_norm", "fwd", "bf16", "M=1024;D=7168", 18, 29360128),
      row("mem", "fp8_quant_1x128", "fwd", "bf16", "M=8192;D=7168", 82, 177995776),
      row("optimizer", "muon_ns5", "fwd", "bf16", "batch=4;m=3072;n=3584"),
      row("optimizer", "adamw_fused", "fwd", "fp32", "n=16777216", 207, 469762048)};
  for (const KernelRow& r : rows) {
    CAPTURE(r.measurement.id.key());
    CHECK(r.reason == "");
    CHECK(choose_curve(r.kernel, "fla", "cudnn").key == r.curve);
  }
}

TEST_CASE("operations counted by the measurement file are those of the kernel") {
  CHECK(row("gemm", "linear", "dgrad", "bf16", "M=1024;N=576;K=7168").kernel.flops.value() == 8455716864.0);
  CHECK(row("grouped", "grouped_mm_up", "fwd", "bf16", "G=4;tokens=128;N=6144;K=3584").kernel.bytes.count() ==
        178651136);
  CHECK(row("attn", "sdpa_cudnn", "bwd", "bf16", "B=4;H=64;S=2048;dqk=192;dv=128").kernel.flops.value() ==
        858993459200.0);
  CHECK(row("optimizer", "muon_ns5", "fwd", "bf16", "batch=1;m=3072;n=3584").kernel.flops.value() == 966367641600.0);
}

TEST_CASE("skewed experts carry the rows of the fullest one") {
  const KernelRow r = row("grouped", "grouped_mm_up", "fwd", "bf16", "G=4;tokens=512;N=6144;K=3584;skew=zipf");
  CHECK(r.kernel.largest_group == 246);  // 512 / (1 + 1/2 + 1/3 + 1/4)
}

TEST_CASE("rows that no curve can learn from say why") {
  CHECK(row("nccl", "all_reduce", "fwd", "bf16", "ranks=2;bytes=1024").reason.find("k3sim collective") !=
        std::string::npos);
  CHECK(row("gemm", "linear", "fwd", "bf16", "M=4096;N=7168").reason == "M, N and K are needed");
  CHECK(row("gemm", "linear", "sideways", "bf16", "M=8;N=8;K=8").reason == "unknown pass 'sideways'");
  CHECK(row("kda", "other", "fwd", "bf16", "T=4096;H=96;D=128;nseq=1").reason == "no curve for KDA kernel other");
}

TEST_CASE("launch-bound rows of the Triton kernels are recognised and left out") {
  std::vector<Measurement> ms;
  for (const auto& [tokens, us] : {std::pair{2048, 1703.0}, {4096, 1337.0}, {16384, 5157.0}}) {
    Measurement m;
    m.id = {"kda", "fla_chunk_kda", "fwd", "bf16", "T=" + std::to_string(tokens) + ";H=96;D=128;nseq=1", 0, 0};
    m.median_us = us;
    ms.push_back(m);
  }
  const std::vector<KernelRow> rows = kernel_rows(ms);
  CHECK(rows[0].reason.rfind("host-bound", 0) == 0);
  CHECK(rows[1].usable());
  CHECK(rows[2].usable());
}
