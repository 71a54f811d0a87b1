#!/usr/bin/env python3
"""The demo's training run: a small next-symbol model, trained on the CPU.

Writes every boundary of every step to standard output as live tensors
(a line "@ TAB key=value ..." and one .npy image each), for fpdump:

    make.py        | fpdump -z -o good.fp.gz -
    make.py --flip | fpdump -z -o bad.fp.gz -

--flip turns over one bit (bit 20, a mantissa bit) of one element of one
gradient at step 37. --loss FILE writes the loss as CSV, --save FILE the
gradient of that boundary and step as .npy.

--trace FILE.gz writes no tensors but PyTorch's own profile of some steps, in
which the data of one comes late.
"""
import argparse
import io
import sys
import time

import numpy
import torch

STEPS, FLIP_STEP, FLIP_NAME = 60, 37, "blocks.1.fc2.weight"
FLIP_ROW, FLIP_COL, FLIP_BIT = 13, 40, 20
TRACE_STEPS, LATE_STEP, LATE_S = 20, 14, 0.04
SYMBOLS, WIDTH, CONTEXT, BATCH = 32, 32, 8, 16


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.fc2 = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.fc2(torch.relu(self.fc1(x)))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(SYMBOLS, WIDTH)
        self.blocks = torch.nn.Sequential(Block(), Block())
        self.head = torch.nn.Linear(WIDTH, SYMBOLS)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x).mean(dim=1)))


def profiled(path):
    """The same training under the profiler. Its first steps warm up."""
    model = Model()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    part = torch.profiler.record_function
    watch = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=5, warmup=5, active=TRACE_STEPS),
        on_trace_ready=lambda p: p.export_chrome_trace(path))
    with watch:
        for step in range(-10, TRACE_STEPS):
            with part("data"):
                x, y = batch(step + 10)
                if step == LATE_STEP:
                    time.sleep(LATE_S)
            with part("forward"):
                loss = torch.nn.functional.cross_entropy(model(x), y)
            with part("backward"):
                sgd.zero_grad()
                loss.backward()
            with part("optimizer"):
                sgd.step()
            watch.step()


def emit(name, io_, phase, step, tensor):
    """One live tensor: the line, then the .npy image."""
    keys = f"name={name}\tstep={step}\tphase={phase}\trank=0\tio={io_}"
    image = io.BytesIO()
    numpy.save(image, tensor.detach().contiguous().numpy())
    sys.stdout.buffer.write(f"@\t{keys}\n".encode() + image.getvalue())


def batch(step):
    """Symbols follow x[i+1] = 5 x[i] + 3 mod SYMBOLS from a seeded start."""
    g = torch.Generator().manual_seed(step)
    x = torch.randint(SYMBOLS, (BATCH, 1), generator=g)
    for _ in range(CONTEXT):
        x = torch.cat([x, (5 * x[:, -1:] + 3) % SYMBOLS], dim=1)
    return x[:, :-1], x[:, -1]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--flip", action="store_true")
    p.add_argument("--loss", metavar="FILE")
    p.add_argument("--save", metavar="FILE")
    p.add_argument("--trace", metavar="FILE.gz")
    args = p.parse_args()

    torch.manual_seed(2026)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if args.trace:
        profiled(args.trace)
        return
    model = Model()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = 0

    def watch(name):
        def hook(_module, _inputs, output):
            emit(name, "out", "fwd", step, output)
        return hook

    for name, module in model.named_modules():
        if not list(module.children()):
            module.register_forward_hook(watch(name))

    losses = []
    for step in range(STEPS):
        x, y = batch(step)
        emit("batch", "in", "fwd", step, x)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        emit("loss", "out", "fwd", step, loss)
        losses.append(loss.item())
        sgd.zero_grad()
        loss.backward()
        weights = list(model.named_parameters())
        for name, w in reversed(weights):
            if args.flip and step == FLIP_STEP and name == FLIP_NAME:
                bits = w.grad.numpy().view(numpy.uint32)
                bits[FLIP_ROW, FLIP_COL] ^= 1 << FLIP_BIT
            if args.save and step == FLIP_STEP and name == FLIP_NAME:
                numpy.save(args.save, w.grad.numpy())
            emit(name, "grad", "bwd", step, w.grad)
        sgd.step()
        for name, w in weights:
            emit(name, "param", "opt", step, w)

    if args.loss:
        with open(args.loss, "w") as f:
            f.write("step,loss\n")
            for i, value in enumerate(losses):
                f.write(f"{i},{value:.4f}\n")


if __name__ == "__main__":
    main()
