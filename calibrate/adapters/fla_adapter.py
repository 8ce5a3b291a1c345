"""flash-linear-attention (fla.ops.kda.chunk_kda): the Triton KDA, gate, l2norm and sigmoid inside, forward and backward.

Rows: kda,fla_chunk_kda,fwd|bwd. Source: the operator's docstring; parameters as in the shipped measurement file.
"""
import os

from .csv_rows import KernelId, join_params
from .flash_kda_adapter import LOWER_BOUND, Inputs
from .skipping import require, require_attribute

NAME = "fla"
MULTI_GPU = False


def call(operator, x):
    out, _ = operator(q=x.q, k=x.k, v=x.v, g=x.g, beta=x.beta, scale=x.scale, A_log=x.a_log,
                      dt_bias=x.dt_bias.reshape(-1), lower_bound=LOWER_BOUND, safe_gate=True, use_gate_in_kernel=True,
                      use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, cu_seqlens=x.cu_seqlens)
    return out


def leaves(x):
    return [x.q, x.k, x.v, x.g, x.beta, x.a_log, x.dt_bias]


def autotune(bench, operator, grad):
    """The autotuner picks its configurations at the first call and does not look at the length: let it see a long one."""
    x = Inputs(bench, 8192, 96, 1)
    for leaf in leaves(x):
        leaf.requires_grad_(True)
    grad(call(operator, x), leaves(x), bench.normal((1, 8192, 96, 128)))


def check(bench, operator, grad):
    x = Inputs(bench, 128, 96, 1)  # as many heads as are timed: the autotuner's key contains them
    for leaf in leaves(x):
        leaf.requires_grad_(True)
    weight = bench.normal((1, 128, 96, 128), "fp32")
    out = call(operator, x)
    bench.verify("fla chunk_kda out", bench.relative_error(out, x.reference(bench)), 2e-2)
    got = grad((out.float() * weight).sum(), leaves(x)[:5])
    want = grad((x.reference(bench).double() * weight.double()).sum(), leaves(x)[:5])
    for name, a, b in zip("q k v g beta".split(), got, want):
        bench.verify(f"fla chunk_kda d{name}", bench.relative_error(a, b), 3e-2)


def measure(bench):
    os.environ.setdefault("FLA_FLASH_KDA", "0")  # time the Triton kernel even where FlashKDA is installed
    operator = require_attribute(require("fla.ops.kda"), "chunk_kda")
    grad = bench.torch.autograd.grad
    autotune(bench, operator, grad)
    check(bench, operator, grad)
    for tokens in (8192,) if bench.quick else (4096, 8192, 16384):
        params = join_params(T=tokens, H=96, D=128, nseq=1)
        fwd = KernelId("kda", "fla_chunk_kda", "fwd", "bf16", params, 0, tokens * 96 * 128 * 2 * 5)
        bwd = KernelId("kda", "fla_chunk_kda", "bwd", "bf16", params)
        if bench.skip_row(fwd) and bench.skip_row(bwd):
            continue
        x = Inputs(bench, tokens, 96, 1)
        with bench.torch.no_grad():
            bench.time(fwd, lambda: call(operator, x))
        for leaf in leaves(x):
            leaf.requires_grad_(True)
        out = call(operator, x)
        dout = bench.normal((1, tokens, 96, 128))
        bench.time(bwd, lambda: grad(out, leaves(x), dout, retain_graph=True))
