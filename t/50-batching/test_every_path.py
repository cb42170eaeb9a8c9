"""The same ends of queued requests on every path to a model: clients that go,
deadlines, and what each reason is called (`inference_errors`)."""

import json
import os
import signal
import socket
import struct

import pytest

from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.batches import data, told
from lib.grpc_client import SERVICE, frame, frames, infer, pb, status_in
from lib.grpc_client import tensor as tensor_of
from lib.h2 import H2
from lib.server import SLOW
from lib.wire import infer_path, request_bytes, tensor

PARTS = "health metadata config infer generate statistics"
GRPC = {"content-type": "application/grpc", "te": "trailers"}
PLACES = WRITTEN + """
        location /precise/ { inference all; inference_errors precise; }
        location /soon/ { inference all; inference_timeout 100ms; }
        location /both/ { inference all; inference_timeout 100ms;
                          inference_errors precise; }
"""
MANY = 12
OVERRIDE = "default_queue_policy { allow_timeout_override: true }"
FULL = "default_queue_policy { max_queue_size: 1 }"
SHORT = "default_queue_policy { default_timeout_microseconds: 50000 }"


def inference(parameters):
    body = {"inputs": [tensor("IN", "INT32", [1, 1], [1])]}
    if parameters:
        body["parameters"] = parameters
    return json.dumps(body).encode()


def generation(parameters):
    return json.dumps({"IN": 1, **parameters}).encode()


class OverHttp1:
    """A request on a connection of its own."""

    def __init__(self, path, body):
        self.path, self.body = path, body

    def send(self, server, place="", parameters=None):
        self.connection = server.wire(60)
        self.connection.send(request_bytes(
            "POST", place + self.path, self.body(parameters or {})))
        return self

    def status(self):
        answer = self.connection.read()
        self.connection.close()
        return answer.status

    def leave(self, how):
        if how == "reset":
            self.connection.socket.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class OverHttp2:
    """The same, by a stream."""

    headers = {}

    def __init__(self, path, body):
        self.path, self.body = path, body

    def send(self, server, place="", parameters=None, headers=None):
        self.connection = H2(server.port2, timeout=60 * SLOW)
        self.stream = self.connection.post(
            place + self.path, {**self.headers, **(headers or {})},
            self.body(parameters or {}))
        return self

    def status(self):
        status = self.connection.read(self.stream).status
        self.connection.socket.close()
        return status

    def leave(self, how):
        if how == "reset":
            self.connection.reset(self.stream)
            self.connection.sync()
        self.connection.socket.close()


class OverGrpc(OverHttp2):
    """ModelInfer; its status is gRPC's."""

    headers = GRPC

    def __init__(self):
        super().__init__(SERVICE + "ModelInfer", self.message)

    @staticmethod
    def message(parameters):
        return frame(infer("m", tensor_of(
            "IN", "INT32", [1, 1], struct.pack("<i", 1)), options=parameters))

    def status(self):
        reply = self.connection.read(self.stream)
        self.connection.socket.close()
        return status_in(reply.block)


class OverGrpcStream(OverGrpc):
    """ModelStreamInfer that stays open; its status is that of the call, or the
    text of the message's error."""

    def __init__(self):
        super().__init__()
        self.path = SERVICE + "ModelStreamInfer"

    def send(self, server, place="", parameters=None, headers=None):
        self.connection = H2(server.port2, timeout=60 * SLOW)
        self.stream = self.connection.post(
            place + self.path, {**GRPC, **(headers or {})})
        self.connection.data(self.stream, self.message(parameters or {}))
        return self

    def status(self):
        stream = self.connection.streams[self.stream]
        while not stream.ended and len(stream.body) < 5:
            self.connection.step()
        while not stream.ended and len(stream.body) < 5 + struct.unpack(
                ">I", stream.body[1:5])[0]:
            self.connection.step()
        self.connection.socket.close()
        if stream.ended:
            return status_in(stream.block)
        return pb.ModelStreamInferResponse.FromString(
            frames(stream.body)[0][1]).error_message


def rest(kind, verb):
    path = infer_path("m") if verb == "infer" else f"/v2/models/m/{verb}"
    return lambda: kind(path, inference if verb == "infer" else generation)


PATHS = {
    "REST over HTTP/1": rest(OverHttp1, "infer"),
    "REST over HTTP/2": rest(OverHttp2, "infer"),
    "generate over HTTP/1": rest(OverHttp1, "generate"),
    "generate over HTTP/2": rest(OverHttp2, "generate"),
    "generate_stream over HTTP/1": rest(OverHttp1, "generate_stream"),
    "generate_stream over HTTP/2": rest(OverHttp2, "generate_stream"),
    "gRPC": OverGrpc,
    "a stream of gRPC": OverGrpcStream,
}
IS_GRPC = ("gRPC", "a stream of gRPC")
every_path = pytest.mark.parametrize("path", PATHS)


@pytest.fixture
def held(batching):
    """A model whose one instance executes until the gate is opened."""
    def start(policy=OVERRIDE, **kw):
        server = batching.start(policy, max_batch=1, http2=True, parts=PARTS,
                                server=PLACES, **{"http": FORMAT, **kw})
        batching.gate.close()
        start.runs = batching.ask(0)
        batching.gate.wait_entered()
        return server

    return start


@every_path
@pytest.mark.parametrize("how", ["close", "reset"])
def test_queued_requests_of_clients_that_left_do_not_execute(held, batching,
                                                             path, how):
    server = held()
    sent = [PATHS[path]().send(server) for _ in range(MANY)]
    batching.wait_queued(MANY)
    for request in sent:
        request.leave(how)
    batching.wait_queued(0)                 # while the instance is busy
    batching.gate.open()
    assert told(held.runs)["execution"] == 0
    last = batching.ask(1)
    assert told(last)["execution"] == 1     # none in between
    assert data(last) == [1]


@pytest.mark.parametrize("how", ["close", "reset"])
def test_messages_of_a_stream_that_left_do_not_execute(held, batching, how):
    server = held()
    call = OverGrpcStream().send(server)
    for _ in range(MANY - 1):
        call.connection.data(call.stream, call.message({}))
    batching.wait_queued(MANY)
    call.leave(how)
    batching.wait_queued(0)
    batching.gate.open()
    told(held.runs)
    assert told(batching.ask(1))["execution"] == 1


@every_path
def test_queued_requests_of_a_killed_worker_do_not_execute(held, batching,
                                                           path):
    """The execution ends, and then the model is for the next worker."""
    server = held(allow_alarms=["exited on signal 9"])
    sent = [PATHS[path]().send(server) for _ in range(MANY)]
    batching.wait_queued(MANY)
    core, (worker,) = server.core(), server.workers()
    os.kill(worker, signal.SIGKILL)
    batching.wait_queued(0)                 # while the instance is busy
    batching.gate.open()
    assert told(batching.ask(1))["execution"] == 1
    assert server.core() == core
    for request in sent:
        request.leave("close")


def expect(path, status, rest, unary, streamed):
    if path == "gRPC":
        assert status == unary
    elif path == "a stream of gRPC":
        assert streamed in status
    else:
        assert status == rest


@every_path
@pytest.mark.parametrize("place, rest", [("/soon", 503), ("/both", 504)])
def test_inference_timeout(held, batching, path, place, rest):
    server = held()
    request = PATHS[path]().send(server, place)
    expect(path, request.status(), rest, 4, "within inference_timeout")
    batching.wait_queued(0)
    batching.gate.open()
    told(held.runs)
    assert told(batching.ask(1))["execution"] == 1


# To generate `timeout` is a parameter of the model like any other.
@pytest.mark.parametrize("path", [p for p in PATHS if "generate" not in p])
@pytest.mark.parametrize("place, rest", [("", 503), ("/precise", 504)])
def test_the_timeout_of_a_request(held, batching, path, place, rest):
    server = held()
    request = PATHS[path]().send(server, place, {"timeout": 100000})
    expect(path, request.status(), rest, 4 if place else 14,
           "Request timeout expired")
    batching.wait_queued(0)
    batching.gate.open()
    told(held.runs)
    assert told(batching.ask(1))["execution"] == 1


@pytest.mark.parametrize("path", IS_GRPC)
def test_grpc_timeout(held, batching, path):
    server = held()
    request = PATHS[path]().send(server, headers={"grpc-timeout": "100m"})
    assert request.status() == 4
    batching.wait_queued(0)
    batching.gate.open()
    told(held.runs)
    assert told(batching.ask(1))["execution"] == 1


@every_path
@pytest.mark.parametrize("place, rest", [("", 503), ("/precise", 429)])
def test_a_full_queue(held, batching, path, place, rest):
    server = held(FULL)
    waits = batching.ask(5)
    batching.wait_queued(1)
    request = PATHS[path]().send(server, place)
    expect(path, request.status(), rest, 8 if place else 14,
           "Exceeds maximum queue size")
    batching.gate.open()
    assert data(waits) == [5]


@every_path
@pytest.mark.parametrize("place", ["", "/precise"])
def test_a_client_that_left_is_logged_as_499(held, batching, path, place):
    server = held()
    log = AccessLog(server)
    request = PATHS[path]().send(server, place)
    batching.wait_queued(1)
    request.leave("reset")
    assert log.line(uri=place + request.path)["status"] == 499
    batching.wait_queued(0)
    batching.gate.open()
    told(held.runs)


@every_path
@pytest.mark.parametrize("place", ["", "/precise"])
def test_an_execution_that_its_core_ends_with(batching, path, place):
    """Unavailable in both modes."""
    server = batching.start(OVERRIDE, max_batch=1, http2=True, parts=PARTS,
                            server=PLACES,
                            http=FORMAT + "    inference_tries 1;\n",
                            allow_alarms=[r"exited on signal 9"])
    batching.gate.close()
    request = PATHS[path]().send(server, place)
    batching.gate.wait_entered()
    os.kill(server.core(), signal.SIGKILL)
    expect(path, request.status(), 503, 14, "ended before it answered")
    batching.gate.open_all()
    assert server.wait_for("/v2/models/m/ready")
