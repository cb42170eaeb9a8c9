"""README.md's way of one request: its numbers are those of the files."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib.server import ROOT  # noqa: E402

HEADING = "## The way of one request"
MOST_LINES = 6000       # beyond this the way needs another shape, not a number
ABOUT = 100             # lines by which README.md may differ

TEXT = (ROOT / "README.md").read_text()
SECTION = TEXT[TEXT.index(HEADING):].split("\n## ")[0]
INTRODUCTION = SECTION[:SECTION.index("\n1. ")]
STEPS = [" ".join(step.split()) for step in re.split(
    r"\n(?=\d+\. )", SECTION[len(INTRODUCTION):].split("\n\n")[0])[1:]]
FILES = [re.match(r"\d+\. `([\w/.]+)`", step)[1] for step in STEPS]


def said(pattern):
    """The number in the introduction's words."""
    found = re.search(pattern, INTRODUCTION)
    assert found, f'README.md, "{HEADING}": the introduction has no ' \
        f"words like {pattern!r}"
    return int(found[1].replace(",", ""))


def test_steps_are_numbered_and_each_is_a_file():
    numbers = [int(step.split(".")[0]) for step in STEPS]
    assert numbers == list(range(1, len(STEPS) + 1)), \
        f'README.md, "{HEADING}": the steps are numbered {numbers}'
    twice = {file for file in FILES if FILES.count(file) > 1}
    assert not twice, f'README.md, "{HEADING}": named twice: {twice}'
    missing = [file for file in FILES if not (ROOT / file).is_file()]
    assert not missing, \
        f'README.md, "{HEADING}": no such files: {missing}'


def test_the_number_of_files():
    number = said(r"names (\d+) files")
    assert number == len(FILES), \
        f'README.md, "{HEADING}": write "names {len(FILES)} files", ' \
        f"not {number}"


def test_the_number_of_lines():
    lines = {file: len((ROOT / file).read_text().splitlines())
             for file in FILES}
    total, number = sum(lines.values()), said(r"about ([\d,]+) lines")
    assert abs(total - number) <= ABOUT, \
        f'README.md, "{HEADING}": write "about {round(total, -2):,} lines", ' \
        f"not {number:,}; the files have {total:,}"
    assert total <= MOST_LINES, \
        f"the way of one request has {total:,} lines, more than " \
        f"{MOST_LINES:,}; the longest files: " \
        f"{sorted(lines, key=lines.get)[-3:]}"


def test_files_named_by_their_number():
    """As `in_flight.c` (6): the step of that number is that file."""
    named = re.findall(r"`?([\w.]+)`? \((\d+)\)", " ".join(STEPS))
    assert named, f'README.md, "{HEADING}": no step names another one'
    for name, number in named:
        file = FILES[int(number) - 1] if int(number) <= len(FILES) else None
        assert file and name.removesuffix(".c") in file, \
            f'README.md, "{HEADING}": "{name} ({number})" is {file}'


def test_files_that_only_answer():
    words = re.search(r"of which ([\d, and]+) only answer", INTRODUCTION)
    assert words, f'README.md, "{HEADING}": which files only answer?'
    numbers = [int(n) for n in re.findall(r"\d+", words[1])]
    assert numbers and all(1 < n <= len(FILES) for n in numbers), \
        f'README.md, "{HEADING}": of {len(FILES)} steps {numbers} only answer'
