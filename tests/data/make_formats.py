#!/usr/bin/python3
"""Makes tests/data/formats: one small file for each thing a reader must know,
and expected.tsv with what numpy thinks is in them:

    file  name  dtype  shape  bytes  crc32 of the canonical bytes

Canonical is C order, little-endian. Run it in tests/data with numpy."""

import json
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


make_npy()
make_safetensors()
open(OUT + "expected.tsv", "w").write("\n".join(expected) + "\n")
