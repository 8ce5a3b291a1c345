"""DeepGEMM FP8 GEMM with 1x128 activation scales and 128x128 weight scales (fp8_gemm_nt).

Rows: gemm,deep_gemm_fp8,fwd,fp8. Source: the library's README; helper casts from its public utils where present.
"""
from .csv_rows import KernelId, join_params
from .skipping import Skip, require

NAME = "deep_gemm"
MULTI_GPU = False
SHAPES = [(4096, 12288, 7168), (8192, 12288, 7168), (8192, 3584, 7168), (8192, 7168, 12288), (1024, 7168, 7168)]


def functions(library):
    gemm = getattr(library, "fp8_gemm_nt", None) or getattr(library, "gemm_fp8_fp8_bf16_nt", None)
    if gemm is None:
        raise Skip("deep_gemm has neither fp8_gemm_nt nor gemm_fp8_fp8_bf16_nt")
    utils = require("deep_gemm.utils")
    try:
        return gemm, utils.per_token_cast_to_fp8, utils.per_block_cast_to_fp8
    except AttributeError as error:
        raise Skip(f"deep_gemm.utils: {error}") from error


def operands(bench, casts, m, n, k):
    x, w = bench.normal((m, k)), bench.normal((n, k))
    per_token, per_block = casts
    try:
        return x, w, per_token(x, False), per_block(w, False)  # newer signature: FP32 scales, not UE8M0
    except TypeError:
        return x, w, per_token(x), per_block(w)


def measure(bench):
    gemm, *casts = functions(require("deep_gemm"))
    x, w, qx, qw = operands(bench, casts, 256, 512, 1024)
    out = bench.empty((256, 512))
    gemm(qx, qw, out)
    bench.verify("deep_gemm fp8", bench.relative_error(out, x.double() @ w.double().T), 6e-2)  # e4m3 inputs
    for m, n, k in SHAPES[:1] if bench.quick else SHAPES:
        row = KernelId("gemm", "deep_gemm_fp8", "fwd", "fp8", join_params(M=m, N=n, K=k), 2 * m * n * k, m * k + n * k + 2 * m * n)
        if bench.skip_row(row):
            continue
        _, _, qx, qw = operands(bench, casts, m, n, k)
        out = bench.empty((m, n))
        bench.time(row, lambda: gemm(qx, qw, out))
