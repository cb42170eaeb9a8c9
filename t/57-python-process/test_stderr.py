"""An interpreter's stderr before it begins is in the log, line by line, and its
end in the reason of a load that fails; its writers neither wait nor die."""

import re

import pytest

from lib import process, python_backend
from lib.python_backend import ECHO, INTERPRETER, TEXT
from lib.server import SLOW

SAYS = ECHO + """
import os
os.write(2, b"the model says this\\n")
"""
BEGIN = f'exec {INTERPRETER} "$@"\n'

# 100 KiB with one write(), which is no line before the last byte
WRITE = f"{INTERPRETER} -c 'import os; os.write(2, %s)'\n"
LONG = WRITE % 'b"x" * 102400 + b" its end\\n"'

# more than a pipe holds, and less than the log takes in a second
LINES = """\
i=0
while [ $i -lt 1500 ]; do
    echo "line $i of what it says, which is more than a pipe holds" >&2
    i=$((i + 1))
done
"""
SAID = [f"line {i} of what it says, which is more than a pipe holds"
        for i in range(1500)]

# a child that has stderr, and writes more than a pipe holds once it is told to
CHILD = """\
(
    echo $$ > DIR/pid
    while [ ! -e DIR/go ]; do sleep 0.02; done
    LINES
    echo "it has said all" >&2
    sleep 60
) &
"""


def serve(tmp_path, script, http="", shell="/bin/sh", model=ECHO, **kw):
    program = tmp_path / "python3"
    program.write_text(f"#!{shell}\n{script}")
    program.chmod(0o755)
    tmp_path.chmod(0o755)
    return python_backend.serve(
        lambda r: python_backend.model(r, "echo", TEXT, model),
        http=f"    inference_backend_config python interpreter={program};\n"
        + http, **kw)


def reason(tmp_path, script, http=""):
    """Why the model does not load; lines of the log that come from it."""
    with serve(tmp_path, script, "    inference_model_control explicit;\n"
               + http, parts="health repository") as s:
        answer = s.post("/v2/repository/models/echo/load", b"")
        assert answer.status == 400
        s.wait_log("model=echo version=1 failed to load")   # comes last
        return answer.json()["error"].split(" (instance ")[0], said(s)


def said(s):
    return re.findall(r"instance echo\w*: (.*)", s.log_text())


@pytest.mark.parametrize("last", ["echo 'No module named x' >&2",
                                  "printf 'No module named x' >&2",
                                  "echo 'No module named x' >/dev/stderr"])
def test_all_is_logged_and_the_end_is_the_reason(tmp_path, last):
    why, lines = reason(tmp_path, f"{LINES}{last}\nexit 1\n")
    begin, end = why.split(" before it could load the model: ")
    assert begin.endswith("exited with status 1")
    assert len(end) > 4000 and end.startswith("line ")
    assert end.endswith(f"{SAID[-1]}\nNo module named x")
    assert lines[:1501] == SAID + ["No module named x"]


def test_a_long_write(tmp_path):
    why, lines = reason(tmp_path, LONG + "exit 1\n")
    assert why.endswith("x" * 4000 + " its end")
    assert "".join(lines).count("x") >= 102400


def test_bytes_that_are_no_text(tmp_path):
    why, _ = reason(tmp_path, "printf '\\377\\033[1m\\n' >&2; exit 1\n")
    assert "could load the model: " in why


def test_one_that_says_nothing(tmp_path):
    why, lines = reason(tmp_path, "exit 3\n")
    assert why.endswith("exited with status 3 before it could load the model")
    assert len(lines) == 1


def test_one_that_does_not_begin(tmp_path):
    why, lines = reason(
        tmp_path, "echo 'it waits' >&2; exec sleep 60\n",
        "    inference_backend_config python stub-timeout-seconds=1;\n")
    assert why.endswith("stub-timeout-seconds: it waits")
    assert lines[0] == "it waits"


def test_one_that_begins(tmp_path):
    with serve(tmp_path, LINES + LONG + BEGIN) as s:
        s.wait_log("instance echo_0: x* its end")
        assert said(s)[:1500] == SAID
        assert "".join(said(s)).count("x") >= 102400


def test_a_verbose_interpreter(tmp_path):
    with serve(tmp_path, BEGIN.replace(' "$@"', ' -v "$@"')) as s:
        s.wait_log("instance echo_0: import _frozen_importlib #")
        s.wait_log("instance echo_0: import '_host_loop' #")


def test_a_child_that_goes_on(tmp_path):
    """After the start of its parent, until the parent ends."""
    child = CHILD.replace("DIR", str(tmp_path)).replace("LINES", LINES)
    with serve(tmp_path, child + BEGIN) as s:
        (tmp_path / "go").touch()
        s.wait_log("instance echo_0: it has said all", 20)
        assert said(s) == SAID + ["it has said all"]
    assert process.wait_until(lambda: not process.alive(
        int((tmp_path / "pid").read_text())), 5 * SLOW)


@pytest.mark.parametrize("to", ["DIR/own", ">(cat >DIR/own)"])
def test_a_redirection_stays(tmp_path, to):
    """Of a wrapper, to a file or another pipe."""
    (tmp_path / "own").touch()
    (tmp_path / "own").chmod(0o666)
    with serve(tmp_path, BEGIN.replace('"$@"', f'"$@" 2> {to}').replace(
            "DIR", str(tmp_path)), shell="/bin/bash", model=SAYS) as s:
        s.wait_log("model=echo version=1 is ready")
        assert process.wait_until(lambda: (tmp_path / "own").read_text()
                                  == "the model says this\n", 5 * SLOW)


def test_without_stderr(tmp_path):
    with serve(tmp_path, BEGIN.replace('"$@"', '"$@" 2>&-')) as s:
        s.wait_log("model=echo version=1 is ready")
