#!/usr/bin/env python3
"""Is a file a Chrome trace that Perfetto's importer takes without complaint?

Usage: perfetto_rules.py [--open N] FILE...
Independent of tracegate: Python's own JSON parser, exact decimals. Checks
that the text is one JSON value, that every event has what the importer asks
for, and that begins and ends balance, lane by lane, in order of time with
equal stamps in file order. --open N allows N begins without an end.
Prints one line a file; status 1 if any rule is broken.
"""
import gzip
import json
import sys
from decimal import Decimal, InvalidOperation


def bad_constant(text):
    raise ValueError("not JSON: " + text)


def number(value):
    """Numbers, and strings that hold one; never booleans."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return None


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as f:
        text = f.read().decode("utf-8")
    value = json.loads(text, parse_float=Decimal, parse_constant=bad_constant)
    if isinstance(value, dict):
        value = value["traceEvents"]
    if not isinstance(value, list):
        raise ValueError("events are no array")
    return value


def check_event(e, i, say):
    if not isinstance(e, dict):
        return say(i, "no object")
    ph = e.get("ph")
    if not isinstance(ph, str) or len(ph) != 1:
        return say(i, "no phase")
    if ph != "M" and number(e.get("ts")) is None:
        say(i, "no ts")
    if ph == "X" and (number(e.get("dur")) is None or number(e["dur"]) < 0):
        say(i, "complete event without dur")
    if ph in "bneST" and "id" not in e and "id2" not in e:
        say(i, "async event without id")
    if ph in "stf" and "id" not in e and "bind_id" not in e:
        say(i, "flow without id")
    if "args" in e and ph in "XBE" and not isinstance(e["args"], (dict, list, str)):
        say(i, "args are no object")


def ident(e):
    return json.dumps(e.get("id2", e.get("id")))


def check_pairs(events, say):
    """Open begins at the end; ends without a begin are broken rules."""
    order = sorted((i for i, e in enumerate(events) if e.get("ph") in "BEbe"),
                   key=lambda i: number(events[i]["ts"]))
    lanes = {}
    for i in order:
        e = events[i]
        if e["ph"] in "BE":
            lane = (str(e.get("pid")), str(e.get("tid", e.get("pid"))))
        else:
            lane = (e.get("cat"), ident(e))
        stack = lanes.setdefault(lane, [])
        if e["ph"] in "Bb":
            stack.append(e.get("name"))
            continue
        if not stack:
            say(i, "end without begin")
            continue
        name = e.get("name")
        if name is not None and name in stack:
            del stack[len(stack) - 1 - stack[::-1].index(name)]
        else:
            stack.pop()
    return sum(len(s) for s in lanes.values())


def check(path, allowed):
    broken = []

    def say(i, what):
        broken.append("event %d: %s" % (i, what))

    try:
        events = load(path)
    except (ValueError, KeyError, UnicodeDecodeError, EOFError, OSError) as e:
        print("%s: broken: %s" % (path, e))
        return False
    for i, e in enumerate(events):
        check_event(e, i, say)
    still = 0 if broken else check_pairs(events, say)
    if still > allowed:
        broken.append("%d begins without end" % still)
    for line in broken[:10]:
        print("%s: %s" % (path, line))
    if not broken:
        print("%s: %d events, %d open" % (path, len(events), still))
    return not broken


def main():
    args = sys.argv[1:]
    allowed = 0
    if args[:1] == ["--open"]:
        allowed = int(args[1])
        args = args[2:]
    ok = [check(path, allowed) for path in args]
    return 0 if ok and all(ok) else 1


if __name__ == "__main__":
    sys.exit(main())
