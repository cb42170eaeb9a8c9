"""One request holds half of inference_memory at most, unless it is told."""

import gzip
import json

import pytest

from lib import arena, models
from lib.server import Server
from lib.wire import chunked, request_bytes, tensor

ARENA = 32 << 20
HALF = ARENA // 2
UINT8 = "/v2/models/id_uint8/infer"
RAW = {"Inference-Header-Content-Length": "0"}


@pytest.fixture(scope="module")
def server():
    def fill(repository):
        models.standard_repository(repository)
        models.identity(repository, "two", [("I0", "UINT8", [-1]),
                                            ("I1", "UINT8", [-1])])

    with Server(fill, http=f"""
        inference_memory {ARENA};
    """, server="""
        location /more/ { inference infer; inference_max_body 24m; }
        location /all/  { inference infer; inference_max_body 0; }
        location /less/ { inference infer; inference_max_body 1m; }
    """) as s:
        yield s
        arena.assert_empty(s, ARENA)


def post(server, path, body, headers, how):
    with server.wire(60) as connection:
        if how == "length":
            connection.send(request_bytes("POST", path, headers={
                **headers, "Content-Length": str(len(body))}))
            pieces = [body]
        else:
            connection.send(request_bytes("POST", path, headers={
                **headers, "Transfer-Encoding": "chunked"}))
            pieces = [chunked(body, 1 << 20)]
        try:
            for piece in pieces:
                connection.send(piece)
        except OSError:
            pass                # the answer is there already
        return connection.read()


@pytest.mark.parametrize("how", ["length", "chunked"])
@pytest.mark.parametrize("path,most", [
    ("", HALF), ("/more", 24 << 20), ("/all", ARENA - 4096),
    ("/less", 1 << 20)])
def test_body_is_as_long_as_the_location_permits(server, path, most, how):
    answer = post(server, path + UINT8, bytes(most), RAW, how)
    if how == "length" or path != "/all":
        assert answer.status == 200, answer.body[:200]
    if path == "/all":
        most = ARENA
    answer = post(server, path + UINT8, bytes(most + 1), RAW, how)
    assert answer.status == 413, answer.body[:200]
    assert ("inference_memory" if path == "/all"
            else str(most)) in answer.error


@pytest.mark.parametrize("path,most", [
    ("", HALF), ("/more", 24 << 20), ("/less", 1 << 20)])
def test_sum_of_binary_sizes_is_a_body_too(server, path, most):
    """It is known before the tensors come."""
    for extra, status in ((-1000, 200), (1, 413)):
        sizes = [most // 2, most // 2 + extra]
        text = json.dumps({"inputs": [
            tensor(f"I{i}", "UINT8", [n], binary_data_size=n)
            for i, n in enumerate(sizes)],
            "parameters": {"binary_data_output": True}}).encode()
        with server.wire(60) as connection:
            connection.send(request_bytes(
                "POST", path + "/v2/models/two/infer", headers={
                    "Transfer-Encoding": "chunked",
                    "Inference-Header-Content-Length": str(len(text))}))
            try:
                connection.send(chunked(text, len(text))[:-5]
                                + chunked(bytes(sum(sizes)), 1 << 20))
            except OSError:
                pass            # the answer is there already
            answer = connection.read()
        assert answer.status == status, answer.body[:200]
        if status == 413:
            assert "the request's binary tensors" in answer.error


def test_numbers_in_json_count_as_the_tensors_that_they_become(server):
    """2 bytes of text each, 8 bytes of the arena each."""
    count = (HALF // 10) + 1000
    body = (b'{"inputs":[{"name":"IN","datatype":"INT64","shape":[%d],'
            b'"data":[' % count + b"1," * (count - 1) + b"1]}]}")
    answer = server.post("/v2/models/id_int64/infer", body)
    assert answer.status == 413, answer.body[:200]
    assert "inference_memory" in answer.error
    answer = server.post("/all/v2/models/id_int64/infer", body)
    assert answer.status == 200, answer.body[:200]


def test_inflated_body_is_a_body_too(server):
    """And what is compressed holds its room beside what it becomes."""
    headers = {**RAW, "Content-Encoding": "gzip"}
    for level in (0, 9):
        body = gzip.compress(bytes(HALF // 2), level)
        answer = server.post(UINT8, body, headers)
        if level == 9:
            most = HALF - len(body)
            assert answer.status == 200, answer.body[:200]
            body = gzip.compress(bytes(HALF), level)
            answer = server.post(UINT8, body, headers)
        assert answer.status == 400, answer.body[:200]
        assert f"larger than {HALF - len(body)} bytes" in answer.error
    answer = server.post(UINT8, gzip.compress(bytes(most - 65536)), headers)
    assert answer.status == 200, answer.body[:200]


def test_largest_body_of_one_client_leaves_as_much_for_another(server):
    with server.wire(60) as connection:
        connection.send(request_bytes("POST", UINT8, headers={
            **RAW, "Content-Length": str(HALF)}) + bytes(HALF - 1))
        answer = server.post(UINT8, bytes(HALF - 4096), RAW)
        assert answer.status == 200, answer.body[:200]
        connection.send(b"x")
        assert connection.read().status == 200
