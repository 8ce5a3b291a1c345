"""PyTorch's grouped GEMM over the K3 expert projections: up (3584 -> 6144) and down (3072 -> 3584), and the weight gradient.

Rows: grouped,grouped_mm_up|grouped_mm_down,fwd and grouped_mm_up,wgrad, as in the shipped file.
Source: torch.nn.functional.grouped_mm (torch._grouped_mm before 2.10): 2-D rows, 3-D weights, end offsets.
"""
from .csv_rows import KernelId, join_params
from .skipping import Skip, require

NAME = "torch_grouped_mm"
MULTI_GPU = False


def function():
    found = getattr(require("torch.nn.functional"), "grouped_mm", None) or getattr(require("torch"), "_grouped_mm", None)
    if found is None:
        raise Skip("this torch has no grouped_mm")
    return found


def counts(groups, rows, skew):
    share = [1 / (g + 1) if skew == "zipf" else 1 for g in range(groups)]
    given = [int(s / sum(share) * rows) for s in share]
    for i in range(rows - sum(given)):
        given[i % groups] += 1
    return given


def ends(values):
    total, out = 0, []
    for v in values:
        total += v
        out.append(total)
    return out


def cases(quick):
    if quick:
        return [(28, 28672, "uniform")]
    uniform = [(g, g * n, "uniform") for g in (4, 7, 28, 56) for n in (128, 512, 2048) if g * n <= 114688]
    return uniform + [(4, 2048, "zipf"), (7, 3584, "zipf"), (28, 14336, "zipf")]


def check(bench, grouped_mm):
    sizes = [48, 0, 16, 64]
    x, w = bench.normal((128, 64)), bench.normal((4, 96, 64), scale=0.1)
    out = grouped_mm(x, w.transpose(-2, -1), offs=bench.integers(ends(sizes)))
    start = 0
    for g, n in enumerate(sizes):
        if n:
            want = x[start:start + n].double() @ w[g].double().T
            bench.verify(f"grouped_mm group {g}", bench.relative_error(out[start:start + n], want), 1e-2)
        start += n


def measure(bench):
    grouped_mm = function()
    check(bench, grouped_mm)
    for groups, rows, skew in cases(bench.quick):
        offsets = bench.integers(ends(counts(groups, rows, skew)))
        for name, n, k in (("up", 6144, 3584), ("down", 3584, 3072)):
            params = join_params(G=groups, tokens=rows, N=n, K=k, skew=skew)
            flops, moved = 2 * rows * n * k, 2 * (rows * (n + k) + groups * n * k)
            fwd = KernelId("grouped", f"grouped_mm_{name}", "fwd", "bf16", params, flops, moved)
            wgrad = KernelId("grouped", f"grouped_mm_{name}", "wgrad", "bf16", params, flops, moved)
            if bench.skip_row(fwd) and (name == "down" or bench.skip_row(wgrad)):
                continue
            x, w = bench.normal((rows, k)), bench.normal((groups, n, k), scale=0.02)
            bench.time(fwd, lambda: grouped_mm(x, w.transpose(-2, -1), offs=offsets))
            if name == "up":
                dy = bench.normal((rows, n))
                bench.time(wgrad, lambda: grouped_mm(dy.transpose(-2, -1), x, offs=offsets))
