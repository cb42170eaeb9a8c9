"""500 slow senders and 500 slow readers, half of each over HTTP/2: issue 14.

Everybody else is answered, the server is live and ready all the time, and
memory keeps to its bound.  Latencies are printed (`make bench` shows them) and
judge nothing.
"""

import json
import re
import select
import socket
import threading
import time

import pytest

from lib import arena, models
from lib.exposition import figure
from lib.h2 import H2
from lib.process import descendants, wait_until
from lib.server import SLOW, Server
from lib.wire import Wire, chunked, request_bytes

SECONDS = 60                # longer than inference_min_body_rate looks back
ARENA = 256 << 20
BODY = 1 << 20              # what a sender announces
ANSWER = 400_000            # what a reader asks for: beyond socket buffers
TICK = 0.5
CLIENTS = 250               # of each kind over each protocol
STREAMS = 25                # of an HTTP/2 connection
QUICK, SLUGGISH = 4096, 50  # bytes a tick: above and below 1k a second
UINT8 = "/v2/models/id_uint8/infer"
RAW = {"Inference-Header-Content-Length": "0"}
RAW2 = {"inference-header-content-length": "0"}


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, connections=1000, http2=True,
                http=f"    inference_memory {ARENA};",
                server="    location = /scrape { inference metrics; }") as s:
        yield s
        arena.assert_empty(s, ARENA)


class Crowd(threading.Thread):
    """Clients that do a little every tick until `end` is set."""

    def __init__(self, server, end):
        super().__init__(daemon=True)
        self.server = server
        self.end = end
        self.rejected = 0           # senders that were told 408
        self.wrong = []             # what should never happen

    def run(self):
        try:
            self.begin()
            while not self.end.wait(TICK):
                self.tick()
            self.finish()
        except Exception as e:      # a thread's error is the test's
            self.wrong.append(repr(e))

    def finish(self):
        pass


class Senders(Crowd):
    """Even ones are quick enough, odd ones are not."""

    def begin(self):
        self.connections = [self.open() for _ in range(CLIENTS)]

    def open(self):
        connection = Wire(self.server.port, 60 * SLOW)
        connection.send(request_bytes("POST", UINT8, headers={
            **RAW, "Content-Length": str(BODY)}) + b"x")
        return connection

    def tick(self):
        for i, connection in enumerate(self.connections):
            try:
                if not select.select([connection.socket], [], [], 0)[0]:
                    connection.send(b"x" * (SLUGGISH if i % 2 else QUICK))
                    continue
                status = connection.read().status
            except OSError:
                status = 0
            if i % 2 and status in (0, 408):
                self.rejected += 1
            else:
                self.wrong.append((i, status))
            connection.close()
            self.connections[i] = self.open()

    def finish(self):
        for connection in self.connections:
            connection.close()


class Readers(Crowd):
    def begin(self):
        body = b"y" * ANSWER
        self.got = [0] * CLIENTS
        self.sockets = []
        for _ in range(CLIENTS):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", self.server.port))
            s.settimeout(60 * SLOW)
            s.sendall(request_bytes("POST", UINT8, body, {
                **RAW, "Connection": "close"}))
            self.sockets.append(s)

    def tick(self):
        for i, s in enumerate(self.sockets):
            if select.select([s], [], [], 0)[0]:
                self.take(i, s, 1024)

    def take(self, i, s, size):
        data = s.recv(size)
        if self.got[i] == 0 and not data.startswith(b"HTTP/1.1 200 "):
            self.wrong.append(data[:200])
        self.got[i] += len(data)
        return data

    def finish(self):
        for i, s in enumerate(self.sockets):
            while self.take(i, s, 1 << 16):
                pass
            if self.got[i] < ANSWER:
                self.wrong.append((i, self.got[i]))
            s.close()


class Streams(Crowd):
    """One HTTP/2 connection with STREAMS streams."""

    window = 1 << 30

    def begin(self):
        self.connection = H2(self.server.port2, self.window, 60 * SLOW)
        self.numbers = [self.open(i) for i in range(STREAMS)]

    def hear(self):
        while self.connection.buffer or select.select(
                [self.connection.socket], [], [], 0)[0]:
            self.connection.step()

    def finish(self):
        self.connection.close()


class SendingStreams(Streams):
    def open(self, _):
        number = self.connection.post(UINT8, {
            **RAW2, "content-length": str(BODY)})
        self.connection.data(number, b"x")
        return number

    def tick(self):
        self.hear()
        for i, number in enumerate(self.numbers):
            stream = self.connection.streams[number]
            if not stream.ended:
                self.connection.data(
                    number, b"x" * (SLUGGISH if i % 2 else QUICK))
                continue
            if i % 2 and stream.status == 408:
                self.rejected += 1
            else:
                self.wrong.append((i, stream.status))
            self.numbers[i] = self.open(i)


class ReadingStreams(Streams):
    window = 1024

    def open(self, _):
        return self.connection.post(UINT8, RAW2, b"y" * ANSWER)

    def tick(self):
        self.hear()
        for number in self.numbers:
            self.connection.give(number, 1024)

    def finish(self):
        for number in self.numbers:
            self.connection.give(number, ANSWER * 2)
        for number in self.numbers:
            stream = self.connection.read(number)
            if stream.status != 200 or len(stream.body) < ANSWER:
                self.wrong.append((stream.status, len(stream.body)))
        super().finish()


class Others(Crowd):
    """Everybody else: small and large bodies, one after the other."""

    def begin(self):
        self.answered = 0
        self.took = []

    def tick(self):
        text = json.dumps({"inputs": [{
            "name": "IN", "datatype": "UINT8", "shape": [3],
            "data": [1, 2, 3]}]}).encode()
        for body, headers, pieces in (
                (text, {}, None), (b"z" * 100_000, RAW, None),
                (b"z" * (3 << 20), RAW, None),
                (b"z" * (1 << 20), RAW, 50_000)):
            began = time.monotonic()
            with self.server.wire(60) as connection:
                if pieces:
                    connection.send(request_bytes("POST", UINT8, headers={
                        **headers, "Transfer-Encoding": "chunked"})
                        + chunked(body, pieces))
                    answer = connection.read()
                else:
                    answer = connection.post(UINT8, body, headers)
            self.took.append(time.monotonic() - began)
            if answer.status != 200 or headers \
                    and not answer.body.endswith(body):
                self.wrong.append(answer)
            self.answered += 1


class Health(Crowd):
    def begin(self):
        self.asked = 0
        self.took = []

    def tick(self):
        with self.server.wire(60) as connection:
            for path in ("live", "ready"):
                began = time.monotonic()
                answer = connection.get(f"/v2/health/{path}")
                self.took.append(time.monotonic() - began)
                if answer.status != 200:
                    self.wrong.append((path, answer))
                self.asked += 1


def proportional(server):
    """Memory of all processes of the server, each shared page once."""
    total = 0
    for pid in [server.process.pid, *descendants(server.process.pid)]:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                total += int(re.search(r"^Pss: +(\d+)", f.read(),
                                       re.M)[1]) << 10
        except (OSError, TypeError):
            pass                # it has just ended
    return total


def gauge(server, name):
    return int(figure(server, f"request_arena_{name}_bytes", "/scrape"))


def test_slow_clients_slow_nobody_else_down(server):
    idle = proportional(server)
    end = threading.Event()
    crowds = [Senders(server, end), Readers(server, end),
              Others(server, end), Health(server, end)]
    crowds += [kind(server, end) for kind in (SendingStreams, ReadingStreams)
               for _ in range(CLIENTS // STREAMS)]
    for crowd in crowds:
        crowd.start()
    most = used = reserved = 0
    stop = time.monotonic() + SECONDS
    while time.monotonic() < stop:
        most = max(most, proportional(server))
        used = max(used, gauge(server, "used"))
        reserved = max(reserved, gauge(server, "reserved"))
        end.wait(1)
    end.set()
    for crowd in crowds:
        crowd.join(120 * SLOW)
        assert not crowd.is_alive(), crowd
    wrong = [w for crowd in crowds for w in crowd.wrong]
    assert not wrong, wrong[:10]
    assert crowds[2].answered > 4 and crowds[3].asked > 4
    assert crowds[0].rejected and any(
        c.rejected for c in crowds if isinstance(c, SendingStreams))

    # everything that slow ones hold: two arenas, and nginx's own buffers
    buffers = 4 * CLIENTS * (128 << 10)
    assert most < idle + 2 * ARENA + buffers, (idle, most)
    assert 0 < used <= ARENA
    assert reserved > CLIENTS * BODY // 2
    assert wait_until(lambda: gauge(server, "used") == 0
                      and gauge(server, "reserved") == 0, 20 * SLOW)
    for name, crowd in (("others", crowds[2]), ("health", crowds[3])):
        took = sorted(crowd.took)
        print(f"{name}: p50 {took[len(took) // 2] * 1000:.1f} ms, p99 "
              f"{took[len(took) * 99 // 100] * 1000:.1f} ms")
    print(f"idle {idle >> 20} MiB, most {most >> 20} MiB, arena used "
          f"{used >> 20} MiB, reserved {reserved >> 20} MiB, "
          f"{crowds[2].answered} others answered, "
          f"{sum(c.rejected for c in crowds)} senders were 408")
