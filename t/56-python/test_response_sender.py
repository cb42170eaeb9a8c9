"""Senders of models that are and are not decoupled: before and after execute
returns, sync and async."""

import json

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

from lib import front_end, models, process, python_backend
from lib.front_end import Stream
from lib.python_backend import ask, raised, text, told
from lib.server import SLOW

IO = models.io_block("input", [("BEFORE", "UINT8", [1]),
                               ("FINAL_BEFORE", "BOOL", [1]),
                               ("RETURN", "BOOL", [1]),
                               ("AFTER", "UINT8", [1]),
                               ("FINAL_AFTER", "BOOL", [1])]) \
    + models.io_block("output", [("OUT", "BYTES", [1])])

# as many responses before and after execute returns as the request says
COMMON = python_backend.TELL + """
import threading

class Common:
    def initialize(self, args):
        self.threads = []
    def take(self, requests):
        answers, threads = [], []
        for r in requests:
            before, final, give, after, last = (
                pb.get_input_tensor_by_name(r, n).as_numpy().ravel()[0]
                for n in ("BEFORE", "FINAL_BEFORE", "RETURN", "AFTER",
                          "FINAL_AFTER"))
            sender = r.get_response_sender()
            self.send(sender, "before", before, final)
            if after or last:
                threads.append(threading.Thread(
                    target=self.send, args=(sender, "after", after, last)))
            answers.append(tell("returned") if give else None)
        for t in threads:
            t.start()
        self.threads += threads
        return answers if any(a is not None for a in answers) else None
    def send(self, sender, word, count, final):
        for _ in range(count):
            sender.send(tell(word))
        if final:
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
    def finalize(self):
        for t in self.threads:
            t.join()
"""
SYNC = COMMON + """
class TritonPythonModel(Common):
    def execute(self, requests):
        return self.take(requests)
"""
ASYNC = COMMON + """
class TritonPythonModel(Common):
    async def execute(self, requests):
        return self.take(requests)
"""

# a response from the sender in place of a returned one, and wrong calls
ONE = python_backend.TELL + """
class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            word = pb.get_input_tensor_by_name(r, "IN").as_numpy()[0].decode()
            sender = r.get_response_sender()
            said = []
            if word == "bare":
                said.append(self.text(lambda: sender.send(flags=1)))
                answers.append(tell(said))
                continue
            if word == "two":
                sender.send(tell("first"), 1)
                with open(__file__ + ".two", "w") as f:
                    f.write(self.text(lambda: sender.send(tell("second"))))
                answers.append(None)
                continue
            sender.send(tell("sent"), flags=1)
            answers.append(None)
        return answers
    def text(self, call):
        try:
            call()
            return ""
        except pb.TritonModelException as e:
            return str(e)
"""


# the first of a batch is answered by its sender, and by what is returned, too
TWICE = python_backend.TELL + """
class TritonPythonModel:
    def execute(self, requests):
        requests[0].get_response_sender().send(tell("sent"), 1)
        return [tell("returned") for r in requests]
"""


def fill(repository):
    for kind, source in [("sync", SYNC), ("async", ASYNC)]:
        python_backend.model(repository, f"one_{kind}", IO, source)
        python_backend.model(
            repository, f"many_{kind}",
            IO + "model_transaction_policy { decoupled: true }\n", source)
    python_backend.model(repository, "one", python_backend.TEXT, ONE)
    python_backend.model(
        repository, "twice", "max_batch_size: 2\ndynamic_batching {"
        " preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 300000 }\n"
        + python_backend.TEXT, TWICE)
    python_backend.probe(repository)
    (repository / "one/1").chmod(0o777)


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
        yield s


def send(server, model, before, final_before, give, after, final_after,
         count):
    given = []
    for name, value, kind in [
            ("BEFORE", before, np.uint8), ("FINAL_BEFORE", final_before, bool),
            ("RETURN", give, bool), ("AFTER", after, np.uint8),
            ("FINAL_AFTER", final_after, bool)]:
        tensor = grpcclient.InferInput(
            name, [1], "UINT8" if kind is np.uint8 else "BOOL")
        tensor.set_data_from_numpy(np.array([value], kind))
        given.append(tensor)
    with Stream(server.port2) as stream:
        stream.send(model, given, enable_empty_final_response=True)
        answers = stream.wait(count, 10)
    assert [str(e) for _, e in answers if e] == []
    if model.startswith("many"):
        last = answers[-1][0].get_response()
        assert last.parameters["triton_final_response"].bool_param
    return [json.loads(r.as_numpy("OUT")[0]) for r, _ in answers
            if r.as_numpy("OUT") is not None]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("before,final_before,after,final_after", [
    (0, True, 0, False), (0, False, 0, True), (1, True, 0, False),
    (0, False, 1, True), (2, True, 0, False), (0, False, 2, True),
    (1, False, 3, True)])
def test_decoupled(server, kind, before, final_before, after, final_after):
    words = send(server, f"many_{kind}", before, final_before, False, after,
                 final_after, before + after + 1)
    assert words == ["before"] * before + ["after"] * after


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("before,give,after,words", [
    (0, True, 0, ["returned"]), (1, False, 0, ["before"]),
    (0, False, 1, ["after"])])
def test_not_decoupled(server, kind, before, give, after, words):
    assert send(server, f"one_{kind}", before, before > 0, give, after,
                after > 0, 1) == words


def test_a_response_of_the_sender_is_the_answer(server):
    for _ in range(3):
        assert told(server.infer("one", text("send"))) == "sent"


def test_the_end_alone_is_no_answer(server):
    assert told(server.infer("one", text("bare"))) == [
        "Unable to send response. Non-decoupled model cannot send complete "
        "final before sending a response."]


def test_a_second_response(server):
    assert told(server.infer("one", text("two"))) == "first"
    said = server.models / "one/1/model.py.two"
    assert process.wait_until(said.exists, 10 * SLOW)
    assert process.wait_until(
        lambda: said.read_text() == "Unable to send response. Non-decoupled "
        "model cannot send more than one response.", 10 * SLOW)


def test_a_returned_response_beside_a_sent_one_fails_the_batch(server):
    with Stream(server.port2) as stream:
        for _ in range(2):
            stream.send("twice", [front_end.tensor("IN", ["x"], "BYTES",
                                                   [1, 1])])
        answers = stream.wait(2)
    assert [json.loads(r.as_numpy("OUT").ravel()[0])
            for r, e in answers if e is None] == ["sent"]
    assert ["Non-decoupled model cannot send more than one response." in str(e)
            for r, e in answers if e is not None] == [True]


def test_wrong_flags_and_nothing(server):
    assert raised(server, "request.get_response_sender().send(flags=2)") == (
        "TritonModelException",
        "Unable to send response. Unsupported flag provided.")
    assert raised(server, "request.get_response_sender().send()") == (
        "TritonModelException", "Inference Response object must be provided "
        "when the response flags is set to zero.")


def test_a_sender_knows_of_cancellation(server):
    assert ask(server, "result = request.get_response_sender()"
                       ".is_cancelled()") is False
