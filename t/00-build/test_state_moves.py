"""A state with a table of permitted moves is written by one function, which
asserts the move."""

import pathlib
import re
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import c_source  # noqa: E402
from lib.server import ROOT  # noqa: E402

# The first word of the states, and the function that moves them.
MOVERS = {
    "INF_MODEL_": ("core/repository/model_set.c", "move"),
    "INF_VERSION_": ("core/repository/model_record.c",
                     "inf_record_version_move"),
    "INF_REPOSITORY_": ("core/repository/repository.c", "move_locked"),
    "INF_REQUEST_": ("core/tensor/request.c", "inf_request_move"),
}


@pytest.mark.parametrize("states", MOVERS)
def test_no_other_function_writes_the_state(states):
    written = re.compile(rf"[\w\])](?:->|\.)state = {states}")
    assert [f"{path.relative_to(ROOT)}: {match[0]}"
            for path in sorted((ROOT / "core").rglob("*.c"))
            for match in written.finditer(
                c_source.without_comments(path.read_text()))] == []


@pytest.mark.parametrize("file, name", MOVERS.values())
def test_the_function_asserts_the_move(file, name):
    code = c_source.without_comments((ROOT / file).read_text())
    begin = re.search(rf"^{name}\([^;{{}}]*\)\n\{{", code, re.M).end()
    body = code[begin:c_source.closed_by(code, begin)]
    assert re.search(r"assert\([^;]*may_become", body)
