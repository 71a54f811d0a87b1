#!/usr/bin/env python3
"""Training runs with known faults, recorded through straightedge.py.

    train.py -o run{run}.fp [--runs N] [--steps N] [--flip STEP]
        [--race | --gather | --tally STEP] [--save-grad FILE]
        [--kill STEP] [--resume STEP]
    train.py -o run.{rank}.fp --replicas N [--corrupt RANK]
        [--where before|after|weight]
    train.py -o DIR --shards [--steps N]
    train.py -o run.fp --cover

--flip turns over bit 20 of element [13,40] of the gradient of
blocks.1.fc2.weight at a step. --kill ends the process with SIGKILL before a
step; --resume records from a step on, as after a restart.

What varies from run to run, by itself:
--race sums the parts of one layer in the order in which threads finish.
--gather looks its embedding up by indexing; the backward pass of that is
index_put_(accumulate=True), which torch does with atomic additions in two
threads. --tally is an evaluation with the same kernel, from a step on; nothing
depends on what it finds.

--replicas starts N processes that train data-parallel over gloo, each on its
own batch; --corrupt turns over a bit in one of them at step 5: in its gradient
before or after the reduction, or in its copy of a weight. --shards trains a
model and saves it cut into 2 and 4 parts by rows and by columns, as fpdump's
live tensors, and once more with a bit of one element of a part turned over.
--cover records two steps of a model with something for every kind of boundary,
and with what a recorder cannot see.
"""
import argparse
import copy
import io
import os
import signal
import sys
import threading
import time

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib", "python"))
import straightedge  # noqa: E402

WIDTH, BATCH = 32, 16
MANY = 8192  # rows of WIDTH that torch divides among threads


class Racy(torch.autograd.Function):
    """A sum over parts in the order in which threads finish."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        parts, lock, start = [], threading.Lock(), threading.Barrier(4)

        def part(i):
            start.wait()
            piece = x[:, i::4] @ weight[:, i::4].t()
            with lock:
                parts.append(piece)
        threads = [threading.Thread(target=part, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        total = torch.zeros_like(parts[0])
        for piece in parts:
            total += piece
        return total

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        return g @ weight, g.t() @ x


class Block(torch.nn.Module):
    def __init__(self, race):
        super().__init__()
        self.fc1 = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.fc2 = torch.nn.Linear(2 * WIDTH, WIDTH)
        self.mix = Mixer() if race else torch.nn.Identity()

    def forward(self, x):
        return x + self.mix(self.fc2(torch.relu(self.fc1(x))))


class Mixer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(
            torch.randn(WIDTH, WIDTH) / WIDTH ** 0.5)

    def forward(self, x):
        return Racy.apply(x, self.weight)


class Gather(torch.nn.Module):
    """An embedding by indexing: of a token and of the one before it."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(WIDTH, WIDTH))

    def forward(self, x):
        return self.weight[x] + self.weight[x.roll(1)]


class Tally(torch.nn.Module):
    """The sum of the features of each class."""

    def forward(self, features, label):
        return torch.zeros(WIDTH, WIDTH).index_put_(
            (label,), features, accumulate=True)


class Model(torch.nn.Module):
    def __init__(self, race=False, gather=False):
        super().__init__()
        self.embed = Gather() if gather else torch.nn.Embedding(WIDTH, WIDTH)
        self.blocks = torch.nn.Sequential(Block(False), Block(race))
        self.head = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)))


def batch(step):
    g = torch.Generator().manual_seed(step)
    x = torch.randint(WIDTH, (BATCH,), generator=g)
    return x, (5 * x + 3) % WIDTH


def large_batch(step):
    """Of one token or label many different rows: their order matters."""
    g = torch.Generator().manual_seed(step)
    return torch.randint(WIDTH, (2, MANY), generator=g)


def turn_over(tensor, at):
    tensor.detach().numpy().view(numpy.uint32)[at] ^= 1 << 20


def faults(model, args, step):
    grad = model.blocks[1].fc2.weight.grad
    if step == args.flip:
        turn_over(grad, (13, 40))
    if args.save_grad and step == 37:
        numpy.save(args.save_grad, grad.numpy())


def evaluate(model, tally, step):
    x, y = large_batch(1000 + step)
    model.eval()
    with torch.no_grad():
        features = model.blocks(model.embed(x))
        features += torch.randn(features.shape,
                                generator=torch.Generator().manual_seed(step))
        for shift in range(4):
            tally(features, y.roll(shift))
    model.train()


def record_from_here(recorder, model, sgd, step):
    recorder.hook(model, gradients=False)
    recorder.hook_optimizer(sgd, {id(p): n for n, p in
                                  model.named_parameters()})
    recorder.step = step


def die(args):
    """kill -9, when what was recorded so far is in the file."""
    size = -1
    while os.path.getsize(args.output) != size:
        size = os.path.getsize(args.output)
        time.sleep(1.5)  # the writer wakes every second
    os.kill(os.getpid(), signal.SIGKILL)


def train(args, recorder, model):
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    named = list(model.named_parameters())
    tally = Tally()
    recorder.hook(tally)
    for step in range(args.steps):
        if step == args.resume:
            record_from_here(recorder, model, sgd, step)
        if step == args.kill:
            die(args)
        if args.tally is not None and step >= args.tally:
            evaluate(model, tally, step)
        x, y = (large_batch if args.gather else batch)(step)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        sgd.zero_grad()
        loss.backward()
        faults(model, args, step)
        if step >= args.resume:
            for name, p in reversed(named):
                recorder.tensor(name, p.grad, io="grad", phase="bwd")
            recorder.tensor("loss", loss, io="out", phase="fwd")
        sgd.step()


def runs(args):
    for run in range(args.runs):
        torch.manual_seed(2026)
        path = args.output.replace("{run}", str(run))
        with straightedge.record(path, static=True) as r:
            train(args, r, Model(args.race, args.gather))


# ---- everything there is to see -------------------------------------------

class Attend(torch.nn.Module):
    """Takes a keyword, has buffers, returns a dict with an object in it."""

    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x, mask=None):
        return {"y": self.norm(self.lin(x)) * mask, "object": object()}


class Covered(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(8, 4, sparse=True)
        self.attend = Attend()
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x):
        y = self.attend(self.embed(x), mask=torch.ones(6, 4))["y"]
        return self.head(y)


def cover(args):
    torch.manual_seed(2026)
    model = Covered()
    adam = torch.optim.Adam([p for n, p in model.named_parameters()
                             if n != "embed.weight"])
    with straightedge.record(args.output, static=True) as r:
        r.hook(model, adam)
        copy.deepcopy(model)
        for _ in range(2):
            adam.zero_grad()
            model(torch.arange(6)).square().sum().backward()
            adam.step()


# ---- data-parallel --------------------------------------------------------

def replica(rank, args):
    import torch.distributed as dist
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    meet = os.path.abspath(args.output).replace("{rank}", "meet")
    dist.init_process_group("gloo", rank=rank, world_size=args.replicas,
                            init_method=f"file://{meet}")
    torch.manual_seed(2026)
    model = Model()
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def fault(step, where, tensor):
        if rank == args.corrupt and step == 5 and where == args.where:
            turn_over(tensor, (3, 4))

    with straightedge.record(args.output, static=True,
                             coordinates={"dp": rank}) as r:
        r.hook(model, sgd, replicated="dp")
        for step in range(args.steps):
            fault(step, "weight", model.head.weight)
            x, y = batch(step * args.replicas + rank)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            sgd.zero_grad()
            loss.backward()
            fault(step, "before", model.head.weight.grad)
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= args.replicas
            fault(step, "after", model.head.weight.grad)
            for name, p in model.named_parameters():
                r.tensor(name, p.grad, io="grad", phase="opt",
                         replicated="dp")
            sgd.step()
    dist.destroy_process_group()


# ---- sharded saves --------------------------------------------------------

def save_part(f, name, whole, dim, offset, part):
    image, at = io.BytesIO(), [0, 0]
    at[dim] = offset
    numpy.save(image, part.numpy())
    f.write(f"@\tname={name}\tglobal={whole[0]},{whole[1]}"
            f"\toffset={at[0]},{at[1]}\n".encode())
    f.write(image.getvalue())


def shards(args):
    torch.manual_seed(2026)
    model = Model()
    with straightedge.record(os.devnull) as r:
        train(args, r, model)
    tensors = sorted((n, p.detach()) for n, p in model.named_parameters()
                     if p.dim() == 2)
    for save, parts, dim, change in (
            ("rows2", 2, 0, None), ("rows4", 4, 0, None),
            ("columns2", 2, 1, None), ("columns4", 4, 1, None),
            ("changed", 4, 1, 2)):
        os.mkdir(os.path.join(args.output, save))
        for i in range(parts):
            path = os.path.join(args.output, save, f"part{i}.live")
            with open(path, "wb") as f:
                for name, t in tensors:
                    size = t.shape[dim] // parts
                    part = t.narrow(dim, i * size, size).clone()
                    if i == change and name == "blocks.1.fc2.weight":
                        turn_over(part, (3, 4))
                    save_part(f, name, t.shape, dim, i * size, part)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-o", "--output", required=True)
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--flip", type=int)
    p.add_argument("--race", action="store_true")
    p.add_argument("--gather", action="store_true")
    p.add_argument("--tally", type=int)
    p.add_argument("--kill", type=int)
    p.add_argument("--resume", type=int, default=0)
    p.add_argument("--cover", action="store_true")
    p.add_argument("--save-grad")
    p.add_argument("--replicas", type=int)
    p.add_argument("--corrupt", type=int)
    p.add_argument("--where", choices=("before", "after", "weight"))
    p.add_argument("--shards", action="store_true")
    args = p.parse_args()
    varies = args.gather or args.tally is not None
    torch.set_num_threads(2 if varies else 1)
    torch.use_deterministic_algorithms(not varies)
    if args.cover:
        cover(args)
    elif args.shards:
        shards(args)
    elif args.replicas:
        # fork: torch is imported once for all
        torch.multiprocessing.start_processes(
            replica, (args,), args.replicas, start_method="fork")
    else:
        runs(args)


if __name__ == "__main__":
    main()
