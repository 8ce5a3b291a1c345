// Entry points of the kernel families, one per file.
// Source: calibrate/README.md lists what each measures.
#pragma once

namespace k3sim {

class Bench;

void run_launch(Bench&);
void run_elementwise(Bench&);
void run_norms(Bench&);
void run_router_quant(Bench&);
void run_gemm_bf16(Bench&);
void run_gemm_fp8(Bench&);
void run_grouped(Bench&);
void run_latent_moe(Bench&);
void run_kda(Bench&);
void run_attention(Bench&);
void run_optimizer(Bench&);
void run_copies(Bench&);
void run_overlap(Bench&);
void run_moonep(Bench&);
void run_nccl(Bench&);

}  // namespace k3sim
