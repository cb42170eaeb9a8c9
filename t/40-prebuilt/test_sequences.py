"""Sequences through the prebuilt front end: gRPC streams, models in Python run
by the prebuilt backend, requests that answer each of their steps."""

import shutil

import pytest
from tritonclient.utils import InferenceServerException

from lib import backends, models, prebuilt, process
from lib.front_end import FrontEnd, tensor
from lib.sequences import ALL, END, LONG, READY, START, controls, corrid, state
from lib.server import SLOW

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

NUMBER = (models.io_block("input", [("IN", "INT32", [1])])
          + models.io_block("output", [("OUT", "INT32", [1])]))
ITERATIVE = LONG + ALL + "iterative_sequence: true\n"
DECOUPLED = "model_transaction_policy { decoupled: true }\n"

# A sum for each sequence, by what the controls say.
SUMS = """\
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.sums = {}
    def execute(self, requests):
        answers = []
        for request in requests:
            def given(name):
                return pb.get_input_tensor_by_name(
                    request, name).as_numpy().reshape(-1)[0]
            if not given("READY"):
                answers.append(pb.InferenceResponse([]))
                continue
            id = given("CORRID")
            assert id == request.correlation_id() or \\
                id.decode() == request.correlation_id()
            assert bool(given("START")) == bool(request.flags() & 1)
            assert bool(given("END")) == bool(request.flags() & 2)
            if given("START"):
                self.sums[id] = 0
            self.sums[id] += int(given("IN"))
            answers.append(pb.InferenceResponse([pb.Tensor(
                "OUT", numpy.array([[self.sums[id]]], dtype=numpy.int32))]))
        return answers
"""

# IN responses for a request, one an execution: IN - 1 down to 0.
COUNTDOWN = """\
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.left = {}
    def execute(self, requests):
        for request in requests:
            id = request.correlation_id()
            sender = request.get_response_sender()
            if not id:                      # it fills a slot
                sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
                continue
            if request.flags() & 1:
                self.left[id] = int(pb.get_input_tensor_by_name(
                    request, "IN").as_numpy().reshape(-1)[0])
            self.left[id] -= 1
            response = pb.InferenceResponse([pb.Tensor("OUT", numpy.array(
                [[self.left[id]]], dtype=numpy.int32))])
            if self.left[id] > 0:
                request.set_release_flags(
                    pb.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
                sender.send(response)
            else:
                sender.send(response,
                            flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def batching(words):
    return f"max_batch_size: 2\nsequence_batching {{ {words} }}\n" + NUMBER


def in_c(repository, name, words, does, more="", **parameters):
    """A model of t/backends/sequences, the library beside it."""
    place = repository / name
    (place / "1").mkdir(parents=True)
    shutil.copy(backends.build("sequences")
                / "sequences/libtriton_sequences.so", place)
    (place / "config.pbtxt").write_text(
        'backend: "sequences"\n' + batching(words) + more
        + models.parameter_block(dict(parameters, does=does)),
        encoding="utf-8")


def fill(repository):
    text = controls(START, END, READY, corrid("STRING"))
    for name, words in (
            ("sums", LONG + ALL), ("texts", LONG + text),
            ("oldest", LONG + ALL + "oldest { max_candidate_sequences: 4 }")):
        prebuilt.model(repository, name, batching(words), SUMS)
    prebuilt.model(repository, "countdown", batching(ITERATIVE) + DECOUPLED,
                   COUNTDOWN)
    in_c(repository, "state", LONG + ALL + state(), "sum")
    in_c(repository, "steps", ITERATIVE, "steps", DECOUPLED)
    in_c(repository, "later", ITERATIVE, "steps", DECOUPLED, later_ms=10)
    in_c(repository, "single", ITERATIVE.replace("600000000", "500000000")
         + "oldest { max_candidate_sequences: 1 }", "steps", DECOUPLED)
    in_c(repository, "endless", ITERATIVE, "steps", DECOUPLED, delay_ms=5)


@pytest.fixture(scope="module")
def server():
    with FrontEnd(fill, backends=prebuilt.folder(), metrics=True) as s:
        yield s


def one(value):
    return [tensor("IN", [value], "INT32", (1, 1))]


def number(result):
    return int(result.as_numpy("OUT").reshape(-1)[0])


def stops(server, model):
    """Whether nothing of the model runs or waits any more."""
    def executions():
        return server.http.get_inference_statistics(
            model)["model_stats"][0]["execution_count"]

    before = executions()
    return not process.wait_until(lambda: executions() != before, 0.5)


@pytest.mark.parametrize("model,ids", [
    ("sums", (1, 2)), ("texts", ("one", "two")), ("oldest", (1, 2, 3, 4))])
def test_sums_in_python(server, model, ids):
    """Several sequences on one stream; the answers of each are in order."""
    with server.stream() as stream:
        for step in range(4):
            for n, id in enumerate(ids):
                stream.send(model, one((n + 1) * 10 ** step), id=str(id),
                            sequence_id=id, sequence_start=step == 0,
                            sequence_end=step == 3)
        answers = stream.wait(4 * len(ids))
    assert not [e for r, e in answers if e], answers
    for n, id in enumerate(ids):
        got = [number(r) for r, e in answers
               if r.get_response().id == str(id)]
        assert got == [(n + 1) * s for s in (1, 11, 111, 1111)]


def test_a_state_over_grpc(server):
    """Unary calls and a stream go on with the same sequence."""
    assert number(server.grpc.infer("state", one(1), sequence_id=5,
                                    sequence_start=True)) == 1
    with server.stream() as stream:
        stream.send("state", one(10), sequence_id=5)
        ((result, error),) = stream.wait(1)
    assert error is None and number(result) == 11
    with pytest.raises(InferenceServerException, match="control 'CORRID'"):
        server.grpc.infer("state", one(1), sequence_id="5")
    assert number(server.grpc.infer("state", one(100), sequence_id=5,
                                    sequence_end=True)) == 111


@pytest.mark.parametrize("model", ["countdown", "steps", "later"])
def test_a_request_answers_each_step(server, model):
    """scheduling.md 4.18"""
    with server.stream() as stream:
        stream.send(model, one(5), enable_empty_final_response=True)
        answers = stream.wait(5)
        assert not [e for r, e in answers if e], answers
    got = [number(r) for r, e in answers]
    assert got == ([4, 3, 2, 1, 0] if model == "countdown"
                   else [1, 2, 3, 4, 5])


@pytest.mark.parametrize("model", ["countdown", "steps", "later", "single"])
def test_four_answer_their_steps(server, model):
    """scheduling.md 4.18: more than there are slots"""
    with server.stream() as stream:
        for i in range(4):
            stream.send(model, one(3 + i), id=str(i))
        answers = stream.wait(3 + 4 + 5 + 6)
    assert not [e for r, e in answers if e], answers
    for i in range(4):
        got = [number(r) for r, e in answers
               if r.get_response().id == str(i)]
        assert got == (list(range(2 + i, -1, -1)) if model == "countdown"
                       else list(range(1, 4 + i)))


def test_a_cancelled_stream_ends_the_steps(server):
    stream = server.stream()
    for i in range(3):              # two have slots, the third waits
        stream.send("endless", one(1000000), id=str(i))
    stream.wait(6)
    stream.cancel()
    stream.client.close()
    assert process.wait_until(lambda: stops(server, "endless"), 20 * SLOW)
    with server.stream() as again:
        again.send("endless", one(2))
        assert [number(r) for r, e in again.wait(2)] == [1, 2]


def test_a_stop_lets_sequences_end():
    """scheduling.md 9.2: what has begun goes on to its end, and no further"""
    def only(repository):
        in_c(repository, "state", LONG + ALL + state(), "sum")

    server = FrontEnd(only, arguments=["--exit-timeout-secs", "60"]).start()
    try:
        ask = server.grpc.infer
        assert number(ask("state", one(1), sequence_id=5,
                          sequence_start=True)) == 1
        server.process.terminate()

        def rejected():
            try:
                ask("state", one(1), sequence_id=6, sequence_start=True,
                    sequence_end=True)
            except InferenceServerException as e:
                assert "stopp" in e.message() or "exiting" in e.message(), e
                return True
            return False

        assert process.wait_until(rejected, 20 * SLOW)
        assert number(ask("state", one(10), sequence_id=5)) == 11
        assert server.process.poll() is None
        assert number(ask("state", one(100), sequence_id=5,
                          sequence_end=True)) == 111
        assert process.wait_until(
            lambda: server.process.poll() is not None, 30 * SLOW)
        assert server.process.poll() == 0, server.log_text()[-3000:]
    finally:
        if server.process.poll() is None:
            server.kill()
        else:
            server.close()
            server._remove()
