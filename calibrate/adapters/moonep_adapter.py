"""MoonEP (moonep.Buffer): dispatch with online planning, combine, weight prefetch and gradient reduction over all GPUs.

The public library maps peers through NVSwitch multicast; where multicast is off (NCCL_NVLS_ENABLE=0 or
TORCH_SYMM_MEM_DISABLE_MULTICAST=1) it is skipped with that reason, and nothing of it is called.
Rows: moonep,moonep_dispatch|moonep_combine|moonep_prefetch_weight|moonep_reduce_grad. bytes: logical rows.
Source: the library's README (API walkthrough).
"""
import os

from .csv_rows import KernelId, join_params
from .skipping import Skip, require, require_attribute

NAME = "moonep"
MULTI_GPU = True
EXPERTS, TOPK, WIDTH, INNER = 896, 16, 3584, 3072


def refuse_without_multicast():
    for name, off in (("NCCL_NVLS_ENABLE", "0"), ("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"), ("NVSHMEM_DISABLE_NVLS", "1")):
        if os.environ.get(name) == off:
            raise Skip(f"moonep needs NVLink multicast, which {name}={off} switches off")


def routing(bench, tokens):
    scores = bench.normal((tokens, EXPERTS), "fp32")
    weights, experts = scores.sigmoid().topk(TOPK, dim=-1)
    experts = experts.to(bench.dtype("i32"))
    per_expert = bench.torch.bincount(experts.flatten().long(), minlength=EXPERTS).to(bench.dtype("i32"))
    return weights, experts, per_expert


def pools(bench, per_rank, shape, dtype):
    local = bench.normal((per_rank, *shape), dtype, 0.02)
    return local, bench.normal((bench.ranks, per_rank, *shape), dtype, 0.0)


def measure(bench):
    library = require("moonep")
    buffer_class = require_attribute(library, "Buffer")
    refuse_without_multicast()
    tokens, per_rank = (1024 if bench.quick else 8192), EXPERTS // bench.ranks
    buffer = buffer_class(S=tokens, H=WIDTH, K=TOPK, E=EXPERTS, num_ep_ranks=bench.ranks, num_sms=32, token_padding=128)
    x = bench.normal((tokens, WIDTH))
    weights, experts, per_expert = routing(bench, tokens)

    def dispatch():
        return buffer.dispatch(x, weights, experts, per_expert)

    rows, _, _, plan = dispatch()
    out, _, _ = buffer.combine(plan=plan, hidden_nvsh=rows)
    # Identity experts: every token comes back TOPK times.
    bench.verify("moonep round trip", bench.relative_error(out, x.double() * TOPK), 1e-2)
    params = join_params(ranks=bench.ranks, E=EXPERTS, K=TOPK, S=tokens, H=WIDTH)
    logical = tokens * TOPK * WIDTH * 2

    def row(name, direction="fwd", moved=logical):
        return KernelId("moonep", name, direction, "bf16", params, 0, moved)

    bench.time(row("moonep_dispatch"), dispatch)
    bench.time(row("moonep_combine"), lambda: buffer.combine(plan=plan, hidden_nvsh=rows))
    names = {"gate": (INNER, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER)}
    weight, grad = {}, {}
    for name, shape in names.items():
        weight[f"local_{name}_weight"], weight[f"{name}_prefetch_buffer"] = pools(bench, per_rank, shape, "bf16")
        grad[f"local_{name}_grad"], grad[f"{name}_reduce_buffer"] = pools(bench, per_rank, shape, "fp32")
    bench.time(row("moonep_prefetch_weight", moved=0), lambda: buffer.prefetch_weight(plan=plan, **weight))
    bench.time(row("moonep_reduce_grad", "bwd", 0), lambda: buffer.reduce_grad(plan=plan, **grad))
