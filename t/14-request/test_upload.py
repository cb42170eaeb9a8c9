"""Bodies larger than any buffer, in odd pieces, and answers before their end.
"""

import gzip
import json
import zlib

import pytest

from lib import arena, models, process
from lib.server import SLOW, Server, nap
from lib.wire import chunked, request_bytes, tensor

ARENA = 160 << 20
RAW = {"Inference-Header-Content-Length": "0"}
UINT8 = "/v2/models/id_uint8/infer"
PATTERN = bytes(i * 31 % 253 for i in range(253)) * 4145     # 1 MiB and a bit


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository,
                http=f"    inference_memory {ARENA};") as s:
        yield s
        arena.assert_empty(s, ARENA)


def pattern(size):
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def binary(size):
    """(JSON header, binary tail) of a UINT8 tensor, wanted back as binary."""
    return json.dumps({
        "inputs": [tensor("IN", "UINT8", [size], binary_data_size=size)],
        "parameters": {"binary_data_output": True}}).encode(), pattern(size)


def post_chunked(connection, path, body, piece, headers=None):
    connection.next().send(request_bytes("POST", path, headers={
        **(headers or {}), "Transfer-Encoding": "chunked"}))
    connection.send(chunked(body, piece))
    return connection.read()


def lives(connection):
    assert connection.get("/v2/health/live").status == 200


# ---- large ones

@pytest.mark.parametrize("piece", [None, 99_991], ids=["length", "chunked"])
@pytest.mark.parametrize("raw", [False, True], ids=["header", "raw"])
def test_64_mebibytes_come_back_unchanged(server, piece, raw):
    head, tail = binary(64 << 20)
    body = tail if raw else head + tail
    headers = RAW if raw else {
        "Inference-Header-Content-Length": str(len(head))}
    with server.wire(60) as connection:
        if piece:
            answer = post_chunked(connection, UINT8, body, piece, headers)
        else:
            answer = connection.post(UINT8, body, headers)
        assert answer.status == 200, answer
        assert answer.split()[1] == tail
        lives(connection)


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_body_that_pauses_costs_nothing(server, coding):
    """Its worker sleeps, however much of it has come."""
    body = json.dumps({"inputs": [tensor(
        "IN", "FP32", [500_000], [.5] * 500_000)]}).encode()
    if coding == "gzip":        # one read is more than a worker does at once
        body = gzip.compress(body)
    with server.wire(60) as connection:
        connection.send(request_bytes(
            "POST", "/v2/models/id_fp32/infer", headers={
                "Content-Encoding": coding, "Content-Length": str(len(body))}))
        connection.send(body[:-100])
        assert process.wait_until(lambda: rests(server), 20 * SLOW), \
            "the worker is busy with a body that pauses"
        connection.send(body[-100:])
        assert connection.read().status == 200


def rests(server):
    """Whether the workers do nothing for half a second."""
    before = process.cpu_seconds(server.workers())
    nap(0.5)
    return process.cpu_seconds(server.workers()) - before < 0.1


@pytest.mark.parametrize("count", [0, 1, 400, 100_000, 2_000_000])
def test_json_numbers_in_chunks(server, count):
    body = json.dumps({"inputs": [tensor(
        "IN", "FP32", [count], [i * .5 for i in range(count)])]}).encode()
    with server.wire(60) as connection:
        answer = post_chunked(connection, "/v2/models/id_fp32/infer", body,
                              50_000)
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] \
            == [i * .5 for i in range(count)]
        lives(connection)


def test_json_tensor_of_many_buffers_before_a_binary_tail(server):
    count = 60_000
    header = json.dumps({
        "inputs": [tensor("IN0", "INT32", [count], list(range(count))),
                   tensor("IN1", "FP32", [4], binary_data_size=16)],
        "outputs": [{"name": "OUT0"},
                    {"name": "OUT1", "parameters": {"binary_data": True}}]})
    assert len(header) > 256 * 1024
    answer = server.infer("id_pair", header.encode(), bytes(range(16)))
    assert answer.status == 200, answer
    data, tail = answer.split()
    assert data["outputs"][0]["data"] == list(range(count))
    assert tail == bytes(range(16))


def test_one_byte_chunks_through_header_and_tail(server):
    head, tail = binary(40)
    with server.wire() as connection:
        connection.send(request_bytes("POST", UINT8, headers={
            "Transfer-Encoding": "chunked",
            "Inference-Header-Content-Length": str(len(head))}))
        data = chunked(head + tail, 1)
        for i in range(0, len(data), 5):
            connection.send(data[i:i + 5])
        assert connection.read().split()[1] == tail
        lives(connection)


def test_pipelined_binary_requests_end_where_their_bodies_end(server):
    sizes = [1, 70_000, 0, 16_384, 3, 500_000, 1]
    sent = []
    for i, size in enumerate(sizes):
        head, tail = binary(size)
        headers = {"Inference-Header-Content-Length": str(len(head))}
        if i % 2:
            sent.append(request_bytes("POST", UINT8, headers={
                **headers, "Transfer-Encoding": "chunked"})
                + chunked(head + tail, 7777))
        else:
            sent.append(request_bytes("POST", UINT8, head + tail, headers))
    with server.wire() as connection:
        connection.send(b"".join(sent))
        for size in sizes:
            answer = connection.read()
            assert answer.status == 200, answer
            if size:
                assert answer.split()[1] == pattern(size)
            else:
                assert answer.json()["outputs"][0]["shape"] == [0]
        lives(connection)


# ---- compressed ones

@pytest.mark.parametrize("encoding,pack", [("gzip", gzip.compress),
                                           ("deflate", zlib.compress)])
@pytest.mark.parametrize("size", [10, 100_000, 20 << 20])
def test_compressed_chunks(server, encoding, pack, size):
    head, tail = binary(size)
    with server.wire(60) as connection:
        answer = post_chunked(
            connection, UINT8, pack(head + tail, 1), 4099,
            {"Content-Encoding": encoding,
             "Inference-Header-Content-Length": str(len(head))})
        assert answer.status == 200, answer
        assert answer.split()[1] == tail
        lives(connection)


# ---- sizes that do not add up, where the end is not known before

@pytest.mark.parametrize("more", [-1, 1, 1_000_000])
@pytest.mark.parametrize("piece", [None, 30_011], ids=["length", "chunked"])
def test_tail_that_is_longer_or_shorter_than_told(server, more, piece):
    head, tail = binary(100_000)
    body = head + (tail[:more] if more < 0 else tail + bytes(more))
    headers = {"Inference-Header-Content-Length": str(len(head))}
    with server.wire() as connection:
        if piece:
            answer = post_chunked(connection, UINT8, body, piece, headers)
        else:
            answer = connection.post(UINT8, body, headers)
        assert answer.status == 400, answer
        assert "additional" in answer.error
        lives(connection.next())


@pytest.mark.parametrize("value", ["99999", "abc", "-1", "1.5",
                                   "18446744073709551616"])
def test_bad_header_length_of_a_chunked_body(server, value):
    body = json.dumps({"inputs": [tensor("IN", "UINT8", [1], [7])]}).encode()
    with server.wire() as connection:
        answer = post_chunked(connection, UINT8, body, 50, {
            "Inference-Header-Content-Length": value})
        assert answer.status == 400, answer
        assert "header" in answer.error.lower()
        lives(connection.next())


# ---- answers before the body has come

@pytest.mark.parametrize("path,start,status", [
    (UINT8, b"{]", 400), ("/v2/models/id_uint8/versions/9x/infer", b"{", 404),
    ("/v2/nothing", b"{", 404), ("/v2/models/id_uint8", b"{", 405)])
def test_rejection_does_not_wait_for_a_large_body(server, path, start, status):
    with server.wire() as connection:
        connection.send(request_bytes("POST", path, headers={
            "Content-Length": "50000000"}) + start + b" " * 100_000)
        answer = connection.read()          # 49.9 MB are never sent
        assert answer.status == status, answer
        assert answer.error
    arena.assert_empty(server, ARENA)


def test_rejection_does_not_wait_for_the_end_of_chunks(server):
    with server.wire() as connection:
        connection.send(request_bytes("POST", UINT8, headers={
            "Transfer-Encoding": "chunked"}) + b"2000000\r\n{]")
        for _ in range(20):
            connection.send(bytes(100_000))
        assert connection.read().status == 400


@pytest.mark.parametrize("path,status", [
    ("/v2/models/id_uint8/nothing", 404), ("/v2/health/live", 405)])
def test_expect_of_a_rejected_request_is_not_told_to_continue(server, path,
                                                             status):
    with server.wire() as connection:
        connection.send(request_bytes("POST", path, headers={
            "Expect": "100-continue", "Content-Length": "5000"}))
        answer = connection.read()
        assert answer.status == status, answer
        assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("length", [None, "0"])
def test_expect_without_a_body_keeps_the_connection(server, length):
    """Nothing follows that the client might or might not send."""
    headers = {"Expect": "100-continue"}
    if length:
        headers["Content-Length"] = length
    with server.wire() as connection:
        for _ in range(2):
            connection.send(request_bytes("GET", "/v2/models/id_uint8",
                                          headers=headers))
            answer = connection.read()
            assert answer.status == 200, answer
            assert answer.headers["connection"] == "keep-alive"
