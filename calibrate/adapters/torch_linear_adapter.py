"""PyTorch linear layers in BF16: forward and both gradients, the shapes of K3's projections.

Rows: gemm,linear,fwd|dgrad|wgrad as in the shipped file (the compiled program writes the same rows through cuBLAS).
Source: torch.nn.functional.linear; k3-facts section 1.2.
"""
from .csv_rows import KernelId, join_params

NAME = "torch_linear"
MULTI_GPU = False
LAYERS = [(12288, 7168), (7168, 12288), (896, 7168), (1536, 7168), (3584, 7168), (7168, 3584), (6144, 7168), (3072, 3584)]


def measure(bench):
    linear = bench.torch.nn.functional.linear
    for m in (4096,) if bench.quick else (1024, 4096, 16384):
        for n, k in LAYERS:
            x, w, dy = bench.normal((m, k)), bench.normal((n, k), scale=0.02), bench.normal((m, n))
            runs = {"fwd": lambda: linear(x, w), "dgrad": lambda: dy @ w, "wgrad": lambda: dy.T @ x}
            want = {"fwd": lambda: x[:64].double() @ w.double().T, "dgrad": lambda: dy[:64].double() @ w.double(),
                    "wgrad": lambda: dy[:, :64].double().T @ x.double()}
            for name, run in runs.items():
                row = KernelId("gemm", "linear", name, "bf16", join_params(M=m, N=n, K=k), 2 * m * n * k,
                               2 * (m * k + n * k + m * n))
                if bench.skip_row(row):
                    continue
                bench.verify(f"linear {name} {row.params}", bench.relative_error(run()[:64], want[name]()), 1e-2)
                bench.time(row, run)
