"""ModelStreamInfer: orders, errors within the stream, decoupled models."""

import os
import struct
import threading

import grpc
import numpy
import pytest
import tritonclient.grpc

from lib import decoupled, models
from lib.grpc_client import (Client, Failure, infer, is_final, number, numbers,
                             output, tensor)
from lib.server import SLOW

Code = grpc.StatusCode
OPT_IN = {"triton_enable_empty_final_response": True}
ERRORS_END = (("triton_grpc_error", "true"),)


def repeat(values, delay=0, **kw):
    """As many responses as values, `delay` ms apart."""
    n = len(values)
    return infer("repeat",
                 tensor("IN", "INT32", [n], struct.pack(f"<{n}i", *values)),
                 tensor("DELAY", "UINT32", [n],
                        struct.pack("<I", delay) * n),
                 tensor("WAIT", "UINT32", [1], bytes(4)), **kw)


def square(n, **kw):
    return numbers("square", [n], **kw)


def ids(answers):
    return [a.infer_response.id for a in answers]


def test_responses_leave_in_the_order_of_requests(client):
    with client.stream() as stream:
        stream.send(numbers("slow", [0], id="0"),
                    *(numbers("id_int32", [i], id=str(i))
                      for i in range(1, 20)),
                    numbers("slow", [20], id="20"))
        stream.end()
        answers = stream.rest()
    assert ids(answers) == [str(i) for i in range(21)]
    assert [number(a) for a in answers] == list(range(21))
    assert all(is_final(a) is True for a in answers)
    assert {a.infer_response.model_version for a in answers} == {"1"}


def test_a_response_does_not_wait_for_the_next_request(client):
    with client.stream() as stream:
        for i in range(50):
            stream.send(numbers("id_int32", [i]))
            assert number(stream.read()) == i


def test_no_request_at_all(client):
    with client.stream() as stream:
        stream.end()
        assert stream.rest() == []


@pytest.mark.parametrize("metadata", [(), ERRORS_END])
def test_a_model_that_is_not_decoupled_answers_once(start, metadata):
    """By its first response; others do not reach the client."""
    def fill(repository):
        decoupled.square(repository, "once", policy=False)
        models.identity(repository, "slow", [("IN", "INT32", [-1])],
                        parameters={"execute_delay_ms": "300"})

    server = start(fill)
    with Client(server.port2) as client:
        with client.stream(metadata=metadata) as stream:
            stream.send(*(numbers("once", [n], id=str(n))
                          for n in (3, 1, 500, 2)), numbers("slow", [7]),
                        numbers("once", [4], id="4"))
            stream.end()
            answers = stream.rest()
    assert ids(answers) == ["3", "1", "500", "2", "", "4"]
    assert [number(a) for a in answers] == [3, 1, 500, 2, 7, 4]
    server.wait_said("expected a single response", 4)


def test_half_close_with_requests_in_flight(client):
    with client.stream() as stream:
        stream.send(numbers("slow", [1]), repeat([2, 3, 4], 100), square(2))
        stream.end()
        assert sorted(number(a) for a in stream.rest()) == [1, 2, 2, 2, 3, 4]


@pytest.mark.parametrize("bad", [
    numbers("absent", [1], id="bad"),
    numbers("id_int32", [1], id="bad", model_version="x"),
    numbers("id_int32", [1], id="bad", options={"triton_x": 1}),
    numbers("id_fp32", [1], id="bad"),
    infer("id_int32", id="bad")],
    ids=["model", "version", "parameter", "datatype", "inputs"])
def test_errors_before_the_queue_are_in_the_stream(client, bad):
    with client.stream() as stream:
        stream.send(numbers("id_int32", [1], id="a"), bad,
                    numbers("id_int32", [2], id="b"))
        stream.end()
        first, error, last = stream.rest()
    assert (number(first), number(last)) == (1, 2)
    assert error.error_message
    assert error.infer_response.id == "bad"
    assert error.infer_response.model_name == ""
    assert is_final(error) is None
    assert not error.infer_response.outputs


def test_no_data_is_said_in_the_stream_as_in_a_call(client):
    with client.stream() as stream:
        stream.send(infer("id_int32", tensor("IN", "INT32", [1])))
        assert "unable to find data for input tensor 'IN' for model " \
            "'id_int32' in request." in stream.read().error_message


# ---- decoupled models

def test_many_responses(client):
    with client.stream() as stream:
        stream.send(repeat([5, 6, 7], id="r"))
        stream.end()
        answers = stream.rest()
    assert [number(a) for a in answers] == [5, 6, 7]
    assert ids(answers) == ["r"] * 3
    # the model ends with a flag of its own
    assert [is_final(a) for a in answers] == [False] * 3


def test_final_on_the_last_response(client):
    with client.stream() as stream:
        stream.send(square(3))
        stream.end()
        assert [is_final(a) for a in stream.rest()] == [False, False, True]


def test_one_response(client):
    with client.stream() as stream:
        stream.send(square(1))
        stream.end()
        answers = stream.rest()
    assert [(number(a), is_final(a)) for a in answers] == [(1, True)]


def test_no_response(client):
    """Only who asks for it learns of a request without responses."""
    with client.stream() as stream:
        stream.send(square(0, id="quiet"), square(0, id="q", options=OPT_IN))
        stream.end()
        answers = stream.rest()
    assert ids(answers) == ["q"]


def test_empty_final_responses(client):
    with client.stream() as stream:
        stream.send(repeat([5, 6], id="r", options=OPT_IN))
        stream.end()
        *data, last = stream.rest()
    assert [number(a) for a in data] == [5, 6]
    assert [is_final(a) for a in data] == [False, False]
    assert is_final(last) is True
    assert last.error_message == ""
    reply = last.infer_response
    assert (reply.id, reply.model_name, reply.model_version) == \
        ("r", "repeat", "")
    assert not reply.outputs and not reply.raw_output_contents


def test_no_second_final_response_where_the_last_one_is_final(client):
    with client.stream() as stream:
        stream.send(square(2, options=OPT_IN))
        stream.end()
        assert [is_final(a) for a in stream.rest()] == [False, True]


def test_the_opt_in_means_nothing_to_other_models(client):
    with client.stream() as stream:
        stream.send(numbers("id_int32", [1], options=OPT_IN))
        stream.end()
        assert [(number(a), is_final(a)) for a in stream.rest()] == \
            [(1, True)]


def test_two_decoupled_requests(client):
    """Each has its order; together they come as they are made."""
    with client.stream() as stream:
        stream.send(repeat(range(10), 20, id="a"),
                    repeat(range(100, 110), 20, id="b"))
        stream.end()
        answers = stream.rest()
    by_id = {i: [number(a) for a in answers if a.infer_response.id == i]
             for i in "ab"}
    assert by_id == {"a": list(range(10)), "b": list(range(100, 110))}


def test_decoupled_responses_do_not_wait_for_other_requests(client):
    with client.stream() as stream:
        stream.send(repeat([1, 2], 200, id="r"), numbers("id_int32", [3]))
        stream.end()
        assert [number(a) for a in stream.rest()] == [3, 1, 2]


def test_an_error_among_responses(client):
    with client.stream() as stream:
        stream.send(square(-2, id="e", model_version="1"))
        *data, error = stream.read(3)
        assert [number(a) for a in data] == [-2, -2]
        assert error.error_message
        reply = error.infer_response
        assert (reply.id, reply.model_name, reply.model_version) == \
            ("e", "square", "1")
        assert is_final(error) is True
        stream.send(numbers("id_int32", [4]))
        assert number(stream.read()) == 4


def test_a_request_that_the_model_rejects(client):
    with client.stream() as stream:
        stream.send(infer("repeat", tensor("IN", "INT32", [2], bytes(8)),
                          tensor("DELAY", "UINT32", [1], bytes(4)),
                          tensor("WAIT", "UINT32", [1], bytes(4)), id="x"))
        error = stream.read()
        assert error.error_message
        assert error.infer_response.id == "x"
        assert is_final(error) is not None


def test_errors_of_models_end_a_stream_that_wants_it(client):
    with client.stream(metadata=ERRORS_END) as stream:
        stream.send(numbers("absent", [1]))
        assert stream.read().error_message      # before any queue
        stream.send(square(-1))
        assert number(stream.read()) == -1
        with pytest.raises(Failure) as e:
            stream.read()
    assert e.value.code == Code.INTERNAL
    assert e.value.text


def test_so_do_responses_that_cannot_be_sent(client):
    with client.stream(metadata=ERRORS_END) as stream:
        stream.send(infer("id_fp16", tensor("IN", "FP16", [1], bytes(2)),
                          outputs=[output("OUT", classification=1)]))
        with pytest.raises(Failure) as e:
            stream.read()
    assert e.value.code == Code.INVALID_ARGUMENT
    assert "class result not available" in e.value.text


def test_streams_without_that_metadata_go_on(client):
    for value in ("false", "1", ""):
        with client.stream(metadata=(("triton_grpc_error", value),)) as s:
            s.send(square(-1))
            assert s.read(2)[1].error_message
            s.send(numbers("id_int32", [4]))
            assert number(s.read()) == 4


# ---- amounts

def test_many_small_messages(client):
    count = 2000
    with client.stream() as stream:
        stream.send(*(numbers("id_int32", [i]) for i in range(count)))
        stream.end()
        assert [number(a) for a in stream.rest()] == list(range(count))


def test_many_responses_of_one_request(client):
    count = 5000
    with client.stream() as stream:
        stream.send(square(count))
        stream.end()
        answers = stream.rest()
    assert len(answers) == count
    assert [is_final(a) for a in answers[-2:]] == [False, True]


def test_large_messages(client):
    data = [os.urandom(3 << 20) for _ in range(6)]
    with client.stream() as stream:
        stream.send(*(infer("id_uint8", tensor("IN", "UINT8", [len(d)], d))
                      for d in data))
        stream.end()
        for wanted, answer in zip(data, stream.rest(), strict=True):
            assert list(answer.infer_response.raw_output_contents) == [wanted]


def test_messages_of_all_sizes(client):
    data = os.urandom(70_000)
    sizes = [0, 1, 4, 1000, 16_300, 16_384, 65_536, 70_000, 3, 0, 40_000]
    with client.stream() as stream:
        stream.send(*(infer("id_uint8", tensor("IN", "UINT8", [n], data[:n]))
                      for n in sizes))
        stream.end()
        answers = stream.rest()
    assert [a.infer_response.raw_output_contents[0] for a in answers] == \
        [data[:n] for n in sizes]


@pytest.mark.parametrize("kind", [grpc.Compression.Gzip,
                                  grpc.Compression.Deflate])
def test_compressed_requests(client, kind):
    values = list(range(5000))
    with client.stream(compression=kind) as stream:
        for _ in range(3):
            stream.send(numbers("id_int32", values))
            reply = stream.read().infer_response
            assert reply.raw_output_contents[0] == \
                struct.pack("<5000i", *values)


def test_streams_side_by_side(client):
    def talk(base, wrong):
        try:
            with client.stream() as stream:
                for i in range(base, base + 40):
                    stream.send(numbers("id_int32", [i]), square(1))
                    got = sorted(number(a) for a in stream.read(2))
                    if got != sorted([i, 1]):
                        wrong.append((i, got))
                stream.end()
                wrong += stream.rest()
        except Exception as e:          # of a thread: told by the test
            wrong.append(e)

    wrong = []
    threads = [threading.Thread(target=talk, args=(1000 * i, wrong))
               for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60 * SLOW)
    assert not wrong, wrong[:3]


def test_tritonclient_streams(server):
    client = tritonclient.grpc.InferenceServerClient(
        f"127.0.0.1:{server.port2}")
    arrived, seen = threading.Semaphore(0), []

    def take(result, error):
        seen.append((result, error))
        arrived.release()

    client.start_stream(take)
    tensor_ = tritonclient.grpc.InferInput("IN", [1], "INT32")
    tensor_.set_data_from_numpy(numpy.array([3], dtype=numpy.int32))
    client.async_stream_infer("square", [tensor_], request_id="s",
                              enable_empty_final_response=True)
    client.async_stream_infer("absent", [tensor_])
    for _ in range(4):
        assert arrived.acquire(timeout=30 * SLOW)
    client.stop_stream()
    client.close()
    results = [r for r, e in seen if e is None]
    assert [r.as_numpy("OUT")[0] for r in results] == [3, 3, 3]
    assert len([e for _, e in seen if e is not None]) == 1


def test_more_requests_than_a_call_may_have_at_once(client):
    count = 600
    with client.stream() as stream:
        stream.send(*(repeat([i], 50, id=str(i)) for i in range(count)))
        stream.end()
        answers = stream.rest()
    assert sorted(number(a) for a in answers) == list(range(count))
    assert all(a.infer_response.id == str(number(a)) for a in answers)
