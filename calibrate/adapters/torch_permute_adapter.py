"""Permutation of tokens to experts with PyTorch's operators, as Megatron-Core does it without permute fusion.

Rows: permute,select,fwd|bwd (index_select; its gradient is an index_add) and permute,unpermute,fwd|bwd (rows times their
weights, scatter_add into zeros; the gradients of rows and weights). They enter no curve: models/transformer/ffn_moe.cpp
takes its bytes per value from them.
Source: Megatron-Core, core/transformer/moe/moe_utils.py (permute, unpermute).
"""
from .csv_rows import KernelId, join_params

NAME = "torch_permute"
MULTI_GPU = False
SHAPES = [(1024, 2, 6144), (4096, 2, 6144), (4096, 4, 2880), (4096, 8, 2048), (4096, 8, 4096), (4096, 8, 7168)]


def parts(bench, tokens, topk, width):
    torch = bench.torch
    x = bench.normal((tokens, width)).requires_grad_()
    index = torch.randperm(tokens * topk, device=x.device) // topk
    weights = bench.normal((tokens * topk,), "fp32").requires_grad_()
    rows = x.index_select(0, index)
    leaf = rows.detach().clone().requires_grad_()
    wide = index.unsqueeze(1).expand(-1, width)

    def unpermute():
        zeros = torch.zeros((tokens, width), device=x.device, dtype=x.dtype)
        return zeros.scatter_add(0, wide, leaf * weights.unsqueeze(-1).to(x.dtype))

    summed = unpermute()
    row_grad, sum_grad = bench.normal(tuple(rows.shape)), bench.normal(tuple(summed.shape))
    return {
        ("select", "fwd"): lambda: x.index_select(0, index),
        ("select", "bwd"): lambda: torch.autograd.grad(rows, x, row_grad, retain_graph=True)[0],
        ("unpermute", "fwd"): unpermute,
        ("unpermute", "bwd"): lambda: torch.autograd.grad(summed, (leaf, weights), sum_grad, retain_graph=True)[0],
    }, {
        ("select", "fwd"): x.detach().double()[index],
        ("select", "bwd"): torch.zeros_like(x, dtype=torch.float64).index_add_(0, index, row_grad.double()),
        ("unpermute", "fwd"): torch.zeros_like(x, dtype=torch.float64).index_add_(
            0, index, leaf.detach().double() * weights.detach().double().unsqueeze(-1)),
        ("unpermute", "bwd"): sum_grad.double()[index] * weights.detach().double().unsqueeze(-1),
    }


def measure(bench):
    for tokens, topk, width in SHAPES[:1] if bench.quick else SHAPES:
        runs, wanted = parts(bench, tokens, topk, width)
        for (name, direction), run in runs.items():
            params = join_params(tokens=tokens, topk=topk, D=width)
            bench.verify(f"{name} {direction} {params}", bench.relative_error(run(), wanted[name, direction]), 2e-2)
            row = KernelId("permute", name, direction, "bf16", params, 0, 4 * tokens * topk * width)
            if not bench.skip_row(row):
                bench.time(row, run)
