#!/usr/bin/env python3
"""How often tracegate classify names the cause that was there.

    serve_score.py TRUTH FINDINGS

TRUTH: STEP CAUSE a line, `unknown` where nothing was recorded of the stall.
FINDINGS: the records of classify. Prints a rate line for each outcome, with its
Wilson interval (95 %): right; wrong, the worst; missed, which unknown counts
as. For a stall of which nothing was recorded, unknown is right.
"""
import math
import re
import sys


def wilson(k, n, z=1.959963984540054):
    if not n:
        return 0.0, 1.0
    p, q = k / n, z * z / n
    mid = (p + q / 2) / (1 + q)
    half = z * math.sqrt(p * (1 - p) / n + q / (4 * n)) / (1 + q)
    return max(0.0, mid - half), min(1.0, mid + half)


def main(truth, findings):
    true = dict(line.split() for line in open(truth))
    said = {}
    for line in open(findings):
        if line.startswith("finding\t"):
            fields = line.rstrip("\n").split("\t")[1:]
            keys = dict(f.split("=", 1) for f in fields)
            step = re.search(r"#(\d+)$", keys["name"]).group(1)
            said[step] = keys.get("cause", "unknown")
    outcome = {"right": 0, "wrong": 0, "missed": 0}
    for step, cause in true.items():
        got = said.pop(step, "nothing")
        if got == cause:
            outcome["right"] += 1
        elif got in ("unknown", "nothing"):
            outcome["missed"] += 1
            print("# step %s: %s was %s" % (step, cause, got))
        else:
            outcome["wrong"] += 1
            print("# step %s: %s was called %s" % (step, cause, got))
    # A cause for a step that had no stall is as wrong.
    for step, got in said.items():
        if got != "unknown":
            outcome["wrong"] += 1
            print("# step %s: no stall was called %s" % (step, got))
    for name, k in outcome.items():
        low, high = wilson(k, len(true))
        print("rate\tname=%s\tk=%d\tn=%d\tshare=%.4f\tlow=%.4f\thigh=%.4f\t"
              "interval=wilson" % (name, k, len(true), k / max(1, len(true)),
                                   low, high))


main(*sys.argv[1:])
