"""How a body may arrive: chunks, pipelines, Expect, encodings."""

import gzip
import json
import struct
import zlib

import pytest

from lib import models
from lib.wire import chunked, request_bytes, tensor

PATH = "/v2/models/id_int32/infer"


def body_of(*values):
    return json.dumps({"inputs": [
        tensor("IN", "INT32", [len(values)], list(values))]}).encode()


def values_of(answer):
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"]


def binary_request(size):
    head = json.dumps({
        "inputs": [tensor("IN", "UINT8", [size], binary_data_size=size)],
        "parameters": {"binary_data_output": True}}).encode()
    tail = bytes(i * 7 % 251 for i in range(size))
    return head, tail


CHUNKED = {"Transfer-Encoding": "chunked"}


@pytest.mark.parametrize("size", [1, 2, 7, 100, 100000])
def test_chunked_body(server, size):
    with server.wire() as connection:
        for values in ([1, 2, 3], [4]):
            connection.send(request_bytes("POST", PATH, headers=CHUNKED)
                            + chunked(body_of(*values), size))
            assert values_of(connection.read()) == values


def test_one_byte_chunks_each_sent_alone(server):
    with server.wire() as connection:
        connection.send(request_bytes("POST", PATH, headers=CHUNKED))
        data = chunked(body_of(1, 2, 3), 1)
        for i in range(len(data)):
            connection.send(data[i:i + 1])
        assert values_of(connection.read()) == [1, 2, 3]
        assert values_of(connection.post(PATH, body_of(9))) == [9]


def test_chunked_binary_body_of_several_megabytes(server):
    head, tail = binary_request(5_000_000)
    with server.wire() as connection:
        connection.send(request_bytes(
            "POST", "/v2/models/id_uint8/infer", headers={
                **CHUNKED, "Inference-Header-Content-Length": len(head)}))
        connection.send(chunked(head + tail, 77_777))
        answer = connection.read()
        assert answer.status == 200, answer
        assert answer.split()[1] == tail
        assert connection.get("/v2/health/live").status == 200


def test_body_that_arrives_byte_by_byte(server):
    body = body_of(5, 6)
    with server.wire() as connection:
        connection.send(request_bytes("POST", PATH, headers={
            "Content-Length": str(len(body))}))
        for i in range(len(body)):
            connection.send(body[i:i + 1])
        assert values_of(connection.read()) == [5, 6]


def test_binary_tail_split_at_every_place(server):
    head, tail = binary_request(64)
    whole = request_bytes(
        "POST", "/v2/models/id_uint8/infer", head + tail,
        {"Inference-Header-Content-Length": len(head)})
    start = len(whole) - len(tail) - len(head)
    with server.wire() as connection:
        for cut in range(start, len(whole), 3):
            connection.send(whole[:cut])
            connection.send(whole[cut:])
            answer = connection.read()
            assert answer.status == 200 and answer.split()[1] == tail


def test_pipelined_requests_are_answered_in_order(server):
    count = 50
    with server.wire() as connection:
        connection.send(b"".join(
            request_bytes("POST", PATH, body_of(i)) for i in range(count)))
        for i in range(count):
            assert values_of(connection.read()) == [i]


def test_pipelined_good_and_bad(server):
    with server.wire() as connection:
        connection.send(request_bytes("POST", PATH, body_of(1))
                        + request_bytes("POST", PATH, b"{")
                        + request_bytes("GET", "/v2/health/live")
                        + request_bytes("POST", "/v2/models/ghost/infer",
                                        body_of(1))
                        + request_bytes("POST", PATH, body_of(2)))
        statuses = [connection.read().status for _ in range(5)]
        assert statuses == [200, 400, 200, 404, 200]


def test_expect_100_continue(server):
    body = body_of(1)
    with server.wire() as connection:
        connection.send(request_bytes("POST", PATH, headers={
            "Expect": "100-continue", "Content-Length": str(len(body))}))
        assert connection.read().status == 100
        connection.send(body)
        assert values_of(connection.read()) == [1]


def test_connection_close_and_http_1_0(server):
    with server.wire() as connection:
        connection.send(request_bytes("POST", PATH, body_of(1),
                                      {"Connection": "close"}))
        answer = connection.read()
        assert values_of(answer) == [1]
        assert answer.headers["connection"] == "close"
        assert connection.socket.recv(10) == b""
    body = body_of(2)
    with server.wire() as connection:
        connection.send(b"POST " + PATH.encode() + b" HTTP/1.0\r\n"
                        b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert values_of(connection.read()) == [2]


def test_content_type_of_the_request_does_not_matter(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded",
                 "multipart/form-data; boundary=x", ""):
        answer = server.post(PATH, body_of(3), {"Content-Type": kind})
        assert values_of(answer) == [3]


def test_header_names_in_any_case(server):
    head, tail = binary_request(10)
    answer = server.post("/v2/models/id_uint8/infer", head + tail, {
        "INFERENCE-header-CONTENT-length": str(len(head))})
    assert answer.status == 200, answer
    assert answer.split()[1] == tail


# ---- compressed bodies

def deflate(data):
    return zlib.compress(data)


@pytest.mark.parametrize("encoding,pack", [
    ("gzip", gzip.compress), ("deflate", deflate),
    ("gzip", deflate), ("deflate", gzip.compress)])
def test_compressed_body(server, encoding, pack):
    answer = server.post(PATH, pack(body_of(1, 2)),
                         {"Content-Encoding": encoding})
    assert values_of(answer) == [1, 2]


@pytest.mark.parametrize("encoding", ["identity", ""])
def test_identity_encoding(server, encoding):
    answer = server.post(PATH, body_of(1), {"Content-Encoding": encoding})
    assert values_of(answer) == [1]


def test_compressed_binary_body_counts_decompressed_bytes(server):
    head, tail = binary_request(3_000_000)
    answer = server.post(
        "/v2/models/id_uint8/infer", gzip.compress(head + tail, 1),
        {"Content-Encoding": "gzip",
         "Inference-Header-Content-Length": str(len(head))})
    assert answer.status == 200, answer
    assert answer.split()[1] == tail


def test_compressed_chunked_body(server):
    data = gzip.compress(body_of(*range(5000)))
    with server.wire() as connection:
        connection.send(request_bytes("POST", PATH, headers={
            **CHUNKED, "Content-Encoding": "gzip"}) + chunked(data, 11))
        assert values_of(connection.read()) == list(range(5000))
        assert values_of(connection.post(PATH, body_of(1))) == [1]


def test_compressed_raw_binary_mode(server):
    data = struct.pack("<3i", 1, 2, 3)
    answer = server.post(PATH, gzip.compress(data), {
        "Content-Encoding": "gzip", "Inference-Header-Content-Length": "0"})
    assert answer.status == 200, answer
    assert answer.split()[1] == data


@pytest.mark.parametrize("encoding", ["br", "zstd", "GZIP", "gzip, deflate",
                                      "compress"])
def test_unknown_encoding_is_501(server, encoding):
    with server.wire() as connection:
        answer = connection.post(PATH, body_of(1),
                                 {"Content-Encoding": encoding})
        assert answer.status == 501, answer
        assert "Unsupported compression type" in answer.error
        assert answer.headers["accept-encoding"] == "gzip, deflate"
        assert values_of(connection.post(PATH, body_of(1))) == [1]


@pytest.mark.parametrize("data", [
    b"", b"not compressed at all", gzip.compress(body_of(1))[:-9],
    gzip.compress(body_of(1))[:12], gzip.compress(body_of(1)) + b"rest",
    zlib.compress(body_of(1))[2:-4]],
    ids=["empty", "plain", "cut", "cut early", "trailing", "raw deflate"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_broken_compression_is_400(server, encoding, data):
    with server.wire() as connection:
        answer = connection.post(PATH, data, {"Content-Encoding": encoding})
        assert answer.status == 400, answer
        assert answer.error
        assert values_of(connection.post(PATH, body_of(1))) == [1]


def test_zip_bomb_is_rejected(server):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    parts = [packer.compress(bytes(1 << 20)) for _ in range(2048)]
    bomb = b"".join(parts) + packer.flush()         # 2 GiB in 2 MiB
    with server.wire(60) as connection:
        answer = connection.post(PATH, bomb, {"Content-Encoding": "gzip"})
        assert answer.status in (400, 413), answer
        assert answer.error
    assert values_of(server.post(PATH, body_of(1))) == [1]


def test_response_compression_by_nginx(make_server):
    server = make_server(models.standard_repository, http="""
        gzip on; gzip_min_length 0; gzip_http_version 1.0;
        gzip_types application/json application/octet-stream;""")
    answer = server.post(PATH, body_of(*range(100)),
                         {"Accept-Encoding": "gzip, deflate"})
    assert answer.headers["content-encoding"] == "gzip"
    answer.body = gzip.decompress(answer.body)
    assert values_of(answer) == list(range(100))


# ---- limits

@pytest.mark.parametrize("name,value", [
    ("If-Match", '"x"'), ("If-None-Match", "*"),
    ("If-Unmodified-Since", "Sat, 01 Jan 2022 00:00:00 GMT"),
    ("If-Modified-Since", "Sat, 01 Jan 2022 00:00:00 GMT"),
    ("Range", "bytes=0-3")])
def test_conditions_and_ranges_mean_nothing(server, name, value):
    with server.wire() as connection:
        assert values_of(connection.post(PATH, body_of(1, 2),
                                         {name: value})) == [1, 2]
        for path in ("/v2", "/v2/models/id_int32/config"):
            answer = connection.request("GET", path, headers={name: value})
            assert answer.status == 200 and answer.json()


def test_empty_answers_through_a_filter_that_adds(make_server):
    server = make_server(models.standard_repository, server="""
        location /add/ {
            inference all;
            add_before_body /before;
            addition_types *;
        }
        location = /before { return 200 "before"; }
    """)
    with server.wire(5) as connection:
        for path in ("/add/v2/health/live", "/add/v2/models/echo/ready"):
            answer = connection.get(path)
            assert (answer.status, answer.body) == (200, b"before"), path
        answer = connection.post("/add" + PATH, body_of(7))
        answer.body = answer.body.removeprefix(b"before")
        assert values_of(answer) == [7]


def test_inference_max_body(make_server):
    server = make_server(models.standard_repository, server="""
        location /small/ { inference infer; inference_max_body 1k; }
        location /stock/ { inference infer; client_max_body_size 2k; }
    """)
    large = body_of(*range(1000))
    for prefix in ("/small", "/stock"):
        assert values_of(server.post(prefix + PATH, body_of(1))) == [1]
        answer = server.post(prefix + PATH, large)
        assert answer.status == 413, answer
        with server.wire() as connection:
            connection.send(request_bytes("POST", prefix + PATH,
                                          headers=CHUNKED)
                            + chunked(large, 100))
            assert connection.read().status == 413
    assert len(values_of(server.post(PATH, large))) == 1000
    answer = server.post("/small" + PATH, gzip.compress(body_of(*[0] * 5000)),
                         {"Content-Encoding": "gzip"})
    assert answer.status in (400, 413), answer


def test_default_limit_of_nginx_does_not_apply(server):
    values = [0] * 700_000                          # 1.4 MB of JSON
    assert len(values_of(server.post(PATH, body_of(*values)))) == 700_000


def test_full_arena_is_rejected_with_retry_after(make_server):
    server = make_server(models.standard_repository,
                         http="    inference_memory 4m;")
    head, tail = binary_request(8 << 20)
    with server.wire() as connection:
        answer = connection.post(
            "/v2/models/id_uint8/infer", head + tail,
            {"Inference-Header-Content-Length": len(head)})
        assert answer.status in (413, 503), answer
        assert answer.error
    for _ in range(20):
        head, tail = binary_request(1 << 20)
        answer = server.infer("id_uint8", head, tail)
        assert answer.status == 200, answer
        assert answer.split()[1] == tail


def test_timeout_answers_for_a_slow_model(make_server):
    server = make_server(
        lambda r: models.identity(r, "slow", [("IN", "INT32", [-1])],
                                  parameters={"execute_delay_ms": "3000"}),
        server="location /fast/ { inference infer; inference_timeout 200ms; }")
    with server.wire() as connection:
        answer = connection.post("/fast/v2/models/slow/infer", body_of(1))
        assert answer.status in (503, 504), answer
        assert answer.error
        assert connection.get("/v2/health/live").status == 200
    answer = server.post("/v2/models/slow/infer", body_of(2))
    assert values_of(answer) == [2]


def test_client_that_leaves_costs_nothing(make_server):
    server = make_server(lambda r: (
        models.identity(r, "slow", [("IN", "INT32", [-1])],
                        parameters={"execute_delay_ms": "200"}),
        models.standard_repository(r)))
    for _ in range(30):
        connection = server.wire()
        connection.send(request_bytes("POST", "/v2/models/slow/infer",
                                      body_of(1)))
        connection.close()
    for cut in range(0, 60, 7):
        connection = server.wire()
        whole = request_bytes("POST", PATH, body_of(*range(50)))
        connection.send(whole[:len(whole) - cut - 1])
        connection.close()
    # abandoned requests were unlinked: this one does not wait for all
    assert values_of(server.post("/v2/models/slow/infer", body_of(7))) == [7]
    assert values_of(server.post(PATH, body_of(1))) == [1]
