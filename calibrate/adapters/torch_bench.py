"""The clock and the tensors of the adapters, on PyTorch.

Cold timing: an L2-sized buffer is written before every repeat; CUDA events; repeated until stable. A short warm-up, as
the compiled program does: power and clocks are those of a burst, not of minutes of the same kernel.
Every adapter checks its library against a double-precision reference on fresh random inputs before timing.
"""
import time

from .csv_rows import stable
from .skipping import Skip, WrongResult, require

WARM_UP = 5
_DTYPES = {"bf16": "bfloat16", "fp32": "float32", "i32": "int32", "i64": "int64", "fp64": "float64"}


class TorchBench:
    def __init__(self, writer, quick=False, seed=1, device=0, ranks=1, rank=0):
        self.torch = require("torch")
        if not self.torch.cuda.is_available():
            raise Skip("torch sees no GPU")
        self.writer, self.quick, self.device = writer, quick, f"cuda:{device}"
        self.rank, self.ranks = rank, ranks
        self.torch.cuda.set_device(device)
        self._generator = self.torch.Generator(device=self.device).manual_seed(seed + rank)
        self._flush = self.torch.empty(256 << 20, dtype=self.torch.uint8, device=self.device)
        self.checks = 0

    # ---- tensors ----
    def dtype(self, name):
        return getattr(self.torch, _DTYPES[name])

    def normal(self, shape, dtype="bf16", scale=1.0, mean=0.0):
        x = self.torch.randn(shape, generator=self._generator, device=self.device, dtype=self.torch.float32)
        return (x * scale + mean).to(self.dtype(dtype))

    def empty(self, shape, dtype="bf16"):
        return self.torch.full(shape, float("nan"), device=self.device, dtype=self.dtype(dtype))

    def integers(self, values, dtype="i32"):
        return self.torch.tensor(values, device=self.device, dtype=self.dtype(dtype))

    # ---- checks and clock ----
    def relative_error(self, out, reference):
        out, reference = out.detach().double(), reference.detach().double()
        return float((out - reference).norm() / reference.norm())

    def verify(self, what, error, limit):
        self.checks += 1
        if not error <= limit:  # also refuses NaN
            raise WrongResult(f"{what}: relative error {error:.2e}, limit {limit:.0e}")

    def skip_row(self, row):
        return self.writer is not None and self.writer.done(row)

    def time(self, row, launch, cold=True, before=None):
        """`before` runs untimed ahead of every repeat (for example the forward pass of a backward)."""
        if self.skip_row(row):
            return
        self._rest()
        for _ in range(WARM_UP):
            last_us = self._batch(launch, cold, before, 1)[0]
        repeats = self._agreed(max(1, min(20, int(20_000 / max(last_us, 1.0)))))
        samples = []
        while not self._agree(stable(samples)):
            samples.extend(self._batch(launch, cold, before, repeats))
        if self.writer is not None:
            self.writer.add(row, samples)

    def _rest(self):
        """Every row starts from a GPU that has rested, whatever ran before."""
        self.torch.cuda.synchronize()
        time.sleep(0.02 if self.quick else 0.06)

    def _batch(self, launch, cold, before, repeats):
        """Enqueues the repeats without waiting, so that the interpreter's own time stays out of them."""
        pairs = [[self.torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
        for start, stop in pairs:
            if before is not None:
                before()
            if cold:
                self._flush.fill_(1)
            start.record()
            launch()
            stop.record()
        pairs[-1][1].synchronize()
        return [start.elapsed_time(stop) * 1e3 for start, stop in pairs]

    def time_with(self, row, sample):
        if self.skip_row(row):
            return
        for _ in range(WARM_UP):
            sample()
        samples = []
        while not self._agree(stable(samples)):
            samples.append(sample())
        if self.writer is not None:
            self.writer.add(row, samples)

    def _agree(self, finished):
        """All ranks stop after the same number of repeats: rank 0 decides."""
        return bool(self._agreed(1 if finished else 0))

    def _agreed(self, number):
        """Rank 0's value on all ranks: collectives need as many calls on each."""
        if self.ranks == 1:
            return number
        shared = self.integers([number])
        self.torch.distributed.broadcast(shared, 0)
        return int(shared.item())
