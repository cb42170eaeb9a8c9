"""The process of a model is killed: its request fails, the next one is served,
and nobody else notices."""

import os
import re
import signal
import threading

import pytest

from lib import models, process, python_backend
from lib.python_backend import TEXT, differs, text, words
from lib.server import SLOW

# a word, or what it does to its process
PID = """\
import os
import pathlib
import time
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.place = pathlib.Path(args["model_repository"])
        while (self.place / "hold").exists():
            time.sleep(0.02)
        if (self.place / "dies").exists():
            os._exit(3)
    def execute(self, requests):
        answers = []
        for r in requests:
            word = pb.get_input_tensor_by_name(r, "IN").as_numpy()[0]
            if word == b"stay":
                (self.place / "stays").touch()
                time.sleep(60)
            if word == b"exit":
                os._exit(3)
            if word == b"crash":
                import ctypes
                import signal       # a sanitizer would report it
                signal.signal(signal.SIGSEGV, signal.SIG_DFL)
                ctypes.string_at(0)
            answers.append(pb.InferenceResponse([pb.Tensor("OUT", np.array(
                [str(os.getpid()).encode()], dtype=object))]))
        return answers
"""


def fill(repository):
    for name in ("one", "other"):
        python_backend.model(repository, name, TEXT, PID)
        (repository / name).chmod(0o777)
    models.identity(repository, "copy", [("IN", "INT32", [-1])])


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
        yield s


def pid(server, name="one"):
    return int(words(server.infer(name, text("x")))[0])


def next_pid(server, before):
    """The process that serves after it."""
    assert server.wait_for("/v2/models/one/ready")
    now = process.wait_until(
        lambda: server.infer("one", text("x")).status == 200
        and pid(server) != before and pid(server), 20 * SLOW)
    assert now and now != before
    return now


@pytest.mark.parametrize("word", ["exit", "crash"])
def test_a_process_that_ends(server, word):
    before, other, core = pid(server), pid(server, "other"), server.core()
    answer = server.infer("one", text(word))
    assert answer.status in (500, 503)
    assert "Stub process 'one_0" in answer.error
    assert "is not healthy" in answer.error
    next_pid(server, before)
    assert pid(server, "other") == other
    assert server.core() == core


def test_a_process_that_is_killed_in_execute(server):
    before, other = pid(server), pid(server, "other")
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(server.infer("one", text("stay"))))
    thread.start()
    assert process.wait_until(
        (server.models / "one/stays").exists, 20 * SLOW)
    os.kill(before, signal.SIGKILL)
    thread.join(20 * SLOW)
    assert answers and answers[0].status in (500, 503)
    assert "is not healthy" in answers[0].error
    next_pid(server, before)
    assert pid(server, "other") == other
    (server.models / "one/stays").unlink()


def test_a_process_that_is_killed_while_it_is_idle(server):
    before = pid(server)
    os.kill(before, signal.SIGKILL)
    assert next_pid(server, before) != before


@differs("2.51 asks no instance")
def test_a_model_without_its_process_is_not_ready(server):
    before, hold = pid(server), server.models / "one/hold"
    hold.touch()
    os.kill(before, signal.SIGKILL)
    assert process.wait_until(
        lambda: server.status("/v2/models/one/ready") == 400, 20 * SLOW)
    server.wait_log(r"Model 'one' version 1 is not ready: Stub process "
                    r"'one_0\S*' is not healthy\.\n")
    hold.unlink()
    next_pid(server, before)


@differs("2.51 asks no instance")
def test_a_process_that_dies_before_it_serves(server):
    before, dies = pid(server), server.models / "one/dies"
    dies.touch()
    os.kill(before, signal.SIGKILL)
    assert process.wait_until(lambda: server.get(
        "/v2/models/one/ready").status == 400 and re.search(
            r"is not ready: Stub process 'one_0\S*' is not healthy\. The "
            r"interpreter exited with status 3 before it had initialized its "
            r"model\n", server.log_text()), 20 * SLOW)
    dies.unlink()
    next_pid(server, before)


def test_nothing_is_left_of_them(server):
    assert process.wait_until(lambda: not [
        p for p in process.descendants(server.core())
        if process.stat(p) and process.stat(p)[1] in "ZX"], 10 * SLOW)
