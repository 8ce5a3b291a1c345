#!/usr/bin/env bash
# chakra: a predicted step is exported, read back and runs as long as before; another network changes what it should;
# damaged files, missing nodes and mismatched collectives are refused. An independent protobuf reader checks the bytes.
set -euo pipefail
k3sim=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
cat > "$work/dense.yaml" <<'YAML'
model: llama3_8b
cluster: {gpu: h100_sxm, nodes: 4}
parallel: {tp: 2, pp: 4, dp: 4}
batch: {sequence: 8192, micro_batch: 1, global_sequences: 16}
YAML
"$k3sim" chakra export "$work/dense.yaml" --out "$work/t" --json > "$work/export.json"
[ "$(find "$work/t" -name 'trace.*.et' | wc -l)" = 32 ] || fail "one file per GPU"
"$k3sim" chakra replay "$work/t/trace" --json > "$work/recorded.json"
"$k3sim" chakra replay "$work/t/trace" --network "$work/dense.yaml" --json > "$work/same.json"
"$k3sim" chakra replay "$work/t/trace" --network "$work/dense.yaml" --set 'cluster.oversubscription=4' --json > "$work/slow.json"
"$k3sim" chakra replay "$work/t/trace" --compute-scale 2 --json > "$work/double.json"
"$k3sim" chakra show "$work/t/trace.0.et" --json > "$work/show.json"
python3 - "$work" <<'PY' || fail "export and replay disagree"
import json, pathlib, struct, sys

work = pathlib.Path(sys.argv[1])
load = lambda name: json.loads((work / name).read_text())
exported, recorded, same, slow, double = (load(n + ".json") for n in ("export", "recorded", "same", "slow", "double"))
step = exported["step_time_s"]
assert abs(recorded["makespan_s"] / step - 1) < 1e-5, (recorded["makespan_s"], step)
assert abs(same["makespan_s"] / step - 1) < 1e-2, (same["makespan_s"], step)
sends = lambda r: next(c["replayed_s"] for c in r["collectives"] if c["kind"] == "SEND")
assert slow["makespan_s"] > same["makespan_s"] and sends(slow) > 2 * sends(same)  # only pipeline sends leave a node
assert 1.5 < double["makespan_s"] / step < 2.0
for c in same["collectives"]:
    assert c["bytes"] < 1024 or abs(c["replayed_s"] / c["recorded_s"] - 1) < 0.02, c


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def messages(path):
    data, at = path.read_bytes(), 0
    while at < len(data):
        size, at = varint(data, at)
        yield data[at:at + size]
        at += size


def packed(data):
    at, out = 0, []
    while at < len(data):
        value, at = varint(data, at)
        out.append(value)
    return out


INT32, INT64, UINT64, BOOL, TEXT = 7, 9, 13, 27, 29  # et_def.proto, AttributeProto.value
WANTED = {"is_cpu_op": BOOL, "comm_type": INT64, "comm_size": INT64, "comm_src": INT32, "comm_dst": INT32,
          "comm_tag": INT32, "pg_name": TEXT, "num_ops": INT64}
groups = json.loads((work / "t/trace.json").read_text())
assert groups["0"] == list(range(32)) and all(name.isdigit() for name in groups)
sends, receives, collectives = set(), set(), {}
for rank in range(32):
    stream = messages(work / f"t/trace.{rank}.et")
    assert dict(fields(next(stream)))[1] == b"0.0.4"
    ids, waits = set(), set()
    for message in stream:
        node = list(fields(message))
        by = dict(node)
        assert by[1] not in ids
        ids.add(by[1])
        waits |= set(packed(by.get(5, b"")))
        attributes = {}
        for number, value in node:
            if number == 10:
                attribute = dict(fields(value))
                name = attribute.pop(1).decode()
                (field, content), = attribute.items()
                assert WANTED.get(name, field) == field, (name, field)
                attributes[name] = content
        assert "is_cpu_op" in attributes
        if by[3] in (5, 6):
            key = tuple(attributes[k] for k in ("comm_src", "comm_dst", "comm_tag", "comm_size"))
            (sends if by[3] == 5 else receives).add(key)
            assert attributes["comm_src" if by[3] == 5 else "comm_dst"] == rank
        if by[3] == 7:
            group = attributes["pg_name"].decode()
            assert rank in groups[group]
            collectives.setdefault(group, {}).setdefault(rank, []).append(
                (attributes["comm_type"], attributes["comm_size"]))
    assert waits <= ids
assert sends and sends == receives
for group, by_rank in collectives.items():
    assert sorted(by_rank) == groups[group] and len({tuple(v) for v in by_rank.values()}) == 1, group
show = load("show.json")
assert show["version"] == "0.0.4" and show["kinds"]["COMM_SEND_NODE"]["nodes"] > 0
PY

# A foreign trace, written here: two ranks, no streams, an all-reduce between two kernels; rank 1 computes longer.
python3 - "$work" <<'PY'
import pathlib, sys
work = pathlib.Path(sys.argv[1])


def varint(v):
    out = b""
    while v >= 0x80:
        out, v = out + bytes([v & 0x7F | 0x80]), v >> 7
    return out + bytes([v])


def number(field, v): return varint(field << 3) + varint(v)
def text(field, v): return varint(field << 3 | 2) + varint(len(v)) + v
def attribute(name, field, v): return text(10, text(1, name) + (number(field, v) if isinstance(v, int) else text(field, v)))


def node(i, name, kind, us=0, after=(), unpacked=False, extra=b""):
    deps = b"".join(number(5, a) for a in after) if unpacked else text(5, b"".join(varint(a) for a in after)) if after else b""
    return number(1, i) + text(2, name) + number(3, kind) + deps + (number(7, us) if us else b"") + extra


def write(path, nodes):
    path.write_bytes(b"".join(varint(len(m)) + m for m in [text(1, b"0.0.4")] + nodes))


gpu = attribute(b"is_cpu_op", 27, 0)
for rank, us in ((0, 100), (1, 300)):
    reduce = gpu + attribute(b"comm_type", 9, 0) + attribute(b"comm_size", 13, 1 << 20)
    write(work / f"two.{rank}.et", [node(1, b"a", 4, us, extra=gpu), node(2, b"r", 7, 50, [1], rank == 1, reduce),
                                    node(3, b"b", 4, 10, [2], extra=gpu + attribute(b"unknown", 29, b"kept"))])
write(work / "lost.0.et", [node(1, b"a", 4, 5, [7])])
write(work / "ring.0.et", [node(1, b"a", 4, 5, [2]), node(2, b"b", 4, 5, [1])])
(work / "cut.0.et").write_bytes((work / "two.0.et").read_bytes()[:-3])
PY
"$k3sim" chakra replay "$work/two" --json > "$work/two_out.json"
python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert abs(r["makespan_s"] - 360e-6) < 1e-9, r' "$work/two_out.json" ||
  fail "the collective starts when the last rank arrives"
gzip -k "$work/two.0.et" && mv "$work/two.0.et.gz" "$work/packed.et"
"$k3sim" chakra show "$work/packed.et" | grep -q "3 nodes" || fail "gzip"
refuse() { set +e; "$k3sim" chakra replay "$1" > "$work/out.txt" 2> "$work/err.txt"; local rc=$?; set -e
  [ $rc -eq 2 ] && grep -q "$2" "$work/err.txt" || fail "$1: $rc $(cat "$work/err.txt")"; }
refuse "$work/lost" "waits for node 7"
refuse "$work/ring" "deadlock"
refuse "$work/cut" "message at byte"
refuse "$work/nothing" "no file"
echo ok
