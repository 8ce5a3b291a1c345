"""Stand-ins for torch tensors, the bench and the libraries, so that the adapters are tested on any machine.

A FakeBench hands out mocks instead of tensors, remembers rows, checks and launches, and calls every launch once.
"""
import sys
import types
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import MagicMock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from calibrate.adapters.skipping import WrongResult  # noqa: E402


def tensor(shape):
    fake = MagicMock(name=f"tensor{tuple(shape)}")
    fake.shape = tuple(shape)
    return fake


class FakeBench:
    def __init__(self, quick=True, ranks=1, error=0.0):
        self.torch = MagicMock(name="torch")
        self.torch.autograd.grad.side_effect = lambda *a, **k: [tensor((1,))] * 5
        self.quick, self.ranks, self.rank, self.error = quick, ranks, 0, error
        self.rows, self.checks, self.asked = [], [], []

    def dtype(self, name):
        return name

    def normal(self, shape, dtype="bf16", scale=1.0, mean=0.0):
        self.asked.append((tuple(shape), dtype))
        return tensor(shape)

    def empty(self, shape, dtype="bf16"):
        return tensor(shape)

    def integers(self, values, dtype="i32"):
        fake = tensor((len(values),))
        fake.values = list(values)
        return fake

    def relative_error(self, out, reference):
        return self.error

    def verify(self, what, error, limit):
        self.checks.append(what)
        error = self.error if isinstance(error, MagicMock) else error
        if not error <= limit:
            raise WrongResult(what)

    def skip_row(self, row):
        return False

    def time(self, row, launch, cold=True, before=None):
        launch()
        self.rows.append(row)


@contextmanager
def modules(**contents):
    """modules(flash_kda={"fwd": f}) puts a module in place; a value of None makes its import fail. '__' stands for '.'."""
    names = {name.replace("__", "."): value for name, value in contents.items()}
    before = {name: sys.modules.get(name) for name in names}
    for name, value in names.items():
        if value is None:
            sys.modules[name] = None
        else:
            module = types.ModuleType(name)
            vars(module).update(value)
            sys.modules[name] = module
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = value
