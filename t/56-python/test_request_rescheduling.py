"""Requests that a model gives back to be executed again."""

import json

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

from lib import models, python_backend
from lib.front_end import Stream
from lib.python_backend import TELL, TEXT, differs, text, told

# answered at the third execution
THIRD = TELL + """
class TritonPythonModel:
    def initialize(self, args):
        self.seen = {}
    def execute(self, requests):
        answers = []
        for r in requests:
            key = r.request_id()
            self.seen[key] = self.seen.get(key, 0) + 1
            if self.seen[key] < 3:
                r.set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                answers.append(None)
            else:
                answers.append(tell([key, self.seen.pop(key)]))
        return answers
"""

# the same, with nothing in place of a list of nothing
THIRD_NONE = THIRD.replace(
    "return answers", "return answers if any(answers) else None")

# given back, and answered
BOTH = TELL + """
class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            r.set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            answers.append(tell("wrong"))
        return answers
"""

# given back by the first execution, whose sender answers after the second
LATE = TELL + """
import threading

class TritonPythonModel:
    def initialize(self, args):
        self.first = None
    def execute(self, requests):
        (request,) = requests
        sender = request.get_response_sender()
        if self.first is None:
            self.first = sender
            request.set_release_flags(
                pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            return None
        sender.send(tell("second"))
        first, self.first = self.first, None
        threading.Timer(0.1, lambda: first.send(tell("first"), 1)).start()
        return None
"""

# IN - 1, then one less each time, to 0
COUNTDOWN = """\
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.left = {}
    def execute(self, requests):
        for r in requests:
            key = r.correlation_id()
            start = int(pb.get_input_tensor_by_name(
                r, "IN").as_numpy().ravel()[0])
            left = self.left.get(key, start) - 1
            sender = r.get_response_sender()
            sender.send(pb.InferenceResponse([pb.Tensor(
                "OUT", np.array([[left]], np.int32))]))
            if left > 0:
                self.left[key] = left
                r.set_release_flags(pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
            else:
                self.left.pop(key, None)
                sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
"""
ITERATIVE = "sequence_batching { iterative_sequence: true }\n"


def fill(repository):
    batch = "max_batch_size: 1\n"
    for name, config, source in [
            ("third", batch + TEXT + ITERATIVE, THIRD),
            ("third_none", batch + TEXT + ITERATIVE, THIRD_NONE),
            ("both", batch + TEXT + ITERATIVE, BOTH),
            ("once", TEXT, THIRD),
            ("late", batch + TEXT + ITERATIVE
             + "model_transaction_policy { decoupled: true }\n", LATE),
            ("countdown", batch
             + models.io_block("input", [("IN", "INT32", [1])])
             + models.io_block("output", [("OUT", "INT32", [1])])
             + ITERATIVE
             + "model_transaction_policy { decoupled: true }\n", COUNTDOWN)]:
        python_backend.model(repository, name, config, source)


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
        yield s


def batched(word, **more):
    body = text(word, **more)
    body["inputs"][0]["shape"] = [1, 1]
    return body


@pytest.mark.parametrize("model", ["third", "third_none"])
def test_a_request_is_executed_again(server, model):
    for key in ("a", "b"):
        answer = server.infer(model, batched("x", id=key))
        assert told(answer) == [key, 3]


def test_several_requests_are_executed_again(server):
    tensor = grpcclient.InferInput("IN", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[b"x"]], dtype=object))
    with Stream(server.port2) as stream:
        for n in range(8):
            stream.send("third", [tensor], id=f"r{n}")
        answers = stream.wait(8)
    assert [e for _, e in answers] == [None] * 8
    assert sorted(json.loads(r.as_numpy("OUT").ravel()[0])
                  for r, _ in answers) == [[f"r{n}", 3] for n in range(8)]


def test_a_response_beside_it_is_an_error(server):
    answer = server.infer("both", batched("x"))
    assert answer.status == 500
    assert "Expected a None object in the execute function return list for " \
        "reschduled request" in answer.error


@differs("the core's error is not told there")
def test_a_model_without_iterative_sequences(server):
    """The core does not take it back: its client hears why, and the model
    goes on."""
    for key in ("a", "b"):
        for _ in range(2):
            answer = server.infer("once", text("x", id=key))
            assert answer.status == 400
            assert "not configured to handle such a flag" in answer.error
        assert told(server.infer("once", text("x", id=key))) == [key, 3]


def test_the_sender_of_an_execution_before(server):
    tensor = grpcclient.InferInput("IN", [1, 1], "BYTES")
    tensor.set_data_from_numpy(np.array([[b"x"]], dtype=object))
    for _ in range(2):
        with Stream(server.port2) as stream:
            stream.send("late", [tensor])
            answers = stream.wait(2)
        assert [e for _, e in answers] == [None] * 2
        assert [json.loads(r.as_numpy("OUT").ravel()[0])
                for r, _ in answers] == ["second", "first"]


@pytest.mark.parametrize("count", [1, 4])
def test_decoupled(server, count):
    tensor = grpcclient.InferInput("IN", [1, 1], "INT32")
    tensor.set_data_from_numpy(np.array([[count]], np.int32))
    with Stream(server.port2) as stream:
        stream.send("countdown", [tensor], enable_empty_final_response=True)
        answers = stream.wait(count + 1)
    assert [e for _, e in answers] == [None] * (count + 1)
    assert [int(r.as_numpy("OUT").ravel()[0]) for r, _ in answers[:-1]] \
        == list(range(count - 1, -1, -1))
    assert answers[-1][0].as_numpy("OUT") is None
