"""HTTP/2: bodies with and without a length, many streams, resets."""

import json
import os
import re
import subprocess

import pytest

from lib import arena, models
from lib.curl import curl_http2
from lib.h2 import H2
from lib.server import SLOW, Server
from lib.wire import tensor

ARENA = 160 << 20
UINT8 = "/v2/models/id_uint8/infer"
RAW = {"inference-header-content-length": "0"}


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "UINT8", [-1])],
                    parameters={"execute_delay_ms": "300"})


@pytest.fixture(scope="module")
def server():
    with Server(fill, http2=True,
                http=f"    inference_memory {ARENA};") as s:
        yield s
        arena.assert_empty(s, ARENA)


@pytest.fixture
def connection(server):
    with H2(server.port2, 1 << 30, 60 * SLOW) as c:
        yield c


def url(server, path):
    return f"http://127.0.0.1:{server.port2}{path}"


@pytest.mark.parametrize("size", [10, 100_000, 64 << 20])
@pytest.mark.parametrize("length", ["told", "not told"])
def test_body_comes_back(server, tmp_path, size, length):
    body = (os.urandom(1 << 20) * (size // (1 << 20) + 1))[:size]
    file = tmp_path / "body"
    file.write_bytes(body)
    extra = [] if length == "told" else ["-H", "Transfer-Encoding: chunked"]
    status, answer = curl_http2(
        url(server, UINT8), "-H", "Inference-Header-Content-Length: 0",
        *extra, "--data-binary", f"@{file}")
    assert status == 200, answer[:300]
    assert answer.endswith(body)


@pytest.mark.parametrize("path,headers,status", [
    ("/v2/models/ghost/infer", RAW, 404), (UINT8, {}, 400),
    ("/v2/models/id_uint8/nothing", RAW, 404), ("/v2", {}, 405)])
@pytest.mark.parametrize("size", [10, 64_000])
def test_rejections(connection, path, headers, status, size):
    stream = connection.read(connection.post(path, headers, b"x" * size))
    assert stream.status == status
    assert set(json.loads(stream.body)) == {"error"}
    good = connection.read(connection.post(UINT8, RAW, b"next"))
    assert good.status == 200
    assert good.body.endswith(b"next")


def test_rejection_comes_before_the_end_of_the_body(connection):
    number = connection.post(UINT8, {"content-length": "5000000"})
    connection.data(number, b"{]" + b"x" * 30_000)
    stream = connection.streams[number]
    while stream.status is None:
        connection.step()
    assert stream.status == 400
    good = connection.read(connection.post(UINT8, RAW, b"next"))
    assert good.body.endswith(b"next")


def test_empty_last_frame_ends_a_body(connection):
    number = connection.post(UINT8, RAW)
    for _ in range(5):
        connection.data(number, b"abc")
        connection.sync()
    connection.data(number, b"", True)
    assert connection.read(number).body.endswith(b"abc" * 5)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/v2/health/ready", "/v2"])
def test_answers_without_a_body(connection, path, method):
    numbers = [connection.post(path, method=method, body=b"")
               for _ in range(10)]
    for number in numbers:
        stream = connection.read(number)
        assert stream.status == (200 if method == "GET" else 405)
        assert bool(stream.body) == (path == "/v2" and method == "GET")
    connection.sync()


def test_answers_of_one_turn(connection):
    """Short and long ones, asked for at once."""
    sizes = [10, 3 << 20, 0, 100_000, 1, 5 << 20, 2000] * 3
    numbers = []
    for n in sizes:
        connection.sync()
        numbers.append(connection.post("/v2/models/slow/infer", RAW,
                                       b"z" * n))
    for number, n in zip(numbers, sizes):
        stream = connection.read(number)
        assert stream.status == 200
        assert stream.body.endswith(b"z" * n)


def test_frames_of_many_streams_in_turn(connection):
    numbers = [connection.post(UINT8, RAW) for _ in range(40)]
    for turn in range(20):
        for i, number in enumerate(numbers):
            connection.data(number, bytes([i, turn]) * 10, turn == 19)
    for i, number in enumerate(numbers):
        stream = connection.read(number)
        assert stream.status == 200
        assert stream.body.endswith(
            b"".join(bytes([i, turn]) * 10 for turn in range(20)))


@pytest.mark.parametrize("sent", [0, 1, 30_000, "all"])
@pytest.mark.parametrize("model", ["id_uint8", "slow"])
def test_reset_streams_leave_nothing(server, connection, sent, model):
    path = f"/v2/models/{model}/infer"
    for _ in range(10):
        number = connection.post(path, RAW)
        if sent == "all":
            connection.data(number, b"x" * 3000, True)
        elif sent:
            connection.data(number, b"x" * min(sent, 6000))
        connection.reset(number)
    good = connection.read(connection.post(UINT8, RAW, b"next"))
    assert good.body.endswith(b"next")
    arena.assert_empty(server, ARENA)


def test_reset_after_some_frames_have_been_taken(server, connection):
    for _ in range(10):
        number = connection.post(UINT8, RAW)
        connection.data(number, b"x" * 5000)
        connection.sync()
        connection.reset(number)
    arena.assert_empty(server, ARENA)


def test_reset_in_the_midst_of_the_answer(server):
    with H2(server.port2, 1000, 60 * SLOW) as connection:
        for _ in range(5):
            number = connection.post(UINT8, RAW, b"y" * 10_000)
            while len(connection.streams[number].body) < 1000:
                connection.step()
            connection.reset(number)
        connection.sync()
        arena.assert_empty(server, ARENA)


def test_connection_that_goes_with_all_its_streams(server):
    for _ in range(5):
        with H2(server.port2, 100, 60 * SLOW) as connection:
            for i in range(20):
                number = connection.post(
                    "/v2/models/slow/infer" if i % 2 else UINT8, RAW)
                connection.data(number, b"z" * 2000, i % 3 == 0)
            connection.sync()
    arena.assert_empty(server, ARENA, 20)


def test_json_and_binary_by_a_load_generator(server, tmp_path):
    file = tmp_path / "body"
    file.write_text(json.dumps({"inputs": [
        tensor("IN", "UINT8", [2000], [7] * 2000)]}))
    done = subprocess.run(
        ["h2load", "-n", "400", "-c", "4", "-m", "20", "-d", file,
         url(server, UINT8)], capture_output=True, text=True, check=True)
    assert re.search(r"status codes: 400 2xx, 0 3xx, 0 4xx, 0 5xx",
                     done.stdout), done.stdout
