"""A client that takes none of its responses holds at most 8 MiB in worker and
core together, beyond one message, for all requests of a stream, or for one to a
decoupled model.

Its backend waits; when the client reads, nothing is lost.
"""

import socket

import pytest

from tritonclient.grpc import service_pb2 as pb

from lib import decoupled, events, expanding
from lib.grpc_client import SERVICE, frame, frames, numbers, status_in
from lib.h2 import H2
from lib.process import held_bytes
from lib.server import SANITIZER, SLOW, Server, nap

BOUND = 8 << 20
COUNT = 40_000              # responses: several times the bound
GENERATE = events.path("square", "generate_stream")


class Grpc:
    requests = 1

    def __init__(self, server, sent):
        """sent: frames, or how many responses are asked for."""
        if isinstance(sent, int):
            sent = b"".join(frame(numbers("square", [sent // self.requests]))
                            for _ in range(self.requests))
        self.h2 = H2(server.port2, window=0, timeout=60 * SLOW)
        self.stream = self.h2.post(
            SERVICE + "ModelStreamInfer",
            {"content-type": "application/grpc", "te": "trailers"}, sent)

    def replies(self):
        self.h2.give(self.stream, 1 << 30)
        stream = self.h2.read(self.stream)
        self.h2.close()
        assert status_in(stream.block) == 0
        replies = [pb.ModelStreamInferResponse.FromString(message)
                   for _, message in frames(stream.body)]
        assert not any(reply.error_message for reply in replies)
        return replies

    def rest(self):
        """How many responses there are."""
        return len(self.replies())


class GrpcSeveral(Grpc):
    """Its requests execute at the same time, and share the bound."""
    requests = 5


class Http2(Grpc):
    def __init__(self, server, count):
        self.h2 = H2(server.port2, window=0, timeout=60 * SLOW)
        self.stream = self.h2.post(
            GENERATE, {"content-type": "application/json"},
            events.encode({"IN": count}))

    def rest(self):
        self.h2.give(self.stream, 1 << 30)
        stream = self.h2.read(self.stream)
        self.h2.close()
        return len(events.parse(stream.body))


class Http1:
    """Its socket takes little, and is not looked at."""

    def __init__(self, server, count):
        body = events.encode({"IN": count})
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(60 * SLOW)
        self.socket.connect(("127.0.0.1", server.port))
        self.socket.sendall(
            f"POST {GENERATE} HTTP/1.0\r\nContent-Length: {len(body)}"
            "\r\n\r\n".encode() + body)

    def rest(self):
        found = bytearray()
        while data := self.socket.recv(1 << 16):
            found += data
        self.socket.close()
        return len(events.parse(bytes(found).partition(b"\r\n\r\n")[2]))


@pytest.mark.parametrize("client", [Grpc, GrpcSeveral, Http2, Http1])
def test_what_a_client_that_reads_nothing_holds(client):
    with Server(lambda repository: decoupled.square(repository, instances=5),
                http2=True, parts="health infer generate",
                http="    inference_response_wait 10m;") as server:
        pids = server.workers() + server.cores()
        assert client(server, 10).rest() == 10
        before, seen = held_bytes(pids), -1
        silent = client(server, COUNT)
        while seen != held_bytes(pids):
            seen = held_bytes(pids)
            nap(1.5 * SLOW)
        held = seen - before
        print(f"{client.__name__}: {held >> 10} KiB")
        # a sanitizer has memory beside what it is asked for
        assert BOUND // 4 < held and (SANITIZER or held < BOUND)
        assert silent.rest() == COUNT


MIXED, LARGE = 5_000, 24        # responses of each model


def mixed(repository):
    decoupled.square(repository, instances=2)
    expanding.expand(repository, instances=2)


def test_what_a_call_holds_of_both_kinds_of_models():
    """Its responses of a model that is not decoupled leave in order, and
    count together with those of a decoupled one."""
    with Server(mixed, http2=True, parts="health infer",
                http="    inference_response_wait 10m;") as server:
        pids = server.workers() + server.cores()
        before, seen = held_bytes(pids), -1
        silent = Grpc(server, frame(numbers("square", [MIXED])) + b"".join(
            frame(expanding.wanted(n)) for n in range(LARGE)))
        while seen != held_bytes(pids):
            seen = held_bytes(pids)
            nap(1.5 * SLOW)
        held = seen - before
        print(f"{held >> 10} KiB")
        # each of two instances has one of 1 MiB that waits
        assert BOUND // 2 < held and (SANITIZER or held < BOUND + (2 << 20))
        replies = silent.replies()
    large = [r for r in replies if r.infer_response.model_name == "expand"]
    assert [expanding.number(r) for r in large] == list(range(LARGE))
    assert len(replies) == MIXED + LARGE
