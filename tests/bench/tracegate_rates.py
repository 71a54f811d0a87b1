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


def steps(draw, r, n, stall=None):
    """One lane of n steps; stall(i) is the number of times it takes."""
    t, out = 0, []
    for i in range(n):
        us = max(1, int(draw(r) * 1000 * (stall(i) if stall else 1)))
        out.append(("step", t, us, 1, ""))
        t += us
    return out


def costs(noise):
    def make(r, n):
        t, out = 0, []
        for _ in range(n):
            tokens = int(2 ** r.uniform(3, 12))
            us = int((2000 + 50 * tokens) * math.exp(noise * r.gauss(0, 1)))
            out.append(("step", t, us, 1, '"tokens":%d' % tokens))
            t += us + 100
        return out
    return make


def ranks(noise, lanes=8):
    def make(r, n):
        t, out = 0, []
        for _ in range(n // lanes):
            each = [int(MS * 1000 * math.exp(noise * r.gauss(0, 1)))
                    for _ in range(lanes)]
            out += [("step", t + k, us, k, "") for k, us in enumerate(each)]
            t += max(each) + 500
        return out
    return make


def arrivals(swing):
    """Poisson, with a rate that swings by so much within a minute."""
    def make(r, n):
        t, out = 0.0, []
        for _ in range(n):
            rate = 100 * math.exp(swing * math.sin(2 * math.pi * t / 60e6))
            t += r.expovariate(rate) * 1e6
            out.append(("step", int(t), 50, 1, ""))
        return out
    return make


def judge(program, options, events):
    lines = ["["]
    for name, ts, us, tid, args in events:
        lines.append('{"ph":"X","name":"%s","ts":%d,"dur":%d,"pid":1,'
                     '"tid":%d,"args":{%s}},' % (name, ts, us, tid, args))
    lines.append('{"ph":"i","name":"end","ts":%d}]' % events[-1][1])
    out = subprocess.run([program, "-q", *options, "-"], text=True,
                         input="\n".join(lines), capture_output=True,
                         timeout=120).stdout
    verdict = [line for line in out.splitlines()
               if line.startswith("verdict")][-1]
    return dict(f.split("=", 1) for f in verdict.split("\t")[1:])


HEALTHY = (
    [(name, [], lambda r, n, d=draw: steps(d, r, n))
     for name, draw in SHAPES]
    + [("--fast, lognormal 0.25", ["--fast"],
        lambda r, n: steps(lognormal(0.25), r, n)),
       ("--cost, noise 0.2", ["--cost=tokens"], costs(0.2)),
       ("--cost, noise 0.5", ["--cost=tokens"], costs(0.5)),
       ("--peers, 8 of noise 0.1", ["--peers=step"], ranks(0.1)),
       ("--peers, 8 of noise 0.25", ["--peers=step"], ranks(0.25)),
       ("--steady, Poisson", ["--steady=step"], arrivals(0)),
       ("--steady, swing 0.3", ["--steady=step"], arrivals(0.3))])


def base_rates(program, streams, n, seed):
    for how in ("--file", "--live"):
        for name, options, make in HEALTHY:
            r = random.Random("%d %s" % (seed, name))
            opened = called = expected = 0
            for _ in range(streams):
                v = judge(program, [how] + options, make(r, n))
                opened += int(v["openings"])
                expected += float(v["expected"])
                called += v["result"] == "anomaly"
            million = streams * n / 1e6
            print("rate\tshape=%s\tmode=%s\topenings=%.0f\tstated=%.0f\t"
                  "anomalies=%d\tn=%d" %
                  (name, how[2:], opened / million, expected / million,
                   called, streams), flush=True)


def recall(program, streams, n, seed):
    """Stalls of several sizes and frequencies among lognormal steps."""
    for times in (1.5, 2, 3, 10):
        for every in (n, 500, 100, 20):
            r = random.Random("%d %g %d" % (seed, times, every))
            found = 0
            for _ in range(streams):
                v = judge(program, ["--file"], steps(
                    lognormal(0.1), r, n,
                    lambda i: times if i % every == every // 2 else 1))
                found += v["result"] == "anomaly" or (
                    every == n and int(v["openings"]) > 0)
            print("recall\ttimes=%g\tevery=%s\tfound=%d\tn=%d" %
                  (times, "once" if every == n else every, found, streams),
                  flush=True)


def main():
    given = [int(a) for a in sys.argv[2:]]
    rest = given + [20, 10000, 1][len(given):]
    base_rates(sys.argv[1], *rest)
    recall(sys.argv[1], *rest)


main()
