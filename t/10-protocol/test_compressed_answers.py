"""Responses that a client wants compressed: gzip by nginx, deflate by us."""

import asyncio
import gzip
import json
import zlib

import numpy
import pytest
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

from lib import models
from lib.server import Server
from lib.wire import tensor

GZIP = """
        gzip on; gzip_types application/json application/octet-stream;
        gzip_min_length 0;
        inference_deflate on;
        location /plain/ { inference infer; inference_deflate off; gzip off; }
        location /deflate/ { inference infer; gzip off; }
        location /vary/ { inference infer; gzip off; gzip_vary on; }
"""
UNPACK = {"gzip": gzip.decompress, "deflate": zlib.decompress}


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, server=GZIP, http2=True,
                parts="all repository") as s:
        yield s


def ask(server, accept, count, binary, prefix="", datatype="INT32"):
    values = [i % 97 for i in range(count)]
    body = {"inputs": [tensor("IN", datatype, [count], values)],
            "parameters": {"binary_data_output": binary}}
    with server.wire() as w:
        return w.post(f"{prefix}/v2/models/id_{datatype.lower()}/infer",
                      json.dumps(body).encode(),
                      {"Accept-Encoding": accept} if accept else {}), values


def check(answer, values, encoding, binary):
    assert answer.status == 200, answer
    assert answer.headers.get("content-encoding") == encoding
    body = UNPACK[encoding](answer.body) if encoding else answer.body
    size = answer.headers.get("inference-header-content-length")
    assert (size is not None) == binary
    found = json.loads(body[:int(size)] if binary else body)
    if binary:
        tail = body[int(size):]
        assert numpy.frombuffer(tail, "<i4").tolist() == values
        assert answer.headers["content-type"] == "application/octet-stream"
    else:
        assert found["outputs"][0]["data"] == values
        assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
@pytest.mark.parametrize("count", [1, 1000, 300_000])
@pytest.mark.parametrize("accept,encoding", [
    ("deflate", "deflate"), ("gzip", "gzip"), ("gzip, deflate", "gzip"),
    ("deflate, gzip", "deflate"), ("gzip;q=0.5, deflate", "deflate"),
    ("deflate;q=0", None), ("identity", None), ("br", None), (None, None),
    ("identity, deflate", None),
    ("identity, gzip;q=0.5", "gzip")])      # stock nginx: any q above 0
def test_the_best_encoding_is_chosen(server, accept, encoding, count, binary):
    check(*ask(server, accept, count, binary), encoding, binary)


@pytest.mark.parametrize("accept", ["deflate", "gzip", "identity", None])
def test_caches_are_told_by_gzip_vary(server, accept):
    """As of nginx's gzip, also where this answer is plain."""
    answer, _ = ask(server, accept, 1000, False, "/vary")
    assert answer.headers["vary"] == "Accept-Encoding"
    answer, _ = ask(server, accept, 1000, False, "/deflate")
    assert "vary" not in answer.headers


@pytest.mark.parametrize("method,path,status", [
    ("GET", "/v2", 200), ("GET", "/v2/models/id_int32", 200),
    ("GET", "/v2/models/id_int32/config", 200),
    ("GET", "/v2/models/stats", 200), ("POST", "/v2/repository/index", 200),
    ("GET", "/v2/models/none", 404), ("GET", "/v2/none", 404),
    ("POST", "/v2/models/none/infer", 404),
    ("POST", "/v2/models/id_int32/infer", 400)])
def test_other_answers_are_plain(server, method, path, status):
    """A client decodes what it has not asked for in vain."""
    body = b'{"inputs":[]}' if path.endswith("infer") else b""
    with server.wire() as w:
        answer = w.request(method, path, body, {"Accept-Encoding": "gzip"})
    assert answer.status == status, answer
    assert "content-encoding" not in answer.headers
    assert json.loads(answer.body)


def test_asynchronous_tritonclient(server):
    """It takes gzip for each call, and unpacks inferences alone."""
    async def use():
        async with tritonclient.http.aio.InferenceServerClient(
                server.url) as client:
            found = [await client.get_server_metadata(),
                     await client.get_model_metadata("id_int32"),
                     await client.get_model_config("id_int32"),
                     (await client.get_inference_statistics())["model_stats"],
                     await client.get_model_repository_index()]
            value = tritonclient.http.aio.InferInput("IN", [500], "INT32")
            value.set_data_from_numpy(numpy.arange(500, dtype=numpy.int32))
            answer = await client.infer("id_int32", [value])
            with pytest.raises(InferenceServerException, match="'none'"):
                await client.infer("none", [value])
            return found, answer.as_numpy("OUT").tolist()

    found, values = asyncio.run(use())
    assert all(found)
    assert values == list(range(500))


def test_only_where_it_is_on(server):
    check(*ask(server, "deflate, gzip", 9, True, "/plain"), None, True)
    check(*ask(server, "gzip", 9, True, "/deflate"), None, True)
    check(*ask(server, "deflate", 9, True, "/deflate"), "deflate", True)


def test_errors_and_empty_outputs(server):
    with server.wire() as w:
        answer = w.post("/v2/models/none/infer", b'{"inputs":[]}',
                        {"Accept-Encoding": "deflate"})
        assert answer.status == 404 and "'none'" in answer.error
    check(*ask(server, "deflate", 0, False), "deflate", False)


def test_several_answers_on_a_connection(server):
    body = json.dumps({"inputs": [tensor("IN", "INT32", [3], [1, 2, 3])]})
    with server.wire() as w:
        for accept in ("deflate", "", "deflate"):
            answer = w.post("/v2/models/id_int32/infer", body.encode(),
                            {"Accept-Encoding": accept})
            check(answer, [1, 2, 3], accept or None, False)
            assert not w.closing


def test_over_http_1_0_the_end_is_the_connection_s(server):
    body = json.dumps({"inputs": [tensor("IN", "INT32", [1], [1])]}).encode()
    with server.wire() as w:
        w.send(b"POST /v2/models/id_int32/infer HTTP/1.0\r\n"
               b"Accept-Encoding: deflate\r\nContent-Length: %d\r\n\r\n%s"
               % (len(body), body))
        check(w.read(), [1], "deflate", False)


def test_a_client_that_reads_slowly_gets_all_of_it(server):
    count = 3_000_000
    data = numpy.random.default_rng(1).integers(
        0, 1 << 30, count, numpy.int32).tobytes()
    header = json.dumps({
        "inputs": [tensor("IN", "INT32", [count],
                          binary_data_size=len(data))],
        "parameters": {"binary_data_output": True}}).encode()
    with server.wire() as w:
        answer = w.infer("id_int32", header, data,
                         {"Accept-Encoding": "deflate"})
    size = int(answer.headers["inference-header-content-length"])
    assert zlib.decompress(answer.body)[size:] == data


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
@pytest.mark.parametrize("binary", [False, True])
def test_tritonclient(server, algorithm, binary):
    with tritonclient.http.InferenceServerClient(server.url) as client:
        value = tritonclient.http.InferInput("IN", [500], "INT32")
        value.set_data_from_numpy(numpy.arange(500, dtype=numpy.int32))
        answer = client.infer(
            "id_int32", [value],
            outputs=[tritonclient.http.InferRequestedOutput(
                "OUT", binary_data=binary)],
            request_compression_algorithm=algorithm,
            response_compression_algorithm=algorithm)
        assert answer.as_numpy("OUT").tolist() == list(range(500))
