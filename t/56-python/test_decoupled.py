"""Models that answer a request any number of times, over gRPC streams and
generate_stream."""

import json
import pathlib

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

from lib import models, process, python_backend
from lib.front_end import Stream
from lib.python_backend import TELL, differs, text
from lib.server import SLOW

NUMBERS = models.io_block("input", [("IN", "INT32", [-1])]) \
    + models.io_block("output", [("OUT", "INT32", [1])]) \
    + "model_transaction_policy { decoupled: true }\n"
WORDS = python_backend.TEXT \
    + "model_transaction_policy { decoupled: true }\n"

# IN, one number a response; from execute, or from a thread after it
REPEAT = """\
import threading
import numpy as np
import triton_python_backend_utils as pb

FINAL = pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL

class TritonPythonModel:
    def initialize(self, args):
        self.later = "later" in args["model_name"]
        self.threads = []
    def execute(self, requests):
        for request in requests:
            x = pb.get_input_tensor_by_name(request, "IN").as_numpy().copy()
            sender = request.get_response_sender()
            if self.later:
                self.threads.append(threading.Thread(
                    target=self.send, args=(sender, x)))
                self.threads[-1].start()
            else:
                self.send(sender, x)
        return None
    def send(self, sender, x):
        for n in x:
            sender.send(pb.InferenceResponse([
                pb.Tensor("OUT", np.array([n], np.int32))]))
        sender.send(flags=FINAL)
    def finalize(self):
        for t in self.threads:
            t.join()
"""

# the last response and the end in one call
LAST = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            r.get_response_sender().send(pb.InferenceResponse([pb.Tensor(
                "OUT", pb.get_input_tensor_by_name(r, "IN").as_numpy()[:1])]),
                flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""

# answers nothing
FORGET = """\
class TritonPythonModel:
    def execute(self, requests):
        return None
"""

# by the word: what it does that is wrong
WRONG = TELL + """
class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            word = pb.get_input_tensor_by_name(r, "IN").as_numpy()[0].decode()
            sender = r.get_response_sender()
            if word == "raise":
                sender.send(tell("one"))
                raise ValueError("in the midst of it")
            if word == "return":
                return [tell("returned")]
            if word == "error":
                sender.send(pb.InferenceResponse(error=pb.TritonError(
                    "said so", pb.TritonError.UNAVAILABLE)), 1)
                continue
            said = []
            for call in CALLS.get(word, []):
                try:
                    call(sender)
                    said.append("")
                except pb.TritonModelException as e:
                    said.append(str(e))
            if word == "closed":
                sender.send(flags=1)
                try:
                    sender.send(tell("too late"))
                except pb.TritonModelException as e:
                    with open(__file__ + ".said", "w") as f:
                        f.write(str(e))
            else:
                sender.send(tell(said), 1)
        return None

CALLS = {
    "nothing": [lambda s: s.send(), lambda s: s.send(None, 0)],
    "flags": [lambda s: s.send(tell("x"), 2), lambda s: s.send(flags=99)],
}
"""

# sends until it is cancelled
ENDLESS = """\
import pathlib
import time
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.place = pathlib.Path(args["model_repository"])
    def execute(self, requests):
        for r in requests:
            sender = r.get_response_sender()
            for n in range(2000):
                if sender.is_cancelled() or r.is_cancelled():
                    (self.place / "cancelled").write_text(
                        f"{sender.is_cancelled()} {r.is_cancelled()}")
                    break
                sender.send(pb.InferenceResponse([pb.Tensor(
                    "OUT", np.array([n], np.int32))]))
                time.sleep(0.005)
            sender.send(flags=1)
"""


def fill(repository):
    for name, config, source in [
            ("repeat", NUMBERS, REPEAT), ("repeat_later", NUMBERS, REPEAT),
            ("last", NUMBERS, LAST), ("forget", NUMBERS, FORGET),
            ("wrong", WORDS, WRONG),
            ("endless", NUMBERS, ENDLESS)]:
        python_backend.model(repository, name, config, source)
    for name in ("endless", "wrong/1"):
        (repository / name).chmod(0o777)


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
        yield s


def numbers(*values):
    tensor = grpcclient.InferInput("IN", [len(values)], "INT32")
    tensor.set_data_from_numpy(np.array(values, np.int32))
    return [tensor]


def words(*values):
    tensor = grpcclient.InferInput("IN", [len(values)], "BYTES")
    tensor.set_data_from_numpy(np.array(
        [v.encode() for v in values], dtype=object))
    return [tensor]


def is_final(result):
    response = result.get_response()
    return response.parameters["triton_final_response"].bool_param


def responses(server, model, inputs, count, final=True):
    """[numbers or JSON of a response], the error, and whether the empty final
    response came."""
    with Stream(server.port2) as stream:
        stream.send(model, inputs, enable_empty_final_response=final)
        answers = stream.wait(count, 10)
    return answers


@pytest.mark.parametrize("model", ["repeat", "repeat_later"])
@pytest.mark.parametrize("values", [[], [7], [3, 1, 4, 1, 5]])
def test_repeats(server, model, values):
    answers = responses(server, model, numbers(*values), len(values) + 1)
    assert [e for _, e in answers] == [None] * (len(values) + 1)
    assert [r.as_numpy("OUT")[0] for r, _ in answers[:-1]] == values
    assert [is_final(r) for r, _ in answers] == [False] * len(values) + [True]
    assert answers[-1][0].as_numpy("OUT") is None


def test_the_last_response_may_be_final(server):
    ((result, error),) = responses(server, "last", numbers(5), 1)
    assert error is None and is_final(result)
    assert result.as_numpy("OUT")[0] == 5


@differs("its client waits for ever there")
def test_a_request_that_is_forgotten_is_answered(server):
    ((_, error),) = responses(server, "forget", numbers(1), 1)
    assert "without a final response" in str(error)


def test_many_requests_of_one_stream(server):
    with Stream(server.port2) as stream:
        for n in range(20):
            stream.send("repeat_later", numbers(*range(n % 4)), id=str(n),
                        enable_empty_final_response=True)
        answers = stream.wait(20 + sum(n % 4 for n in range(20)))
    for n in range(20):
        mine = [r for r, _ in answers if r.get_response().id == str(n)]
        assert [r.as_numpy("OUT")[0] for r in mine[:-1]] \
            == list(range(n % 4))
        assert is_final(mine[-1])


def test_an_exception_after_a_response(server):
    answers = responses(server, "wrong", words("raise"), 2)
    assert json.loads(answers[0][0].as_numpy("OUT")[0]) == "one"
    assert "ValueError: in the midst of it" in str(answers[1][1])


def test_a_returned_list_is_an_error(server):
    ((_, error),) = responses(server, "wrong", words("return"), 1)
    assert "is using the decoupled mode and the execute function must " \
        "return None" in str(error)


def test_an_error_is_a_response(server):
    ((_, error),) = responses(server, "wrong", words("error"), 1)
    assert error.message() == "said so"


@pytest.mark.parametrize("word,texts", [
    ("nothing", ["Inference Response object must be provided when the "
                 "response flags is set to zero."] * 2),
    ("flags", ["Unable to send response. Unsupported flag provided."] * 2),
])
def test_wrong_calls_of_the_sender(server, word, texts):
    ((result, _),) = responses(server, "wrong", words(word), 1)
    assert json.loads(result.as_numpy("OUT")[0]) == texts


def test_nothing_is_sent_after_the_end(server):
    ((result, _),) = responses(server, "wrong", words("closed"), 1)
    assert is_final(result)
    said = pathlib.Path(server.models) / "wrong/1/model.py.said"
    assert process.wait_until(said.exists, 10 * SLOW)
    assert process.wait_until(
        lambda: said.read_text() == "Unable to send response. Response "
        "sender has been closed.", 10 * SLOW)


def test_cancellation_reaches_the_sender(server):
    stream = Stream(server.port2)
    stream.send("endless", numbers(1))
    stream.wait(3)
    stream.cancel()
    place = server.models / "endless/cancelled"
    assert process.wait_until(place.exists, 10 * SLOW)
    assert process.wait_until(
        lambda: place.read_text() == "True True", 10 * SLOW)


@differs("its responses of the stream end with the model's process there")
def test_generate_stream(server):
    answer = server.post("/v2/models/repeat/generate_stream",
                         b'{"IN": [2, 4, 6]}')
    assert answer.status == 200
    events = [json.loads(line[6:]) for line in
              answer.body.decode().split("\n\n") if line]
    assert [e["OUT"] for e in events] == [2, 4, 6]


def test_infer_over_http_needs_one_response(server):
    answer = server.infer("repeat", text("x"))
    assert answer.status == 501
    assert "decoupled" in answer.error
