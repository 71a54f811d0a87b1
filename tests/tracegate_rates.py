#!/usr/bin/env python3
"""How often tracegate opens, and calls anomaly, on healthy streams.

usage: tracegate_rates.py TRACEGATE [STREAMS [STEPS [SEED]]]

One line a shape of durations: openings per million steps, the rate tracegate
states, and how many of the streams were called an anomaly. Then recall: one
stall in a stream, at several times the 99 % quantile. The durations are of
milliseconds, so that the floor of 1 ms hides nothing.
"""
import math
import random
import subprocess
import sys

MS = 20.0  # the median step, ms


def lognormal(s):
    return lambda r: MS * math.exp(s * r.gauss(0, 1))


def gamma(k):
    return lambda r: MS * r.gammavariate(k, 1) / k


def pareto(a):
    return lambda r: MS * r.paretovariate(a)


def bimodal(share, times):
    return lambda r: (MS * math.exp(0.05 * r.gauss(0, 1))
                      * (times if r.random() < share else 1))


def ar1():
    state = [0.0]

    def draw(r):
        state[0] = 0.99 * state[0] + 0.14 * r.gauss(0, 1)
        return MS * math.exp(0.2 * state[0] + 0.05 * r.gauss(0, 1))
    return draw


def quantised(unit):
    return lambda r: round(MS * math.exp(0.1 * r.gauss(0, 1)) / unit) * unit


SHAPES = [
    ("lognormal 0.05", lognormal(0.05)),
    ("lognormal 0.25", lognormal(0.25)),
    ("lognormal 0.8", lognormal(0.8)),
    ("gamma 2", gamma(2)),
    ("pareto 2.5", pareto(2.5)),
    ("pareto 1.5", pareto(1.5)),
    ("5 % of 8 times", bimodal(0.05, 8)),
    ("0.5 % of 8 times", bimodal(0.005, 8)),
    ("AR(1)", ar1()),
    ("of whole ms", quantised(1.0)),
]


def judge(program, how, durations):
    lines, t = ["["], 0
    for d in durations:
        us = max(1, int(d * 1000))
        lines.append('{"ph":"X","name":"step","ts":%d,"dur":%d},' % (t, us))
        t += us
    lines.append('{"ph":"i","name":"end","ts":%d}]' % t)
    out = subprocess.run([program, "-q", how, "-"], text=True,
                         input="\n".join(lines), capture_output=True,
                         timeout=120).stdout
    verdict = [line for line in out.splitlines()
               if line.startswith("verdict")][-1]
    return dict(f.split("=", 1) for f in verdict.split("\t")[1:])


def main():
    program = sys.argv[1]
    streams, steps, seed = (
        int(a) for a in (sys.argv[2:] + ["20", "10000", "1"][len(sys.argv) - 2:]))
    for how in ("--file", "--live"):
        for name, draw in SHAPES:
            r = random.Random("%d %s" % (seed, name))
            opened = called = expected = 0
            why = {}
            for _ in range(streams):
                v = judge(program, how, [draw(r) for _ in range(steps)])
                opened += int(v["openings"])
                expected += float(v["expected"])
                called += v["result"] == "anomaly"
                if v["result"] == "anomaly":
                    why[v["reason"]] = why.get(v["reason"], 0) + 1
            million = streams * steps / 1e6
            print("rate\tshape=%s\tmode=%s\topenings=%.0f\tstated=%.0f\t"
                  "anomalies=%d\tn=%d%s" %
                  (name, how[2:], opened / million, expected / million,
                   called, streams,
                   "".join("\t%s=%d" % p for p in sorted(why.items()))),
                  flush=True)


main()
