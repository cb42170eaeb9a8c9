"""A sender that waits, for a client that does not read or for an ensemble that
has enough, holds up nothing else of its instance."""

import socket

import pytest

from lib import events, models, process, python_backend
from lib.python_backend import differs
from lib.server import SLOW

DECOUPLED = "model_transaction_policy { decoupled: true }\n"
FLOOD = 60          # responses
LARGE = 600_000     # bytes of each, far more than server and sockets take

# "flood": many large responses from a thread, after execute; else how many of
# them have been taken
FLOODS = python_backend.TELL + f"""
import threading

class TritonPythonModel:
    def initialize(self, args):
        self.sent = 0
    def execute(self, requests):
        for r in requests:
            word = pb.get_input_tensor_by_name(r, "IN").as_numpy()[0]
            sender = r.get_response_sender()
            if word == b"flood":
                threading.Thread(target=self.flood, args=(sender,)).start()
            else:
                sender.send(tell(self.sent), 1)
    def flood(self, sender):
        for n in range({FLOOD}):
            sender.send(tell([n, "x" * {LARGE}]))
            self.sent += 1
        sender.send(flags=1)
"""

NUMBERS = models.io_block("input", [("IN", "INT32", [-1])]) \
    + models.io_block("output", [("OUT", "INT32", [1])])
# each number in a response of its own, from a thread, after execute
COUNT = """\
import threading
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            threading.Thread(target=self.send, args=(
                r.get_response_sender(),
                pb.get_input_tensor_by_name(r, "IN").as_numpy())).start()
    def send(self, sender, numbers):
        for n in numbers:
            sender.send(pb.InferenceResponse([
                pb.Tensor("OUT", np.array([n], np.int32))]))
        sender.send(flags=1)
"""
# asks "count" itself, which it is a consumer of
ASK = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(r) for r in requests]
    def answer(self, request):
        asked = pb.InferenceRequest(
            model_name="count", requested_output_names=["OUT"],
            inputs=request.inputs()).exec(decoupled=True)
        tensors = [t for a in asked for t in a.output_tensors()]
        return pb.InferenceResponse(tensors)
"""


def fill(repository):
    python_backend.model(repository, "floods",
                         python_backend.TEXT + DECOUPLED, FLOODS)
    python_backend.model(repository, "count", NUMBERS + DECOUPLED, COUNT)
    python_backend.model(repository, "ask", NUMBERS, ASK)
    models.ensemble(
        repository, "asks", [("IN", "INT32", [-1])], [("OUT", "INT32", [1])],
        "max_inflight_requests: 1",
        models.step("count", {"IN": "IN"}, {"OUT": "N"}),
        models.step("ask", {"IN": "N"}, {"OUT": "OUT"}))


@pytest.fixture(scope="module")
def server():
    """Clients may be slow for as long as a test takes."""
    with python_backend.serve(
            fill, http="    inference_response_wait 600s;\n") as s:
        yield s


def silent(server, model, body):
    """A client that has asked, and reads when the test does."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(60 * SLOW)
    s.connect(("127.0.0.1", server.port))
    data = events.encode(body)
    s.sendall(f"POST {events.path(model, 'generate_stream')} HTTP/1.0\r\n"
              f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return s


def rest(s):
    found = bytearray()
    while data := s.recv(1 << 20):
        found += data
    head, _, body = bytes(found).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    return events.parse(body)


def sent(server):
    """Asks the same instance, whose only other request is the flood."""
    (event,) = events.post(server.port, events.path(
        "floods", "generate_stream"), {"IN": "sent"}, seconds=20).events()
    return int(event["OUT"])


@differs("its one instance sends nothing meanwhile")
def test_a_client_that_does_not_read(server):
    with silent(server, "floods", {"IN": "flood"}) as s:
        assert process.wait_until(lambda: sent(server) > 0, 20 * SLOW)
        seen = [-1] * 5

        def stands_still():
            seen.append(sent(server))
            return len(set(seen[-5:])) == 1

        assert process.wait_until(stands_still, 60 * SLOW)
        assert seen[-1] < FLOOD
        answers = rest(s)
    assert len(answers) == FLOOD
    for n, answer in enumerate(answers):
        assert answer["OUT"].startswith(f'[{n}, "xxx')


@differs("it waits for itself")
def test_a_consumer_that_asks_its_producer(server):
    numbers = list(range(8))
    got = events.post(server.port, events.path("asks", "generate_stream"),
                      {"IN": numbers}, seconds=20).events()
    assert [e["OUT"] for e in got] == numbers


def test_a_client_that_leaves(server):
    """Its sender goes on, to the end."""
    with silent(server, "floods", {"IN": "flood"}) as s:
        assert s.recv(1)
    assert process.wait_until(lambda: sent(server) >= FLOOD, 60 * SLOW)
