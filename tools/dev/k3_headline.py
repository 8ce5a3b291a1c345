#!/usr/bin/env python3
"""The K3 headline: step, MFU, memory and GPU-hours of Kimi K3 on 1,024 to 8,192 GPUs of three types, as committed in
scenarios/k3_headline, in the README's table and picture.

  tools/dev/k3_headline.py            record the predictions of the committed layouts, rewrite table and picture
  tools/dev/k3_headline.py --plan     search the layouts first (about a minute of CPU for each of the twelve)
  tools/dev/k3_headline.py --check    table and picture are those of the recorded predictions (no simulation)

The layouts are winners of `k3sim plan k3_2048_h800` with another GPU type and number of nodes. Everything shown comes from
their expected.json and from mechanisms.json (`ablate --sensitivity` of the middle one), so that `regress check` and --check
together find whatever is out of date. The same input gives the same bytes."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import k3_headline_picture as picture
import sources

FOLDER = sources.ROOT / "scenarios" / "k3_headline"
SVG = sources.ROOT / "scenarios" / "k3_headline.svg"
README = sources.ROOT / "README.md"
GPUS = {"h800": "h800_sxm", "h100": "h100_sxm", "h200": "h200_sxm"}
SIZES = (1024, 2048, 4096, 8192)
SHOWN = "h800_2048"  # whose mechanisms and sensitivities are shown
BEGIN, END = "<!-- tools/dev/k3_headline.py writes from here -->", "<!-- to here -->"


def k3sim(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True,
                          cwd=sources.ROOT).stdout


def scenario_file(gpu, size):
    return FOLDER / f"{gpu}_{size}" / "scenario.yaml"


def write_scenario(gpu, size, text):
    path = scenario_file(gpu, size)
    path.parent.mkdir(parents=True, exist_ok=True)
    about = (f"# Kimi K3 on {size:,} {gpu.upper()}: the best of the space of k3_2048_h800. Written by tools/dev/k3_headline.py"
             " --plan.\n")
    path.write_text(about + text)


def plan(program, gpu, size):
    with tempfile.TemporaryDirectory() as out:
        k3sim(program, "plan", "k3_2048_h800", "--set", f"cluster.gpu={GPUS[gpu]}", "--set", f"cluster.nodes={size // 8}",
              "--top", 1, "--out", out)
        write_scenario(gpu, size, (pathlib.Path(out) / "plan-1.yaml").read_text())


def record(program):
    k3sim(program, "regress", "record", FOLDER)
    found = json.loads(k3sim(program, "ablate", FOLDER / SHOWN, "--sensitivity", "--json"))
    kept = {
        "scenario": SHOWN,
        "step_time_s": float(f"{found['step_time_s']:.9g}"),
        "off": [{"name": r["mechanism"], "step_pct": round(100 * r["step_change_s"] / found["step_time_s"], 2),
                 "mfu": round(r["mfu_change"], 2), "gib": round(r["memory_change_gib"], 1), "fits": r["fits"]}
                for r in found["rows"] if r["mode"] == "single" and r["reason"] in ("ok", "memory")],
        "ten_pct_worse": [{"name": r["input"], "step_pct": round(r["worse_pct"], 2)} for r in found["sensitivity"]],
    }
    (FOLDER / "mechanisms.json").write_text(json.dumps(kept, indent=1) + "\n")


def interval():
    """Bounds of measured over predicted time that held 80 % of the published MoE runs."""
    text = (sources.ROOT / "hardware_profiles" / "step_errors.yaml").read_text()
    line = re.search(r"^moe: (.*)$", text, re.M)[1]
    return [float(re.search(rf"{key}: ([0-9.]+)", line)[1]) for key in ("low80", "high80")]


def answers():
    """By GPU type and size: what is shown of one prediction."""
    out = {}
    for gpu in GPUS:
        for size in SIZES:
            recorded = json.loads((FOLDER / f"{gpu}_{size}" / "expected.json").read_text())
            metric = {k: v["value"] for k, v in recorded["metrics"].items()}
            step = metric["step_time_s"]
            # GPUs x step / tokens of the step, for a trillion tokens
            hours = 1e12 / metric["tokens_per_s_per_gpu"] / 3600
            out[gpu, size] = {"step": step, "interval": interval(), "mfu": metric["mfu_pct"],
                              "gib": metric["peak_reserved_gib"], "hours": hours, "fits": recorded["status"] == "ok"}
    return out


def mechanisms(found):
    kept = json.loads((FOLDER / "mechanisms.json").read_text())
    gpu, size = kept["scenario"].split("_")
    if abs(kept["step_time_s"] / found[gpu, int(size)]["step"] - 1) > 1e-6:
        sys.exit("mechanisms.json belongs to another prediction: run tools/dev/k3_headline.py")
    return kept


def table(found, kept):
    lines = ["| Kimi K3, 64M tokens a step | " + " | ".join(f"{size:,} GPUs" for size in SIZES) + " |",
             "|---|" + "---|" * len(SIZES)]
    for gpu in GPUS:
        cells = []
        for size in SIZES:
            a = found[gpu, size]
            cells.append(f"{a['step']:.1f} s, MFU {a['mfu']:.1f} %, {a['gib']:.0f} GiB, "
                         f"{a['hours'] / 1e3:.0f}k h/T" + ("" if a["fits"] else ", does not fit"))
        lines.append(f"| {gpu.upper()} | " + " | ".join(cells) + " |")
    low, high = interval()
    gpu, size = kept["scenario"].split("_")
    inputs = ", ".join(f"{r['name']} {r['step_pct']:.1f} %" for r in kept["ten_pct_worse"][:3])
    lines += ["", f"![MFU and GPU-hours per trillion tokens with 80 % intervals; mechanisms and sensitivities]({SVG.relative_to(sources.ROOT)})",
              "", f"10 % worse costs, on {int(size):,} {gpu.upper()}: {inputs}. h/T: GPU-hours per trillion tokens. "
              f"80 % of the published MoE runs took {low:.2f} to {high:.2f} of the time predicted without their family."]
    return lines


def readme_with(lines):
    text = README.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return text[:begin] + "\n" + "\n".join(lines) + "\n" + text[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", action="store_true", help="search the layouts again")
    parser.add_argument("--check", action="store_true", help="change nothing; 1 when something is out of date")
    parser.add_argument("--k3sim", default=str(sources.ROOT / "build" / "release" / "k3sim"), help="the program")
    options = parser.parse_args()
    if options.plan:
        for gpu in GPUS:
            for size in SIZES:
                print(f"planning {gpu} {size}", file=sys.stderr)
                plan(options.k3sim, gpu, size)
    if not options.check:
        record(options.k3sim)
    found = answers()
    kept = mechanisms(found)
    new = {README: readme_with(table(found, kept)), SVG: picture.draw(found, kept)}
    if not options.check:
        for path, text in new.items():
            path.write_text(text)
        return
    stale = [str(p.relative_to(sources.ROOT)) for p, text in new.items() if not p.exists() or p.read_text() != text]
    sources.finish([f"{p}: is not what the recorded predictions say" for p in stale], "run tools/dev/k3_headline.py")


if __name__ == "__main__":
    main()
