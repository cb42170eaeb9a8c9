"""Log lines of a model: levels, the caller's file and line, threads, and each
part of its life."""

import re

import pytest

from lib import python_backend, process
from lib.python_backend import ask, differs, text, words

LIFE = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        pb.Logger.log_info("t in initialize")
    def execute(self, requests):
        logger = pb.Logger
        logger.log("t by log")
        logger.log("t by level", logger.WARNING)
        logger.log_info("t is info")
        logger.log_warn("t is warn")
        logger.log_error('t is "error"')
        logger.log_verbose("t is verbose")
        logger.log_info("t two\\nlines")
        return [pb.InferenceResponse([pb.Tensor("OUT",
            pb.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests]
    def finalize(self):
        pb.Logger.log_info("t in finalize")
"""

STATE = """\
sequence_batching { state [ { input_name: "KEPT" output_name: "KEPT"
    data_type: TYPE_STRING dims: [ 1 ] } ] }
"""


def fill(repository):
    python_backend.model(repository, "life", python_backend.TEXT, LIFE)
    python_backend.probe(repository)


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(
            fill, http="    inference_log info verbose=1 format=ISO8601;\n"
            "    inference_model_control explicit;\n"
            "    inference_load_model life;\n"
            "    inference_load_model probe;\n",
            log_level="debug", parts="health metadata config infer "
            "repository") as s:
        assert words(s.infer("life", text("x"))) == ["x"]
        yield s


def line(server, words_):
    """The log's line with these words."""
    server.wait_log(re.escape(words_))
    return next(row for row in server.log_text().splitlines()
                if words_ in row)


@pytest.mark.parametrize("words_,level", [
    ("t by log", "info"), ("t by level", "warn"), ("t is info", "info"),
    ("t is warn", "warn"), ("t is verbose", "info")])
def test_levels(server, words_, level):
    assert re.search(rf"\[({level})\]", line(server, words_))


def test_errors_keep_their_quotes(server):
    row = line(server, "t is ")
    assert process.wait_until(
        lambda: re.search(r't is \\?"error\\?"', server.log_text()), 5), row


@pytest.mark.parametrize("words_,number", [
    ("t in initialize", 5), ("t by log", 8), ("t by level", 9),
    ("t is warn", 11)])
def test_place(server, words_, number):
    assert f"model.py:{number}" in line(server, words_)


def test_lines_of_threads(server):
    ask(server, """
import threading
threads = [threading.Thread(
    target=lambda n=n: pb.Logger.log_info(f"t of thread {n}"))
    for n in range(5)]
for t in threads:
    t.start()
for t in threads:
    t.join()
""")
    for n in range(5):
        line(server, f"t of thread {n}")


def test_a_line_after_execute(server):
    ask(server, """
import threading
kept["timer"] = threading.Timer(0.05, pb.Logger.log_info, ["t much later"])
kept["timer"].start()
""")
    line(server, "t much later")


@differs("a line of the log is two there")
def test_line_breaks_stay_in_one_line(server):
    row = line(server, "t two")
    assert "lines" in row


def test_the_end(server):
    assert server.post("/v2/repository/models/life/unload",
                       b"{}").status == 200
    line(server, "t in finalize")


def test_what_is_printed(server):
    """stdout and stderr of a model are the server's."""
    ask(server, "import sys\nprint('t is printed', flush=True)\n"
                "print('t is printed to stderr', file=sys.stderr)")
    assert process.wait_until(
        lambda: "t is printed to stderr" in server.log_text()
        + server.stderr_text(), 5)


@differs("says nothing of states, which it does not keep either")
def test_states_that_nobody_keeps():
    def states(repository):
        python_backend.model(repository, "kept", python_backend.TEXT + STATE,
                             LIFE)

    with python_backend.serve(states) as s:
        assert "sequence_batching.state of" in line(
            s, 'model "kept": its backend does not act on ')
