"""Documents name directives, variables, metrics and pages that exist.  Pages of
decisions are of their time: they may name those of another."""

import re
import subprocess

import pytest

from lib.server import ROOT

LISTED = subprocess.run(
    ["git", "ls-files", "--", "*.md", "examples/prometheus"], cwd=ROOT,
    text=True, capture_output=True, check=True).stdout.split()
DOCUMENTS = [name for name in LISTED if (ROOT / name).exists()
             and not name.startswith("docs/decisions/")]
METRIC = re.compile(r"\b(?:nv|nginx)_(?:inference|gpu|cpu|cache|pinned|energy)"
                    r"_\w+")


def headings(page):
    return set(re.findall(r"^### (\S+)$", (ROOT / f"docs/{page}.md")
                          .read_text(), re.M))


KNOWN = {
    "directive": headings("directives"),
    "variable": headings("variables"),
    "metric": set(re.findall(r"^\| `(\w+)` \|",
                             (ROOT / "docs/metrics.md").read_text(), re.M)),
    "page": {f"/{name}" for name in LISTED},
}


def named(kind, text):
    if kind == "directive":
        return re.findall(r"(?<![\w$#/.-])inference_\w+", text)
    if kind == "variable":
        return re.findall(r"\$inference_\w+", text)
    if kind == "metric":
        return [re.sub(r"_(bucket|sum|count)$", "", name)
                if name not in KNOWN["metric"] else name
                for name in METRIC.findall(text)]
    return ["/" + name for name in re.findall(r"`([\w./-]+\.md)`", text)]


def exists(kind, name):
    if kind == "page":
        return any(path.endswith(name.replace("/..", ""))
                   for path in KNOWN["page"])
    return name in KNOWN[kind]


@pytest.mark.parametrize("kind", KNOWN)
def test_names_of_documents_exist(kind):
    found, unknown = 0, []
    for document in DOCUMENTS:
        names = set(named(kind, (ROOT / document).read_text()))
        found += len(names)
        unknown += [f"{document}: {name}" for name in sorted(names)
                    if not exists(kind, name)]
    assert found > 10
    assert unknown == []


@pytest.mark.parametrize("kind,text", [
    ("directive", "`inference_nothing on`"), ("variable", "$inference_no"),
    ("metric", "nginx_inference_no_total"), ("metric", "nv_gpu_no_bytes"),
    ("page", "`docs/nothing.md`")])
def test_an_unknown_name_is_found(kind, text):
    (name,) = named(kind, text)
    assert not exists(kind, name)
