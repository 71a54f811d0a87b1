#!/usr/bin/python3
"""Makes tests/data/formats: one small file for each thing a reader must know,
and expected.tsv with what numpy thinks is in them:

    file  name  dtype  shape  bytes  crc32 of the canonical bytes

Canonical is C order, little-endian. Run it in tests/data with numpy."""

import json
import os
import struct
import zlib

import numpy as np

OUT = "formats/"
expected = []

NAMES = {
    "bool": "bool", "float16": "f16", "float32": "f32", "float64": "f64",
    "complex64": "c64", "complex128": "c128",
}
for bits in (8, 16, 32, 64):
    NAMES["int%d" % bits] = "i%d" % bits
    NAMES["uint%d" % bits] = "u%d" % bits


def canonical(a):
    a = np.asarray(a)
    if a.dtype.byteorder == ">":
        a = a.astype(a.dtype.newbyteorder("<"))
    return a.tobytes("C")


def expect(file, name, dtype, shape, data):
    expected.append("\t".join((
        file, name, dtype, ",".join(map(str, shape)), str(len(data)),
        "%08x" % zlib.crc32(data))))


def npy(file, a, dtype=None, **kw):
    np.lib.format.write_array(open(OUT + file, "wb"), a, **kw)
    expect(file, "", dtype or NAMES[a.dtype.newbyteorder("=").name], a.shape,
           canonical(a))


def literal(file, header, data, version=1):
    """An .npy with a header of our own wording."""
    h = header.encode("latin-1" if version < 3 else "utf-8")
    head = b"\x93NUMPY" + bytes([version, 0])
    head += struct.pack("<H" if version == 1 else "<I", len(h)) + h
    open(OUT + file, "wb").write(head + data)


def values(kind, shape, seed=1):
    n = int(np.prod(shape))
    rng = np.random.RandomState(seed)
    raw = rng.randint(0, 256, n * np.dtype(kind).itemsize, dtype=np.uint8)
    if kind == "bool":
        raw &= 1
    return raw.view(kind).reshape(shape)


def make_npy():
    for kind in NAMES:
        a = values(kind, (3, 4, 5))
        npy("c_%s.npy" % NAMES[kind], a)
        npy("f_%s.npy" % NAMES[kind], np.asfortranarray(a))
        if a.dtype.itemsize > 1:
            npy("be_%s.npy" % NAMES[kind], a.astype(a.dtype.newbyteorder(">")))
    a = values("float32", (3, 4, 5))
    npy("be_fortran.npy", np.asfortranarray(a.astype(">f4")))
    npy("scalar.npy", np.array(1.5, "f4"))
    npy("empty.npy", np.zeros((0, 3), "f8"))
    npy("ones.npy", np.asfortranarray(values("int16", (1, 7, 1, 2))))
    npy("v2.npy", a, version=(2, 0))
    npy("v3.npy", a, version=(3, 0))
    s = np.array(["ab", "\u00fc\u20ac", ""], "U3")
    npy("str_u.npy", s, "U3")
    npy("str_u_be.npy", s.astype(">U3"), "U3")
    npy("str_s.npy", np.array([b"ab", b"c"], "S2"), "S2")
    npy("void.npy", values("uint16", (4,)).view("V2"), "V2")
    t = np.array(["2024-02-29", "NaT"], "M8[ns]")
    npy("time.npy", t, "M8[ns]")
    npy("time_be.npy", t.astype(">M8[ns]"), "M8[ns]")
    npy("delta.npy", np.array([1, -2], "m8[25us]"), "m8[25us]")
    rec = np.zeros(3, [("a", "<i4"), ("b", ">f4", (2,)), ("c", [("d", "S1")])])
    rec["a"] = [1, 2, 3]
    rec["b"] = 0.5
    npy("record.npy", rec, "[('a','<i4'),('b','>f4',(2,)),('c',[('d','|S1')])]")
    b = values("int32", (2, 3))
    d = b.tobytes()
    literal("odd_quotes.npy", '{"shape":(2L,3L),"fortran_order":False,'
            '"descr":"<i4"}', d)
    expect("odd_quotes.npy", "", "i32", b.shape, d)
    literal("f1.npy", "{'descr': '<f1', 'fortran_order': False, "
            "'shape': (6,), }\n", d[:6])
    expect("f1.npy", "", "f1", (6,), d[:6])


def safetensors(file, entries, pad=0, lead="", meta=None, tail=b""):
    """entries: (name, dtype, shape, bytes), in file order"""
    h, off, data = {}, 0, b""
    if meta is not None:
        h["__metadata__"] = meta
    for name, dtype, shape, b in entries:
        h[name] = {"dtype": dtype, "shape": list(shape),
                   "data_offsets": [off, off + len(b)]}
        off += len(b)
        data += b
    text = (lead + json.dumps(h) + " " * pad).encode()
    open(OUT + file, "wb").write(
        struct.pack("<Q", len(text)) + text + data + tail)


THEIRS = {"bool": "BOOL", "c64": "C64", "bf16": "BF16"}


def make_safetensors():
    entries = []
    for kind in NAMES:
        if NAMES[kind] == "c128":
            continue
        a = values(kind, (3, 4, 5))
        name = "t." + NAMES[kind]
        entries.append((name, THEIRS.get(NAMES[kind], NAMES[kind].upper()),
                        a.shape, a.tobytes()))
        expect("all.safetensors", name, NAMES[kind], a.shape, a.tobytes())
    raw = values("uint8", (24,)).tobytes()
    for theirs, ours, shape, n in (
            ("BF16", "bf16", (3, 4), 24), ("F8_E4M3", "e4m3", (24,), 24),
            ("F8_E5M2", "e5m2", (24,), 24), ("F8_E8M0", "e8m0", (2, 12), 24),
            ("F4", "e2m1", (6, 8), 24), ("F6_E2M3", "e2m3", (8, 4), 24),
            ("F6_E3M2", "e3m2", (32,), 24), ("I8", "i8", (), 1),
            ("F32", "f32", (0, 4), 0)):
        name = "x." + theirs + "." + ours + str(len(shape))
        entries.append((name, theirs, shape, raw[:n]))
        expect("all.safetensors", name, ours, shape, raw[:n])
    safetensors("all.safetensors", entries, pad=3, meta={"format": "pt"})
    a = values("float32", (2, 3))
    one = [("w\u00fc\n\U0001f600", "F32", a.shape, a.tobytes())]
    safetensors("space.safetensors", one, lead=" \n")
    expect("space.safetensors", "w\u00fc\\n\U0001f600", "f32", a.shape,
           a.tobytes())
    safetensors("empty.safetensors", [])


def make_index():
    os.makedirs(OUT + "sharded", exist_ok=True)
    a, b = values("float32", (2, 3)), values("int16", (4,))
    safetensors("sharded/model-1.safetensors",
                [("a", "F32", a.shape, a.tobytes()),
                 ("b", "I16", b.shape, b.tobytes())], meta={"format": "pt"})
    safetensors("sharded/model-2.safetensors",
                [("c", "I16", b.shape, b.tobytes())], meta={"format": "pt"})
    index = "sharded/model.index.json"
    one, two = "model-1.safetensors", "model-2.safetensors"
    json.dump({"metadata": {"total_size": 40},
               "weight_map": {"a": one, "c": two, "b": one}},
              open(OUT + index, "w"), indent=2)
    expect(index, "a", "f32", a.shape, a.tobytes())
    expect(index, "b", "i16", b.shape, b.tobytes())
    expect(index, "c", "i16", b.shape, b.tobytes())


def make_npz():
    a, b = values("float32", (3, 4)), values("int64", (2, 2)).astype(">i8")
    for file, save in (("stored.npz", np.savez),
                       ("deflated.npz", np.savez_compressed)):
        save(OUT + file, **{"a": a, "dir/b c": np.asfortranarray(b),
                            "z": np.zeros((20, 30), "f4")})
        expect(file, "a", "f32", a.shape, a.tobytes())
        expect(file, "dir/b c", "i64", b.shape, canonical(b))
        expect(file, "z", "f32", (20, 30), bytes(2400))


def gstr(s):
    b = s.encode()
    return struct.pack("<Q", len(b)) + b


def pad(b, align=32):
    return b + bytes(-len(b) % align)


def gguf(file, kvs, tensors, version=3, align=32, last=True):
    """kvs: (key, type id, bytes); tensors: (name, ne, type id, bytes)"""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(kvs))
    for key, kind, value in kvs:
        head += gstr(key) + struct.pack("<I", kind) + value
    data = b""
    for name, ne, kind, b in tensors:
        head += gstr(name) + struct.pack("<I", len(ne))
        head += struct.pack("<%dQIQ" % len(ne), *ne, kind, len(data))
        data += pad(b, align)
    out = pad(head, align) + data
    if not last:
        out = out[:len(out) - (-len(tensors[-1][3]) % align)]
    open(OUT + file, "wb").write(out)


# id, block, bytes: as in the table of the GGUF reader, typed again
QUANTS = """2 q4_0 32 18, 3 q4_1 32 20, 6 q5_0 32 22, 7 q5_1 32 24,
8 q8_0 32 34, 9 q8_1 32 36, 10 q2_k 256 84, 11 q3_k 256 110, 12 q4_k 256 144,
13 q5_k 256 176, 14 q6_k 256 210, 15 q8_k 256 292, 16 iq2_xxs 256 66,
17 iq2_xs 256 74, 18 iq3_xxs 256 98, 19 iq1_s 256 50, 20 iq4_nl 32 18,
21 iq3_s 256 110, 22 iq2_s 256 82, 23 iq4_xs 256 136, 29 iq1_m 256 56,
34 tq1_0 256 54, 35 tq2_0 256 66, 39 mxfp4 32 17, 40 nvfp4 64 36,
41 q1_0 128 18, 42 q2_0 64 18"""
PLAIN = {"float32": 0, "float16": 1, "int8": 24, "int16": 25, "int32": 26,
         "int64": 27, "float64": 28}


def make_gguf():
    kvs = [("general.name", 8, gstr("sample")), ("a.u8", 0, b"\xff"),
           ("a.i64", 11, struct.pack("<q", -5)),
           ("a.f32", 6, struct.pack("<f", 0.1)), ("a.bool", 7, b"\x01"),
           ("a.list", 9, struct.pack("<IQ", 8, 2) + gstr("x") + gstr("")),
           ("a.ints", 9, struct.pack("<IQ3h", 3, 3, 1, -1, 2))]
    tensors = []
    for kind, gid in PLAIN.items():
        a = values(kind, (3, 4, 5))
        name = "t." + NAMES[kind]
        tensors.append((name, a.shape[::-1], gid, a.tobytes()))
        expect("plain.gguf", name, NAMES[kind], a.shape, a.tobytes())
    b = values("uint8", (24,)).tobytes()
    tensors.append(("t.bf16", (4, 3), 30, b))
    expect("plain.gguf", "t.bf16", "bf16", (3, 4), b)
    tensors.append(("none", (0, 4), 0, b""))
    expect("plain.gguf", "none", "f32", (4, 0), b"")
    tensors.append(("one", (), 0, b[:4]))
    expect("plain.gguf", "one", "f32", (), b[:4])
    gguf("plain.gguf", kvs, tensors)

    tensors = []
    for i, q in enumerate(QUANTS.split(",")):
        gid, name, block, size = q.split()
        b = values("uint8", (2 * int(size),), seed=i).tobytes()
        tensors.append((name, (int(block), 2), int(gid), b))
        expect("quant.gguf", name, name, (2, int(block)), b)
    gguf("quant.gguf", [], tensors, version=2)

    a = values("float32", (2, 3))
    gguf("align.gguf", [("general.alignment", 4, struct.pack("<I", 8))],
         [("a", (3, 2), 0, a.tobytes()), ("b", (3,), 0, a.tobytes()[:12])],
         align=8, last=False)
    expect("align.gguf", "a", "f32", (2, 3), a.tobytes())
    expect("align.gguf", "b", "f32", (3,), a.tobytes()[:12])


make_npy()
make_safetensors()
make_gguf()
make_index()
make_npz()
open(OUT + "expected.tsv", "w").write("\n".join(expected) + "\n")
