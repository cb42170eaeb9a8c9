"""Sequences and queue policies over gRPC, as calls and as messages of a
stream."""

import struct
import tempfile
import pathlib

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb

from lib import models
from lib.grpc_client import (Client, Failure, infer, is_final, number,
                             tensor)
from lib.sequences import ALL, LONG, Sequences, values
from lib.server import SLOW

Code = grpc.StatusCode
INFER = "/inference.GRPCInferenceService/ModelInfer"


def one(model, value, id="", **options):
    return infer(model, tensor("IN", "INT32", [1, 1],
                               struct.pack("<i", value)), id=id,
                 options=options)


# ---- sequences

@pytest.fixture
def sequences(make_server):
    with tempfile.TemporaryDirectory(prefix="inf-seq-") as folder:
        pathlib.Path(folder).chmod(0o777)
        found = Sequences(make_server, pathlib.Path(folder))
        found.start(LONG + ALL, http2=True)
        yield found


@pytest.fixture
def sequence_client(sequences):
    with Client(sequences.server.port2) as c:
        yield c


def test_a_sequence_of_calls(sequences, sequence_client):
    call = sequence_client.call
    call("ModelInfer", one("m", 1, sequence_id=5, sequence_start=True))
    call("ModelInfer", one("m", 2, sequence_id=5))
    call("ModelInfer", one("m", 3, sequence_id=5, sequence_end=True))
    assert values(sequences.executions(), 5) == [[1], [2], [3]]
    with pytest.raises(Failure) as e:
        call("ModelInfer", one("m", 4, sequence_id=5))
    assert e.value.code == Code.INVALID_ARGUMENT
    assert "must specify the START flag on the first request of the " \
        "sequence" in e.value.text
    with pytest.raises(Failure) as e:
        call("ModelInfer", one("m", 4))
    assert e.value.code == Code.INVALID_ARGUMENT
    assert "non-zero or non-empty correlation ID" in e.value.text


def test_sequences_of_one_stream(sequences, sequence_client):
    """Each in its order, and an error is its message's alone."""
    with sequence_client.stream() as stream:
        for i in range(5):
            for id in (1, 2, 3):
                stream.send(one("m", 10 * id + i, f"{id}.{i}", sequence_id=id,
                                sequence_start=i == 0, sequence_end=i == 4))
        stream.send(one("m", 9, "none", sequence_id=9))
        stream.end()
        answers = stream.rest()
    *good, bad = answers
    assert [a.infer_response.id for a in good] == [
        f"{id}.{i}" for i in range(5) for id in (1, 2, 3)]
    assert not any(a.error_message for a in good)
    assert "START flag" in bad.error_message
    assert bad.infer_response.id == "none"
    done = sequences.executions()
    for id in (1, 2, 3):
        assert values(done, id) == [[10 * id + i] for i in range(5)]


@pytest.mark.parametrize("decoupled", [False, True])
def test_another_client_s_cancel_ends_what_waits_of_the_sequence(make_server,
                                                                 tmp_path,
                                                                 decoupled):
    """CANCELLED has no words, as Triton's; the last response is marked."""
    sequences = Sequences(make_server, tmp_path)
    sequences.start(LONG, max_batch=1, decoupled=decoupled, http2=True)
    with Client(sequences.server.port2) as client, \
            Client(sequences.server.port2) as other:
        leaver, stream = client.stream(), other.stream()
        stream.send(one("m", 1, sequence_id=1, sequence_start=True))
        assert number(stream.read()) == 1       # it keeps the slot
        leaver.send(one("m", 1, sequence_id=2, sequence_start=True))
        sequences.wait_queued(1)
        stream.send(one("m", 2, "b", sequence_id=2),
                    one("m", 3, "c", sequence_id=2, sequence_end=True))
        sequences.wait_queued(3)
        leaver.cancel()
        answers = stream.read(2)
        assert [a.infer_response.id for a in answers] == ["b", "c"]
        for a in answers:
            assert a.error_message == "" and not a.infer_response.outputs
            assert is_final(a)
        stream.end()
        assert stream.rest() == []


# ---- queues

def batched(policy):
    def fill(repository):
        models.identity(
            repository, "m", [("IN", "INT32", [1])], max_batch=1,
            parameters={"execute_delay_ms": "300"}, extra="dynamic_batching "
            f"{{ default_queue_policy {{ {policy} }} }}\n")
    return fill


FULL = "max_queue_size: 2", "Exceeds maximum queue size"
LATE = "default_timeout_microseconds: 100000", "Request timeout expired"


@pytest.mark.parametrize("policy,text", [FULL, LATE], ids=["full", "late"])
def test_calls_that_a_queue_rejects(start, policy, text):
    server = start(batched(policy))
    with Client(server.port2) as client:
        calls = [client.channel.unary_unary(
            INFER, request_serializer=pb.ModelInferRequest.SerializeToString)
                 .future(one("m", i), timeout=60 * SLOW) for i in range(12)]
        codes = [c.code() for c in calls]
        assert set(codes) == {Code.OK, Code.UNAVAILABLE}
        for call in calls:
            if call.code() == Code.UNAVAILABLE:
                assert text in call.details()


@pytest.mark.parametrize("policy,text", [FULL, LATE], ids=["full", "late"])
def test_messages_that_a_queue_rejects(start, policy, text):
    """In their turn, and the stream goes on."""
    server = start(batched(policy))
    with Client(server.port2) as client, client.stream() as stream:
        stream.send(*(one("m", i, str(i)) for i in range(12)))
        answers = stream.read(12)
        assert [a.infer_response.id for a in answers] == \
            [str(i) for i in range(12)]
        failed = [a for a in answers if a.error_message]
        assert failed
        assert all(text in a.error_message for a in failed)
        good = [a for a in answers if not a.error_message]
        assert [number(a) for a in good] == \
            [int(a.infer_response.id) for a in good]
        assert good
        stream.send(one("m", 77))
        assert number(stream.read()) == 77
