"""PyTorch scaled_dot_product_attention on the cuDNN backend with MLA head sizes (192 for q and k, 128 for v), causal.

Rows: attn,sdpa_cudnn,fwd|bwd. flops count the causal half, backward 2.5 times. Source: k3-facts section 4.8.
"""
from .csv_rows import KernelId, join_params
from .skipping import Skip, require

NAME = "torch_sdpa"
MULTI_GPU = False


def reference(torch, q, k, v):
    q, k, v = q.double(), k.double(), v.double()
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return scores.masked_fill(mask, float("-inf")).softmax(-1) @ v


def measure(bench):
    attention = require("torch.nn.attention")
    function = require("torch.nn.functional").scaled_dot_product_attention
    backend = [attention.SDPBackend.CUDNN_ATTENTION]

    def inputs(batch, heads, tokens):
        return [bench.normal((batch, heads, tokens, width)) for width in (192, 192, 128)]

    def run(q, k, v):
        try:
            with attention.sdpa_kernel(backend):
                return function(q, k, v, is_causal=True)
        except RuntimeError as error:
            raise Skip(f"cuDNN attention 192/128: {error}") from error

    small = inputs(1, 2, 256)
    bench.verify("sdpa_cudnn", bench.relative_error(run(*small), reference(bench.torch, *small)), 1e-2)
    for batch, heads, tokens in ((2, 64, 4096),) if bench.quick else ((4, 64, 2048), (2, 64, 4096), (1, 64, 16384)):
        flops = batch * heads * tokens * tokens * 320
        params = join_params(B=batch, H=heads, S=tokens, dqk=192, dv=128)
        rows = [KernelId("attn", "sdpa_cudnn", name, "bf16", params, times * flops) for name, times in (("fwd", 1), ("bwd", 2.5))]
        if all(bench.skip_row(row) for row in rows):
            continue
        x = inputs(batch, heads, tokens)
        bench.time(rows[0], lambda: run(*x))
        for leaf in x:
            leaf.requires_grad_(True)
        out, dout = run(*x), bench.normal((batch, heads, tokens, 128))
        bench.time(rows[1], lambda: bench.torch.autograd.grad(out, x, dout, retain_graph=True), cold=False)
