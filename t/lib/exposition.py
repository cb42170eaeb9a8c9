"""Prometheus text exposition 0.0.4, read strictly."""

import math
import re

from lib import process
from lib.server import SLOW

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
KINDS = ("counter", "gauge", "histogram", "summary", "untyped")
LAST = {"histogram": "le", "summary": "quantile"}


class Family:
    def __init__(self, name, kind, text):
        self.name, self.kind, self.help = name, kind, text
        self.samples = []           # (name, labels, value), in their order

    def __repr__(self):
        return f"<{self.kind} {self.name}: {len(self.samples)}>"


class Text:
    """The families of a text; AssertionError where it breaks a rule."""

    def __init__(self, text):
        assert text == "" or text.endswith("\n")
        assert "\r" not in text
        self.families = {}
        self.values = {}
        family, note = None, None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                name, note = line[7:].split(" ", 1)
                family = self._family(name, note)
            elif line.startswith("# TYPE "):
                name, kind = line[7:].split(" ")
                assert family and family.name == name and not family.kind
                assert kind in KINDS, line
                family.kind = kind
            else:
                self._sample(family, line)
        for family in self.families.values():
            assert family.kind, f"untyped: {family}"
            assert family.samples, f"a family without a sample: {family}"
            if family.kind == "histogram":
                self._check_histogram(family)

    def _family(self, name, note):
        assert NAME.fullmatch(name), name
        assert name not in self.families, f"twice, or torn apart: {name}"
        self.families[name] = Family(name, "", note)
        return self.families[name]

    def _sample(self, family, line):
        assert family is not None, line
        name = NAME.match(line)[0]
        rest = line[len(name):]
        labels = {}
        if rest.startswith("{"):
            inside, rest = self._braces(rest)
            labels = inside
        assert re.fullmatch(r" \S+", rest), line
        value = self._number(rest[1:])
        suffixes = {"histogram": ("_bucket", "_sum", "_count"),
                    "summary": ("", "_sum", "_count")}
        assert name in [family.name + s
                        for s in suffixes.get(family.kind, ("",))], line
        self._check_labels(family, name, list(labels), line)
        key = name, frozenset(labels.items())
        assert key not in self.values, f"twice: {line}"
        self.values[key] = value
        family.samples.append((name, labels, value))
        if family.kind == "counter":
            assert value >= 0, line

    @staticmethod
    def _braces(text):
        labels, at = {}, 1
        while True:
            found = LABEL.match(text, at)
            assert found, text
            name, value = found.groups()
            assert name not in labels, text
            labels[name] = re.sub(
                r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), value)
            at = found.end()
            if text[at] == "}":
                return labels, text[at + 1:]
            assert text[at] == ",", text
            at += 1

    @staticmethod
    def _number(text):
        special = {"Nan": math.nan, "+Inf": math.inf, "-Inf": -math.inf}
        if text in special:
            return special[text]
        assert re.fullmatch(r"-?\d+(\.\d+)?(e[+-]\d+)?", text), text
        return float(text)

    @staticmethod
    def _check_labels(family, name, names, line):
        """In byte order, but for le and quantile, which come last."""
        last = LAST.get(family.kind)
        wanted = last and (name.endswith("_bucket")
                           if family.kind == "histogram"
                           else name == family.name)
        assert bool(wanted) == (last in names), line
        if wanted:
            assert names[-1] == last, line
            names = names[:-1]
        assert names == sorted(names), line

    def _check_histogram(self, family):
        rows = {}
        for name, labels, value in family.samples:
            key = frozenset((k, v) for k, v in labels.items() if k != "le")
            rows.setdefault(key, {"_bucket": []})
            suffix = name[len(family.name):]
            if suffix == "_bucket":
                bound = self._number(labels["le"])
                rows[key][suffix].append((bound, value))
            else:
                rows[key][suffix] = value
        for row in rows.values():
            bounds, counts = zip(*row["_bucket"])
            assert list(bounds) == sorted(set(bounds))
            assert bounds[-1] == math.inf
            assert list(counts) == sorted(counts)
            assert counts[-1] == row["_count"]
            assert row["_sum"] >= 0

    # ---- questions

    def kind(self, name):
        return self.families[name].kind

    def value(self, name, **labels):
        """Of exactly one sample that has these labels (and more)."""
        found = [v for (n, ls), v in self.values.items()
                 if n == name and labels.items() <= dict(ls).items()]
        assert len(found) == 1, (name, labels, found)
        return found[0]

    def total(self, name, **labels):
        return sum(v for (n, ls), v in self.values.items()
                   if n == name and labels.items() <= dict(ls).items())

    def buckets(self, name, **labels):
        """[(bound, how many are in that bucket alone)]"""
        rows = sorted((self._number(dict(ls)["le"]), v)
                      for (n, ls), v in self.values.items()
                      if n == name + "_bucket"
                      and labels.items() <= dict(ls).items())
        below = [0] + [v for _, v in rows]
        return [(b, v - w) for (b, v), w in zip(rows, below)]


def scrape(server, path="/metrics"):
    answer = server.get(path)
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    return Text(answer.body.decode())


def requests_held(text):
    """{gauge: bytes, slots or requests that workers and core hold}; fails
    where one of them is missing."""
    held = {name: text.value(name) for name in (
        "nginx_inference_request_arena_used_bytes",
        "nginx_inference_request_arena_reserved_bytes",
        "nginx_inference_slots_taken")}
    for name in ("nginx_inference_executing_requests",
                 "nv_inference_pending_request_count"):
        assert text.families[name].samples
        held[name] = text.total(name)
    return held


def figure(server, name, path="/metrics"):
    """Of a family of the module's own with one sample."""
    return scrape(server, path).value(f"nginx_inference_{name}")


def wait_given(server, count):
    """Until workers have given so many inferences to the core."""
    assert process.wait_until(
        lambda: figure(server, "requests_total") >= count, 20 * SLOW)


def wait_executing(server, executing, waiting=0, **labels):
    """Until so many requests are executed, and so many wait for that."""
    def both():
        text = scrape(server)
        return tuple(text.total(name, **labels) for name in (
            "nginx_inference_executing_requests",
            "nv_inference_pending_request_count"))

    assert process.wait_until(lambda: both() == (executing, waiting),
                              20 * SLOW), both()
