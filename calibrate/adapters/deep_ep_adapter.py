"""DeepEP (deep_ep.Buffer), normal mode inside one host: layout, dispatch, combine.

Rows: moonep section is for MoonEP; DeepEP rows are deepep,deep_ep_dispatch|deep_ep_combine,fwd. bytes: logical rows.
Source: the library's README (Buffer.get_dispatch_layout, dispatch, combine).
"""
from .csv_rows import KernelId, join_params
from .moonep_adapter import EXPERTS, TOPK, WIDTH, routing
from .skipping import Skip, require, require_attribute

NAME = "deep_ep"
MULTI_GPU = True


def measure(bench):
    buffer_class = require_attribute(require("deep_ep"), "Buffer")
    group = bench.torch.distributed.group.WORLD
    if EXPERTS % bench.ranks:
        raise Skip(f"{EXPERTS} experts do not divide over {bench.ranks} ranks")
    buffer = buffer_class(group, num_nvl_bytes=1 << 30, num_rdma_bytes=0)
    tokens = 1024 if bench.quick else 8192
    x = bench.normal((tokens, WIDTH))
    weights, experts, _ = routing(bench, tokens)
    experts = experts.to(bench.dtype("i64"))
    per_rank, per_rdma_rank, per_expert, in_rank, _ = buffer.get_dispatch_layout(experts, EXPERTS)

    def dispatch():
        return buffer.dispatch(x, topk_idx=experts, topk_weights=weights, num_tokens_per_rank=per_rank,
                               num_tokens_per_rdma_rank=per_rdma_rank, is_token_in_rank=in_rank,
                               num_tokens_per_expert=per_expert)

    received, _, _, _, handle, _ = dispatch()
    out, _, _ = buffer.combine(received, handle)
    # Identity experts: each rank that received the token sends one copy back.
    copies = in_rank.sum(dim=1, keepdim=True)
    bench.verify("deep_ep round trip", bench.relative_error(out, x.double() * copies), 1e-2)
    params = join_params(ranks=bench.ranks, E=EXPERTS, K=TOPK, S=tokens, H=WIDTH)
    logical = tokens * TOPK * WIDTH * 2
    bench.time(KernelId("deepep", "deep_ep_dispatch", "fwd", "bf16", params, 0, logical), dispatch)
    bench.time(KernelId("deepep", "deep_ep_combine", "fwd", "bf16", params, 0, logical), lambda: buffer.combine(received, handle))
