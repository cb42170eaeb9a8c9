"""Every relative link of a document leads to a file and, with an anchor, to a
heading of that file."""

import re
import subprocess

import pytest

from lib.server import ROOT

FENCE = re.compile(r"^```.*?^```", re.S | re.M)
LINK = re.compile(r"\[[^][]*\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.M)

LISTED = subprocess.run(
    ["git", "ls-files", "--", "*.md"], cwd=ROOT, text=True,
    capture_output=True, check=True).stdout.split()
DOCUMENTS = [name for name in LISTED if (ROOT / name).exists()]


def anchors(text):
    """As GitHub makes them of headings."""
    found = {}
    for heading in HEADING.findall(FENCE.sub("", text)):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = found[anchor] = found.get(anchor, -1) + 1
        if count:
            found[f"{anchor}-{count}"] = 0
    return set(found)


def broken(name):
    path = ROOT / name
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        if re.match(r"\w+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file) if file else path
        if not target.exists() or (
                anchor and anchor not in anchors(target.read_text())):
            yield link


def test_there_are_links():
    assert len(DOCUMENTS) > 100
    assert sum(len(LINK.findall((ROOT / n).read_text()))
               for n in DOCUMENTS) > 80


@pytest.mark.parametrize("heading,anchor", [
    ("# `$inference_model`", "inference_model"),
    ("## A core for another user", "a-core-for-another-user"),
    ("### Two [links](x.md), one", "two-links-one"),
])
def test_anchors(heading, anchor):
    assert anchors(heading + "\n") == {anchor}


def test_every_link_leads_somewhere():
    found = {name: links for name in DOCUMENTS
             if (links := list(broken(name)))}
    assert found == {}
