#!/usr/bin/env python3
"""Traces of known causes for tracegate classify.

    trace_causes.py DIR [SEED] [CASE...]

Writes DIR/CASE-RANK.json for these cases, or for all; a line on stdout for
each: CASE EXPECTED FILE...

Each cause of tracegate/rules/causes has a trace in which it is injected, and
near relatives (CASE-not-...) in which something else is: there no cause may be
named. EXPECTED is `cause:NAME`, `reason:CODE`, `unknown` (any reason) or `none`
(no slow period).
"""
import json
import random
import sys

STEPS = 70
SLOW = (20, 31, 45)


class Rank:
    """One process: a main thread, a helper thread, streams, in us."""

    def __init__(self, rank=0, world=1, seed=1, chrome=False):
        self.rank, self.world, self.chrome = rank, world, chrome
        self.rnd = random.Random(seed * 1000 + rank)
        self.t = 1000.0
        self.stream = {}
        self.corr = 1
        self.ev = []

    def add(self, name, cat, ts, dur, tid=1, pid=1, **args):
        e = {"ph": "X", "name": name, "cat": cat, "ts": round(ts, 3),
             "dur": round(dur, 3), "pid": pid, "tid": tid}
        if args:
            e["args"] = args
        self.ev.append(e)

    def raw(self, **e):
        self.ev.append(e)

    def op(self, name, dur, cat="cpu_op", **args):
        """On the main thread, which it keeps busy."""
        self.add(name, cat, self.t, dur, **args)
        self.t += dur

    def idle(self, dur):
        self.t += dur

    def counter(self, name, value):
        self.raw(ph="C", name=name, ts=self.t, pid=1, args={"value": value})

    def instant(self, name):
        self.raw(ph="i", name=name, ts=self.t, pid=1, tid=1, s="t")

    def device(self, corr, name, dur, stream, cat, ts=None, **args):
        begin = max(self.t + 5, self.stream.get(stream, 0.0) + 1)
        if ts is not None:
            begin = ts
        self.add(name, cat, begin, dur, tid=stream, pid=0, correlation=corr,
                 stream=stream, **args)
        self.stream[stream] = begin + dur
        return begin

    def launch(self, name, dur, stream=7, cat="kernel", n=1, **args):
        call = {"gpu_memcpy": "cudaMemcpyAsync"}.get(cat, "cudaLaunchKernel")
        if n > 1:
            call = "cudaGraphLaunch"
        corr, self.corr = self.corr, self.corr + 1
        self.op(call, 8, "cuda_runtime", correlation=corr)
        for i in range(n):
            self.device(corr, name if n == 1 else name % i, dur, stream, cat,
                        **args)

    def sync(self, stream=7):
        corr, self.corr = self.corr, self.corr + 1
        end = max(self.t + 4, self.stream.get(stream, 0.0) + 3)
        self.add("cudaStreamSynchronize", "cuda_runtime", self.t, end - self.t,
                 correlation=corr)
        self.add("Stream Sync", "cuda_sync", self.t, end - self.t, pid=0,
                 tid=stream + 1000000, correlation=corr, stream=stream)
        self.t = end

    def write(self, path):
        if self.chrome:
            doc = self.ev
        else:
            end = {"ph": "i", "name": "Record Window End", "s": "g",
                   "ts": self.t + 1, "pid": "", "tid": ""}
            doc = {"schemaVersion": 1, "traceEvents": self.ev + [end]}
            if self.world > 1:
                doc["distributedInfo"] = {"backend": "nccl",
                                          "rank": self.rank,
                                          "world_size": self.world}
        with open(path, "w") as f:
            json.dump(doc, f)


# ---- programs ----------------------------------------------------------------

KERNELS = ("sgemm_128x64", "softmax", "layer_norm", "gelu", "sgemm_64x64")


def train_step(r, i, slow, load=900, scale=1.0, before=None, inside=None,
               kernels=10, comm=None):
    begin = r.t
    if before and slow:
        before(r)
    r.op("dataloader", load * (1 + r.rnd.random() / 20), "python_function")
    if inside and slow:
        inside(r)
    for k in range(kernels):
        r.op("aten::op", 60)
        r.launch(KERNELS[k % 5], (700 + 40 * (k % 5)) * scale *
                 (1 + r.rnd.random() / 50))
    if comm:
        comm(r, i, slow)
    r.sync()
    if comm:
        r.sync(20)
    r.add("ProfilerStep#%d" % i, "user_annotation", begin, r.t - begin)
    r.idle(50)


def train(seed, slow=SLOW, gap=None, steps=STEPS, **kw):
    r = Rank(seed=seed)
    for i in range(steps):
        if gap and i in slow:
            gap(r)
        train_step(r, i, i in slow, **kw)
    return [r]


def serve_step(r, i, slow, inside=None, tokens=None, kv=0.4, graph=True,
               eager=False, more=0, waiting=0, phase=None):
    begin = r.t
    n = tokens(r, slow) if tokens else 64
    r.counter("kv_cache_usage", kv(slow) if callable(kv) else kv)
    r.counter("num_requests_waiting", waiting)
    r.op("schedule", 300)
    if inside and slow:
        inside(r)
    if graph and not (eager and slow):
        r.launch("decode_kernel_%d", 300, n=20)
    for k in range(20 if eager and slow else more if slow else 2):
        r.launch("decode_kernel_%d" % (k % 20), 300)
        if eager and slow:
            r.op("aten::eager", 1200)
    if phase:
        phase(r, slow)
    r.sync()
    r.op("sample", 200 + 20 * r.rnd.random())
    r.op("detokenize", 100)
    r.add("execute_model", "user_annotation", begin, r.t - begin,
          new_tokens=n)
    r.idle(40 + 20 * r.rnd.random())


def serve(seed, slow=SLOW, gap=None, steps=STEPS, **kw):
    r = Rank(seed=seed)
    for i in range(steps):
        if gap and i in slow:
            gap(r)
        serve_step(r, i, i in slow, **kw)
    return [r]


def job(seed, world=4, steps=STEPS, slow=SLOW, delay=None, comm=1000,
        comm_slow=None, keep=None, step=None):
    """Ranks that meet in an all-reduce each step; delay(rank, step): us."""
    ranks = [Rank(k, world, seed) for k in range(world)]
    for i in range(steps):
        begins, starts = [r.t for r in ranks], []
        for r in ranks:
            r.op("dataloader", 900, "python_function")
            d = delay(r.rank, i) if delay and i in slow else 0
            if d:
                (step or (lambda x, us: x.op("aten::slow", us)))(r, d)
            for k in range(8):
                r.op("aten::op", 60)
                r.launch(KERNELS[k % 5], 600)
            starts.append(max(r.t, r.stream[7]) + 10)
        dur = comm_slow if comm_slow and i in slow else comm
        end = max(starts) + dur
        for r, s in zip(ranks, starts):
            corr, r.corr = r.corr, r.corr + 1
            r.op("cudaLaunchKernel", 8, "cuda_runtime", correlation=corr)
            r.device(corr, "ncclDevKernel_AllReduce_Sum_f32", end - s, 20,
                     "kernel", s, **{"Group size": world})
            r.sync(20)
            r.add("ProfilerStep#%d" % i, "user_annotation", begins[r.rank],
                  r.t - begins[r.rank])
            r.idle(50)
        for r in ranks:
            r.t = max(x.t for x in ranks)
    return ranks[:keep or world]


# ---- what is injected -----------------------------------------------------

def op(name, us, cat="python_function", **args):
    return lambda r: r.op(name, us, cat, **args)


def beside(name, us, cat="python_function"):
    """On the helper thread, while the main thread is held by nothing named."""
    def f(r):
        r.add(name, cat, r.t, us, tid=9)
        r.op("aten::unnamed", us)
    return f


def within(name, inner, us):
    """The path is in the inner one; the outer one names it."""
    def f(r):
        begin = r.t
        r.op(inner, us)
        r.add(name, "python_function", begin, us + 1)
        r.idle(2)
    return f


def small_kernels(n, dur):
    def f(r):
        for _ in range(n):
            r.op("aten::tiny", 60)
            r.launch("tiny_kernel", dur)
    return f


def prefill(r, slow):
    r.op("prefill", 60000 if slow else 400)


def preempted(r, slow):
    if slow:
        r.instant("PREEMPTED")
    prefill(r, slow)


def copy(us, size):
    def f(r):
        r.launch("Memcpy HtoD (Pageable -> Device)", us, cat="gpu_memcpy",
                 bytes=size)
    return f


def with_copy(seed, us, size):
    r = Rank(seed=seed)
    for i in range(STEPS):
        slow = i in SLOW
        train_step(r, i, True, inside=copy(us if slow else 400,
                                           size if slow else 1 << 20))
    return [r]


def lock(wake):
    def f(r):
        t = r.t
        r.op("futex", 60000, "wait", on="0x7f01")
        r.add("holder", "cpu_op", t, 59900, tid=5)
        if wake:
            r.add("futex", "wake", t + 59900, 60, tid=5, on="0x7f01")
    return f


def throttle(seed, names):
    r = Rank(seed=seed)
    for i in range(STEPS):
        slow = 20 <= i < 26
        begin = r.t
        r.op("dataloader", 900, "python_function")
        for k in range(10):
            name = KERNELS[k % 5]
            r.op("aten::op", 60)
            r.launch(name, 1500 * (names.get(name, names.get("*", 1))
                                   if slow else 1))
        r.sync()
        r.add("ProfilerStep#%d" % i, "user_annotation", begin, r.t - begin)
        r.idle(50)
    return [r]


def regular(seed, by_time, us=200000, engine=True):
    """Steps of uneven length, and pauses at even times or at even steps."""
    r = Rank(seed=seed)
    due, i = 800000.0, 0
    while i < 240:
        pause = r.t > due if by_time else i and i % 30 == 0
        if pause:
            due = r.t + 700000
            r.idle(us)
        # Slow and fast stretches, so that steps and time differ.
        serve_step(r, i, False) if engine else train_step(r, i, False)
        r.idle(1000)
        if (i // 25) % 2:
            serve_step(r, i, True, inside=op("aten::pad", 6000, "cpu_op"))
        i += 1
    return [r]


def api(seed, engine_slow):
    r = Rank(seed=seed)
    for i in range(STEPS):
        slow = i in SLOW
        begin = r.t
        wait = 90000 if slow else 1000
        r.add("queue_wait", "python_function", begin, wait)
        t, step = begin, 40000 if slow and engine_slow else 500
        while t + step <= begin + wait:
            r.add("execute_model", "cpu_op", t, step - 50, tid=4)
            t += step
        r.t = begin + wait
        r.op("tokenize", 300)
        r.add("request_process", "python_function", begin, r.t - begin)
        r.idle(30)
    return [r]


def hang(seed, ranks, silent):
    out = [Rank(k, 4, seed, chrome=True) for k in range(4)]
    for r in out:
        for i in range(30):
            last = i == 29
            lane = {"pid": 1, "tid": 1}
            r.raw(ph="B", name="train_step#%d" % i, cat="step", ts=r.t, **lane)
            r.op("forward", 4000)
            r.op("all_reduce", 500 if not last else 100)
            if last and not (silent and r.rank == 2):
                for _ in range(20):
                    r.add("heartbeat", "cpu_op", r.t, 100, tid=3)
                    r.t += 50000
            if not last:
                r.raw(ph="E", ts=r.t, **lane)
                r.idle(50)
    return out[:ranks]


def changing(rank, i):
    return 40000 if rank == {SLOW[0]: 1, SLOW[1]: 3, SLOW[2]: 0}[i] else 0


def fixed(rank, i):
    return 40000 if rank == 2 else 0


def pause(us):
    return lambda r: r.idle(us)


def gc_step(r, us):
    r.op("gc: collect generation 2", us, "python_function")


MB = 1 << 20
CASES = {
    "none": ("none", lambda s: train(s, slow=())),
    "gc-pause": ("cause:gc-pause", lambda s: serve(
        s, gap=op("gc: collect generation 2", 200000))),
    "gc-pause-silent": ("cause:gc-pause", lambda s: regular(s, True)),
    "gc-pause-rank": ("cause:gc-pause", lambda s: job(
        s, delay=fixed, step=gc_step)),
    "gc-pause-not-steps": ("unknown", lambda s: regular(s, False)),
    "gc-pause-not-once": ("reason:missing", lambda s: serve(
        s, slow=(30,), gap=pause(200000))),
    "gc-pause-not-beside": ("unknown", lambda s: serve(
        s, inside=beside("gc: collect generation 2", 60000))),
    "long-prefill": ("cause:long-prefill", lambda s: serve(
        s, tokens=lambda r, slow: 4096 if slow else 64, phase=prefill)),
    "long-prefill-not-tokens": ("reason:no-match", lambda s: serve(
        s, phase=prefill)),
    "long-prefill-not-recorded": ("reason:missing", lambda s: strip(
        serve(s, phase=prefill), "new_tokens")),
    "preemption": ("cause:preemption", lambda s: serve(
        s, tokens=lambda r, slow: 4096 if slow else 64, phase=preempted,
        kv=lambda slow: 0.97 if slow else 0.8)),
    "preemption-not-kv": ("reason:no-match", lambda s: serve(
        s, tokens=lambda r, slow: 4096 if slow else 64, phase=preempted)),
    "tokenizer": ("cause:tokenizer", lambda s: serve(
        s, inside=op("detokenize", 60000))),
    "tokenizer-not-beside": ("unknown", lambda s: serve(
        s, inside=beside("detokenize", 60000))),
    "api-loop": ("cause:api-loop", lambda s: api(s, False)),
    "api-loop-not-engine": ("unknown", lambda s: api(s, True)),
    "jit-compile": ("cause:jit-compile", lambda s: train(
        s, slow=(20,), inside=op("torch/_inductor: compile", 3000000))),
    "jit-compile-not-beside": ("unknown", lambda s: train(
        s, slow=(20,), inside=beside("torch/_inductor: compile", 3000000))),
    "graph-fallback": ("cause:graph-fallback", lambda s: serve(s, eager=True)),
    "graph-fallback-not-graph": ("unknown", lambda s: serve(
        s, more=60)),
    "hidden-sync": ("cause:hidden-sync", lambda s: hidden(s, True)),
    "hidden-sync-not-kernel": ("unknown", lambda s: train(
        s, inside=lambda r: r.launch("sgemm_128x64", 60000))),
    "allocator": ("cause:allocator", lambda s: train(
        s, inside=op("cudaMalloc", 60000, "cuda_runtime"))),
    "allocator-not-beside": ("unknown", lambda s: train(
        s, inside=beside("cudaMalloc", 60000, "cuda_runtime"))),
    "launch-bound": ("cause:launch-bound", lambda s: train(
        s, inside=small_kernels(600, 5))),
    "launch-bound-not-device": ("unknown", lambda s: train(
        s, inside=small_kernels(600, 150))),
    "straggler": ("cause:straggler", lambda s: job(s, delay=fixed)),
    "straggler-not-all": ("reason:missing", lambda s: job(
        s, delay=fixed, keep=3)),
    "network": ("cause:network", lambda s: job(s, comm_slow=60000)),
    "network-not-one": ("reason:missing", lambda s: job(
        s, comm_slow=60000, keep=1)),
    "dataloader": ("cause:dataloader", lambda s: train(
        s, inside=op("dataloader", 60000))),
    "dataloader-within": ("cause:dataloader", lambda s: train(
        s, inside=within("dataloader", "aten::read", 60000))),
    "dataloader-not-beside": ("unknown", lambda s: train(
        s, inside=beside("dataloader worker", 60000))),
    "checkpoint": ("cause:checkpoint", lambda s: train(
        s, slow=(19, 39, 59), gap=op("save_checkpoint", 150000))),
    "checkpoint-not-named": ("reason:missing", lambda s: train(
        s, slow=(19, 39, 59), gap=pause(150000))),
    "cpu-preempt": ("cause:cpu-preempt", lambda s: train(
        s, inside=op("off-cpu R", 29000, "sched"))),
    "cpu-preempt-not-sleep": ("unknown", lambda s: train(
        s, inside=op("off-cpu S", 29000, "wait"))),
    "lock": ("cause:lock", lambda s: train(s, inside=lock(True))),
    "lock-not-released": ("unknown", lambda s: train(s, inside=lock(False))),
    "throttle": ("cause:throttle", lambda s: throttle(s, {"*": 2.4})),
    "throttle-not-one": ("unknown", lambda s: throttle(
        s, {"sgemm_64x64": 12})),
    "page-cache": ("cause:page-cache", lambda s: with_copy(s, 60000, MB)),
    "page-cache-not-more": ("reason:no-match", lambda s: with_copy(
        s, 60000, 150 * MB)),
    "kv-transfer": ("cause:kv-transfer", lambda s: serve(
        s, inside=op("decode_bootstrap", 80000))),
    "kv-transfer-not-beside": ("unknown", lambda s: serve(
        s, inside=beside("decode_bootstrap", 80000))),
    "profiler": ("cause:profiler", lambda s: train(
        s, slow=(20, 24), gap=op("vllm: stop_profile", 2000000))),
    "profiler-not-beside": ("unknown", lambda s: train(
        s, slow=(20,), inside=beside("vllm: stop_profile", 2000000))),
    "imbalance": ("cause:imbalance", lambda s: job(s, delay=changing)),
    "hang": ("cause:hang", lambda s: hang(s, 4, True)),
    "hang-not-all": ("unknown", lambda s: hang(s, 4, False)),
    "hang-not-ranks": ("reason:missing", lambda s: hang(s, 1, True)),
}


def strip(ranks, key):
    for r in ranks:
        for e in r.ev:
            e.get("args", {}).pop(key, None)
    return ranks


def hidden(seed, slow):
    """Copies that wait: the host no longer runs ahead of the device."""
    r = Rank(seed=seed)
    for i in range(STEPS):
        begin = r.t
        r.op("dataloader", 900, "python_function")
        for k in range(10):
            r.op("aten::op", 900)
            for stream in 7, 8:
                r.launch(KERNELS[k % 5], 950, stream)
                if slow and i in SLOW:
                    r.sync(stream)
        r.sync(7)
        r.sync(8)
        r.add("ProfilerStep#%d" % i, "user_annotation", begin, r.t - begin)
        r.idle(50)
    return [r]


def main(folder, seed="1", *cases):
    for case in cases or CASES:
        expected, make = CASES[case]
        line = [case, expected]
        for r in make(int(seed)):
            line.append("%s/%s-%d.json" % (folder, case, r.rank))
            r.write(line[-1])
        print(*line)


main(*sys.argv[1:])
