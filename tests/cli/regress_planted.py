"""Plants changes into pipeline schedules and checks how `k3sim regress check` classifies them.

An oracle of its own (queue-drain execution with F = I = W = 1, B = 2 and free transfers) sorts random moves of actions
into slower, more memory, deadlock, reordered but equal and faster; the command must agree in its JSON, its exit code and
its JUnit file, which is read by Python's XML parser.
"""
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

K3SIM, WORK = sys.argv[1], pathlib.Path(sys.argv[2])
ACTION = re.compile(r"(\d+)([FIBW])(\d+)$")
DURATION = {"F": 1, "I": 1, "B": 2, "W": 1}
KINDS = ["slower", "more memory", "deadlock", "equal", "faster"]
PER_KIND = 6


def run(*arguments):
    return subprocess.run([K3SIM, *map(str, arguments)], capture_output=True, text=True, check=False)


def generate(name, ranks, microbatches, chunks):
    text = run("schedule", "convert", name, "--ranks", ranks, "--microbatches", microbatches, "--chunks", chunks).stdout
    rows = [[cell for cell in line.split(",") if cell] for line in text.splitlines()]
    assert rows and all(ACTION.match(cell) for row in rows for cell in row), text
    return rows


def oracle(rows):
    """(makespan, peak activations per rank), or None when the ranks wait for each other."""
    parts = [[(int(s), k, int(m)) for s, k, m in (ACTION.match(c).groups() for c in row)] for row in rows]
    last = max(s for row in parts for s, _, _ in row)
    done, position, clock = {}, [0] * len(parts), [0] * len(parts)
    progress = True
    while progress:
        progress = False
        for r, row in enumerate(parts):
            while position[r] < len(row):
                stage, kind, mb = row[position[r]]
                if kind == "F":
                    needs = [("F", stage - 1, mb)] if stage else []
                elif kind == "W":
                    needs = [("B", stage, mb)]
                else:
                    needs = [("F", stage, mb)] + ([("B", stage + 1, mb)] if stage < last else [])
                if any(n not in done for n in needs):
                    break
                clock[r] = max([clock[r]] + [done[n] for n in needs]) + DURATION[kind]
                done["B" if kind == "I" else kind, stage, mb] = clock[r]
                position[r] += 1
                progress = True
    if any(position[r] < len(row) for r, row in enumerate(parts)):
        return None
    peaks = []
    for row in parts:
        split = {(s, m) for s, k, m in row if k == "W"}
        held = peak = 0
        for stage, kind, mb in row:
            held += kind == "F"
            peak = max(peak, held)
            held -= kind == "W" or (kind == "B" and (stage, mb) not in split)
        peaks.append(peak)
    return max(clock), peaks


def kind_of(before, after):
    if after is None:
        return "deadlock"
    slower, faster = after[0] > before[0], after[0] < before[0]
    bigger = any(a > b for a, b in zip(after[1], before[1]))
    smaller = any(a < b for a, b in zip(after[1], before[1]))
    if slower and not bigger:
        return "slower"
    if bigger and not slower and not faster:
        return "more memory"
    if faster and not bigger:
        return "faster"
    return "equal" if not (slower or faster or bigger or smaller) else None


def mutate(rows, rng):
    rows = [list(row) for row in rows]
    for _ in range(rng.choice([1, 1, 2])):
        row = rng.choice(rows)
        row.insert(rng.randrange(len(row)), row.pop(rng.randrange(len(row))))
    return rows


def precedes(rows):
    """Actions of one stage and micro-batch keep their order F, I or B, W on their rank; the rest is free."""
    for row in rows:
        place = {cell: i for i, cell in enumerate(row)}
        for cell, i in place.items():
            stage, kind, mb = ACTION.match(cell).groups()
            first = {"I": "F", "B": "F", "W": "I"}.get(kind)
            if first and place.get(f"{stage}{first}{mb}", -1) > i:
                return False
    return True


def plants():
    bases = [generate("1f1b", 4, 8, 1), generate("zb_h1", 4, 8, 1), generate("interleaved", 4, 8, 2),
             generate("zb_v", 4, 8, 2), generate("zb_h1", 3, 6, 1)]
    rng, found = random.Random(11), {kind: [] for kind in KINDS}
    for base in itertools.cycle(bases):
        changed = mutate(base, rng)
        if changed == base or not precedes(changed):
            continue
        before, after = oracle(base), oracle(changed)
        kind = kind_of(before, after)
        if kind == "slower" and rng.random() < 0.5:  # the same change the other way round
            base, changed, kind = changed, base, kind_of(after, before)
        if kind and len(found[kind]) < PER_KIND:
            found[kind].append((base, changed))
        if all(len(cases) == PER_KIND for cases in found.values()):
            return found


def write(folder, rows):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schedule.csv").write_text("\n".join(",".join(row) for row in rows) + "\n")


def check(kind, number, before, after):
    folder = WORK / f"{kind.replace(' ', '_')}_{number}"
    write(folder, before)
    assert run("regress", "record", folder).returncode == 0
    clean = run("regress", "check", folder, "--json")
    assert clean.returncode == 0 and json.loads(clean.stdout) | {"rows": []} == json.loads(clean.stdout), clean.stdout
    write(folder, after)
    answer = run("regress", "check", folder, "--json", "--junit", folder / "junit.xml")
    report = json.loads(answer.stdout)
    categories = {(row["metric"].split("@")[0], row["category"]) for row in report["rows"]}
    failures = {(f.get("name").split("@")[0], f.find("failure").get("type"))
                for f in ElementTree.parse(folder / "junit.xml").getroot().iter("testcase")
                if f.find("failure") is not None}
    expect_fail = kind in ("slower", "more memory", "deadlock")
    assert answer.returncode == (1 if expect_fail else 0), (kind, answer.stdout)
    assert report["result"] == ("fail" if expect_fail else "pass"), (kind, report)
    assert bool(failures) == expect_fail, (kind, failures)
    must = {"slower": ("makespan", "regression"), "more memory": ("peak_activations", "regression"),
            "deadlock": ("status", "status_change"), "faster": ("makespan", "improvement")}.get(kind)
    assert must is None or must in categories, (kind, categories)
    assert not expect_fail or must in failures, (kind, failures)
    assert kind != "equal" or (not categories and "order of actions" in " ".join(report["notes"])), (categories, report)
    if kind == "deadlock":
        status = next(row for row in report["rows"] if row["metric"] == "status")
        assert status["actual"] == "deadlock" and re.search(r"rank \d+ at \d+", status["reason"]), status
    if kind == "slower":
        row = next(row for row in report["rows"] if row["metric"] == "makespan")
        assert row["actual"] == oracle(after)[0] and row["expected"] == oracle(before)[0], row
        assert row["moved"], row


def main():
    count = 0
    for kind, cases in plants().items():
        for number, (before, after) in enumerate(cases):
            check(kind, number, before, after)
            count += 1
    print(f"{count} planted changes classified")


main()
