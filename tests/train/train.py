#!/usr/bin/env python3
"""Training runs with known faults, recorded through straightedge.py.

    train.py -o run.fp [--flip STEP] [--race] [--steps N] [--save-grad FILE]
    train.py -o run.{rank}.fp --replicas N [--corrupt RANK]
    train.py --shards N -o DIR

--flip turns over bit 20 of element [13,40] of the gradient of
blocks.1.fc2.weight at a step. --race sums the parts of one layer in the order
in which threads happen to finish. --replicas starts N processes that train
data-parallel over gloo on the same batch; --corrupt adds one bit to the
weights of a rank at step 5. --shards writes one model cut into N parts, half
of its tensors by rows and half by columns, as fpdump's live tensors.
"""
import argparse
import io
import os
import sys
import threading

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "..", "lib", "python"))
import straightedge  # noqa: E402

WIDTH, BATCH = 32, 16


class Racy(torch.autograd.Function):
    """A sum over parts in the order in which threads finish."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        parts, lock = [], threading.Lock()

        def part(i):
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


class Model(torch.nn.Module):
    def __init__(self, race=False):
        super().__init__()
        self.embed = torch.nn.Embedding(WIDTH, WIDTH)
        self.blocks = torch.nn.Sequential(Block(False), Block(race))
        self.head = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.head(self.blocks(self.embed(x)))


def batch(step):
    g = torch.Generator().manual_seed(step)
    x = torch.randint(WIDTH, (BATCH,), generator=g)
    return x, (5 * x + 3) % WIDTH


def flip(model, args, step):
    grad = model.blocks[1].fc2.weight.grad
    if step == args.flip:
        grad.numpy().view(numpy.uint32)[13, 40] ^= 1 << 20
    if args.save_grad and step == 37:
        numpy.save(args.save_grad, grad.numpy())


def train(args, recorder, model, average=None, corrupt=False):
    sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    recorder.hook(model, gradients=False)
    named = list(model.named_parameters())
    recorder.hook_optimizer(sgd, {id(p): n for n, p in named})
    for step in range(args.steps):
        if corrupt and step == 5:
            with torch.no_grad():
                model.head.weight.numpy().view(numpy.uint32)[3, 4] ^= 1 << 20
        x, y = batch(step)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        sgd.zero_grad()
        loss.backward()
        flip(model, args, step)
        if average:
            average(model)
        for name, p in reversed(named):
            recorder.tensor(name, p.grad, io="grad", phase="bwd")
        recorder.tensor("loss", loss, io="out", phase="fwd")
        sgd.step()


def replica(rank, args):
    import torch.distributed as dist
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    meet = os.path.abspath(args.output).replace("{rank}", "meet")
    dist.init_process_group("gloo", rank=rank, world_size=args.replicas,
                            init_method=f"file://{meet}")
    torch.manual_seed(2026)
    model = Model()

    def average(m):
        for p in m.parameters():
            dist.all_reduce(p.grad)
            p.grad /= args.replicas

    with straightedge.record(args.output, static=True, inputs="replicated",
                             coordinates={"dp": rank}) as r:
        train(args, r, model, average, corrupt=rank == args.corrupt)
    dist.destroy_process_group()


def shards(args):
    torch.manual_seed(2026)
    tensors = {n: p.detach() for n, p in Model().named_parameters()
               if p.dim() == 2}
    for i in range(args.shards):
        with open(os.path.join(args.output, f"part{i}.live"), "wb") as f:
            for k, (name, t) in enumerate(sorted(tensors.items())):
                dim = k % 2
                size = t.shape[dim] // args.shards
                part = t.narrow(dim, i * size, size).contiguous()
                offset = [0, 0]
                offset[dim] = i * size
                image = io.BytesIO()
                numpy.save(image, part.numpy())
                f.write(f"@\tname={name}\tglobal={t.shape[0]},{t.shape[1]}"
                        f"\toffset={offset[0]},{offset[1]}\n".encode())
                f.write(image.getvalue())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-o", "--output", required=True)
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--flip", type=int)
    p.add_argument("--race", action="store_true")
    p.add_argument("--save-grad")
    p.add_argument("--replicas", type=int)
    p.add_argument("--corrupt", type=int)
    p.add_argument("--shards", type=int)
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if args.shards:
        shards(args)
    elif args.replicas:
        torch.multiprocessing.spawn(replica, (args,), args.replicas)
    else:
        torch.manual_seed(2026)
        with straightedge.record(args.output, static=True) as r:
            train(args, r, Model(args.race))


if __name__ == "__main__":
    main()
