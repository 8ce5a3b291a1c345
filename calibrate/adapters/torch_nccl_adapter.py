"""NCCL through torch.distributed, one process per GPU, sizes of 16 MiB to 1 GiB; smaller ones are host-bound in eager mode.

Rows: nccl,<collective>,fwd,bf16 with bytes = total buffer as nccl-tests count it.
Source: torch.distributed; hardware.md section 3.2.
"""
from .csv_rows import KernelId, join_params

NAME = "torch_nccl"
MULTI_GPU = True


def collectives(dist, ranks, n, x, y):
    part = n // ranks
    return {
        "all_reduce": lambda: dist.all_reduce(x[:n]),
        "all_gather": lambda: dist.all_gather_into_tensor(y[:n], x[:part]),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(y[:part], x[:n]),
        "all_to_all": lambda: dist.all_to_all_single(y[:n], x[:n]),
    }


def check(bench, dist):
    x = bench.normal((1024,), "fp32", 0.0, bench.rank + 1.0)
    dist.all_reduce(x)
    want = bench.ranks * (bench.ranks + 1) / 2
    bench.verify("torch all_reduce", abs(float(x[0]) - want) / want, 1e-6)


def measure(bench):
    dist = bench.torch.distributed
    check(bench, dist)
    largest = (64 << 20) if bench.quick else (1 << 30)
    x, y = bench.normal((largest // 2,), scale=1e-3), bench.empty((largest // 2,))
    size = 16 << 20
    while size <= largest:
        for name, run in collectives(dist, bench.ranks, size // 2, x, y).items():
            row = KernelId("nccl", name, "fwd", "bf16", join_params(ranks=bench.ranks, bytes=size), 0, size)
            bench.time(row, run, cold=False)
        size *= 4
