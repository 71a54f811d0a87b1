#!/usr/bin/env python3
"""Makes PyTorch files and says what is in them.

usage: make_torch.py DIR          everything, with DIR/manifest
       make_torch.py --small DIR  the files that are committed

Needs torch and numpy. The manifest has one line an entry, tab-separated:
file, "fp", name, dtype, shape, bytes, XXH3-128 as `xxhsum -H2` prints it; or
file, "scalar", name, vtype, value; or file, "error", part of the message.
The expected bytes come from torch (torch.load of the file, contiguous, to
numpy), never from our reader; the digests from xxhsum.
"""
import collections
import io
import os
import pickle
import struct
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import torch

warnings.simplefilter("ignore")
torch.manual_seed(7)

DTYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16",
    torch.bfloat16: "bf16", torch.int64: "i64", torch.int32: "i32",
    torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8",
    torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128",
}


def raw(t):
    """Canonical bytes of a tensor: logical C order, little-endian."""
    t = t.detach().resolve_conj().resolve_neg().contiguous().cpu()
    if t.numel() == 0:
        return b""
    if t.dtype == torch.bfloat16:
        t = t.view(torch.int16)
    return t.numpy().tobytes()


class Manifest:
    def __init__(self, top):
        self.top, self.lines, self.payloads = top, [], []

    def fp(self, file, name, dtype, shape, data):
        self.payloads.append(data)
        self.lines.append([file, "fp", name, dtype,
                           ",".join(map(str, shape)), str(len(data)),
                           len(self.payloads) - 1])

    def tensor(self, file, name, t):
        self.fp(file, name, DTYPES[t.dtype], t.shape, raw(t))

    def scalar(self, file, name, vtype, value):
        self.lines.append([file, "scalar", name, vtype, value])

    def error(self, file, text):
        self.lines.append([file, "error", text])

    def write(self):
        digests = []
        for data in self.payloads:
            out = subprocess.run(["xxhsum", "-H2", "-"], input=data,
                                 capture_output=True, check=True).stdout
            digests.append(out.split()[0].decode())
        with open(os.path.join(self.top, "manifest"), "w") as f:
            for line in self.lines:
                if line[1] == "fp":
                    line = line[:6] + [digests[line[6]]]
                f.write("\t".join(line) + "\n")


def text(v):
    """A scalar as (vtype, value)."""
    if v is None:
        return "none", "none"
    if v is True or v is False:
        return "bool", "true" if v else "false"
    if isinstance(v, int):
        return "i64", str(v)
    if isinstance(v, float):
        return "f64", "%g" % v if v == float("%g" % v) else repr(v)
    if isinstance(v, str):
        return "str", v
    raise TypeError(v)


def describe(m, file, obj, path=""):
    """Lines for dicts, lists, tensors and plain values, by their path."""
    def at(key):
        return path + "." + str(key) if path else str(key)
    if isinstance(obj, torch.Tensor):
        m.tensor(file, path, obj)
    elif isinstance(obj, np.ndarray):
        kind = {"f": "f", "i": "i", "u": "u"}[obj.dtype.kind]
        m.fp(file, path, "%s%d" % (kind, obj.dtype.itemsize * 8), obj.shape,
             np.ascontiguousarray(obj).astype(
                 obj.dtype.newbyteorder("<")).tobytes())
    elif isinstance(obj, torch.Size):
        m.scalar(file, path, "size", str(tuple(obj)).replace(" ", ""))
    elif isinstance(obj, dict):
        for k, v in obj.items():
            describe(m, file, v, at(k))
    elif isinstance(obj, (list, tuple)):
        for i, v in enumerate(obj):
            describe(m, file, v, at(i))
    else:
        m.scalar(file, path, *text(obj))


def ramp(dtype, n=12):
    if dtype == torch.bool:
        return torch.arange(n) % 3 == 0
    if dtype.is_complex:
        return torch.complex(torch.arange(n).double() - 3,
                             torch.arange(n).double() * 0.5).to(dtype)
    if dtype.is_floating_point:
        return (torch.randn(n, dtype=torch.float64) * 3).to(dtype)
    return torch.randint(0, 100, (n,)).to(dtype)


def every_dtype():
    return {DTYPES[d]: ramp(d).reshape(3, 4) for d in DTYPES}


def views():
    base = torch.arange(60, dtype=torch.float32)
    m = base.reshape(5, 12)
    tied = torch.randn(4, 3)
    return {
        "base": base, "transposed": m.t(), "column": m[:, 3],
        "offset": base[7:31], "block": m[1:4, 2:9], "step": base[::7],
        "expanded": torch.tensor([1.5, 2.5])[:, None].expand(2, 1000),
        "zero_stride_0d": torch.tensor(4.0).expand(3, 3),
        "permuted": torch.arange(24).reshape(2, 3, 4).permute(2, 0, 1),
        "ones_shape": torch.arange(6).reshape(1, 6, 1).transpose(0, 2),
        "tied_a": tied, "tied_b": tied, "tied_row": tied[1],
        "scalar": torch.tensor(3.25), "empty": torch.empty(0),
        "empty_2d": torch.empty(3, 0, 2, dtype=torch.int64),
        "one": torch.ones(1, 1, 1), "big_t": torch.randn(300, 257).t(),
    }


def training():
    net = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4),
                              torch.nn.Linear(4, 2))
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(2):
        opt.zero_grad()
        net(torch.randn(8, 5)).sum().backward()
        opt.step()
    return {"model": net.state_dict(), "optimizer": opt.state_dict(),
            "epoch": 3, "loss": 0.125, "best": None, "name": "run 1",
            "done": False, "rng": torch.get_rng_state()}


def nested():
    return {"list": [torch.ones(2), (torch.zeros(3), 7)],
            "deep": {"a": {"b": {"c": torch.arange(4)}}},
            "ordered": collections.OrderedDict(x=torch.ones(1), y=2),
            "numpy": np.arange(6, dtype=np.int16).reshape(2, 3),
            "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
            "big_endian": np.arange(4, dtype=">f4"),
            "size": torch.Size([2, 3]),
            "param": torch.nn.Parameter(torch.randn(3))}


def save(path, obj, legacy=False, protocol=2):
    torch.save(obj, path, _use_new_zipfile_serialization=not legacy,
               pickle_protocol=protocol)


# ---- files torch 1.13 does not write ---------------------------------------

class Ref:
    """Pickles as a persistent id."""

    def __init__(self, cls, key, numel):
        self.pid = ("storage", cls, key, "cpu", numel)


class Global:
    """Pickles as a name that need not exist."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    """Pickles as a call of a Global."""

    def __init__(self, func, *args):
        self.func, self.args = func, args


class Object:
    """Pickles as an object of a class that need not exist."""

    def __init__(self, cls, state):
        self.cls, self.state = cls, state


class Pickler(pickle._Pickler):
    def persistent_id(self, obj):
        return obj.pid if isinstance(obj, Ref) else None

    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Global):
            self.write(b"c%s\n%s\n" % (obj.module.encode(),
                                       obj.name.encode()))
            return None
        if isinstance(obj, Call):
            self.save(obj.func)
            self.save(obj.args)
            self.write(b"R")
            return None
        if isinstance(obj, Object):
            self.save(obj.cls)
            self.write(b")\x81")
            if obj.state is not None:
                self.save(obj.state)
                self.write(b"b")
            return None
        if isinstance(obj, Pairs):
            self.write(b"}(")
            for key, value in obj.items:
                self.save(key)
                self.save(value)
            self.write(b"u")
            return None
        return super().save(obj, save_persistent_id)


def dumps(obj, protocol=2):
    out = io.BytesIO()
    Pickler(out, protocol).dump(obj)
    return out.getvalue()


def archive(path, pkl, storages, members=(), method=zipfile.ZIP_STORED):
    stem = os.path.splitext(os.path.basename(path))[0]
    with zipfile.ZipFile(path, "w", method) as z:
        def put(name, data):
            z.writestr(zipfile.ZipInfo(stem + "/" + name), data,
                       compress_type=method)
        put("data.pkl", pkl)
        for name, data in members:
            put(name, data)
        for key, data in storages.items():
            put("data/" + key, data)
        put("version", b"3\n")


UTILS = "torch._utils"
UNTYPED = Global("torch.storage", "UntypedStorage")
FLOAT = Global("torch", "FloatStorage")


def v2(ref, offset, size, stride, *more):
    return Call(Global(UTILS, "_rebuild_tensor_v2"), ref, offset, size,
                stride, False, collections.OrderedDict(), *more)


def v3(ref, offset, size, stride, dtype, *more):
    return Call(Global(UTILS, "_rebuild_tensor_v3"), ref, offset, size,
                stride, False, collections.OrderedDict(),
                Global("torch", dtype), *more)


NEW_DTYPES = {
    "float8_e4m3fn": ("e4m3", 1), "float8_e5m2": ("e5m2", 1),
    "float8_e4m3fnuz": ("e4m3fnuz", 1), "float8_e5m2fnuz": ("e5m2fnuz", 1),
    "float8_e8m0fnu": ("e8m0", 1), "float4_e2m1fn_x2": ("e2m1x2", 1),
    "uint16": ("u16", 2), "uint32": ("u32", 4), "uint64": ("u64", 8),
    "complex32": ("c32", 4), "bits8": ("bits8", 1), "bits16": ("bits16", 2),
    "bits1x8": ("bits1x8", 1), "bits2x4": ("bits2x4", 1),
    "bits4x2": ("bits4x2", 1),
}


def new_dtypes(m, top):
    obj, storages = {}, {}
    for i, (name, (ours, size)) in enumerate(NEW_DTYPES.items()):
        data = bytes((j * 37 + i) % 256 for j in range(6 * size))
        storages[str(i)] = data
        obj[name] = v3(Ref(UNTYPED, str(i), len(data)), 2, (2, 2), (2, 1),
                       name)
        m.fp("v3.pt", name, ours, (2, 2), data[2 * size:])
    archive(os.path.join(top, "v3.pt"), dumps(obj), storages)


def conjugated(m, top):
    c = torch.tensor([1 + 2j, -3 - 0.5j, 0j], dtype=torch.complex64)
    f = torch.tensor([1.0, -2.0, 0.0])
    ref = Ref(Global("torch", "ComplexFloatStorage"), "0", 3)
    obj = {"conj": v2(ref, 0, (3,), (1,), {"conj": True}),
           "neg": v2(ref, 0, (3,), (1,), {"neg": True}),
           "both": v2(ref, 0, (3,), (1,), {"conj": True, "neg": True}),
           "plain": v2(ref, 0, (3,), (1,), {"conj": False}),
           "negf": v2(Ref(FLOAT, "1", 3), 0, (3,), (1,), {"neg": True})}
    for name, t in (("conj", c.conj()), ("neg", -c), ("both", -c.conj()),
                    ("plain", c), ("negf", -f)):
        m.tensor("conj.pt", name, t)
    archive(os.path.join(top, "conj.pt"), dumps(obj),
            {"0": raw(c), "1": raw(f)})


def big_endian(m, top):
    x = np.arange(6, dtype=">f4")
    z = np.arange(4).astype(">c8") * (1 + 2j)
    obj = {"x": v2(Ref(FLOAT, "0", 6), 0, (2, 3), (3, 1)),
           "t": v2(Ref(FLOAT, "0", 6), 0, (3, 2), (1, 3)),
           "z": v2(Ref(Global("torch", "ComplexFloatStorage"), "1", 4), 0,
                   (4,), (1,))}
    archive(os.path.join(top, "big.pt"), dumps(obj),
            {"0": x.tobytes(), "1": z.astype(">c8").tobytes()},
            [("byteorder", b"big")])
    little = x.astype("<f4").reshape(2, 3)
    m.fp("big.pt", "x", "f32", (2, 3), little.tobytes())
    m.fp("big.pt", "t", "f32", (3, 2), little.T.copy().tobytes())
    m.fp("big.pt", "z", "c64", (4,), z.astype("<c8").tobytes())


def deflated(m, top):
    data = torch.arange(5000, dtype=torch.float32)
    obj = {"x": v2(Ref(FLOAT, "0", 5000), 10, (50, 40), (1, 50))}
    archive(os.path.join(top, "deflated.pt"), dumps(obj), {"0": raw(data)},
            method=zipfile.ZIP_DEFLATED)
    m.tensor("deflated.pt", "x", data[10:2010].reshape(40, 50).t())


def names(m, top):
    """Two ways to one name, and keys that are not strings."""
    data = np.arange(7, dtype="<f4").tobytes()

    def one(i):
        return v2(Ref(FLOAT, "0", 7), i, (1,), (1,))
    obj = {"a": {"b": one(0)}, "a.b": one(1), 0: one(2), "0": one(3),
           ("x", 1): one(4), "tab\there": one(5), "": one(6)}
    archive(os.path.join(top, "names.pt"), dumps(obj), {"0": data})
    for i, n in enumerate(["a.b", '"a.b"', "0", '"0"', "(x,1)",
                           "tab\\there", ""]):
        m.fp("names.pt", n, "f32", (1,), data[4 * i:4 * i + 4])


def wrappers(m, top):
    data = np.arange(4, dtype="<f4").tobytes()
    t = v2(Ref(FLOAT, "0", 4), 0, (4,), (1,))
    ns = "torch._tensor"
    obj = {
        "subclass": Call(Global(ns, "_rebuild_from_type_v2"),
                         Global(UTILS, "_rebuild_tensor_v2"),
                         Global("my.lib", "Tagged"), t.args, {"tag": 5}),
        "with_state": Call(Global(UTILS, "_rebuild_parameter_with_state"), t,
                           True, collections.OrderedDict(), {"note": "x"}),
        "wrapped": Call(Global(ns, "_rebuild_from_type_v2"),
                        Global(UTILS, "_rebuild_wrapper_subclass"),
                        Global("my.lib", "Double"),
                        (Global("my.lib", "Double"),
                         Global("torch", "float32"), (4,), (1,), 0),
                        {"inner": t}),
        "nested": Call(Global(UTILS, "_rebuild_nested_tensor"), t, t, t),
        "unknown": Call(Global("os", "system"), "true", t),
    }
    archive(os.path.join(top, "wrap.pt"), dumps(obj), {"0": data})
    f = "wrap.pt"
    for name in ("subclass", "with_state", "wrapped.__state__.inner",
                 "nested.buffer", "nested.sizes", "nested.strides",
                 "unknown.__args__.1"):
        m.fp(f, name, "f32", (4,), data)
    m.scalar(f, "subclass.__state__.tag", "i64", "5")
    m.scalar(f, "with_state.__state__.note", "str", "x")
    m.scalar(f, "wrapped", "object", "my.lib.Double")
    m.scalar(f, "unknown", "object", "os.system")
    m.scalar(f, "unknown.__args__.0", "str", "true")


# ---- distributed checkpoints -------------------------------------------------

DCP = "torch.distributed.checkpoint."


def saved(obj):
    out = io.BytesIO()
    torch.save(obj, out)
    return out.getvalue()


class Dcp:
    """The layout of torch 2.x, built by hand: 1.13 writes another one."""

    def __init__(self, path):
        self.path, self.files = path, collections.defaultdict(bytes)
        self.state, self.storage = {}, []

    def store(self, fqn, offset, file, data, **more):
        index = Object(Global(DCP + "metadata", "MetadataIndex"), {
            "fqn": fqn, "index": 0,
            "offset": None if offset is None else torch.Size(offset)})
        info = Object(Global(DCP + "filesystem", "_StorageInfo"), {
            "relative_path": file, "offset": len(self.files[file]),
            "length": len(data), **more})
        self.files[file] += data
        self.storage.append((index, info))

    def tensor(self, fqn, t, chunks, plain=False):
        """chunks: (file, offsets, sizes)"""
        self.state[fqn] = Object(
            Global(DCP + "metadata", "TensorStorageMetadata"), {
                "properties": Object(
                    Global(DCP + "metadata", "TensorProperties"),
                    (t.dtype, Call(Global("torch.serialization",
                                          "_get_layout"), "torch.strided"),
                     False, 0, False)),
                "size": t.size(),
                "chunks": [Object(
                    Global(DCP + "metadata", "ChunkStorageMetadata"),
                    {"offsets": torch.Size(o), "sizes": torch.Size(n)})
                    for _, o, n in chunks]})
        parts = []
        for file, o, n in chunks:
            part = t[tuple(slice(a, a + b) for a, b in zip(o, n))].clone()
            data = raw(part) if plain else saved(part)
            self.store(fqn, o, file, data)
            parts.append(part)
        return parts

    def object(self, fqn, file, data):
        self.state[fqn] = Object(
            Global(DCP + "metadata", "BytesStorageMetadata"), None)
        self.store(fqn, None, file, data)

    def write(self):
        os.makedirs(self.path, exist_ok=True)
        for name, data in self.files.items():
            with open(os.path.join(self.path, name), "wb") as f:
                f.write(data)
        self.write_metadata(os.path.join(self.path, ".metadata"),
                            self.storage)

    def write_metadata(self, path, storage):
        meta = Object(Global(DCP + "metadata", "Metadata"), {
            "state_dict_metadata": self.state, "planner_data": {},
            "storage_data": Pairs(storage), "storage_meta": None})
        with open(path, "wb") as f:
            f.write(dumps(meta, 4))


class Pairs:
    """Pickles as a dict whose keys have no hash here."""

    def __init__(self, items):
        self.items = items


def distributed(m, top):
    f = "two.dcp"
    d = Dcp(os.path.join(top, f))
    w = torch.arange(24, dtype=torch.bfloat16).reshape(6, 4)
    cut = [("__0_0.distcp", (0, 0), (4, 4)), ("__1_0.distcp", (4, 0), (2, 4))]
    for part in d.tensor("model.w", w, cut):
        m.tensor(f, "model.w", part)
    b = torch.arange(4, dtype=torch.int32)
    for part in d.tensor("model.b", b, [("__1_0.distcp", (0,), (4,))]):
        m.tensor(f, "model.b", part)
    p = torch.arange(6.0).reshape(2, 3)
    for part in d.tensor("plain", p, [("__0_0.distcp", (0, 0), (2, 3))], True):
        m.tensor(f, "plain", part)
    s = torch.tensor(2.5)
    for part in d.tensor("s", s, [("__0_0.distcp", (), ())]):
        m.tensor(f, "s", part)
    d.object("step", "__0_0.distcp", saved(3))
    m.scalar(f, "step", "i64", "3")
    d.object("opt", "__1_0.distcp", saved({"lr": 0.5, "t": p.t()}))
    m.scalar(f, "opt.lr", "f64", "0.5")
    m.tensor(f, "opt.t", p.t())
    d.object("blob", "__1_0.distcp", b"not a pickle")
    m.fp(f, "blob", "bytes", (12,), b"not a pickle")
    d.write()

    # The same files described wrongly, for the unit test.
    def lie(name, storage):
        d.write_metadata(os.path.join(top, name + ".metadata"), storage)
    lie("short", d.storage[1:])
    lie("twice", d.storage + d.storage[:1])
    lie("object-twice", d.storage + d.storage[-1:])
    d.store("model.w", (0, 0), "__0_0.distcp", b"",
            transform_descriptors=["zstd"])
    lie("packed", d.storage[-1:] + d.storage[1:-1])


# ---- the sets ---------------------------------------------------------------

def plain(m, top, stem, obj, forms):
    for legacy, protocol in forms:
        file = "%s-%s%d.pt" % (stem, "legacy" if legacy else "zip", protocol)
        path = os.path.join(top, file)
        save(path, obj, legacy, protocol)
        describe(m, file, torch.load(path))


def special(m, top):
    q = torch.quantize_per_tensor(torch.arange(6.0).view(2, 3), 0.5, 10,
                                  torch.qint8)
    qc = torch.quantize_per_channel(
        torch.randn(2, 3), torch.tensor([0.1, 0.25], dtype=torch.float64),
        torch.tensor([0, 3]), 0, torch.quint8)
    save(os.path.join(top, "quant.pt"), {"q": q, "qc": qc})
    f = "quant.pt"
    m.tensor(f, "q", q.int_repr())
    m.scalar(f, "q.qscheme", "class", "torch.per_tensor_affine")
    m.scalar(f, "q.scale", "f64", "0.5")
    m.scalar(f, "q.zero_point", "i64", "10")
    m.tensor(f, "qc", qc.int_repr())
    m.scalar(f, "qc.qscheme", "class", "torch.per_channel_affine")
    m.tensor(f, "qc.scales", qc.q_per_channel_scales())
    m.tensor(f, "qc.zero_points", qc.q_per_channel_zero_points())
    m.scalar(f, "qc.axis", "i64", "0")

    coo = torch.eye(3)[:, :2].to_sparse()
    csr = torch.eye(3).to_sparse_csr()
    save(os.path.join(top, "sparse.pt"), {"coo": coo, "csr": csr})
    f = "sparse.pt"
    m.scalar(f, "coo.layout", "layout", "torch.sparse_coo")
    m.tensor(f, "coo.indices", coo._indices())
    m.tensor(f, "coo.values", coo._values())
    m.scalar(f, "coo.size", "size", "(3,2)")
    m.scalar(f, "csr.layout", "layout", "torch.sparse_csr")
    m.tensor(f, "csr.crow_indices", csr.crow_indices())
    m.tensor(f, "csr.col_indices", csr.col_indices())
    m.tensor(f, "csr.values", csr.values())
    m.scalar(f, "csr.size", "size", "(3,3)")

    save(os.path.join(top, "meta.pt"),
         {"m": torch.empty(2, 3, device="meta"), "d": torch.device("cuda", 1),
          "t": torch.float16, "s": {"b", "a"}, "c": 1 - 2j,
          "e": {}, "l": [], "y": b"\x00\xff"})
    f = "meta.pt"
    m.scalar(f, "m", "meta", "f32(2,3)")
    m.scalar(f, "d", "device", "cuda:1")
    m.scalar(f, "t", "dtype", "torch.float16")
    m.scalar(f, "s", "set", "{a,b}")
    m.scalar(f, "c", "c128", "(1,-2)")
    m.scalar(f, "e", "dict", "")
    m.scalar(f, "l", "list", "")
    m.scalar(f, "y", "bytes", "00ff")

    save(os.path.join(top, "bare.pt"), torch.arange(5))
    m.tensor("bare.pt", "", torch.arange(5))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(3, 2)

        def forward(self, x):
            return self.lin(x) * 2
    net = Net()
    torch.jit.script(net).save(os.path.join(top, "script.pt"))
    f = "script.pt"
    m.tensor(f, "lin.weight", net.lin.weight)
    m.tensor(f, "lin.bias", net.lin.bias)


def module(m, top):
    """A whole module: opaque objects, their tensors by attribute."""
    net = torch.nn.Linear(3, 2)
    save(os.path.join(top, "module.pt"), net)
    f = "module.pt"
    m.scalar(f, "", "object", "torch.nn.modules.linear.Linear")
    m.tensor(f, "_parameters.weight", net.weight)
    m.tensor(f, "_parameters.bias", net.bias)
    m.scalar(f, "in_features", "i64", "3")


def small(m, top):
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    obj = {"w": t, "wt": t.t(), "step": 3, "half": ramp(torch.float16, 3)}
    plain(m, top, "small", obj,
          [(False, 2), (False, 4), (True, 2), (True, 4)])
    names(m, top)
    wrappers(m, top)
    conjugated(m, top)
    big_endian(m, top)
    distributed(m, top)
    value = collections.OrderedDict([
        ("i", [1, -1, 0, 255, 256, 65535, 65536, 70000, -2**31, 2**31, 2**40,
               -2**63, 2**63 - 1, -128, 128, -129]),
        ("big", [2**63, 2**64, -2**64 - 1, 0x1950a86a20f9469cfc6c]),
        ("f", (0.1, -0.0, 1e300, float("inf"), float("-inf"))),
        ("b", [True, False, None]), ("u", ["é€😀", "", "a\\u1234 'q'"]),
        ("y", [b"\x00\xff", b"", b"aaa"]), ("s", {3, 1, 2}),
        ("fs", frozenset(["x", "a"])), ("ba", bytearray(b"ab\xe9")),
        ("c", 1 + 2j), ("t", ()), ("t1", (1,)), ("t3", (1, 2, 3)),
        ("t4", (1, 2, 3, 4)), ("self", collections.OrderedDict)])
    for p in range(6):
        with open(os.path.join(top, "values-%d.pkl" % p), "wb") as f:
            f.write(pickle.dumps(value, p))


def everything(m, top):
    forms = [(legacy, p) for legacy in (False, True) for p in (2, 3, 4, 5)]
    plain(m, top, "dtypes", every_dtype(), forms)
    plain(m, top, "views", views(), forms)
    plain(m, top, "train", training(), [(False, 2), (True, 2), (False, 4)])
    plain(m, top, "nested", nested(), forms)
    new_dtypes(m, top)
    deflated(m, top)
    special(m, top)
    module(m, top)
    small(m, top)


def main():
    args = sys.argv[1:]
    only_small = args[:1] == ["--small"]
    top = args[-1]
    os.makedirs(top, exist_ok=True)
    m = Manifest(top)
    (small if only_small else everything)(m, top)
    m.write()


if __name__ == "__main__":
    main()
