"""A stub of the python backend dies: its model fails with a reason and comes
back, nothing else is touched, nothing is left.

The prebuilt backend starts no second stub: the core loads the model again.
"""

import os
import re
import signal
import threading
import uuid

import pytest
from tritonclient.utils import InferenceServerException

from lib import models, prebuilt, process, wire
from lib.front_end import FrontEnd, tensor
from lib.server import SLOW, Server, shm_names

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TEXT = (models.io_block("input", [("IN", "BYTES", [-1])])
        + models.io_block("output", [("OUT", "BYTES", [-1])]))

PID = """\
import os
import pathlib
import time
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.place = pathlib.Path(args["model_repository"])
    def execute(self, requests):
        answers = []
        for request in requests:
            word = pb.get_input_tensor_by_name(request, "IN").as_numpy()[0]
            if word == b"stay":
                (self.place / "stays").touch()
                time.sleep(60)
            if word == b"die":
                os._exit(3)
            answers.append(pb.InferenceResponse([pb.Tensor(
                "OUT", numpy.array([str(os.getpid()).encode()],
                                   dtype=object))]))
        return answers
"""

CALLER = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            response = pb.InferenceRequest(
                model_name="called", requested_output_names=["OUT"],
                inputs=request.inputs()).exec()
            answers.append(pb.InferenceResponse(
                error=pb.TritonError("called: " + response.error().message()))
                if response.has_error()
                else pb.InferenceResponse(response.output_tensors()))
        return answers
"""

STREAM = """\
import os
import threading
import time
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.answer, args=(
                request.get_response_sender(),)).start()
    def answer(self, sender):
        while not sender.is_cancelled():
            sender.send(pb.InferenceResponse([pb.Tensor(
                "OUT", numpy.array([str(os.getpid()).encode()],
                                   dtype=object))]))
            time.sleep(0.1)
        sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# Dies by itself as soon as it serves, again and again.
CRASHER = """\
import os
import threading

class TritonPythonModel:
    def initialize(self, args):
        threading.Timer(0.2, os._exit, (4,)).start()
    def execute(self, requests):
        return []
"""


def fill(repository):
    # one model a test: one that dies often waits longer and longer
    for name in ("pid", "other", "noisy", "leaver", "sitter", "called"):
        prebuilt.model(repository, name, TEXT, PID)
    prebuilt.model(repository, "caller", TEXT, CALLER)
    prebuilt.model(repository, "stream", TEXT
                   + "model_transaction_policy { decoupled: true }\n", STREAM)


def ask(word="x"):
    return {"inputs": [wire.tensor("IN", "BYTES", [1], [word])]}


def regions(prefix):
    return [name for name in shm_names() if name.startswith(prefix)]


@pytest.fixture(scope="module")
def nginx():
    prefix = f"inf_t_{uuid.uuid4().hex}"
    with Server(fill, backends=prebuilt.folder(),
                inference_env=prebuilt.environment(),
                http="    inference_backend_config python "
                     f"shm-region-prefix-name={prefix};") as s:
        s.regions = len(regions(prefix))
        yield s
        assert process.wait_until(
            lambda: len(regions(prefix)) == s.regions, 20)
    assert not regions(prefix)


@pytest.fixture(scope="module")
def front_end():
    with FrontEnd(fill, backends=prebuilt.folder()) as s:
        yield s


def stub_of(server, model="pid"):
    """The pid of a model's stub, once it serves."""
    def pid():
        answer = server.infer(model, ask())
        if answer.status != 200:
            # what there is to say meanwhile
            assert answer.status in (500, 503), answer
            assert re.search("not healthy|not at ready state|not ready|was "
                             "killed|exited with|stopped accepting",
                             answer.error), \
                answer
            return 0
        return int(answer.json()["outputs"][0]["data"][0])

    found = process.wait_until(pid, 30 * SLOW, 0.05)
    assert found, server.log_text()[-4000:]
    return found


def test_a_killed_stub_comes_back(nginx):
    core, other = nginx.core(), stub_of(nginx, "other")
    dead = stub_of(nginx)
    for _ in range(2):
        os.kill(dead, signal.SIGKILL)
        nginx.wait_log(rf"model=pid version=1: process {dead} "
                       r"\(triton_python_b\) of instance 'pid_0' was killed "
                       r"by signal 9 \(Killed\)")
        again = stub_of(nginx)
        assert again != dead
        dead = again
    assert nginx.core() == core
    assert stub_of(nginx, "other") == other


def test_others_answer_meanwhile(nginx):
    """Not one request to another model fails or starts anything."""
    stop = threading.Event()
    statuses = []

    def ask_other():
        while not stop.is_set():
            statuses.append(nginx.infer("other", ask()).status)

    thread = threading.Thread(target=ask_other)
    thread.start()
    try:
        os.kill(stub_of(nginx, "noisy"), signal.SIGKILL)
        stub_of(nginx, "noisy")
    finally:
        stop.set()
        thread.join()
    assert statuses and set(statuses) == {200}


def test_a_stub_that_leaves_in_a_request(nginx):
    answer = nginx.infer("leaver", ask("die"))
    assert answer.status in (500, 503), answer
    assert re.search("not healthy|exited with status 3", answer.error)
    nginx.wait_log("of instance 'leaver_0' exited with status 3")
    stub_of(nginx, "leaver")


def test_a_request_in_the_stub_is_answered(nginx):
    dead = stub_of(nginx, "sitter")
    answers = []
    thread = threading.Thread(target=lambda: answers.append(
        nginx.infer("sitter", ask("stay"))))
    thread.start()
    assert process.wait_until(
        (nginx.models / "sitter" / "stays").exists, 20 * SLOW)
    os.kill(dead, signal.SIGKILL)
    thread.join(30 * SLOW)
    assert answers and answers[0].status in (500, 503)
    stub_of(nginx, "sitter")


def test_a_caller_outlives_the_called(nginx):
    called = stub_of(nginx, "caller")       # the pid of what it calls
    assert called == stub_of(nginx, "called")
    os.kill(called, signal.SIGKILL)
    assert stub_of(nginx, "caller") == stub_of(nginx, "called") != called


def test_a_stream_ends_with_the_reason(front_end):
    with front_end.stream() as stream:
        stream.send("stream", [tensor("IN", ["x"], "BYTES")])
        dead = int(stream.wait(3)[0][0].as_numpy("OUT")[0])
        os.kill(dead, signal.SIGKILL)
        assert process.wait_until(
            lambda: stream.answers[-1][1] is not None, 30 * SLOW, 0.05)
        assert f"process {dead} (triton_python_b) of instance 'stream_0' " \
            "was killed by signal 9 (Killed)" \
            in stream.answers[-1][1].message()

    def again():
        with front_end.stream() as stream:
            stream.send("stream", [tensor("IN", ["x"], "BYTES")])
            result, _ = stream.wait(1)[0]
            stream.cancel()
            return result is not None

    assert process.wait_until(again, 30 * SLOW, 0.2)


def test_the_index_names_the_reason_until_it_serves_again(front_end):
    seen = set()

    def row():
        rows = front_end.http.get_model_repository_index()
        row = [r for r in rows if r["name"] == "pid"][0]
        seen.add((row["state"], row.get("reason", "")))
        return row["state"] == "READY"

    result = front_end.grpc.infer("pid", [tensor("IN", ["x"], "BYTES")])
    dead = int(result.as_numpy("OUT")[0])
    os.kill(dead, signal.SIGKILL)
    assert process.wait_until(lambda: not row(), 10, 0.002)
    assert process.wait_until(row, 30 * SLOW, 0.02)
    assert {state for state, _ in seen} <= {"READY", "UNAVAILABLE", "LOADING"}
    assert any(f"process {dead} " in reason for _, reason in seen) \
        or ("LOADING", "") in seen


def test_requests_are_told_why(front_end):
    """A model that isn't ready says what has happened to it."""
    result = front_end.grpc.infer("pid", [tensor("IN", ["x"], "BYTES")])
    dead = int(result.as_numpy("OUT")[0])
    os.kill(dead, signal.SIGKILL)
    texts = set()

    def serves():
        try:
            front_end.grpc.infer("pid", [tensor("IN", ["x"], "BYTES")])
            return True
        except InferenceServerException as e:
            texts.add(e.message())
            return False

    assert process.wait_until(serves, 30 * SLOW, 0.01)
    assert any(f"it is loaded again, process {dead} (triton_python_b) of "
               "instance 'pid_0' was killed by signal 9 (Killed)" in t
               for t in texts), texts


def test_a_crashing_stub_does_not_spin(make_server):
    prefix = f"inf_t_{uuid.uuid4().hex}"

    def crasher(repository):
        prebuilt.model(repository, "crasher", TEXT, CRASHER)
        prebuilt.model(repository, "pid", TEXT, PID)

    server = make_server(
        crasher, backends=prebuilt.folder(),
        inference_env=prebuilt.environment(), wait="live",
        http="    inference_backend_config python "
             f"shm-region-prefix-name={prefix};")
    lost = "model=crasher version=1: .* exited with status 4; "
    server.wait_log(lost + "it is loaded again now", 30)
    server.wait_log(lost + "it is loaded again in 1 s", 30)
    server.wait_log(lost + "it is loaded again in 2 s", 30)
    stub_of(server)
    server.stop()
    assert not regions(prefix)
