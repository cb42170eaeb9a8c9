"""Decoupled models through the prebuilt front end: gRPC streams, cancels.

`streamer` is in Python, run by the prebuilt backend; `repeat` and `square` are
backends of our own.
"""


import numpy
import pytest
from tritonclient.utils import InferenceServerException

from lib import decoupled, models, prebuilt, process
from lib.front_end import FrontEnd, repeat_inputs, tensor

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

NUMBERS = (models.io_block("input", [("IN", "INT32", [-1])])
           + models.io_block("output", [("OUT", "INT32", [-1])]))
DECOUPLED = NUMBERS + "model_transaction_policy { decoupled: true }\n"

# IN: how many responses, ms before each, at which one an error comes (-1:
# none).  A thread a request, so that requests run side by side.
STREAMER = """\
import threading
import time
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            wish = pb.get_input_tensor_by_name(request, "IN").as_numpy()
            threading.Thread(target=self.answer, args=(
                request.get_response_sender(), *wish)).start()
    def answer(self, sender, count, delay, fail):
        for i in range(count):
            time.sleep(delay / 1000)
            if i == fail:
                sender.send(pb.InferenceResponse(
                    error=pb.TritonError(f"no number {i}")))
                continue
            sender.send(pb.InferenceResponse([pb.Tensor(
                "OUT", numpy.array([i], dtype=numpy.int32))]))
        sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# Sends until it is told that nobody wants more; then says so in a file.
ENDLESS = """\
import pathlib
import threading
import time
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.place = pathlib.Path(args["model_repository"])
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.answer, args=(
                request.get_response_sender(), request.request_id())).start()
    def answer(self, sender, id):
        i = 0
        while not sender.is_cancelled():
            sender.send(pb.InferenceResponse([pb.Tensor(
                "OUT", numpy.array([i], dtype=numpy.int32))]))
            i += 1
            time.sleep(0.02)
        (self.place / f"cancelled-{id}").touch()
        sender.send(pb.InferenceResponse(error=pb.TritonError(
            "cancelled", pb.TritonError.CANCELLED)),
            flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# One answer, after it was told that nobody wants it or after 20 s.
PATIENT = """\
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
            (self.place / f"started-{request.request_id()}").touch()
            until = time.monotonic() + 20
            while time.monotonic() < until and not request.is_cancelled():
                time.sleep(0.02)
            if request.is_cancelled():
                (self.place / f"cancelled-{request.request_id()}").touch()
                answers.append(pb.InferenceResponse(error=pb.TritonError(
                    "cancelled", pb.TritonError.CANCELLED)))
                continue
            answers.append(pb.InferenceResponse([pb.Tensor(
                "OUT", numpy.array([1], dtype=numpy.int32))]))
        return answers
"""


def fill(repository):
    decoupled.repeat(repository)
    decoupled.square(repository)
    prebuilt.model(repository, "streamer", DECOUPLED, STREAMER)
    prebuilt.model(repository, "endless", DECOUPLED, ENDLESS)
    prebuilt.model(repository, "patient", NUMBERS, PATIENT)


@pytest.fixture(scope="module")
def server():
    with FrontEnd(fill, backends=prebuilt.folder()) as s:
        yield s


def number(result, name="OUT"):
    return int(result.as_numpy(name)[0])


def final(result):
    return result.get_response().parameters["triton_final_response"].bool_param


def test_a_python_model_sends_many(server):
    with server.stream() as stream:
        stream.send("streamer", [tensor("IN", [5, 0, -1], "INT32")], id="many")
        answers = stream.wait(5)
    assert [number(r) for r, e in answers] == [0, 1, 2, 3, 4]
    assert all(r.get_response().id == "many" for r, e in answers)
    assert not any(final(r) for r, e in answers)


def test_the_end_is_told_on_request(server):
    with server.stream() as stream:
        stream.send("streamer", [tensor("IN", [2, 0, -1], "INT32")],
                    enable_empty_final_response=True)
        answers = stream.wait(3)
    assert [number(r) for r, e in answers[:2]] == [0, 1]
    last = answers[2][0]
    assert final(last) and not last.get_response().outputs


def test_none_at_all(server):
    with server.stream() as stream:
        stream.send("streamer", [tensor("IN", [0, 0, -1], "INT32")],
                    enable_empty_final_response=True)
        (last, error), = stream.wait(1)
    assert error is None and final(last)


def test_two_requests_share_a_stream(server):
    """scheduling.md 1.11

    The second is quicker: it overtakes, and each keeps its order."""
    with server.stream() as stream:
        stream.send("streamer", [tensor("IN", [4, 300, -1], "INT32")],
                    id="slow")
        stream.send("streamer", [tensor("IN", [4, 10, -1], "INT32")],
                    id="quick")
        answers = stream.wait(8)
    came = [(r.get_response().id, number(r)) for r, e in answers]
    for who in ("slow", "quick"):
        assert [n for id_, n in came if id_ == who] == [0, 1, 2, 3]
    assert came.index(("quick", 3)) < came.index(("slow", 3))


def test_an_error_in_the_middle_does_not_end_it(server):
    with server.stream() as stream:
        stream.send("streamer", [tensor("IN", [3, 0, 1], "INT32")])
        answers = stream.wait(3)
    assert number(answers[0][0]) == 0
    assert "no number 1" in answers[1][1].message()
    assert number(answers[2][0]) == 2


def test_a_cancelled_stream_reaches_the_model(server):
    told = server.models / "endless" / "cancelled-stream"
    stream = server.stream()
    stream.send("endless", [tensor("IN", [0], "INT32")], id="stream")
    stream.wait(3)
    assert not told.exists()
    stream.cancel()
    assert process.wait_until(told.exists, 20)
    stream.client.close()


def test_a_cancelled_call_reaches_the_model(server):
    place = server.models / "patient"
    came = []
    call = server.grpc.async_infer(
        "patient", [tensor("IN", [0], "INT32")], request_id="call",
        callback=lambda result, error: came.append((result, error)))
    assert process.wait_until((place / "started-call").exists, 20)
    call.cancel()
    assert process.wait_until((place / "cancelled-call").exists, 20)
    assert process.wait_until(lambda: came, 20)
    assert "ancelled" in came[0][1].message().capitalize()


@pytest.mark.parametrize("count", [0, 1, 5, 100])
def test_repeat_sends_as_many(server, count):
    """scheduling.md 1.7 and 1.10"""
    numbers = list(range(10, 10 + count))
    with server.stream() as stream:
        stream.send("repeat", repeat_inputs(numbers),
                    enable_empty_final_response=True)
        answers = stream.wait(count + 1)
    assert [number(r) for r, e in answers[:-1]] == numbers
    assert [number(r, "IDX") for r, e in answers[:-1]] == list(range(count))
    assert final(answers[-1][0])


def test_repeat_answers_after_its_request_is_released(server):
    """scheduling.md 1.11 and 2.10

    Execute has returned long before the last answer: the only instance
    takes the second request meanwhile."""
    with server.stream() as stream:
        stream.send("repeat", repeat_inputs([1, 2, 3, 4], 500), id="first")
        stream.send("repeat", repeat_inputs([5, 6], 0), id="second")
        answers = stream.wait(6)
    came = [(r.get_response().id, number(r)) for r, e in answers]
    assert came[:2] == [("second", 5), ("second", 6)]
    assert came[2:] == [("first", n) for n in (1, 2, 3, 4)]


def test_repeat_is_cancelled(server):
    """More responses than anybody waits for; the end of the server, which
    finalizes the instance, waits for what runs."""
    stream = server.stream()
    stream.send("repeat", repeat_inputs([7] * 10000, 100))
    stream.wait(2)
    stream.cancel()
    stream.client.close()
    cancelled = process.wait_until(lambda: sum(
        row["cancel"]["count"] for row in server.http.get_inference_statistics(
            "repeat")["model_stats"][0]["response_stats"].values()), 20)
    assert cancelled == 1


def test_bad_inputs_of_repeat(server):
    with server.stream() as stream:
        stream.send("repeat", [tensor("IN", [1, 2], "INT32"),
                               tensor("DELAY", [0], "UINT32"),
                               tensor("WAIT", [0], "UINT32")])
        (result, error), = stream.wait(1)
    assert result is None
    assert "expected IN and DELAY shape to match, got [2] and [1]" \
        in error.message()


@pytest.mark.parametrize("count", [1, 3, 50])
def test_square_ends_with_its_last_response(server, count):
    with server.stream() as stream:
        stream.send("square", [tensor("IN", [count], "INT32")],
                    enable_empty_final_response=True)
        answers = stream.wait(count)
    assert [number(r) for r, e in answers] == [count] * count
    assert [final(r) for r, e in answers] == [False] * (count - 1) + [True]


def test_square_ends_with_an_error(server):
    with server.stream() as stream:
        stream.send("square", [tensor("IN", [-2], "INT32")])
        answers = stream.wait(3)
    assert [number(r) for r, e in answers[:2]] == [-2, -2]
    assert "a negative number ends like this" in answers[2][1].message()


def test_a_plain_model_streams_too(server):
    with server.stream() as stream:
        stream.send("patient", [tensor("IN", [0], "INT32")], id="x")
        assert process.wait_until(
            (server.models / "patient" / "started-x").exists, 20)
        stream.cancel()
        assert process.wait_until(
            (server.models / "patient" / "cancelled-x").exists, 20)


@pytest.mark.parametrize("model", ["repeat", "streamer"])
def test_one_answer_calls_are_rejected(server, model):
    inputs = repeat_inputs([1]) if model == "repeat" \
        else [tensor("IN", [1, 0, -1], "INT32")]
    with pytest.raises(InferenceServerException,
                       match="doesn't support models with decoupled"):
        server.grpc.infer(model, inputs)


def test_many_streams_at_once(server):
    streams = [server.stream() for _ in range(8)]
    for round_ in range(3):
        for i, stream in enumerate(streams):
            stream.send("repeat", repeat_inputs([i] * 20, 1), id=str(round_))
            stream.send("square", [tensor("IN", [i + 1], "INT32")])
    for i, stream in enumerate(streams):
        answers = stream.wait(3 * (20 + i + 1))
        assert all(e is None for r, e in answers)
        mine = [number(r) for r, e in answers
                if r.get_response().model_name == "repeat"]
        assert mine == [i] * 60
        stream.client.stop_stream()
        stream.client.close()


def test_responses_are_counted(server):
    rows = server.http.get_inference_statistics("square")["model_stats"]
    assert rows[0]["name"] == "square" and rows[0]["version"] == "1"
    rows = server.http.get_inference_statistics("repeat")["model_stats"][0]
    assert rows["response_stats"]["0"]["success"]["count"] >= 3
    assert numpy.all([rows["response_stats"][i]["success"]["count"]
                      >= rows["response_stats"][str(int(i) + 1)]["success"]
                      ["count"] for i in ("0", "1", "2")])


