"""A sender that is kept after its request was given back, and the end of the
interpreter that keeps it."""

import json
import pathlib

import pytest

from lib import process, python_backend
from lib.exposition import wait_executing
from lib.front_end import Stream, tensor
from lib.server import SLOW

# gives "again" back once, when the test says so, and keeps its sender
KEEPER = python_backend.TELL + """
import os, pathlib, signal, time

HERE = pathlib.Path(__file__).parent

class TritonPythonModel:
    def execute(self, requests):
        (request,) = requests
        word = pb.get_input_tensor_by_name(request, "IN").as_numpy()[0][0]
        sender = request.get_response_sender()
        if word == b"kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == b"leave" and hasattr(self, "kept"):
            return None             # that one is to answer
        if word != b"after" and not (HERE / "begun").exists():
            self.kept = sender
            (HERE / "begun").touch()
            while not (HERE / "go").exists():
                time.sleep(0.01)
            request.set_release_flags(
                pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return None
        sender.send(tell(word.decode()),
                    pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
"""


def fill(repository):
    python_backend.model(
        repository, "keeper", "max_batch_size: 1\n" + python_backend.TEXT
        + "model_transaction_policy { decoupled: true }\n"
        + "sequence_batching { iterative_sequence: true"
        " oldest { max_candidate_sequences: 4 } }\n", KEEPER)


@pytest.fixture
def server():
    with python_backend.serve(
            fill, parts="health metadata config infer metrics") as s:
        s.folder = pathlib.Path(s.models) / "keeper/1"
        s.folder.chmod(0o777)
        yield s


def said(answer):
    result, error = answer
    return str(error) if error else json.loads(
        result.as_numpy("OUT").ravel()[0])


def test_a_request_given_back_fails_with_no_interpreter_but_its_own(server):
    """It waits for its next execution when the interpreter ends, which then
    is one of the next interpreter."""
    with Stream(server.port2) as first, Stream(server.port2) as second:
        first.send("keeper", [tensor("IN", ["again"], "BYTES", [1, 1])])
        assert process.wait_until((server.folder / "begun").exists, 20 * SLOW)
        second.send("keeper", [tensor("IN", ["kill"], "BYTES", [1, 1])])
        wait_executing(server, 1, 1)
        (server.folder / "go").touch()
        assert "is not healthy" in said(second.wait(1)[0])
        assert said(first.wait(1)[0]) == "again"
        first.send("keeper", [tensor("IN", ["after"], "BYTES", [1, 1])])
        assert [said(a) for a in first.wait(2)] == ["again", "after"]


def test_a_request_that_only_a_kept_sender_would_answer(server):
    """The server ends it when the interpreter does."""
    (server.folder / "go").touch()
    with Stream(server.port2) as first, Stream(server.port2) as second:
        first.send("keeper", [tensor("IN", ["leave"], "BYTES", [1, 1])])
        assert process.wait_until((server.folder / "begun").exists, 20 * SLOW)
        wait_executing(server, 0)
        assert first.answers == []
        second.send("keeper", [tensor("IN", ["kill"], "BYTES", [1, 1])])
        assert "is not healthy" in said(second.wait(1)[0])
        assert "released the request without a final response" in said(
            first.wait(1)[0])
