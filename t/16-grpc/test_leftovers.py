"""After calls that end anyhow the worker's arena is empty, and descriptors
and processes are as before."""

import random
import socket
import struct

import pytest

from lib import arena, models, process
from lib.grpc_client import (SERVICE, Client, frame, frames, infer, number,
                             numbers, tensor)
from lib.h2 import DATA, PADDED, H2
from lib.server import SLOW, Server, free_port, nap
from lib.unharmed import descriptors, unharmed

ARENA = 48 << 20
SIZE = 1 << 20
HEADERS = {"content-type": "application/grpc", "te": "trailers"}
INFER = SERVICE + "ModelInfer"
STREAM = SERVICE + "ModelStreamInfer"
LARGE = frame(infer("id_uint8", tensor("IN", "UINT8", [SIZE], bytes(SIZE))))
SMALL = frame(numbers("id_int32", [1, 2], id="x", options={"k": "v"}))


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "200"})


@pytest.fixture(scope="module")
def server():
    with Server(fill, http2=True, http=f"    inference_memory {ARENA};") as s:
        yield s


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("path", [INFER, STREAM])
@pytest.mark.parametrize("sent", [0, 3, 5, 40, 50_000])
def test_clients_that_leave_while_they_send(server, path, sent, how):
    for _ in range(3):
        with H2(server.port2) as c:
            stream = c.post(path, HEADERS)
            c.data(stream, LARGE[:sent])
            c.sync()
            if how == "reset":
                c.reset(stream)
                c.sync()
    arena.assert_empty(server, ARENA)


@pytest.mark.parametrize("window", [0, 100, 70_000])
@pytest.mark.parametrize("path", [INFER, STREAM])
def test_clients_that_leave_while_they_are_answered(server, path, window):
    data = frame(numbers("id_int32", [1] * 12_000))
    for _ in range(3):
        with H2(server.port2, window=window) as c:
            streams = [c.post(path, HEADERS, data) for _ in range(1)]
            c.sync()
            nap(0.05)                   # it has likely been answered
            for stream in streams:
                c.reset(stream)
            c.sync()
    arena.assert_empty(server, ARENA)


TCP_REPAIR = 19


def test_clients_that_vanish_silently():
    """As when a machine loses its power: TCP's probes find that out, and what
    was under way is cancelled."""
    port = free_port()
    with Server(fill, http2=True, server=f"""
        listen 127.0.0.1:{port} http2 so_keepalive=1s:1s:1;
""") as server:
        clients = [H2(port) for _ in range(3)]
        try:
            clients[0].socket.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        except PermissionError:
            pytest.skip("needs CAP_NET_ADMIN")
        clients[0].socket.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)
        before = descriptors(server) - len(clients)
        for c in clients:
            for path in (INFER, STREAM):
                c.data(c.post(path, HEADERS), LARGE[:20_000])
            c.sync()            # nothing is left to be sent to the client
            # the socket goes without a word
            c.socket.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
            c.close()
        assert process.wait_until(lambda: descriptors(server) <= before,
                                  30 * SLOW)
        with Client(server.port2) as client:
            assert client.numbers("id_int32", [3]) == [3]


def test_cancelled_streams(server):
    with Client(server.port2) as client:
        for _ in range(3):
            with client.stream() as stream:
                stream.send(*(numbers("slow", [i]) for i in range(10)))
                stream.send(infer("id_uint8", tensor("IN", "UINT8", [SIZE],
                                                     bytes(SIZE))))
                assert number(stream.read()) == 0
    arena.assert_empty(server, ARENA)


def test_a_window_that_opens_bit_by_bit(server):
    """Responses in crumbs, and requests meanwhile."""
    with H2(server.port2, window=100) as c:
        stream = c.post(STREAM, HEADERS)
        for i in range(60):
            c.data(stream, frame(numbers("id_int32", [i])))
        c.data(stream, b"", end=True)
        while not c.streams[stream].ended:
            c.give(stream, 37)
            c.sync()
    body = c.streams[stream].body
    found = []
    while body:
        size, = struct.unpack(">I", body[1:5])
        found.append(body[5:5 + size])
        body = body[5 + size:]
    assert len(found) == 60
    arena.assert_empty(server, ARENA)


@pytest.mark.parametrize("size", [1, 500, 20_000])
def test_a_client_that_keeps_to_the_window(server, size):
    """It is granted what was taken, half of a window or more at a time."""
    message = frame(infer("id_uint8", tensor("IN", "UINT8", [size],
                                             bytes(size))))
    count = max(8, 400_000 // len(message))
    with H2(server.port2, window=1 << 30) as c:
        stream = c.post(STREAM, HEADERS)
        granted = c.streams[stream].grants
        sent = 0
        for _ in range(count):
            while 65535 + sum(granted) < sent + len(message):
                c.step()
            c.data(stream, message)
            sent += len(message)
        c.data(stream, b"", end=True)
        c.read(stream)
        assert len(frames(c.streams[stream].body)) == count
        assert sum(granted) <= sent
        assert all(n >= 32767 for n in granted)
    arena.assert_empty(server, ARENA)


def test_padding_of_frames_is_granted(server):
    """It is of the window, and not of the body."""
    data = frame(infer("id_uint8", tensor("IN", "UINT8", [600], bytes(600))))
    with H2(server.port2) as c:
        stream = c.post(STREAM, HEADERS)
        granted = c.streams[stream].grants
        for i, byte in enumerate(data):
            while 65535 + sum(granted) < 257 * (i + 1):
                c.step()
            c.frame(DATA, PADDED, stream, bytes([255, byte]) + bytes(255))
        c.data(stream, b"", end=True)
        assert len(frames(c.read(stream).body)) == 1
        assert granted
    arena.assert_empty(server, ARENA)


def test_random_bytes_harm_nobody(server):
    """Changed and cut messages in frames of any size."""
    rng = random.Random(16)
    before = descriptors(server)
    with unharmed(server):
        for _ in range(150):
            data = bytearray(SMALL * rng.randint(1, 4))
            for _ in range(rng.randint(0, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            data = bytes(data[:rng.randint(0, len(data))])
            with H2(server.port2) as c:
                stream = c.post(rng.choice([INFER, STREAM]), {
                    **HEADERS, "grpc-encoding": rng.choice(
                        ["identity", "gzip"])})
                size = rng.randint(1, 300)
                for i in range(0, len(data), size):
                    c.data(stream, data[i:i + size])
                c.sync()
                if rng.random() < 0.7:
                    c.data(stream, b"", end=True)
                    c.read(stream)
    arena.assert_empty(server, ARENA)
    assert descriptors(server) <= before + 4
