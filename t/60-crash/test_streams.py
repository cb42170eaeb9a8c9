"""The core dies under streams of gRPC: requests without a response go to the
next one, those with a response end with an error."""

import os
import signal
import struct

import grpc
import pytest

from lib import decoupled, models, process
from lib.exposition import wait_executing
from lib.grpc_client import (Client, Failure, frame, frames, infer, number,
                             numbers, tensor)
from lib.h2 import H2
from lib.server import SLOW, nap

KILLED = r"exited on signal"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
HEADERS = {"content-type": "application/grpc", "te": "trailers"}
ENDED = "the inference core ended before it answered"


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "held", [("IN", "INT32", [-1])], instances=4,
                    parameters={"execute_delay_ms": "3000"})
    models.identity(repository, "s", [("IN", "INT32", [-1])], max_batch=0,
                    parameters={"execute_delay_ms": "2000"},
                    extra="sequence_batching { }\n")
    decoupled.repeat(repository)


@pytest.fixture
def server(make_server):
    return make_server(fill, http2=True, allow_alarms=[KILLED],
                       http="    underscores_in_headers on;")


@pytest.fixture
def client(server):
    with Client(server.port2) as c:
        yield c


def repeat(values, delays, **kw):
    """As many responses, each so many ms after the one before."""
    n = len(values)
    return infer("repeat",
                 tensor("IN", "INT32", [n], struct.pack(f"<{n}i", *values)),
                 tensor("DELAY", "UINT32", [n], struct.pack(f"<{n}I",
                                                            *delays)),
                 tensor("WAIT", "UINT32", [1], bytes(4)), **kw)


def test_messages_without_a_response_are_answered_in_their_order(server,
                                                                 client):
    """Some execute, some are queued behind them; more come afterwards."""
    with client.stream() as stream:
        stream.send(*(numbers("held", [i], id=str(i)) for i in range(10)),
                    *(numbers("id_int32", [i], id=str(i))
                      for i in range(10, 20)))
        nap(0.5)
        server.end_core()
        stream.send(*(numbers("id_int32", [i], id=str(i))
                      for i in range(20, 30)))
        stream.end()
        answers = stream.rest()
    assert [number(a) for a in answers] == list(range(30))
    assert [a.infer_response.id for a in answers] == \
        [str(i) for i in range(30)]


def test_a_message_with_a_response_ends_with_an_error(server, client):
    """The stream goes on, and its other messages."""
    with client.stream() as stream:
        stream.send(repeat([1, 2], [0, 100_000], id="begun"))
        assert number(stream.read()) == 1
        stream.send(repeat([3, 4], [5_000, 0], id="waits"))
        nap(0.5)
        server.end_core()
        error = stream.read()
        assert error.error_message.startswith(ENDED), error
        assert error.infer_response.id == "begun"
        assert [number(a) for a in stream.read(2)] == [3, 4]
        stream.send(numbers("id_int32", [5]))
        stream.end()
        (last,) = [a for a in stream.rest()
                   if a.infer_response.model_name == "id_int32"]
        assert number(last) == 5


def test_errors_of_grpc_end_the_stream(server, client):
    with client.stream(metadata=(("triton_grpc_error", "true"),)) as stream:
        stream.send(repeat([1, 2], [0, 100_000]))
        assert number(stream.read()) == 1
        server.end_core()
        with pytest.raises(Failure) as e:
            stream.read()
    assert e.value.code == grpc.StatusCode.UNAVAILABLE
    assert e.value.text.startswith(ENDED)


def test_a_sequence_is_lost(server, client):
    with client.stream() as stream:
        stream.send(numbers("s", [1], id="q", options={
            "sequence_id": 7, "sequence_start": True}))
        nap(0.5)
        server.end_core()
        error = stream.read()
    assert "sequence lost, start again" in error.error_message


def test_messages_that_come_while_there_is_no_core(server, client):
    """Also one of which a part had come before."""
    with H2(server.port2) as c:
        half = c.post(STREAM, HEADERS)
        whole = frame(numbers("id_int32", list(range(5000))))
        c.data(half, whole[:9000])
        with client.stream() as stream:
            stream.send(numbers("id_int32", [1]))
            assert number(stream.read()) == 1
            (supervisor,) = server.supervisors()
            process.stop(supervisor)
            core = server.core()
            os.kill(core, signal.SIGKILL)
            assert process.wait_until(lambda: "is gone" in server.log_text(),
                                      20 * SLOW)
            stream.send(*(numbers("id_int32", [i]) for i in range(2, 9)))
            c.data(half, whole[9000:], end=True)
            nap(0.5)
            os.kill(supervisor, signal.SIGCONT)
            assert [number(a) for a in stream.read(7)] == list(range(2, 9))
        ((_, message),) = frames(c.read(half).body)
        assert struct.pack("<5000i", *range(5000)) in message


def test_a_stream_that_is_left_while_its_messages_wait(server, client):
    (supervisor,) = server.supervisors()
    with client.stream() as stream:
        stream.send(*(numbers("held", [i]) for i in range(20)))
        nap(0.3)
        process.stop(supervisor)
        os.kill(server.core(), signal.SIGKILL)
        assert process.wait_until(lambda: "is gone" in server.log_text(),
                                  20 * SLOW)
    nap(0.3)
    os.kill(supervisor, signal.SIGCONT)
    assert client.numbers("id_int32", [3]) == [3]


def test_tries_are_counted_for_each_message(make_server):
    server = make_server(fill, http2=True, allow_alarms=[KILLED],
                         parts="health infer metrics",
                         http="    inference_tries 1;")
    with Client(server.port2) as client, client.stream() as stream:
        stream.send(*(numbers("held", [i], id=str(i)) for i in range(6)))
        wait_executing(server, 4, 2)
        server.end_core()
        answers = stream.read(6)
    assert [a.infer_response.id for a in answers] == list("012345")
    assert all(a.error_message.startswith(ENDED) for a in answers[:4])
    assert [number(a) for a in answers[4:]] == [4, 5]
