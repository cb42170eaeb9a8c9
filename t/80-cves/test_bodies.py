"""Bodies: chunks, sizes, headers and compression that Triton fell over."""

import gzip
import json
import zlib

import pytest

from lib import arena, models
from lib.server import Server
from lib.unharmed import memory, rejected, unharmed
from lib.wire import chunked, request_bytes, tensor

ARENA = 256 << 20
CHUNKS = 1_000_000
RAW = {"Inference-Header-Content-Length": "0"}
CHUNKED = {"Transfer-Encoding": "chunked"}
BYTES = "/v2/models/id_uint8/infer"


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository,
                parts="all repository trace logging",
                http=f"    inference_memory {ARENA};\n"
                "    inference_model_control explicit;\n"
                "    inference_load_model *;\n",
                server="        location /small/ { inference infer;"
                " inference_max_body 1m; }\n") as s:
        yield s
        arena.assert_empty(s, ARENA // 2)


def send(server, path, body, headers):
    """The answer, also where it comes before the whole body was sent."""
    with server.wire(120) as connection:
        try:
            connection.send(request_bytes("POST", path, body, headers))
        except (BrokenPipeError, ConnectionResetError):
            pass
        return connection.read()


@pytest.mark.parametrize("path", [
    "/v2/repository/index", "/v2/repository/models/id_int32/load",
    "/v2/repository/models/id_int32/unload", "/v2/models/id_int32/infer",
    "/v2/models/id_int32/generate", "/v2/logging",
    "/v2/models/id_int32/trace/setting",
    "/v2/systemsharedmemory/region/r/register",
    "/v2/cudasharedmemory/region/r/register"])
def test_cve_2025_23310(server, path):
    """Triton took sixteen bytes of stack for each chunk of a body, so a
    million chunks of one byte overran it, on any endpoint with a body."""
    body = chunked(b"A" * CHUNKS, 1)
    with unharmed(server):
        answer = send(server, path, body, CHUNKED)
        assert answer.status in (400, 501), answer
        assert answer.error


def test_cve_2025_23311(server):
    """The same stack overflow, found in a second place: the reader of an
    inference request's tensors."""
    data = bytes(i % 251 for i in range(CHUNKS))
    with unharmed(server):
        answer = send(server, BYTES, chunked(data, 1), {**RAW, **CHUNKED})
        assert answer.status == 200
        assert answer.split()[1] == data

        header = json.dumps({"inputs": [tensor(
            "IN", "UINT8", [CHUNKS], binary_data_size=CHUNKS)]}).encode()
        answer = send(server, BYTES, chunked(header + data, 1), {
            **CHUNKED, "Inference-Header-Content-Length": str(len(header))})
        assert answer.status == 200
        assert answer.json()["outputs"][0]["data"][:3] == [0, 1, 2]


@pytest.mark.parametrize("told", [-1, 0, 1, 9, "all", "more", 2**31 - 1, 2**31,
                                  2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64,
                                  2**64 + 1, "1e3", "0x10", "7 7", ""])
def test_cve_2025_23317(server, told):
    """A crafted HTTP request overran a buffer on Triton's heap; nothing more
    was published, so this is each way in which a body's announced and real
    sizes can contradict each other."""
    header = json.dumps({"inputs": [tensor(
        "IN", "UINT8", [8], binary_data_size=8)]}).encode()
    text = {"all": len(header) + 8, "more": len(header) + 9}.get(told, told)
    with unharmed(server):
        for tail in (b"", b"1234567", b"12345678", b"123456789"):
            for pack in (False, True):
                body = header + tail
                headers = {"Inference-Header-Content-Length": str(text)}
                if pack:
                    body, headers = chunked(body, 5), {**headers, **CHUNKED}
                answer = send(server, BYTES, body, headers)
                # with 0 the whole body is the tensor
                assert answer.status == (200 if told == 0 else 400), answer


@pytest.mark.parametrize("data", [4, 10**9])
@pytest.mark.parametrize("size", [-1, 2**31, 2**32 + 8, 2**40, 2**63 - 1,
                                  2**63, 2**64 - 8, 2**64, 2**64 + 8])
def test_cve_2025_23331(server, size, data):
    """A size in an invalid request was allocated as it stood, and a failed
    allocation ended Triton."""
    header = json.dumps({"inputs": [tensor(
        "IN", "UINT8", [data], binary_data_size=size)]}).encode()
    before = memory(server)
    with unharmed(server):
        for headers in ({}, CHUNKED):
            body = header + b"1234"
            body = chunked(body, 9) if headers else body
            rejected(send(server, BYTES, body, {
                **headers, "Inference-Header-Content-Length":
                str(len(header))}), 400, 413, 503)
    assert memory(server) - before < 32 << 20


@pytest.mark.parametrize("size", [2**31, 2**32, 2**40, 2**62, 2**63 - 1])
def test_cve_2025_33201(server, size):
    """An extra large payload threw an exception that nobody caught.

    Here only its announcement has to come: the answer does, too."""
    before = memory(server)
    with unharmed(server), server.wire() as connection:
        connection.send(request_bytes(
            "POST", BYTES, headers={**RAW, "Content-Length": str(size)}))
        rejected(connection.read(), 413)
    assert memory(server) - before < 32 << 20


@pytest.mark.parametrize("form", ["plain", "chunked", "json"])
def test_cve_2025_33202(server, form):
    """An extra large payload overflowed the stack of Triton's HTTP server."""
    data = b"1" * (ARENA + (1 << 20))       # JSON: at most 64 MiB
    headers = dict(RAW)
    if form == "json":
        headers = {}
        data = b'{"inputs":[{"name":"IN","datatype":"UINT8","shape":[1],' \
            b'"data":[' + b"1," * (len(data) // 2)
    if form == "chunked":
        data, headers = chunked(data, 1000), {**headers, **CHUNKED}
    with unharmed(server):
        rejected(send(server, BYTES, data, headers), 400, 413, 503)


@pytest.mark.parametrize("name,values", [
    ("Inference-Header-Content-Length", [
        "x", "-", "+", "+5", "-0", "1.5", "9" * 400, "\x80", "12 ", "1,2",
        "0x", "NaN", "٣"]),
    ("Content-Encoding", ["gzip, gzip", "x" * 4000, "deflate;q=9", "\x01"]),
    ("Content-Type", ["", "/", "x" * 4000, "multipart/form-data;boundary="]),
    ("Accept-Encoding", ["gzip;q=x", "," * 4000, "*;q=-1"]),
    ("Transfer-Encoding", ["gzip", "chunked, chunked", "identity", "x"]),
    ("Content-Length", ["", "-1", "1e2", "9" * 40, "5, 5"]),
])
def test_cve_2026_24175(server, name, values):
    """A malformed request header threw an exception that nobody caught."""
    body = json.dumps({"inputs": [tensor("IN", "INT32", [1], [1])]}).encode()
    with unharmed(server):
        for value in values:
            data = request_bytes("POST", "/v2/models/id_int32/infer", None, {
                "Content-Length": str(len(body)), name: "VALUE"})
            with server.wire() as connection:
                connection.send(data.replace(
                    b"VALUE", value.encode("utf-8")) + body)
                status = connection.read().status
            wrong = name in ("Inference-Header-Content-Length",
                             "Content-Encoding", "Content-Length",
                             "Transfer-Encoding")
            # "12 " is 12 once white space around it is gone
            assert status in ((400, 411, 413, 415, 501) if wrong
                              else (200,)), (name, value, status)


def bomb(mebibytes, bits):
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    piece = bytes(1 << 20)
    return b"".join(packer.compress(piece) for _ in range(mebibytes)) \
        + packer.flush()


@pytest.mark.parametrize("encoding,bits", [("gzip", 31), ("deflate", 15)])
def test_cve_2026_24158(server, encoding, bits):
    """Triton inflated a compressed body without a limit before it looked at
    its size."""
    body = bomb(500, bits)
    before = memory(server)
    with unharmed(server):
        for path in (BYTES, "/small" + BYTES):
            answer = send(server, path, body,
                          {**RAW, "Content-Encoding": encoding})
            rejected(answer, 400, 413)
    assert memory(server) - before < ARENA


@pytest.mark.parametrize("head", [
    b"", b"{", b'{"inputs":', b'{"id":"', b'{"inputs":[{"name":"IN",'
    b'"datatype":"UINT8","shape":[1],"data":['])
def test_cve_2026_24264(server, head):
    """Highly compressed data in a request exhausted Triton."""
    padding = {b'{"id":"': b"a", b"": b" "}.get(head, b"[")
    body = gzip.compress(head + padding * (100 << 20))
    with unharmed(server):
        answer = send(server, "/v2/models/id_uint8/infer", body,
                      {"Content-Encoding": "gzip"})
        rejected(answer, 400, 413, 503)


@pytest.mark.parametrize("field", ["name", "datatype", "id", "key", "value",
                                   "output", "version", "header", "path"])
def test_cve_2026_47477(server, field):
    """A buffer on Triton's stack was overrun; where was not published, so
    each text of a request is as long as it can be."""
    for size in (255, 256, 257, 4095, 4096, 4097, 7000, 65_536, 10**6):
        text = "x" * size
        entry = tensor("IN", "INT32", [1], [1])
        body = {"inputs": [entry]}
        path, headers = "/v2/models/id_int32/infer", {}
        if field in ("name", "datatype"):
            entry[field] = text
        elif field == "id":
            body["id"] = text
        elif field == "key":
            body["parameters"] = {text: 1}
        elif field == "value":
            body["parameters"] = {"key": text}
        elif field == "output":
            body["outputs"] = [{"name": text}]
        elif size > 7000:
            continue
        elif field == "version":
            path = f"/v2/models/id_int32/versions/{'1' * size}/infer"
        elif field == "path":
            path = f"/v2/models/{text}/infer"
        else:
            headers = {"Inference-Header-Content-Length": "1" * size}
        with unharmed(server):
            answer = send(server, path, json.dumps(body).encode(), headers)
            fits = field in ("id", "key", "value") and size < 10**6
            assert answer.status in ((200, 400) if fits else (400, 404)), \
                (size, answer)
            assert answer.status == 200 or answer.error


def test_cve_2026_47628(server):
    """Resources were allocated without a limit.

    So many announcements that all of them together would need fifty arenas
    leave room for others."""
    size, connections = ARENA // 2, []
    before = memory(server)
    try:
        with unharmed(server):
            for _ in range(100):
                connections.append(server.wire())
                connections[-1].send(request_bytes(
                    "POST", BYTES, headers={
                        **RAW, "Content-Length": str(size)}) + b"x")
    finally:
        for c in connections:
            c.close()
    assert memory(server) - before < ARENA


@pytest.mark.parametrize("form", ["plain", "chunked", "gzip"])
def test_cve_2024_0103(server, form):
    """A resource that was not initialised after a network error disclosed
    what it had held.

    Leftovers of a broken request are in no answer to another one."""
    secret = b"SECRET-of-another-client" * 50_000
    for _ in range(5):
        with server.wire() as connection:
            connection.send(request_bytes("POST", BYTES, None, {
                **RAW, "Content-Length": str(len(secret) + 1)}) + secret)
    header = json.dumps({"inputs": [tensor(
        "IN", "UINT8", [1_000_000], binary_data_size=1_000_000)]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(header))}
    body = header + b"ten bytes!"
    if form == "gzip":
        body = gzip.compress(body)
        headers["Content-Encoding"] = "gzip"
    elif form == "chunked":
        body, headers = chunked(body, 7), {**headers, **CHUNKED}
    with unharmed(server):
        for _ in range(5):
            answer = send(server, BYTES, body, headers)
            assert "999990" in rejected(answer, 400)
            assert b"SECRET" not in answer.body
