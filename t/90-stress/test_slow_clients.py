"""500 slow senders and 500 slow readers, half of each over HTTP/2: issue 14.
As many clients of gRPC, some of which send or read nothing: issue 16.

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

from tritonclient.grpc import service_pb2 as pb

from lib import arena, decoupled, models
from lib.exposition import figure
from lib.grpc_client import (SERVICE, Client, frame, frames, infer, number,
                             numbers, status_in, tensor)
from lib.h2 import H2
from lib.process import descendants, wait_until
from lib.server import SANITIZER, SLOW, Server
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
INFER = SERVICE + "ModelInfer"
STREAM = SERVICE + "ModelStreamInfer"
METADATA = {"content-type": "application/grpc", "te": "trailers"}
REJECTED = 4                # DEADLINE_EXCEEDED
RESPONSES = 300_000         # of a decoupled request: more than 8 MiB


def fill(repository):
    models.standard_repository(repository)
    decoupled.square(repository)


@pytest.fixture(scope="module")
def server():
    made = Server(fill, connections=1000, http2=True,
                  http=f"    inference_memory {ARENA};",
                  server="    location = /scrape { inference metrics; }")
    # a sanitizer's core takes long for the releases of all who leave at once
    made.write_config(core_options=made.fields["core_options"]
                      + f" hang={10 * SLOW}s")
    with made as s:
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
            if i % 2 and self.is_rejected(stream):
                self.rejected += 1
            else:
                self.wrong.append((i, stream.status, stream.block))
            self.numbers[i] = self.open(i)

    def is_rejected(self, stream):
        return stream.status == 408


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


class Calls(SendingStreams):
    """Of gRPC: a tensor of which a little comes each tick."""

    path = INFER
    head = frame(infer("id_uint8", tensor("IN", "UINT8", [BODY],
                                          b"x" * BODY)))[:-BODY]

    def open(self, _):
        number_ = self.connection.post(self.path, METADATA)
        self.connection.data(number_, self.head)
        return number_

    def is_rejected(self, stream):
        return status_in(stream.block) == REJECTED


class Messages(Calls):
    path = STREAM


class SilentSenders(Streams):
    """Streams of gRPC that are open, and send nothing until the end."""

    def begin(self):
        super().begin()
        self.small = frame(numbers("id_int32", [7]))

    def open(self, _):
        return self.connection.post(STREAM, METADATA)

    def tick(self):
        self.hear()
        for number_ in self.numbers:
            if self.connection.streams[number_].ended:
                self.wrong.append("a silent stream has ended")

    def finish(self):
        for number_ in self.numbers:
            self.connection.data(number_, self.small, end=True)
            stream = self.connection.read(number_)
            if status_in(stream.block) != 0 or len(frames(stream.body)) != 1:
                self.wrong.append((stream.status, stream.body))
        super().finish()


class SilentReaders(Streams):
    """Windows of 0: nothing of an answer comes until the end."""

    window = 0
    path = INFER
    body = frame(infer("id_uint8", tensor("IN", "UINT8", [ANSWER],
                                          b"y" * ANSWER)))

    def open(self, _):
        number_ = self.connection.post(self.path, METADATA)
        self.connection.data_in_window(number_, self.body)
        return number_

    def tick(self):
        self.hear()
        if any(self.connection.streams[n].body for n in self.numbers):
            self.wrong.append("bytes beyond the window")

    def finish(self):
        for number_ in self.numbers:
            self.connection.give(number_, 1 << 30)
        for number_ in self.numbers:
            self.judge(self.connection.read(number_))
        super().finish()

    def judge(self, stream):
        if status_in(stream.block) != 0 or len(stream.body) < ANSWER:
            self.wrong.append((stream.block, len(stream.body)))


class DeafReaders(SilentReaders):
    """They grant everything, and never look at their socket."""

    window = 1 << 30

    def tick(self):
        pass


class SilentStreams(SilentReaders):
    """Decoupled responses that nobody reads: the request is cancelled."""

    path = STREAM
    body = frame(numbers("square", [RESPONSES]))

    def judge(self, stream):
        *some, last = [pb.ModelStreamInferResponse.FromString(message)
                       for _, message in frames(stream.body)]
        if len(some) >= RESPONSES \
                or "has not taken its responses" not in last.error_message:
            self.wrong.append((len(some), last))


class Callers(Crowd):
    """Everybody else, over gRPC."""

    def begin(self):
        self.answered = 0
        self.took = []
        self.body = b"z" * (3 << 20)

    def tick(self):
        began = time.monotonic()
        with Client(self.server.port2) as client:
            if client.numbers("id_int32", [3]) != [3]:
                self.wrong.append("another number")
            answer = client.infer("id_uint8", tensor(
                "IN", "UINT8", [len(self.body)], self.body))
            if answer.raw_output_contents[0] != self.body:
                self.wrong.append("another tensor")
            with client.stream() as stream:
                stream.send(numbers("square", [2]))
                stream.end()
                if [number(a) for a in stream.rest()] != [2, 2]:
                    self.wrong.append("other responses")
        self.took.append(time.monotonic() - began)
        self.answered += 1


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


# Bytes that worker and core hold of a decoupled request whose responses are not
# read.
UNREAD = 8 << 20

# connections of each kind
COUNT = {SilentSenders: CLIENTS // STREAMS, SilentReaders: 3, DeafReaders: 3,
         SilentStreams: 1}


class Peaks:
    """The greatest figures while crowds do what they do."""

    def __init__(self, server):
        self.idle = self.most = proportional(server)
        self.used = self.reserved = 0

    def look(self, server):
        self.most = max(self.most, proportional(server))
        self.used = max(self.used, gauge(server, "used"))
        self.reserved = max(self.reserved, gauge(server, "reserved"))

    def __str__(self):
        return f"idle {self.idle >> 20} MiB, most {self.most >> 20} MiB, " \
            f"arena used {self.used >> 20} MiB, reserved " \
            f"{self.reserved >> 20} MiB"


def watch(server, end, crowds, unread=0):
    """Lets crowds go on for a while; what they led to.  unread: bytes that
    responses may take which nobody reads."""
    peaks = Peaks(server)
    for crowd in crowds:
        crowd.start()
    stop = time.monotonic() + SECONDS
    while time.monotonic() < stop:
        peaks.look(server)
        end.wait(1)
    end.set()
    for crowd in crowds:
        crowd.join(120 * SLOW)
        assert not crowd.is_alive(), crowd
    wrong = [(type(crowd).__name__, w) for crowd in crowds
             for w in crowd.wrong]
    assert not wrong, wrong[:10]

    # everything that slow ones hold: two arenas, and nginx's own buffers; a
    # sanitizer keeps what is freed, too
    buffers = 4 * CLIENTS * (128 << 10)
    assert SANITIZER or peaks.most < peaks.idle + 2 * ARENA + buffers \
        + unread, str(peaks)
    assert 0 < peaks.used <= ARENA
    assert wait_until(lambda: gauge(server, "used") == 0
                      and gauge(server, "reserved") == 0, 20 * SLOW)
    for crowd in crowds:
        if hasattr(crowd, "took"):
            took = sorted(crowd.took)
            assert len(took) > 4, crowd
            print(f"{type(crowd).__name__}: {len(took)}, p50 "
                  f"{took[len(took) // 2] * 1000:.1f} ms, p99 "
                  f"{took[len(took) * 99 // 100] * 1000:.1f} ms")
    print(f"{peaks}, {sum(c.rejected for c in crowds)} senders were rejected")
    return peaks


def test_slow_clients_slow_nobody_else_down(server):
    end = threading.Event()
    senders = [Senders(server, end), *(
        SendingStreams(server, end) for _ in range(CLIENTS // STREAMS))]
    peaks = watch(server, end, [
        *senders, Readers(server, end), Others(server, end),
        Health(server, end), *(ReadingStreams(server, end)
                               for _ in range(CLIENTS // STREAMS))])
    assert peaks.reserved > CLIENTS * BODY // 2
    assert senders[0].rejected and any(s.rejected for s in senders[1:])


def test_slow_clients_of_grpc_slow_nobody_else_down(server):
    end = threading.Event()
    senders = [kind(server, end) for kind in (Calls, Messages)
               for _ in range(CLIENTS // STREAMS)]
    peaks = watch(server, end, [
        *senders, Callers(server, end), Others(server, end),
        Health(server, end), *(
            kind(server, end) for kind in (
                SilentSenders, SilentReaders, DeafReaders, SilentStreams)
            for _ in range(COUNT[kind]))],
        unread=COUNT[SilentStreams] * STREAMS * UNREAD)
    assert peaks.reserved > CLIENTS * BODY // 2
    for kind in (Calls, Messages):
        assert any(s.rejected for s in senders if isinstance(s, kind)), kind
