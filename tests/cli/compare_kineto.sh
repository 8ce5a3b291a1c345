#!/usr/bin/env bash
# compare --kineto: the published DeepSeek-V3 trace against its bars; gzip, truncated, damaged and multi-GPU traces; names
# of schedule actions; CSV and HTML; measured kernels as calibration rows.
set -euo pipefail
k3sim=$1
trace=$(cd "$(dirname "$0")/../data/kineto" && pwd)/deepseek_v3_train.json.gz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }

"$k3sim" compare deepseek_v3_trace_h800 --kineto "$trace" --json --out "$work/out" > "$work/v3.json"
python3 - "$work" <<'PY' || fail "DeepSeek-V3 trace"
import csv, json, pathlib, sys
work = pathlib.Path(sys.argv[1])
r = json.loads((work / "v3.json").read_text())
assert r["covered_pct"] >= 97, r["covered_pct"]
streams = {s["name"]: s for s in r["streams"]}
assert abs(streams["compute"]["measured_ms"] / 118 - 1) < 0.02 and abs(streams["communication"]["measured_ms"] / 115 - 1) < 0.02
assert round(streams["side"]["measured_ms"]) == 11 and streams["side"]["kernels"] == 16  # weight gradients
assert abs(r["span"]["error_pct"]) < 10, r["span"]
families = {f["name"]: f for f in r["families"]}
for name in ("attention", "grouped_gemm", "dispatch", "combine", "fp8_cast", "gemm", "weight_grad"):
    assert families[name]["measured_ms"] > 0 and families[name]["predicted_ms"] > 0, families[name]
assert abs(sum(f["gap_share_pct"] for f in r["families"]) - 100) < 1e-6
for side in ("measured", "predicted"):
    b = r["breakdown"][side]
    assert abs(b["compute_ms"] + b["communication_ms"] + b["memory_ms"] + b["idle_ms"] - b["span_ms"]) < 1e-6, b
    for s in r["idle"][side]:
        waits = s["host_wait_ms"] + s["kernel_wait_ms"] + s["other_wait_ms"]
        assert waits >= 0 and s["busy_ms"] + waits <= b["span_ms"] + 1e-6, s
rows = list(csv.DictReader((work / "out/compare.csv").open()))
assert {row["group"] for row in rows} >= {"family", "stream", "action", "collective"}
page = (work / "out/report.html").read_text()
assert "attention" in page and "dispatch" in page and page.lstrip().lower().startswith("<!doctype html"), page[:200]
PY

# Truncated JSON, truncated gzip, damaged gzip, no trace at all.
gunzip -c "$trace" > "$work/whole.json"
head -c 1500000 "$work/whole.json" > "$work/cut.json"
"$k3sim" compare --kineto "$work/cut.json" > "$work/out.txt" 2> "$work/err.txt" || fail "a truncated trace"
grep -q "the trace is damaged" "$work/err.txt" || fail "no note on a truncated trace"
head -c 150000 "$trace" > "$work/cut.json.gz"
"$k3sim" compare --kineto "$work/cut.json.gz" > "$work/out.txt" 2> "$work/err.txt" || fail "a truncated gzip"
python3 - "$trace" "$work/bad.json.gz" <<'PY'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2:len(data) // 2 + 64] = bytes(64)
open(sys.argv[2], "wb").write(data)
PY
"$k3sim" compare --kineto "$work/bad.json.gz" > "$work/out.txt" 2> "$work/err.txt" || fail "a damaged gzip: $(cat "$work/err.txt")"
grep -q "the trace is damaged" "$work/err.txt" || fail "no note on a damaged gzip"
echo 'no trace' > "$work/none.json"
set +e; "$k3sim" compare --kineto "$work/none.json" > /dev/null 2> "$work/err.txt"; [ $? -eq 2 ] || fail "text is no trace"; set -e

# Two GPUs, schedule actions, NCCL metadata and recorded shapes.
python3 - "$work/pp.json" <<'PY'
import json, sys
events, now = [], 1740000000000000
for device in (0, 1):
    at = now
    for i, action in enumerate(["0F0", "0F1", "0B0", "0B1"]):
        events.append({"ph": "X", "cat": "user_annotation", "name": f"PP:{action}", "pid": 9, "tid": 9, "ts": at, "dur": 100})
        for k in range(3):
            n = 100 * device + 10 * i + k + 1
            name = "ncclDevKernel_AllGather_RING_LL" if k == 2 else "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n"
            args = {"device": device, "stream": 7 + k // 2 * 13, "correlation": n, "External id": n}
            if k == 2:
                args |= {"Collective name": "_allgather_base", "In msg nelems": 4096, "dtype": "BFloat16", "Group size": 8}
            else:
                events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": at + 1, "dur": 2,
                               "args": {"External id": n, "Input Dims": [[8192, 4096], [4096, 14336]],
                                        "Input type": ["c10::BFloat16", "c10::BFloat16"]}})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": at + 3 * k,
                           "dur": 2, "args": {"correlation": n}})
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": device, "tid": args["stream"],
                           "ts": at + 20 + 1300 * k, "dur": 1300.0 + device, "args": args})
        at += 4000
json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": events},
          open(sys.argv[1], "w"))
PY
cat > "$work/pp.yaml" <<'YAML'
model: llama3_8b
cluster: {gpu: h100_sxm, nodes: 1}
parallel: {tp: 1, pp: 2, dp: 4}
batch: {sequence: 8192, micro_batch: 1, global_sequences: 8}
YAML
"$k3sim" compare "$work/pp.yaml" --kineto "$work/pp.json" --device 1 --json > "$work/pp_out.json"
python3 - "$work/pp_out.json" <<'PY' || fail "schedule actions of the second GPU"
import json, sys
r = json.load(open(sys.argv[1]))
actions = {a["name"]: a for a in r["actions"]}
assert set(actions) == {"PP:0F0", "PP:0F1", "PP:0B0", "PP:0B1"}, actions
for name, a in actions.items():
    assert abs(a["measured_ms"] - 3 * 1.301) < 1e-9 and a["predicted_ms"] > 0, (name, a)
assert actions["PP:0B0"]["predicted_ms"] > 1.5 * actions["PP:0F0"]["predicted_ms"]
(c,) = [c for c in r["collectives"] if c["kernels"]]
assert c["name"] == "all_gather x8" and c["kernels"] == 4, c
PY

# Calibration rows from a real trace: with a scenario by pairing, with recorded shapes by themselves.
"$k3sim" fit --from-kineto "$trace" --scenario deepseek_v3_trace_h800 --rows "$work/rows.csv" --out "$work/h800.yaml" > "$work/fit.txt"
grep -q '^# gpu: NVIDIA H800' "$work/rows.csv" || fail "header of the rows"
for shape in 'M=4096;N=24576;K=1536' 'M=4096;N=7168;K=16384' 'B=1;H=128;Hkv=128;S=4096;dqk=192;dv=128' 'G=4;tokens=32768'; do
  grep -q "$shape" "$work/rows.csv" || fail "no row for $shape"
done
python3 - "$work/rows.csv" <<'PY' || fail "times of the rows"
import csv, sys
rows = list(csv.DictReader(line for line in open(sys.argv[1]) if not line.startswith("#")))
pick = lambda kernel, way: next(float(r["median_us"]) for r in rows if r["kernel"].endswith(kernel) and r["pass"] == way)
assert 1190 < pick("attention", "fwd") < 1290 and 4000 < pick("attention", "bwd") < 4500  # 1,248 us; three kernels backward
assert 860 < pick("attn_out_proj", "fwd") < 930 and 345 < pick("q_b_proj", "fwd") < 390
PY
"$k3sim" kernels --gpu "$work/h800.yaml" --measured "$work/rows.csv" > "$work/kernels.txt" || fail "the fitted profile"
"$k3sim" fit --from-kineto "$work/pp.json" --rows "$work/rows2.csv" --out "$work/h100.yaml" > /dev/null 2> "$work/err.txt" || true
grep -q 'gemm,trace_mm,fwd,bf16,M=8192;N=14336;K=4096,.*,1300.000,' "$work/rows2.csv" || fail "rows of recorded shapes: $(cat "$work/rows2.csv" "$work/err.txt")"
echo ok
