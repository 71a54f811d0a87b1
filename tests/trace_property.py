#!/usr/bin/env python3
"""Windows hold exactly the events within them, in whatever order they came.

Usage: trace_property.py TRACEGATE SEED ROUNDS
Makes streams of nested slices (complete and begin/end), in order of their
ends but shuffled within the reorder bound, some of them stalled; runs
`tracegate --live` and compares its trace with the rule: an event is kept if it
is a step or a sync point, or if its slice touches a window.
"""
import json
import random
import subprocess
import sys
import tempfile


def make(r):
    events, t, key = [], 0, 0
    for step in range(r.randrange(80, 200)):
        dur = r.randrange(900, 1100) * 1000
        if step > 70 and r.random() < 0.03:
            dur += r.randrange(20, 90) * 1000000
        kids, at = r.randrange(0, 4), t
        for k in range(kids):
            d = dur // (kids + 1)
            key += 1
            events.append((r.choice("XB"), "op%s" % "abc"[k], at, d, key))
            at += d
        key += 1
        events.append((r.choice("XB"), "ProfilerStep#%d" % step, t, dur, key))
        t += dur + r.randrange(0, 500) * 1000
    return events


def us(ns):
    return "%d.%03d" % (ns // 1000, ns % 1000)


def lines(events, r, bound):
    """(arrival, text) with arrival = end moved back and forth."""
    out = []
    for ph, name, ts, dur, key in events:
        head = '{"cat":"c","pid":1,"tid":1,"args":{"k":%d},' % key
        if ph == "X":
            out.append((ts + dur, 0, head + '"ph":"X","name":"%s","ts":%s,"dur":%s}'
                        % (name, us(ts), us(dur))))
            continue
        # Begins of outer slices first, ends of inner ones first.
        out.append((ts, -dur, head + '"ph":"B","name":"%s","ts":%s}' % (name, us(ts))))
        out.append((ts + dur, dur, head + '"ph":"E","name":"%s","ts":%s}'
                    % (name, us(ts + dur))))
    out.sort()
    moved = [(end + r.randrange(0, bound), i, text)
             for i, (end, _, text) in enumerate(out)]
    # Equal stamps keep their order: that is what the format promises.
    stamp = {}
    for j, (m, i, text) in enumerate(moved):
        stamp[out[i][0]] = max(stamp.get(out[i][0], 0), m)
    moved = sorted((stamp[out[i][0]], i, text) for m, i, text in moved)
    return [text for _, _, text in moved]


def expected(events, windows):
    keep = set()
    for ph, name, ts, dur, key in events:
        if name.startswith("ProfilerStep") or any(
                a <= ts + dur and ts <= b for a, b in windows):
            keep.add((key, ph))
    return keep


def ns(text):
    whole, _, frac = text.partition(".")
    sign = -1 if whole.startswith("-") else 1
    return int(whole) * 10**9 + sign * int(frac.ljust(9, "0")[:9] or 0)


def one(tool, seed):
    r = random.Random(seed)
    events = make(r)
    bound = 5000000
    text = "[" + ",\n".join(lines(events, r, bound)) + "]"
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        run = subprocess.run(
            [tool, "--live", "-v", "-o", out.name, "--lateness", "5ms",
             "--before", "3ms", "--after", "2ms", "--rate", "0",
             "--audit", str(r.choice([0, 20000])), "-"],
            input=text.encode(), capture_output=True, timeout=60)
        with open(out.name, encoding="utf-8") as f:
            trace = json.load(f)
    windows = []
    for line in run.stdout.decode().splitlines():
        fields = dict(f.split("=", 1) for f in line.split("\t")[1:])
        if line.startswith("window\t"):
            windows.append((ns(fields["from"]), ns(fields["until"])))
        if line.startswith("count\t") and fields["class"] in ("late", "forced"):
            return "seed %d: %s" % (seed, line)
    want = expected(events, windows)
    got = set()
    for e in trace:
        if e.get("cat") == "c":
            got.add((e["args"]["k"], "B" if e["ph"] == "E" else e["ph"]))
    if want != got:
        return "seed %d: missing %s, too many %s" % (
            seed, sorted(want - got)[:5], sorted(got - want)[:5])
    return (len(windows), len(events), len(got))


def main():
    tool, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sums = [0, 0, 0]
    for i in range(rounds):
        result = one(tool, seed + i)
        if isinstance(result, str):
            print(result)
            return 1
        sums = [a + b for a, b in zip(sums, result)]
    print("windows %d, events %d, kept %d" % tuple(sums))
    # A test in which nothing happens would pass for any program.
    return 0 if sums[0] > rounds and sums[2] < sums[1] else 1


if __name__ == "__main__":
    sys.exit(main())
