#!/usr/bin/env python3
"""Cost of straightedge.py on a training step.

usage: hook.py modules|operators ROUNDS [SECONDS]

Trains two equal models in turn, one of them recorded, and prints the seconds
of each step of the pair: "recorded plain", ROUNDS lines, fewer if SECONDS are
over. The order within a pair changes every round. A comment says what a step
is and how fast this machine's BLAS is: the cost is that of hashing some MB, so
its share depends on both.

The step: forward, backward and AdamW of a transformer of 2 layers, width 256,
on 8 sequences of 32 tokens, one thread; every module is hooked, with inputs,
outputs, parameters, gradients and optimizer state.
"""
import os
import sys
import tempfile
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib", "python"))
import straightedge  # noqa: E402

WIDTH, LAYERS, HEADS, WORDS = 256, 2, 4, 512
BATCH, LENGTH = 8, 32


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS)
        self.head = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, x):
        return self.head(self.layers(self.embed(x)))


class Trainee:
    def __init__(self):
        torch.manual_seed(1)
        self.model = Model()
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(
            self.model(x).flatten(0, 1), y.flatten())
        loss.backward()
        self.optimizer.step()


def seconds(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def blas():
    """GFlop/s of a product like those of the model."""
    a, b = torch.randn(BATCH * LENGTH, WIDTH), torch.randn(WIDTH, 4 * WIDTH)
    best = min(seconds(lambda: a @ b) for _ in range(7))
    return 2e-9 * a.shape[0] * WIDTH * 4 * WIDTH / best


def volume(path):
    """Records and MB hashed in the steps of a stream."""
    sizes = [int(line.split("\tbytes=")[1].split("\t")[0])
             for line in open(path) if line.startswith("fp\t")]
    return len(sizes), sum(sizes) / 1e6


def describe(x, y):
    """One recorded step, looked at."""
    one = Trainee()
    with tempfile.NamedTemporaryFile(suffix=".fp") as f:
        with straightedge.record(f.name) as r:
            r.hook(one.model, one.optimizer)
            one.step(x, y)
        records, size = volume(f.name)
    print(f"# a step: 2-layer transformer, width {WIDTH}, "
          f"{BATCH * LENGTH} tokens, AdamW, 1 thread; BLAS {blas():.1f} "
          f"GFlop/s; {records} records of {size:.0f} MB at module boundaries")


def main():
    what, rounds = sys.argv[1], int(sys.argv[2])
    until = time.monotonic() + float(sys.argv[3] if sys.argv[3:] else "inf")
    torch.set_num_threads(1)
    plain, seen = Trainee(), Trainee()
    recorder = straightedge.record(os.devnull)
    if what == "modules":
        recorder.hook(seen.model, seen.optimizer)
    x, y = torch.randint(WORDS, (2, BATCH, LENGTH))
    describe(x, y)

    def recorded():
        if what == "modules":
            seen.step(x, y)
            return
        with recorder.operators():
            seen.step(x, y)

    def not_recorded():
        plain.step(x, y)

    for _ in range(3):
        not_recorded()
        recorded()
    for i in range(rounds):
        if time.monotonic() > until:
            break
        first, second = ((recorded, not_recorded) if i % 2 else
                         (not_recorded, recorded))
        t = {first: seconds(first), second: seconds(second)}
        print(t[recorded], t[not_recorded], flush=True)
    recorder.close()


if __name__ == "__main__":
    main()
