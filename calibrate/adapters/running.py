"""Running one adapter, and one process per GPU for those that need several (importable, so that spawn finds it)."""
from .csv_rows import CsvWriter
from .registry import ADAPTERS
from .skipping import Skip, WrongResult, require
from .torch_bench import TorchBench


def header(torch, gpus):
    p = torch.cuda.get_device_properties(0)
    return [f"gpu: {p.name} x{gpus}, {p.multi_processor_count} SMs, compute capability {p.major}.{p.minor}",
            f"software: torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}",
            "method: calibrate.adapters; CUDA events, median until stable (40 to 200 repeats) after a pause of 60 ms and 5 warm-up calls, repeats enqueued in batches, L2 written before every "
            "repeat except section nccl and attention backward; clocks not touched",
            "implementation: the kernel column names the library; k3sim's own kernels are in another file"]


def run_adapter(adapter, bench, note):
    """True unless the library gave a wrong result."""
    try:
        adapter.measure(bench)
        return True
    except Skip as reason:
        note(f"skipped {adapter.NAME}: {reason}")
        return True
    except WrongResult as reason:
        note(f"refused {adapter.NAME}: {reason}")
        return False
    except Exception as error:  # a library may fail in any way; the others still run
        note(f"skipped {adapter.NAME}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
        return True


def run_rank(rank, ranks, store, out, adapters, quick):
    """One process of a multi-GPU measurement; rank 0 writes."""
    torch = require("torch")
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=ranks)
    writer = CsvWriter(out, header(torch, ranks)) if rank == 0 else None
    bench = TorchBench(writer, quick, device=rank, ranks=ranks, rank=rank)
    note = writer.note if writer else lambda text: None
    for adapter in ADAPTERS:
        if adapter.NAME in adapters:
            run_adapter(adapter, bench, note)
    if writer:
        writer.finish()
    torch.distributed.destroy_process_group()
