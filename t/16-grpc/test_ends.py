"""Calls that end before their time: by clients, deadlines, broken bytes, a
core that is killed, reloads."""

import json
import os
import queue
import re
import signal
import struct
import threading

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb

from lib import decoupled, expanding, models, process, upgrade
from lib.exposition import scrape, wait_executing
from lib.grpc_client import (SERVICE, Client, Failure, frame, frames, infer,
                             number, numbers, status_in, tensor)
from lib.h2 import DATA, END_STREAM, H2
from lib.h2 import HEADERS as HEAD
from lib.server import SANITIZER, SLOW, free_port, nap
from lib.wire import tensor as json_tensor

Code = grpc.StatusCode
HELPER_KILLED = r"process \d+ exited on signal 9"
HEADERS = {"content-type": "application/grpc", "te": "trailers"}
STREAM = SERVICE + "ModelStreamInfer"
INFER = SERVICE + "ModelInfer"


def executions(client, model="slow"):
    return client.call("ModelStatistics", pb.ModelStatisticsRequest(
        name=model)).model_stats[0].execution_count


def test_deadline_of_an_executing_request(client):
    with pytest.raises(Failure) as e:
        client.call("ModelInfer", numbers("slow", [1]), timeout=0.1)
    assert e.value.code == Code.DEADLINE_EXCEEDED
    assert client.numbers("slow", [2]) == [2]


def test_deadline_that_the_server_tells(server):
    """A client whose clock is slower than the server's."""
    with H2(server.port2) as c:
        reply = c.read(c.post(INFER, {**HEADERS, "grpc-timeout": "50m"},
                              frame(numbers("slow", [1]))))
        assert (reply.status, status_in(reply.block), reply.body) == \
            (200, 4, b"")


@pytest.mark.parametrize("path", [INFER, STREAM])
@pytest.mark.parametrize("sent", [0, 3, 20])
def test_deadline_while_the_request_is_sent(server, path, sent):
    """A client that stops within its message."""
    with H2(server.port2) as c:
        stream = c.post(path, {**HEADERS, "grpc-timeout": "300m"})
        c.data(stream, frame(numbers("id_int32", [1]))[:sent])
        reply = c.read(stream)
        assert (reply.status, status_in(reply.block), reply.body) == \
            (200, 4, b"")


@pytest.mark.parametrize("value", ["", "5", "m", "5x", "123456789m", "-1S"])
def test_timeouts_that_are_none(server, value):
    with H2(server.port2) as c:
        reply = c.read(c.post(INFER, {**HEADERS, "grpc-timeout": value},
                              frame(numbers("id_int32", [1]))))
        assert status_in(reply.block) == 13


def test_deadline_of_queued_requests(start):
    server = start()
    with Client(server.port2) as client:
        calls = [client.channel.unary_unary(
            INFER, request_serializer=pb.ModelInferRequest.SerializeToString)
                 .future(numbers("slow", [i]), timeout=0.2)
                 for i in range(20)]
        assert {c.code() for c in calls} == {Code.DEADLINE_EXCEEDED}
        assert client.numbers("slow", [7]) == [7]
        assert executions(client) < 20      # queued ones never ran


def test_cancelled_calls_do_not_execute(start):
    server = start()
    with Client(server.port2) as client:
        calls = [client.channel.unary_unary(
            INFER, request_serializer=pb.ModelInferRequest.SerializeToString)
                 .future(numbers("slow", [i]), timeout=60 * SLOW)
                 for i in range(20)]
        assert process.wait_until(lambda: server.get(
            "/v2/models/slow/stats").status == 200, 10 * SLOW)
        for call in calls:
            call.cancel()
        assert client.numbers("slow", [7]) == [7]
        assert executions(client) < 20


def test_a_cancelled_stream_takes_its_requests_along(start):
    server = start()
    with Client(server.port2) as client:
        with client.stream() as stream:
            stream.send(*(numbers("slow", [i]) for i in range(30)))
            assert number(stream.read()) == 0
        assert client.numbers("slow", [7]) == [7]
        assert executions(client) < 30


def test_deadline_of_a_stream(client):
    with client.stream(timeout=0.5) as stream:
        stream.send(numbers("id_int32", [1]),
                    *(numbers("slow", [i]) for i in range(10)))
        with pytest.raises(Failure) as e:
            stream.rest()
    assert e.value.code == Code.DEADLINE_EXCEEDED
    assert client.numbers("id_int32", [2]) == [2]


# ---- broken bytes

BROKEN = {
    "flag 2": frame(b"", flag=2),
    "compressed without saying how": frame(b"abc", flag=1),
    "longer than any message": frame(b"", size=0xffffffff),
    "cut short": frame(b"abc", size=100),
    "half a prefix": b"\0\0\0",
    "no protobuf": frame(b"\x0a\xff\xff\xff\xff\x0fx"),
    "a wire type that is none": frame(b"\x0f"),
    "random bytes": frame(bytes(range(1, 200)))}


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("what", BROKEN)
def test_broken_bytes_end_a_stream(server, client, what, before):
    good = frame(numbers("id_int32", [1]))
    with client.stream() as other, H2(server.port2) as c:
        other.send(numbers("id_int32", [4]))
        assert number(other.read()) == 4
        stream = c.post(STREAM, HEADERS)
        if before:
            c.data(stream, good)
            while not c.streams[stream].body:
                c.step()
        c.data(stream, BROKEN[what], end=True)
        reply = c.read(stream)
        assert status_in(reply.block) in (3, 8, 13), status_in(reply.block)
        assert len(frames(reply.body)) == before
        again = c.read(c.post(INFER, HEADERS, good))
        assert status_in(again.block) == 0
        other.send(numbers("id_int32", [5]))
        assert number(other.read()) == 5


@pytest.mark.parametrize("what", BROKEN)
def test_broken_bytes_end_a_call(server, what):
    with H2(server.port2) as c:
        reply = c.read(c.post(INFER, HEADERS, BROKEN[what]))
        assert (reply.status, reply.body) == (200, b"")
        assert status_in(reply.block) in (3, 8, 13), status_in(reply.block)


def test_no_message_and_two_messages(server):
    good = frame(numbers("id_int32", [1]))
    with H2(server.port2) as c:
        assert status_in(c.read(c.post(INFER, HEADERS, b"")).block) == 13
        assert status_in(c.read(c.post(INFER, HEADERS,
                                       good + good)).block) == 12


def test_clients_that_leave_within_a_message(server, client):
    """Resets at every byte of a small one; nothing of it stays."""
    data = frame(numbers("id_int32", [1]))
    for size in range(0, len(data), 3):
        with H2(server.port2) as c:
            for path in (INFER, STREAM):
                stream = c.post(path, HEADERS)
                c.data(stream, data[:size])
                c.sync()
                c.reset(stream)
            c.sync()
    assert client.numbers("id_int32", [3]) == [3]


# ---- a client that does not read

def test_a_client_that_does_not_read(start):
    """It is not read either, and goes on when it reads: its requests and their
    responses hold 3 MiB together, and a message or two on their way."""
    server = start()
    pids = server.workers() + server.cores()
    count, size = 64, 1 << 20
    data = os.urandom(size)
    taken = queue.SimpleQueue()

    def requests():
        for _ in range(count):
            taken.put(1)
            yield infer("id_uint8", tensor("IN", "UINT8", [size], data))

    with Client(server.port2) as client:
        same = infer("id_uint8", tensor("IN", "UINT8", [size], data))
        client.call("ModelInfer", same)
        before = process.held_bytes(pids)
        call = client.channel.stream_stream(
            STREAM, request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelStreamInferResponse.FromString)(
                requests(), timeout=120 * SLOW)
        seen = -1
        while seen != taken.qsize():
            seen = taken.qsize()
            nap(0.7 * SLOW)
        print(seen, "requests")
        assert seen < count
        held = process.held_bytes(pids) - before
        print(held >> 10, "KiB")
        assert SANITIZER or held < (3 << 20) + 3 * size
        assert client.numbers("id_int32", [3]) == [3]
        for _ in range(count):
            assert next(call).infer_response.raw_output_contents[0] == data
        assert list(call) == []
        assert call.code() == Code.OK


def test_many_responses_for_a_client_that_does_not_read(start):
    """Its backend waits for a second, then the request is cancelled: its
    client learns that, and meanwhile others have their answers."""
    server = start()
    worker, = server.workers()
    with H2(server.port2, window=0) as c:
        before, seen = process.pss_bytes(worker), -1
        stream = c.post(STREAM, HEADERS, frame(numbers("square", [400_000])))
        with Client(server.port2) as other:
            assert other.numbers("id_int32", [3]) == [3]
        while seen != process.pss_bytes(worker):
            seen = process.pss_bytes(worker)
            nap(1.5 * SLOW)
        assert SANITIZER or seen < before + (16 << 20)
        with Client(server.port2) as other, other.stream() as squares:
            squares.send(numbers("square", [2]))
            squares.end()
            assert len(squares.rest()) == 2
        c.give(stream, 1 << 30)
        reply = c.read(stream)
    assert status_in(reply.block) == 0
    answers = [pb.ModelStreamInferResponse.FromString(f)
               for _, f in frames(reply.body)]
    assert 1000 < len(answers) < 100_000
    assert "has not taken its responses" in answers[-1].error_message
    assert not any(a.error_message for a in answers[:-1])


def test_the_status_of_a_stream_that_is_not_read(start):
    server = start(http="    underscores_in_headers on;")
    with H2(server.port2, window=0, timeout=60 * SLOW) as c:
        stream = c.post(STREAM, {**HEADERS, "triton_grpc_error": "true"},
                        frame(numbers("square", [400_000])))
        c.sync()
        nap(3)
        c.give(stream, 1 << 30)
        reply = c.read(stream)
    assert status_in(reply.block) == Code.RESOURCE_EXHAUSTED.value[0]
    assert not any(pb.ModelStreamInferResponse.FromString(f).error_message
                   for _, f in frames(reply.body))


def plain(repository):
    models.standard_repository(repository)
    expanding.expand(repository)
    decoupled.repeat(repository)
    models.identity(repository, "slow", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "4000"})


def repeated(*delays):
    """A request that has a response after each of so many ms."""
    n = len(delays)
    return infer("repeat", tensor("IN", "INT32", [n], bytes(4 * n)),
                 tensor("DELAY", "UINT32", [n], struct.pack(f"<{n}I", *delays)),
                 tensor("WAIT", "UINT32", [1], bytes(4)))


def whole_frames(data):
    """How many messages of a body have come."""
    count = at = 0
    while at + 5 <= len(data):
        at += 5 + struct.unpack_from(">I", data, at + 1)[0]
        count += at <= len(data)
    return count


def test_requests_whose_responses_nobody_takes(start):
    """Of a model that is not decoupled: those beyond 6 MiB are cancelled,
    others have their answers from its only instance, and the client goes on
    when it reads."""
    server = start(plain)
    pids = server.workers() + server.cores()
    with H2(server.port2, window=0, timeout=60 * SLOW) as c, \
            Client(server.port2) as other, other.stream() as beside:
        beside.send(expanding.wanted(-1))
        assert expanding.number(beside.read()) == -1
        before = process.held_bytes(pids)
        stream = c.post(STREAM, HEADERS)
        c.data(stream, b"".join(frame(expanding.wanted(n))
                                for n in range(200)))
        c.sync()
        for n in range(200, 210):       # they are queued behind the 200
            beside.send(expanding.wanted(n))
            assert expanding.number(beside.read()) == n
        held = process.held_bytes(pids) - before
        print(held >> 10, "KiB")
        # beyond 8 MiB: one that waits, and the other client's
        assert SANITIZER or held < (8 + 2) << 20

        c.give(stream, 1 << 30)
        while whole_frames(c.streams[stream].body) < 200:
            c.step()
        c.data(stream, frame(expanding.wanted(200)), end=True)
        *first, last = [pb.ModelStreamInferResponse.FromString(message)
                        for _, message in frames(c.read(stream).body)]
    assert len(first) == 200
    whole = [r for r in first if not r.error_message]
    assert 5 <= len(whole) <= 6
    assert [expanding.number(r) for r in whole] == list(range(len(whole)))
    assert [r.infer_response.id for r in first] == [str(n) for n in range(200)]
    for reply in first[len(whole):]:
        assert "has not taken its responses" in reply.error_message
    assert expanding.number(last) == 200


def test_many_large_responses_for_a_client_that_reads(start):
    """It is slower than the model: nothing is lost."""
    server = start(plain, http="    inference_response_wait 10s;")
    with Client(server.port2) as client, client.stream() as stream:
        stream.send(*(expanding.wanted(n) for n in range(256)))
        for n in range(256):
            assert expanding.number(stream.read()) == n
            if n % 32 == 0:
                nap(0.3)


@pytest.mark.parametrize("path", [INFER, STREAM, "/v2/models/expand/infer"])
def test_a_window_for_all_of_a_large_response(start, path):
    """nginx closes a connection with 10000 waiting frames as a flood."""
    port = free_port()
    start(plain, server=f"        listen 127.0.0.1:{port} http2 "
                        "sndbuf=64k;\n")
    size = 128 << 20
    request = frame(expanding.wanted(7, size // 4))
    headers = HEADERS
    if path not in (INFER, STREAM):
        headers = {}
        request = json.dumps({
            "inputs": [json_tensor("IN", "INT32", [2], [7, size // 4])],
            "parameters": {"binary_data_output": True}}).encode()
    got, ended = 0, False
    with H2(port, window=(1 << 31) - 1, timeout=60 * SLOW) as c:
        c.post(path, headers, request)
        while not ended:
            kind, flags, _, data = c.take()
            got += len(data) if kind == DATA else 0
            ended = kind in (DATA, HEAD) and flags & END_STREAM
    assert got > size


def test_large_responses_of_the_next_core(start):
    """Its requests come in another order than the client has sent them."""
    count = 200
    server = start(plain, allow_alarms=[HELPER_KILLED],
                   parts="health infer metrics",
                   http="    inference_response_wait 10s;")
    core, = server.cores()

    def answered():
        text = scrape(server)
        return text.value("nginx_inference_requests_total") - sum(
            text.total(name, model="expand")
            for name in ("nginx_inference_executing_requests",
                         "nv_inference_pending_request_count"))

    with Client(server.port2) as client, client.stream() as stream:
        # slots that were used before are given in another order
        stream.send(*[repeated(1000)] * count)
        stream.read(count)
        stream.send(*(expanding.wanted(n) for n in range(count)))
        assert process.wait_until(lambda: answered() >= count + 4,
                                  20 * SLOW), answered()
        os.kill(core, signal.SIGKILL)
        assert process.wait_until(lambda: server.cores() not in ([], [core]),
                                  20 * SLOW)
        nap(2)
        for n in range(count):
            assert expanding.number(stream.read()) == n


@pytest.mark.parametrize("first", ["slow", "repeat"])
def test_large_responses_behind_a_slow_request(start, first):
    """They wait for that and not for their client: nothing is lost.  Those
    behind a decoupled model's wait for nothing."""
    server = start(plain)
    count = 40
    with Client(server.port2) as client, client.stream() as stream:
        if first == "slow":
            stream.send(numbers("slow", [1]))
        else:
            stream.send(repeated(2000, 2000))
        stream.send(*(expanding.wanted(n) for n in range(count)))
        stream.end()
        replies = stream.rest()
    assert not any(r.error_message for r in replies)
    assert [expanding.number(r) for r in replies
            if r.infer_response.model_name == "expand"] == list(range(count))
    assert len(replies) == count + (1 if first == "slow" else 2)


def test_how_long_a_backend_waits_for_its_client(start):
    """As the directive says: nothing is lost in that time."""
    server = start(http="    inference_response_wait 8s;")
    with H2(server.port2, window=0, timeout=60 * SLOW) as c:
        stream = c.post(STREAM, HEADERS, frame(numbers("square", [20_000])))
        nap(2.5)                        # longer than without it
        c.give(stream, 1 << 30)
        reply = c.read(stream)
    assert status_in(reply.block) == 0
    assert len(frames(reply.body)) == 20_000


def test_a_backend_that_is_faster_than_its_client(start):
    """It waits: nothing is lost, nothing is cancelled."""
    server = start()
    with Client(server.port2) as client, client.stream() as stream:
        stream.send(numbers("square", [30_000]))
        stream.end()
        assert len(stream.rest()) == 30_000


def test_requests_beside_a_backend_that_is_fast(start):
    """Responses that are given back leave room for them."""
    server = start(parts="health infer metrics statistics")
    with Client(server.port2) as client, Client(server.port2) as other:
        with client.stream() as stream:
            stream.send(*(numbers("square", [20_000]) for _ in range(4)))
            stream.end()
            reader = threading.Thread(target=stream.rest)
            reader.start()
            answered = 0
            while reader.is_alive() or not answered:
                assert other.numbers("id_int32", [answered]) == [answered]
                answered += 1
            reader.join()
        text = server.get("/metrics").body.decode()
        full, = re.findall(r"^\w*ring_full\w* (\d+)$", text, re.M)
        assert full == "0"


# ---- what happens to the server

def patient(repository):
    models.standard_repository(repository)
    models.identity(repository, "held", [("IN", "INT32", [-1])], instances=2,
                    parameters={"execute_delay_ms": "60000"})


def test_inference_timeout(start):
    """Of a call its status; of a stream, that request's error."""
    server = start(http="    inference_timeout 100ms;")
    with Client(server.port2) as client:
        with pytest.raises(Failure) as e:
            client.call("ModelInfer", numbers("slow", [1]))
        assert e.value.code == Code.DEADLINE_EXCEEDED
        with client.stream() as stream:
            stream.send(numbers("slow", [1], id="s"))
            late = stream.read()
            assert late.error_message
            assert late.infer_response.id == "s"
            stream.end()
            assert stream.rest() == []


def test_inference_timeout_of_a_decoupled_model(start):
    """To the last response: those before it are there."""
    server = start(http="    inference_timeout 1s;")
    with Client(server.port2) as client, client.stream() as stream:
        n = 100
        stream.send(infer(
            "repeat", tensor("IN", "INT32", [n], bytes(4 * n)),
            tensor("DELAY", "UINT32", [n], struct.pack("<I", 100) * n),
            tensor("WAIT", "UINT32", [1], bytes(4)), id="r"))
        stream.end()
        *some, late = stream.rest()
        assert 0 < len(some) < 40
        assert "inference_timeout" in late.error_message
        assert late.infer_response.id == "r"


def test_killed_core(start):
    server = start(patient, allow_alarms=[HELPER_KILLED],
                   parts="health infer metrics",
                   http="    underscores_in_headers on;"
                        "    inference_tries 1;")
    with Client(server.port2) as client, client.stream() as stream:
        call = client.channel.unary_unary(
            INFER, request_serializer=pb.ModelInferRequest.SerializeToString
        ).future(numbers("held", [1]), timeout=60 * SLOW)
        stream.send(numbers("id_int32", [1]), numbers("held", [2], id="h"))
        assert number(stream.read()) == 1
        wait_executing(server, 2)
        server.end_core()
        assert call.code() == Code.UNAVAILABLE
        lost = stream.read()            # the stream itself lives
        assert lost.error_message
        assert lost.infer_response.id == "h"
        assert server.wait_for("/v2/health/ready")
        assert client.numbers("id_int32", [2]) == [2]
        stream.send(numbers("id_int32", [3]))
        assert number(stream.read()) == 3
        stream.end()
        assert stream.rest() == []


def test_reload_beside_a_stream(start):
    server = start()
    before = server.workers()
    with Client(server.port2) as client, client.stream() as stream:
        stream.send(numbers("id_int32", [1]))
        assert number(stream.read()) == 1
        server.signal("HUP")
        assert process.wait_until(
            lambda: set(server.workers()) - set(before), 20 * SLOW)
        for i in range(20):
            stream.send(numbers("id_int32", [i]),
                        numbers("square", [1]))
            assert sorted(number(a) for a in stream.read(2)) == \
                sorted([i, 1])
        stream.end()
        assert stream.rest() == []
    assert process.wait_until(
        lambda: not set(server.workers()) & set(before), 20 * SLOW)


def test_idle_streams_do_not_hold_a_leaving_worker(start):
    """One in a dialogue goes on; one that does nothing ends after a while,
    and what it asks before that is answered."""
    server = start()
    before = set(server.workers())
    with Client(server.port2) as client, client.stream() as stream, \
            client.stream() as idle, client.stream() as used:
        for s in (stream, used):
            s.send(numbers("id_int32", [1]))
            assert number(s.read()) == 1
        server.signal("HUP")
        assert process.wait_until(
            lambda: set(server.workers()) - before, 20 * SLOW)
        for i in range(14):
            stream.send(numbers("id_int32", [i]))
            assert number(stream.read()) == i
            if i == 2:
                used.send(numbers("id_int32", [5]))
                assert number(used.read()) == 5
            nap(0.5)
        for s in (idle, used):
            with pytest.raises(Failure) as e:
                s.rest()
            assert e.value.code == Code.UNAVAILABLE
            assert "leaving" in e.value.text
        assert set(server.workers()) & before
        stream.end()
        assert stream.rest() == []
        assert process.wait_until(
            lambda: not set(server.workers()) & before, 20 * SLOW)
        assert client.numbers("id_int32", [7]) == [7]


def test_reloads_under_load(start):
    """Not one call of a client that keeps its channel fails."""
    server = start()
    with Client(server.port2) as client:
        for i in range(3):
            before = set(server.workers())
            server.signal("HUP")
            while not set(server.workers()) - before:
                assert client.numbers("id_int32", [i]) == [i]
            for _ in range(50):
                assert client.numbers("id_int32", [i]) == [i]
                with client.stream() as stream:
                    stream.send(numbers("id_int32", [i]))
                    stream.end()
                    assert [number(a) for a in stream.rest()] == [i]


def test_a_leaving_worker_answers_requests(start):
    server = start()
    with Client(server.port2) as client, client.stream() as stream:
        stream.send(numbers("id_int32", [1]))
        assert number(stream.read()) == 1
        server.signal("HUP")
        stream.send(numbers("slow", [5]))
        assert number(stream.read()) == 5
        stream.end()
        assert stream.rest() == []


# ---- the end of nginx

STOPPING = "GRPC server is shutting down and has stopped accepting new " \
    "requests."


def left(server):
    """Waits until the workers leave: they listen no more."""
    assert process.wait_until(lambda: not server.status("/v2/health/live"),
                              20 * SLOW)


def test_a_stop_rejects_further_requests(start):
    """Each of them on its stream, which ends when its client wants it to."""
    server = start()
    with Client(server.port2) as client, client.stream() as stream:
        stream.send(numbers("slow", [2]), numbers("square", [1]))
        assert number(stream.read()) == 1       # the other one is in the core
        server.signal("QUIT")
        left(server)
        stream.send(*(numbers("id_int32", [i], id=f"n{i}")
                      for i in range(20)))
        stream.end()
        first, *others = stream.rest()
        assert number(first) == 2
        assert [a.error_message for a in others] == [STOPPING] * 20
        for i, answer in enumerate(others):
            assert answer.infer_response == pb.ModelInferResponse(id=f"n{i}")
        server.stop()


def test_a_stop_is_not_held_up_by_its_streams(start):
    """Neither by idle ones nor by one that goes on sending."""
    server = start()
    with Client(server.port2) as client, client.stream() as stream, \
            client.stream() as idle:
        for s in (stream, idle):
            s.send(numbers("id_int32", [1]))
            assert number(s.read()) == 1
        server.signal("QUIT")
        left(server)
        with pytest.raises(Failure) as e:
            while True:
                stream.send(numbers("id_int32", [2]))
                assert stream.read().error_message == STOPPING
                nap(0.2)
        assert (e.value.code, e.value.text) == (Code.UNAVAILABLE, STOPPING)
        with pytest.raises(Failure) as e:
            idle.rest()
        assert (e.value.code, e.value.text) == (Code.UNAVAILABLE, STOPPING)
        server.stop()


def test_a_stop_after_a_reload(start):
    """Workers of the configuration before go on with their streams until
    nginx stops; then all reject."""
    server = start()
    with Client(server.port2) as old, old.stream() as dialogue:
        dialogue.send(numbers("id_int32", [1]))
        assert number(dialogue.read()) == 1
        server.signal("HUP")
        # from then on it takes no connections
        assert process.wait_until(
            lambda: server.titled("is shutting down"), 20 * SLOW)
        dialogue.send(numbers("id_int32", [2]))
        assert number(dialogue.read()) == 2
        with Client(server.port2) as new, new.stream() as stream:
            stream.send(numbers("id_int32", [3]))
            assert number(stream.read()) == 3
            server.signal("QUIT")
            left(server)
            stream.send(numbers("id_int32", [4]))
            assert stream.read().error_message == STOPPING
        dialogue.send(numbers("id_int32", [5]))
        assert dialogue.read().error_message == STOPPING
        dialogue.end()
        assert dialogue.rest() == []
        server.stop()


def test_a_stop_after_a_reload_is_not_held_up(start):
    """A stream of the worker that has left for the reload sends on."""
    server = start()
    with Client(server.port2) as old, old.stream() as dialogue:
        dialogue.send(numbers("id_int32", [1]))
        assert number(dialogue.read()) == 1
        server.signal("HUP")
        assert process.wait_until(
            lambda: server.titled("is shutting down"), 20 * SLOW)
        dialogue.send(numbers("id_int32", [2]))
        assert number(dialogue.read()) == 2
        server.signal("QUIT")
        left(server)
        with pytest.raises(Failure) as e:
            while True:
                dialogue.send(numbers("id_int32", [3]))
                dialogue.read()
                nap(0.2)
        assert (e.value.code, e.value.text) == (Code.UNAVAILABLE, STOPPING)
        server.stop()


def test_a_stream_beside_an_upgrade(start):
    """The next binary serves: requests of the stream that stays are
    executed."""
    server = start(daemon=True)
    with Client(server.port2) as client, client.stream() as stream:
        stream.send(numbers("id_int32", [1]))
        assert number(stream.read()) == 1
        old, new = upgrade.begin(server)
        upgrade.send(old, "WINCH")
        for i in range(10):
            stream.send(numbers("id_int32", [i]))
            assert number(stream.read()) == i
            nap(0.1)
        stream.end()
        assert stream.rest() == []
    upgrade.finish(server, old, new)
