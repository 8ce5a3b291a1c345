"""Weight gradients added to FP32 buffers (Megatron's gradient accumulation fusion) beside ones written as BF16 tensors.

Rows: accumulate,linear_write|linear_add,wgrad and accumulate,streams_write|streams_add,wgrad (the same product for G
experts of M rows, on four streams as TransformerEngine issues them). They enter no curve: models/cost/gradient_accumulation.h
is the formula that holds against their difference.
Source: torch.mm and torch.addmm with out_dtype (PyTorch 2.8 and newer).
"""
from .csv_rows import KernelId, join_params
from .skipping import Skip

NAME = "torch_accumulate"
MULTI_GPU = False
LAYERS = [(7168, 7168), (12288, 7168), (3584, 7168), (6144, 3584), (16384, 6144), (4096, 4096), (2048, 8192), (28672, 4096)]
EXPERTS = [(8, 1024, 3072, 4096), (8, 2048, 3072, 4096), (8, 4096, 3072, 4096), (16, 2048, 3072, 4096),
           (16, 1024, 5760, 2880), (16, 1024, 2880, 2880), (4, 2048, 16384, 6144), (4, 2048, 6144, 8192),
           (14, 2048, 6144, 3584), (14, 2048, 3584, 3072), (8, 4096, 4096, 14336)]
STREAMS = 4


def check(bench):
    torch = bench.torch
    x, dy, buffer = bench.normal((512, 256)), bench.normal((512, 384)), bench.normal((384, 256), "fp32")
    want = buffer.double() + dy.double().T @ x.double()
    try:
        torch.addmm(buffer, dy.T, x, out_dtype=torch.float32, out=buffer)
    except TypeError as error:
        raise Skip(f"this torch has no addmm with out_dtype: {error}") from error
    bench.verify("linear_add", bench.relative_error(buffer, want), 1e-5)


def pair(bench, name, params, flops, values, runs):
    for kernel, run in runs.items():
        row = KernelId("accumulate", f"{name}_{kernel}", "wgrad", "bf16", params, flops, values)
        if not bench.skip_row(row):
            bench.time(row, run)


def dense(bench, m, n, k):
    torch = bench.torch
    x, dy = bench.normal((m, k)), bench.normal((m, n))
    out, buffer = bench.empty((n, k)), bench.normal((n, k), "fp32")
    pair(bench, "linear", join_params(M=m, N=n, K=k), 2 * m * n * k, 2 * m * (n + k), {
        "write": lambda: torch.mm(dy.T, x, out=out),
        "add": lambda: torch.addmm(buffer, dy.T, x, out_dtype=torch.float32, out=buffer)})


def experts(bench, groups, m, n, k):
    torch = bench.torch
    x, dy = bench.normal((groups, m, k)), bench.normal((groups, m, n))
    out, buffer = bench.empty((groups, n, k)), bench.normal((groups, n, k), "fp32")
    streams = [torch.cuda.Stream() for _ in range(STREAMS)]

    def on_streams(one):
        ready = torch.cuda.Event()
        ready.record()
        for stream in streams:
            stream.wait_event(ready)
        for g in range(groups):
            with torch.cuda.stream(streams[g % STREAMS]):
                one(g)
        for stream in streams:
            torch.cuda.current_stream().wait_stream(stream)

    pair(bench, "streams", join_params(G=groups, M=m, N=n, K=k), 2 * groups * m * n * k, 2 * groups * m * (n + k), {
        "write": lambda: on_streams(lambda g: torch.mm(dy[g].T, x[g], out=out[g])),
        "add": lambda: on_streams(lambda g: torch.addmm(buffer[g], dy[g].T, x[g], out_dtype=torch.float32, out=buffer[g]))})


def measure(bench):
    check(bench)
    for m in (4096,) if bench.quick else (512, 1024, 2048, 4096, 8192, 16384):
        for n, k in LAYERS[:2] if bench.quick else LAYERS:
            dense(bench, m, n, k)
    for shape in EXPERTS[:1] if bench.quick else EXPERTS:
        experts(bench, *shape)
