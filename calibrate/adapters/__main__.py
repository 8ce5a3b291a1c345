"""python3 -m calibrate.adapters --out FILE.csv [--gpus N] [--quick] [--only flash_kda,fla]

Times every installed library; one that cannot run is skipped with the exact reason, written into the file.
"""
import argparse
import os
import sys
import tempfile

from .csv_rows import CsvWriter
from .registry import ADAPTERS
from .running import header, run_adapter, run_rank
from .skipping import Skip, require
from .torch_bench import TorchBench


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m calibrate.adapters", description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="comma-separated adapter names")
    args = parser.parse_args(arguments)
    known = [a.NAME for a in ADAPTERS]
    wanted = [name for name in args.only.split(",") if name] or known
    for name in wanted:
        if name not in known:
            parser.error(f"unknown adapter {name!r}; there are {', '.join(known)}")
    return args, wanted


def main(arguments=None):
    args, wanted = parse(arguments)
    try:
        torch = require("torch")
        if not torch.cuda.is_available():
            raise Skip("torch sees no GPU")
    except Skip as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 3
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast stays off unless the user chose otherwise
    writer = CsvWriter(args.out, header(torch, args.gpus))
    bench = TorchBench(writer, args.quick)
    good, several = True, []
    for adapter in ADAPTERS:
        if adapter.NAME not in wanted:
            continue
        if not adapter.MULTI_GPU:
            good = run_adapter(adapter, bench, writer.note) and good
        elif args.gpus < 2:
            writer.note(f"skipped {adapter.NAME}: needs 2 GPUs, {args.gpus} in use")
        else:
            several.append(adapter.NAME)
    writer.finish()
    if several:
        store = os.path.join(tempfile.mkdtemp(), "store")
        torch.multiprocessing.spawn(run_rank, (args.gpus, store, args.out, several, args.quick), nprocs=args.gpus)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
