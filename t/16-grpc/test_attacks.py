"""Clients that mean harm, or are badly written: each gets a status or nginx's
own protection, memory stays bounded, and others are answered meanwhile."""

import gzip
import os
import signal
import socket
import struct

import pytest
from grpc import Compression, RpcError
from grpc import StatusCode as Code
from tritonclient.grpc import service_pb2 as pb

from lib import arena, models, process, wire
from lib.grpc_client import (SERVICE, Client, Failure, frame, frames, infer,
                             number, numbers, status_in, tensor)
from lib.h2 import (ACK, DATA, END_HEADERS, END_STREAM, H2, HEADERS, PING,
                    RST_STREAM, SETTINGS, Stream, block, literal)
from lib.server import SANITIZER, SLOW, Server
from lib.unharmed import bounded, descriptors, memory, unharmed

ARENA = 64 << 20
SIZE = 1 << 20
METADATA = {"content-type": "application/grpc", "te": "trailers"}
INFER = SERVICE + "ModelInfer"
STREAM = SERVICE + "ModelStreamInfer"
SMALL = frame(numbers("id_int32", [1]))
LARGE = frame(infer("id_uint8", tensor("IN", "UINT8", [SIZE], bytes(SIZE))))


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "50"})
    models.identity(repository, "slow_bytes", [("IN", "UINT8", [-1])],
                    parameters={"execute_delay_ms": "50"})


@pytest.fixture(scope="module")
def server():
    with Server(fill, http2=True, http=f"    inference_memory {ARENA};",
                server="""
        http2_max_concurrent_streams 1024;
        location /some/ { inference infer; client_max_body_size 10k; }
""") as s:
        yield s


def one_frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] \
        + struct.pack(">BBI", kind, flags, stream) + payload


def request(stream, path, body, end=True):
    """HEADERS and DATA of a call, to be sent with others in one go."""
    return one_frame(HEADERS, END_HEADERS, stream, block([
        (":method", "POST"), (":scheme", "http"), (":path", path),
        (":authority", "localhost"), *METADATA.items()])) \
        + one_frame(DATA, END_STREAM if end else 0, stream, body)


def ends_well(server):
    """The server is as it was: nothing is held, nothing went wrong."""
    arena.assert_empty(server, ARENA)
    server.check_log()
    with Client(server.port2) as client:
        assert client.numbers("id_int32", [3]) == [3]


def vanish(connection):
    """Without a word to the other side."""
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                 struct.pack("ii", 1, 0))
    connection.close()


# ---- streams of HTTP/2

@pytest.mark.parametrize("path", [INFER, STREAM])
def test_streams_one_after_another(server, path):
    """100,000 calls of one connection: its memory does not grow."""
    batch = 100
    with H2(server.port2, timeout=60 * SLOW) as c:
        number_ = 1
        for i in range(1000 // SLOW):
            streams = range(number_, number_ + 2 * batch, 2)
            number_ += 2 * batch
            c.streams.update((s, Stream()) for s in streams)
            c.socket.sendall(b"".join(request(s, path, SMALL)
                                      for s in streams))
            for s in streams:
                reply = c.read(s)
                assert status_in(reply.block) == 0
                assert len(frames(reply.body)) == 1
                del c.streams[s]
            if i == 10:
                before = memory(server)
        bounded(server, before, 8 << 20)
    ends_well(server)


@pytest.mark.parametrize("path", [INFER, STREAM])
@pytest.mark.parametrize("sent", [0, 3, len(SMALL) - 1, len(SMALL)])
def test_floods_of_resets(server, path, sent):
    """nginx may close the connection; nobody else notices."""
    before = descriptors(server)
    with unharmed(server):
        for _ in range(5):
            with H2(server.port2) as c:
                data = b"".join(
                    request(s, path, SMALL[:sent], end=False)
                    + one_frame(RST_STREAM, 0, s, struct.pack(">I", 8))
                    for s in range(1, 2001, 2))
                try:
                    c.socket.sendall(data)
                    c.sync()
                except OSError:
                    pass
    ends_well(server)
    assert process.wait_until(lambda: descriptors(server) <= before + 4,
                              10 * SLOW)


def test_a_flood_of_pings(server):
    with unharmed(server), H2(server.port2) as c:
        stream = c.post(STREAM, METADATA)
        try:
            for _ in range(100):
                c.socket.sendall(one_frame(PING, 0, 0, bytes(8)) * 1000)
                for _ in range(1000):
                    c.step()
        except OSError:
            return                          # nginx has seen enough
        c.data(stream, SMALL, end=True)
        assert status_in(c.read(stream).block) == 0
    ends_well(server)


def test_pings_whose_answers_are_not_read(server):
    """The bytes that nginx keeps for the client are bounded, too."""
    before = memory(server)
    with unharmed(server), H2(server.port2) as c:
        c.socket.settimeout(2 * SLOW)
        try:
            for _ in range(400):
                c.socket.sendall(one_frame(PING, 0, 0, bytes(8)) * 1000)
        except OSError:
            pass
        bounded(server, before, 16 << 20)
    ends_well(server)


def test_streams_that_are_never_closed(server):
    """They are there until their client goes; others are served."""
    before = memory(server)
    with unharmed(server), H2(server.port2) as c:
        c.socket.sendall(b"".join(request(s, STREAM, SMALL, end=False)
                                  for s in range(1, 1001, 2)))
        c.sync()
        bounded(server, before, 64 << 20)
    ends_well(server)


def test_metadata_that_is_too_long(server):
    """nginx ends the stream or the connection."""
    with unharmed(server):
        for size in (7000, 40_000, 1 << 20):
            with H2(server.port2) as c:
                try:
                    stream = c.post(INFER, METADATA)
                    del stream
                    text = b"\0" + literal("x-long") \
                        + bytes([127, (size - 127) & 127 | 128,
                                 (size - 127) >> 7 & 127 | 128,
                                 (size - 127) >> 14]) + b"a" * size
                    pieces = [text[i:i + 16_000]
                              for i in range(0, len(text), 16_000)]
                    c.frame(HEADERS, 0, 3, block([
                        (":method", "POST"), (":scheme", "http"),
                        (":path", INFER), (":authority", "x"),
                        *METADATA.items()]))
                    for piece in pieces[:-1]:
                        c.frame(9, 0, 3, piece)
                    c.frame(9, END_HEADERS, 3, pieces[-1])
                    c.data(3, SMALL, end=True)
                    c.sync()
                except OSError:
                    pass
    ends_well(server)


def test_clients_that_vanish_with_much_in_flight(server):
    """A thousand of them; half of the messages on their way in, the others on
    their way out."""
    before = descriptors(server)
    server.check_log()
    seen = len(server.log_text())
    for i in range(1000 // SLOW):
        c = H2(server.port2, window=100_000 if i % 2 else 0)
        calls = [(c.post(path, METADATA), path)
                 for path in (INFER, STREAM) * 4]
        for stream, path in calls[:4]:
            # a stream's window is 64 KiB
            c.data(stream, LARGE if path == INFER else LARGE[:65_000])
            if path == INFER:
                c.data(stream, b"", end=True)
        for stream, _ in calls[4:]:
            c.data(stream, LARGE[:60_000])
        if i % 3:
            c.sync()
        vanish(c)
        if i == 20:
            used = memory(server)
    ends_well(server)
    # what many clients at once had is given back bit by bit
    assert SANITIZER or process.wait_until(
        lambda: memory(server) < used + (8 << 20), 20 * SLOW)
    assert process.wait_until(lambda: descriptors(server) <= before + 4,
                              10 * SLOW)
    said = server.log_text()[seen:]
    # a sanitizer's core holds memory for longer
    assert not [line for line in said.splitlines()
                if "[" in line and "[info]" not in line
                and "[notice]" not in line
                and not (SANITIZER and "no room for" in line)], said


def test_clients_that_vanish_from_grpcio(server):
    """The same through a library: cancelled within large responses."""
    for _ in range(5):
        with Client(server.port2) as client, client.stream() as stream:
            stream.send(*(infer("id_uint8", tensor("IN", "UINT8", [SIZE],
                                                   bytes(SIZE)))
                          for _ in range(8)))
            assert stream.read().error_message == ""
    ends_well(server)


def test_clients_that_close_while_their_messages_are_read(server):
    """A call that has sent its head ends without an alarm in the log where
    nginx cannot grant its window more bytes."""
    for _ in range(20):
        with H2(server.port2) as c:
            streams = [c.post(STREAM, METADATA) for _ in range(8)]
            for stream in streams:
                c.data(stream, SMALL)
            while not all(c.streams[s].body for s in streams):
                c.step()
            for stream in streams:
                c.data(stream, LARGE[:40_000])
    ends_well(server)


# ---- messages

def test_empty_messages(server):
    """Each is a request of no model; none of them ends the stream."""
    count = 3000
    with unharmed(server), H2(server.port2, window=1 << 30) as c:
        stream = c.post(STREAM, METADATA)
        for _ in range(count // 100):
            c.data(stream, frame(b"") * 100)
        c.data(stream, SMALL, end=True)
        reply = c.read(stream)
        assert status_in(reply.block) == 0
        answers = [pb.ModelStreamInferResponse.FromString(m)
                   for _, m in frames(reply.body)]
        assert len(answers) == count + 1
        assert all("is not found" in a.error_message for a in answers[:-1])
        assert number(answers[-1]) == 1
        assert status_in(c.read(c.post(INFER, METADATA,
                                       frame(b""))).block) == 5
    ends_well(server)


def test_a_stream_of_errors_does_not_grow(server):
    """Texts of errors are gone with their messages."""
    bad = frame(numbers("m" * 900, [1]))
    with H2(server.port2, window=1 << 30) as c:
        stream = c.post(STREAM, METADATA)
        for i in range(40):
            c.data(stream, bad * 50)        # less than a stream's window
            while len(c.streams[stream].body) < 50 * 900:
                c.step()
            c.sync()
            c.streams[stream].body = b""
            if i == 10:
                before = memory(server)
        bounded(server, before, 4 << 20)
    ends_well(server)


def bomb(size):
    """A message that is much shorter than its tensor of zeros."""
    return frame(gzip.compress(infer("id_uint8", tensor(
        "IN", "UINT8", [size], bytes(size))).SerializeToString()), flag=1)


def test_compressed_bombs(server):
    """Beyond the limit they are rejected, below they have their turn."""
    packed = {**METADATA, "grpc-encoding": "gzip"}
    large, fair = bomb(200 << 20), bomb(8 << 20)
    assert len(large) < 1 << 19
    with unharmed(server):
        for _ in range(3):
            with H2(server.port2, window=1 << 30, timeout=60 * SLOW) as c:
                reply = c.read(c.post(INFER, packed, large))
                assert (status_in(reply.block), reply.body) == (8, b"")
                stream = c.post(STREAM, packed)
                for at in range(0, len(large), 60_000):
                    c.data(stream, large[at:at + 60_000])
                    c.sync()
                c.data(stream, fair[:60_000])
                c.data(stream, b"", end=True)
                c.read(stream)
    ends_well(server)


def test_many_bombs_in_one_stream(server):
    """Together they would be gigabytes: those that find no room say so."""
    with unharmed(server), Client(server.port2) as client:
        with client.stream(raw=True, metadata=(
                ("grpc-internal-encoding-request", "gzip"),)) as stream:
            data = infer("id_uint8", tensor("IN", "UINT8", [6 << 20],
                                            bytes(6 << 20)))
            for _ in range(24):
                stream.send(data.SerializeToString())
            stream.end()
            answers = stream.rest()
        assert len(answers) == 24
        assert any(not a.error_message for a in answers)
    ends_well(server)


@pytest.mark.parametrize("declared", [False, True])
def test_nginx_own_limit_of_bodies(server, declared):
    """client_max_body_size counts the call; its 413 is a status of gRPC."""
    data = frame(numbers("id_int32", [1] * 5000))
    with H2(server.port2) as c:
        for path in (INFER, STREAM):
            more = {"content-length": str(len(data))} if declared else {}
            reply = c.read(c.post("/some" + path, {**METADATA, **more},
                                  data))
            assert (reply.status, status_in(reply.block)) == (200, 8), path
            reply = c.read(c.post("/some" + path, METADATA, SMALL))
            assert status_in(reply.block) == 0
    ends_well(server)


@pytest.mark.parametrize("sent", [0, 1])
def test_a_limit_of_bodies_in_the_middle_of_a_stream(server, sent):
    """After the head, too, the 413 is a status of gRPC; replies are before
    it."""
    data = frame(numbers("id_int32", [1] * 5000))
    with H2(server.port2) as c:
        stream = c.post("/some" + STREAM, METADATA)
        for _ in range(sent):
            c.data(stream, SMALL)
            while not c.streams[stream].body:
                c.step()
        c.data(stream, data)
        reply = c.read(stream)
        assert (reply.status, status_in(reply.block)) == (200, 8)
        assert len(frames(reply.body)) == sent
    ends_well(server)


def test_a_length_that_the_stream_does_not_have(server):
    """content-length is nginx's to check: its 400 is a status of gRPC."""
    more = {"content-length": str(len(SMALL) + 1)}
    with H2(server.port2) as c:
        stream = c.post(STREAM, {**METADATA, **more})
        c.data(stream, SMALL)
        while not c.streams[stream].body:
            c.step()
        c.data(stream, b"", end=True)
        reply = c.read(stream)
        assert status_in(reply.block) == 13
        assert len(frames(reply.body)) == 1
    ends_well(server)


# ---- the server's own ends

def test_a_killed_worker(make_server):
    """Its calls end UNAVAILABLE; the next worker serves, the core gives
    back what the first one had."""
    server = make_server(fill, http2=True, allow_alarms=[
        r"worker process \d+ exited on signal 9"])
    worker, = server.workers()
    with Client(server.port2) as client:
        calls = [client.channel.unary_unary(
            INFER, request_serializer=pb.ModelInferRequest.SerializeToString)
                 .future(numbers("slow", [i]), timeout=60 * SLOW)
                 for i in range(30)]
        with client.stream() as stream:
            stream.send(numbers("id_int32", [1]),
                        *(numbers("slow", [i]) for i in range(20)))
            assert number(stream.read()) == 1
            os.kill(worker, signal.SIGKILL)
            assert all(c.code().name in ("OK", "UNAVAILABLE")
                       for c in calls), [c.code() for c in calls]
            assert calls[-1].code().name == "UNAVAILABLE"
        assert process.wait_until(
            lambda: server.workers() and worker not in server.workers(),
            20 * SLOW)
        assert server.wait_for("/v2/health/ready")
        assert client.numbers("id_int32", [3]) == [3]


@pytest.mark.parametrize("compression", (Compression.NoCompression,
                                         Compression.Gzip))
def test_a_stream_of_large_requests_leaves_room(server, compression):
    """It is read on as its requests end: what it holds is bounded, however
    small the messages are on the wire, and others are answered."""
    message = infer("slow_bytes", tensor("IN", "UINT8", [900_000],
                                         bytes(900_000)))
    answered = 0
    with Client(server.port2) as client, \
            client.stream(compression=compression) as stream:
        stream.send(*[message] * 100)
        stream.end()
        for i in range(100):
            stream.read()
            if i % 5 == 0:
                with Client(server.port2) as other:
                    large = bytes([i]) * SIZE
                    assert other.infer("id_uint8", tensor(
                        "IN", "UINT8", [SIZE], large)) \
                        .raw_output_contents[0] == large
                assert arena.asks_to_continue(server, 48 << 20) == 100
                answered += 1
        assert stream.rest() == []
    assert answered == 20
    ends_well(server)


# ---- what a message becomes in memory

UNKNOWN = b"\x78\x00"                    # field 15, an integer: 0
CALLS = [SERVICE + "ServerReady", SERVICE + "ModelReady",
         SERVICE + "ServerMetadata", SERVICE + "RepositoryIndex",
         SERVICE + "RepositoryModelUnload", SERVICE + "TraceSetting",
         SERVICE + "LogSettings", SERVICE + "SystemSharedMemoryRegister",
         "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"]


@pytest.fixture(scope="module")
def control():
    with Server(fill, http2=True, parts="health metadata repository trace "
                "logging shared_memory",
                http="    inference_model_control explicit;\n"
                     "    inference_load_model *;") as s:
        yield s


def peak(server):
    """The memory that workers and core have had at most, each."""
    return sum(process.peak_bytes(p)
               for p in server.workers() + server.cores())


def rejection(server, path, body):
    with Client(server.port2) as client:
        try:
            if path.endswith("Watch"):
                next(client.channel.unary_stream(path)(
                    body, timeout=20 * SLOW, compression=Compression.Gzip))
            else:
                client.unary(path, body, None, compression=Compression.Gzip)
        except (Failure, RpcError) as e:
            e = e if isinstance(e, Failure) else Failure(e)
            return e.code, e.text
    return None, "it was answered"


@pytest.mark.parametrize("path", CALLS)
def test_fields_that_nobody_knows(control, path):
    """Two bytes that a compressed message hardly has would be a hundred in
    memory, for each of its fields."""
    code, text = rejection(control, path, UNKNOWN * (8 << 20))
    assert code == Code.RESOURCE_EXHAUSTED, text
    assert "larger than max" in text and " vs. 65536)" in text, text
    code, text = rejection(control, path, UNKNOWN * 5000)
    assert code == Code.INVALID_ARGUMENT, text
    assert "too many unknown fields" in text
    few = UNKNOWN * 4000 + (b"\x0a\x01m" if "Ready" in path else b"")
    code, text = rejection(control, path, few)
    assert "too many" not in text and code != Code.RESOURCE_EXHAUSTED, text
    control.check_log()


@pytest.mark.parametrize("field", (UNKNOWN, b"\x1a\x00"))
def test_a_load_of_many_fields(control, field):
    """A load may be long: it brings files."""
    before = peak(control)
    code, text = rejection(control, SERVICE + "RepositoryModelLoad",
                           field * (8 << 20))
    assert code == Code.INVALID_ARGUMENT and "too many" in text, text
    assert SANITIZER or peak(control) < before + (200 << 20)
    control.check_log()


@pytest.mark.parametrize("path,status,words", [
    ("/v2/logging", 400, "larger than the limit of 65536 bytes"),
    ("/v2/trace/setting", 400, "larger than the limit of 65536 bytes"),
    ("/v2/repository/index", 400, "larger than the limit of 65536 bytes"),
    ("/v2/systemsharedmemory/region/r/register", 400,
     "larger than the limit of 65536 bytes"),
    ("/v2/repository/models/m/load", 400, "JSON: more than 65536 values"),
])
def test_values_of_json_that_nobody_knows(control, path, status, words):
    body = gzip.compress(b'{"a":[' + b"[]," * (5 << 20) + b"[]]}")
    before = peak(control)
    answer = wire.fetch(control.port, "POST", path, body,
                        {"Content-Encoding": "gzip"})
    assert answer.status == status and words in answer.error, answer.body
    assert SANITIZER or peak(control) < before + (200 << 20)
    control.check_log()
