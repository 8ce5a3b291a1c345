"""FlashAttention (flash_attn_interface for version 3, else flash_attn), causal, MLA head sizes where the version takes
different sizes for q/k and v, else 128/128.

Rows: attn,flash_attn3|flash_attn2,fwd|bwd. Source: the libraries' READMEs (flash_attn_func).
"""
from .csv_rows import KernelId, join_params
from .skipping import Skip, require, require_attribute
from .torch_sdpa_adapter import reference

NAME = "flash_attn"
MULTI_GPU = False


def library():
    """(name, function, width of q and k)."""
    try:
        return "flash_attn3", require_attribute(require("flash_attn_interface"), "flash_attn_func"), 192
    except Skip as first:
        try:
            return "flash_attn2", require_attribute(require("flash_attn"), "flash_attn_func"), 128
        except Skip as second:
            raise Skip(f"{first}; {second}") from second


def output(result):
    return result[0] if isinstance(result, tuple) else result  # version 3 may also return the log-sum-exp


def measure(bench):
    name, function, width = library()

    def inputs(batch, heads, tokens):
        return [bench.normal((batch, tokens, heads, w)) for w in (width, width, 128)]

    small = inputs(1, 2, 256)
    want = reference(bench.torch, *(x.transpose(1, 2) for x in small)).transpose(1, 2)
    bench.verify(name, bench.relative_error(output(function(*small, causal=True)), want), 1e-2)
    for batch, heads, tokens in ((2, 64, 4096),) if bench.quick else ((4, 64, 2048), (2, 64, 4096), (1, 64, 16384)):
        flops = batch * heads * tokens * tokens * (width + 128)
        params = join_params(B=batch, H=heads, S=tokens, dqk=width, dv=128)
        x = inputs(batch, heads, tokens)
        bench.time(KernelId("attn", name, "fwd", "bf16", params, flops), lambda: function(*x, causal=True))
        for leaf in x:
            leaf.requires_grad_(True)
        out, dout = output(function(*x, causal=True)), bench.normal((batch, tokens, heads, 128))
        bench.time(KernelId("attn", name, "bwd", "bf16", params, 2.5 * flops),
                   lambda: bench.torch.autograd.grad(out, x, dout, retain_graph=True), cold=False)
