"""KDA over several GPUs (fla.ops.kda.chunk_kda with a context of fla.ops.cp): every rank holds one slice of one document.

Rows: kda,fla_kda_cp,fwd|bwd; T is the whole document, ranks the GPUs; the time is that of the slowest rank's median.
The check is the double-precision recurrence over the whole document, output and gradients of every rank's slice.
Source: the library's fla/ops/cp/README; k3-facts section 2.6.
"""
import os

from .csv_rows import KernelId, join_params
from .fla_adapter import leaves
from .flash_kda_adapter import LOWER_BOUND, Inputs
from .skipping import require, require_attribute

NAME = "fla_cp"
MULTI_GPU = True
HEADS = 64


def call(operator, x, context):
    return operator(q=x.q, k=x.k, v=x.v, g=x.g, beta=x.beta, scale=x.scale, A_log=x.a_log,
                    dt_bias=x.dt_bias.reshape(-1), lower_bound=LOWER_BOUND, safe_gate=True, use_gate_in_kernel=True,
                    use_qk_l2norm_in_kernel=True, use_beta_sigmoid_in_kernel=True, cp_context=context)[0]


def slice_of(bench, whole, tokens):
    """This rank's part of a document that all ranks drew alike."""
    part = Inputs(bench, tokens, HEADS, 1)
    start = bench.rank * tokens
    for name in ("q", "k", "v", "g", "beta"):
        tensor = getattr(whole, name)
        bench.torch.distributed.broadcast(tensor, 0)
        setattr(part, name, tensor[:, start:start + tokens].contiguous())
    for name in ("a_log", "dt_bias"):
        bench.torch.distributed.broadcast(getattr(whole, name), 0)
        setattr(part, name, getattr(whole, name).clone())
    return part


def check(bench, operator, context_of):
    tokens, torch = 128, bench.torch
    whole = Inputs(bench, tokens * bench.ranks, HEADS, 1)
    part = slice_of(bench, whole, tokens)
    weight = bench.normal((1, tokens * bench.ranks, HEADS, 128), "fp32")
    torch.distributed.broadcast(weight, 0)
    own = slice(bench.rank * tokens, (bench.rank + 1) * tokens)
    for x in (whole, part):
        for leaf in leaves(x):
            leaf.requires_grad_(True)
    out, want = call(operator, part, context_of(tokens * bench.ranks)), whole.reference(bench)
    bench.verify("kda over ranks, out", bench.relative_error(out, want[:, own]), 2e-2)
    got = torch.autograd.grad((out.float() * weight[:, own]).sum(), leaves(part)[:5])
    expected = torch.autograd.grad((want.double() * weight.double()).sum(), leaves(whole)[:5])
    for name, a, b in zip("q k v g beta".split(), got, expected):
        bench.verify(f"kda over ranks, d{name}", bench.relative_error(a, b[:, own]), 3e-2)


def measure(bench):
    os.environ.setdefault("FLA_FLASH_KDA", "0")
    operator = require_attribute(require("fla.ops.kda"), "chunk_kda")
    build = require_attribute(require("fla.ops.cp"), "build_cp_context")
    torch = bench.torch

    def context_of(tokens):
        return build(bench.integers([0, tokens], "i64"), group=torch.distributed.group.WORLD)

    for index, tokens in enumerate((32768,) if bench.quick else (32768, 16384)):
        x = Inputs(bench, tokens // bench.ranks, HEADS, 1)
        for leaf in leaves(x):
            leaf.requires_grad_(True)
        context, dout = context_of(tokens), bench.normal((1, tokens // bench.ranks, HEADS, 128))
        out = call(operator, x, context)
        backward = lambda: torch.autograd.grad(out, leaves(x), dout, retain_graph=True)  # noqa: E731,B023
        backward()  # the autotuner chooses at the first call: it sees the longest
        if index == 0:
            check(bench, operator, context_of)
        params = join_params(T=tokens, H=HEADS, D=128, nseq=1, ranks=bench.ranks)
        with torch.no_grad():
            bench.time(KernelId("kda", "fla_kda_cp", "fwd", "bf16", params), lambda: call(operator, x, context))
        bench.time(KernelId("kda", "fla_kda_cp", "bwd", "bf16", params), backward)
