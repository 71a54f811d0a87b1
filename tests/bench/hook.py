#!/usr/bin/env python3
"""Cost of straightedge.py on a training step.

usage: hook.py modules|operators ROUNDS

Trains two equal models in turn, one of them recorded, and prints the seconds
of each step of the pair: "recorded plain", ROUNDS lines. The order within a
pair changes every round.
"""
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib", "python"))
import straightedge  # noqa: E402

WIDTH, LAYERS, BATCH = 768, 6, 64


def make():
    torch.manual_seed(1)
    layers = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 16))
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def main():
    what, rounds = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    plain, plain_sgd = make()
    model, sgd = make()
    recorder = straightedge.record(os.devnull)
    if what == "modules":
        recorder.hook(model, sgd)
    x = torch.randn(BATCH, WIDTH)

    def step(m, optimizer):
        optimizer.zero_grad()
        m(x).square().mean().backward()
        optimizer.step()

    def recorded():
        if what == "modules":
            step(model, sgd)
            return
        with recorder.operators():
            step(model, sgd)

    def timed(f):
        start = time.perf_counter()
        f()
        return time.perf_counter() - start

    for _ in range(3):
        step(plain, plain_sgd)
        recorded()
    for i in range(rounds):
        if i % 2:
            a = timed(recorded)
            b = timed(lambda: step(plain, plain_sgd))
        else:
            b = timed(lambda: step(plain, plain_sgd))
            a = timed(recorded)
        print(a, b)
    recorder.close()


if __name__ == "__main__":
    main()
