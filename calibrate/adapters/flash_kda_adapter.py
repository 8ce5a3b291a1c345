"""FlashKDA (flash_kda.fwd): forward only, no initial or final state, head size 128.

Rows: kda,flash_kda,fwd. T is the total over nseq sequences. bytes: q, k, v, g and the output once.
Source: the library's README (kernel API); parameters as in the shipped measurement file.
"""
from .csv_rows import KernelId, join_params
from .kda_reference import kda_reference
from .skipping import require, require_attribute

NAME = "flash_kda"
MULTI_GPU = False
LOWER_BOUND = -5.0


class Inputs:
    def __init__(self, bench, tokens, heads, sequences):
        shape = (1, tokens, heads, 128)
        self.q, self.k, self.v, self.g = (bench.normal(shape) for _ in range(4))
        self.out = bench.empty(shape)
        self.beta = bench.normal((1, tokens, heads))
        self.a_log, self.dt_bias = bench.normal((heads,), "fp32", 0.5), bench.normal((heads, 128), "fp32", 0.5)
        self.scale = 128**-0.5
        self.lengths = [tokens // sequences] * sequences
        offsets = [i * (tokens // sequences) for i in range(sequences + 1)]
        self.cu_seqlens = bench.integers(offsets, "i64") if sequences > 1 else None

    def run(self, library):
        library.fwd(self.q, self.k, self.v, self.g, self.beta, self.scale, self.out, self.a_log, self.dt_bias,
                    LOWER_BOUND, cu_seqlens=self.cu_seqlens)

    def reference(self, bench):
        return kda_reference(bench.torch, self.q, self.k, self.v, self.g, self.beta, self.scale, self.a_log,
                             self.dt_bias, LOWER_BOUND, self.lengths)


def shapes(quick):
    if quick:
        return [(8192, 96, 1)]
    grid = [(t, h, 1) for h in (8, 16, 32, 64, 96) for t in (1024, 4096, 8192, 16384)]
    return grid + [(t, h, 4) for h in (8, 96) for t in (4096, 16384)]


def measure(bench):
    library = require("flash_kda")
    require_attribute(library, "fwd")
    for tokens, heads, sequences in ((80, 2, 1), (96, 3, 2)):
        x = Inputs(bench, tokens, heads, sequences)
        x.run(library)
        bench.verify(f"flash_kda T={tokens}", bench.relative_error(x.out, x.reference(bench)), 2e-2)
    for tokens, heads, sequences in shapes(bench.quick):
        row = KernelId("kda", "flash_kda", "fwd", "bf16", join_params(T=tokens, H=heads, D=128, nseq=sequences), 0,
                       tokens * heads * 128 * 2 * 5)
        if bench.skip_row(row):
            continue
        x = Inputs(bench, tokens, heads, sequences)
        bench.time(row, lambda: x.run(library))
