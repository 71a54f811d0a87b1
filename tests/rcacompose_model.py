#!/usr/bin/env python3
"""Random incidents, judged by rcacompose and by a model of its manual page.

The model shares no code with the command: the eleven rules, folding, and the
table of the incident, written down again from rcacompose(1). Each stack is
tried on a stream of incidents, and once more with its agents as files, all at
once and with --lazy, which may know less but must not find otherwise.

usage: rcacompose_model.py PROGRAM SEED STACKS DIR
"""
import os
import random
import subprocess
import sys

ROLES = ["requisite", "required", "sufficient", "optional"]
KINDS = ["link", "switch", "host"]
INCIDENTS = 20  # for each stack


def finding(votes, quorum):
    """(result, reason) of [(role, answer)]."""
    def some(answer, *roles):
        return any(r in roles and a == answer for r, a in votes)
    accused = some("F", "requisite", "required", "sufficient")
    if accused and some("H", "requisite", "required"):
        return "unknown"
    if some("H", "requisite"):
        return "healthy"
    if some("U", "requisite"):
        return "unknown"
    if some("F", "sufficient"):
        return "faulty"
    witnesses = votes.count(("required", "F"))
    if some("U", "required") and not 0 < quorum <= witnesses:
        return "unknown"
    if some("F", "required"):
        return "faulty"
    if some("U", "sufficient"):
        return "unknown"
    if some("H", "required"):
        return "healthy"
    if some("F", "requisite"):
        return "unknown"
    return "healthy" if some("H", "sufficient") else "unknown"


class Stack:
    def __init__(self):
        self.agents = [f"a{i}" for i in range(random.randint(1, 4))]
        self.lines = {k: [(random.choice(ROLES), a) for a in random.sample(
            self.agents, random.randint(0, len(self.agents)))]
            for k in KINDS}
        self.quorum = {k: random.choice([0, 0, 1, 2]) for k in KINDS}
        self.symptom = random.random() < 0.7
        self.rivals = random.random() < 0.2
        self.coverage = random.choice([1, 1, 1, 0.5, 0.25])

    def text(self, files=False):
        t = "stack 1\n"
        for a in self.agents + ["retrans"]:
            t += f"agent {a}" + (f" file={a}.rec" if files else "") + "\n"
        t += "symptom retrans\n" if self.symptom else ""
        t += "rivals allow\n" if self.rivals else ""
        if self.coverage < 1:
            t += f"innocent-coverage {self.coverage}\n"
        for k in KINDS:
            t += f"kind {k}\n"
            t += "".join(f"{role} {agent}\n" for role, agent in self.lines[k])
            t += f"quorum {self.quorum[k]}\n" if self.quorum[k] else ""
        return t


def line(entity, agent, **keys):
    fields = ["evidence", "time=1090", f"entity={entity}", f"agent={agent}"]
    return "\t".join(fields + [f"{k}={v}" for k, v in keys.items()])


class Incident:
    """What there is, who belongs to whom, and what is said."""

    def __init__(self, stack):
        n = random.randint(1, 6)
        attached, switches = random.choice([(0.5, 1), (1, 0)])
        self.links = [f"link:n{i}>n{i + 1}" for i in range(n)]
        self.parent = {link: f"switch:S{random.randint(0, switches)}"
                       for link in self.links if random.random() < attached}
        self.entities = self.links + sorted(set(self.parent.values()))
        if random.random() < 0.3:
            self.entities.append("host:h")
        self.answer, self.old, self.said = {}, set(), []
        faults = random.choice([0.03, 0.1, 0.3, 0.6])
        for e in self.entities:
            for a in stack.agents:
                self.say(e, a, faults)
        self.symptom = random.choice("FHHHU")
        if self.symptom != "U":
            self.said.append(("retrans", line(
                "flow:x", "retrans",
                status="faulty" if self.symptom == "F" else "healthy")))
        self.damaged = random.random() < 0.1
        random.shuffle(self.said)

    def say(self, entity, agent, faults):
        key, r = (entity, agent), random.random()
        self.answer[key] = "U"
        if r < faults:
            self.answer[key] = "F"
            keys = {"status": "faulty", "onset": 1010}
        elif r < faults + 0.75 * (1 - faults):
            self.answer[key] = "H"
            keys = {"status": "healthy"}
        else:
            keys = random.choice([
                None, {"status": "unknown", "reason": "na"},
                {"status": "faulty", "onset": 500},
                {"status": "faulty", "onset": 1080}])
            if keys and keys.get("onset") == 500:
                self.old.add(key)
        if keys:
            self.said.append((agent, line(entity, agent, **keys)))

    def head(self, name):
        hops = " ".join(link[5:] for link in self.links)
        t = [f"incident\tid={name}\tstart=1000\tend=1100\tnow=1150",
             "flow\tid=x\tsrc=n0\tdst=n9", f"path\tflow=x\thops={hops}"]
        t += [f"attach\tchild={c}\tparent={p}"
              for c, p in self.parent.items()]
        t += ["candidate\tentity=host:h"] if "host:h" in self.entities else []
        return t

    def text(self, name):
        t = self.head(name) + [said for _, said in self.said]
        t += ["evidence\tjunk"] if self.damaged else []
        return "\n".join(t) + "\n"


class Verdict:
    """The table of rcacompose(1), The incident."""

    def __init__(self, stack, x):
        self.stack, self.x = stack, x
        self.result = {e: finding(self.votes(e), stack.quorum[kind(e)])
                       for e in x.entities}
        self.folded = set()
        for p in set(x.parent.values()):
            self.fold(p)
        self.faulty = [e for e in x.entities if self.result[e] == "faulty"
                       and e not in self.folded]
        self.accused = [e for e in x.entities if self.result[e] == "unknown"
                        and self.is_accused(e) and e not in self.folded]

    def lines(self, e):
        return [(r, a) for r, a in self.stack.lines[kind(e)] if r != "optional"]

    def votes(self, e):
        return [(r, self.x.answer[e, a]) for r, a in self.lines(e)]

    def is_accused(self, e):
        return any(a == "F" and r != "requisite" for r, a in self.votes(e))

    def has_alibi(self, e):
        return ("requisite", "H") in self.votes(e)

    def is_observed(self, e):
        return any(a != "U" for _, a in self.votes(e))

    def children(self, p):
        return [c for c, q in self.x.parent.items() if q == p]

    def fold(self, p):
        c = self.children(p)
        observed = sum(map(self.is_observed, c))
        faulty = sum(self.result[e] == "faulty" for e in c)
        if self.result[p] == "faulty" and faulty >= 3 and (
                3 * faulty >= 2 * observed):
            self.folded.update(e for e in c if self.result[e] == "faulty"
                               or self.is_accused(e))

    def unknowns(self, e):
        return [(e, a) for r, a in self.lines(e) if self.x.answer[e, a] == "U"]

    def is_silent(self, p):
        only_old = self.unknowns(p) and all(
            k in self.x.old for k in self.unknowns(p))
        return (self.result[p] == "unknown" and not self.has_alibi(p)
                and not only_old)

    def is_nested(self, p):
        return self.result[p] == "faulty" and any(
            self.result[c] == "faulty" and c not in self.folded
            for c in self.children(p))

    def uncovered(self):
        x = self.x.entities
        unclear = [e for e in x if self.result[e] != "healthy"]
        healthy = len(x) - len(unclear)
        excused = (self.stack.coverage < 1 and healthy
                   and healthy >= self.stack.coverage * len(x)
                   and not any(map(self.is_observed, unclear)))
        return unclear and not excused

    def text(self):
        x, symptom = self.x, self.x.symptom if self.stack.symptom else None
        parents = set(x.parent.values())
        if symptom == "H" and (self.faulty or self.accused):
            return "unknown symptom-absent"
        if self.faulty and not self.stack.rivals and any(
                not self.has_alibi(e) for e in self.accused):
            return "unknown rival"
        if any(self.is_silent(x.parent[e]) for e in self.faulty
               if e in x.parent):
            return "unknown parent-silent"
        if any(map(self.is_nested, parents)):
            return "unknown nested"
        if self.faulty:
            return (f"culprit {self.faulty[0]}" if len(self.faulty) == 1
                    else "multiple")
        if self.accused:
            return "unknown accused"
        if any(k in x.old for e in x.entities for k in self.unknowns(e)):
            return "unknown background-in-scope"
        if self.uncovered():
            return "unknown coverage"
        if x.damaged:
            return "unknown damaged"
        if symptom is None:
            return "unknown no-symptom"
        return "innocent" if symptom == "H" else "unknown unexplained"


def kind(entity):
    return entity.split(":")[0]


def run(*argv):
    out = subprocess.run(argv, stdout=subprocess.PIPE, text=True,
                         stderr=subprocess.DEVNULL, timeout=60).stdout
    records = [dict(f.partition("=")[::2] for f in r.split("\t"))
               | {"type": r.split("\t")[0]} for r in out.splitlines()]
    verdicts = [" ".join(r[k] for k in ("result", "entity", "reason")
                         if k in r) for r in records if r["type"] == "verdict"]
    findings = {r["entity"]: r["result"] for r in records
                if r["type"] == "finding" and r["entity"] != "flow:*"}
    return verdicts, findings


def put(name, text):
    with open(name, "w") as f:
        f.write(text)


def try_stack(program, seen):
    """A list of what came out differently."""
    stack = Stack()
    xs = [Incident(stack) for _ in range(INCIDENTS)]
    want = [Verdict(stack, x).text() for x in xs]
    seen.update(w if w.startswith("unknown") else w.split()[0] for w in want)
    put("stack", stack.text())
    put("stream", "".join(x.text(i) for i, x in enumerate(xs)))
    got, _ = run(program, "-s", "./stack", "-q", "stream")
    wrong = [f"incident {i}: model {w}, found {g}"
             for i, (w, g) in enumerate(zip(want, got)) if w != g]
    if len(got) != len(want):
        wrong.append(f"{len(want)} incidents, {len(got)} verdicts")

    x = next((x for x in xs if not x.damaged), None)
    if x is None:
        return wrong
    put("files", stack.text(files=True))
    put("one", "\n".join(x.head("one")) + "\n")
    for a in stack.agents + ["retrans"]:
        put(f"{a}.rec", "".join(s + "\n" for b, s in x.said if a == b))
    eager, all_of = run(program, "-s", "./files", "-i", "one")
    lazy, some = run(program, "-s", "./files", "-i", "one", "--lazy")
    if eager != [Verdict(stack, x).text()]:
        wrong.append(f"files: model {Verdict(stack, x).text()}, found {eager}")
    if all_of != Verdict(stack, x).result or some != all_of:
        wrong.append(f"findings: {all_of}, lazy {some}")
    if lazy != eager and not lazy[0].startswith("unknown"):
        wrong.append(f"lazy: {lazy}, eager {eager}")
    return wrong


def main():
    program, seed, stacks, folder = sys.argv[1:]
    random.seed(int(seed))
    os.chdir(folder)
    seen = set()
    for i in range(int(stacks)):
        wrong = try_stack(program, seen)
        if wrong:
            print(f"seed {seed}, stack {i}:", *wrong, sep="\n")
            sys.exit(1)
    # Every row that incidents of this shape can reach was tried.
    rows = {"culprit", "multiple", "innocent"} | {
        "unknown " + r for r in (
            "symptom-absent", "rival", "parent-silent", "nested", "accused",
            "background-in-scope", "coverage", "damaged", "no-symptom",
            "unexplained")}
    if int(stacks) >= 60 and seen != rows:
        sys.exit(f"rows not tried: {rows ^ seen}")
    print(f"{int(stacks) * INCIDENTS} incidents agree")


if __name__ == "__main__":
    main()
