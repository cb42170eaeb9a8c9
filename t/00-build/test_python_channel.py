"""backends/python: both sides of its channel number what they send alike."""

import ast
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import c_source  # noqa: E402
from lib.server import ROOT  # noqa: E402

BACKEND = ROOT / "backends/python"

# of the channel's other side, which is native.c: it has channel.h itself
NATIVE = {"TAKEN"}


def c_numbers(text):
    """Tasks and calls by name; each enum counts from 1."""
    code = c_source.without_comments(text)
    found = {}
    for enum, prefix in (("py_task_t", "PY_TASK_"), ("py_up_t", "PY_UP_")):
        body = re.search(r"typedef enum \{([^}]*)\} %s;" % enum, code)[1]
        rows = [row.split("=") for row in body.split(",")]
        assert rows[0][1].strip() == "1"
        assert not any(len(row) > 1 for row in rows[1:])
        for number, row in enumerate(rows, 1):
            name = row[0].strip().removeprefix(prefix)
            assert name not in found, f"{name} is a task and a call"
            found[name] = number
    return found


def python_numbers(text):
    """The names of each assignment A, B, C = range(1, 4)."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) \
                and getattr(node.value.func, "id", "") == "range":
            names = [n.id.lstrip("_") for n in node.targets[0].elts]
            first, end = (a.value for a in node.value.args)
            assert end - first == len(names)
            found.update(zip(names, range(first, end)))
    return found


def differences(header, module):
    theirs = {name: number for name, number in c_numbers(header).items()
              if name not in NATIVE}
    return set(theirs.items()) ^ set(python_numbers(module).items())


HEADER = (BACKEND / "channel.h").read_text()
MODULE = (BACKEND / "package/_host_channel.py").read_text()


def test_tasks_and_calls_have_the_same_numbers():
    assert len(c_numbers(HEADER)) > 25
    assert not differences(HEADER, MODULE)


def test_a_call_that_one_side_lacks_is_found():
    more = HEADER.replace("PY_UP_LOG,", "PY_UP_LOG,\n    PY_UP_NEW,")
    assert more != HEADER
    assert ("NEW", 5) in differences(more, MODULE)
