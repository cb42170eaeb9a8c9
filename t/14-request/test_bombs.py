"""Small bodies that inflate to huge ones."""

import gzip
import threading
import time
import zlib

import pytest

from lib import arena, models
from lib.server import SLOW, Server

ARENA = 256 << 20
RAW = {"Content-Encoding": "gzip", "Inference-Header-Content-Length": "0"}
PATH = "/v2/models/id_uint8/infer"


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository,
                http=f"    inference_memory {ARENA};", server="""
        location /small/ { inference infer; inference_max_body 1000; }
        location /wide/  { inference infer; inference_max_body 90m; }
    """) as s:
        yield s
        arena.assert_empty(s, ARENA)


def bomb(mebibytes, byte=b"\0"):
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    piece = byte * (1 << 20)
    return b"".join(packer.compress(piece) for _ in range(mebibytes)) \
        + packer.flush()


def test_inflated_body_is_limited_to_64_mebibytes(server):
    assert server.post(PATH, bomb(64), RAW).status == 200
    answer = server.post(PATH, bomb(65), RAW)
    assert answer.status == 400, answer
    assert str(64 << 20) in answer.error
    assert "inference_max_body" in answer.error


def test_inference_max_body_sets_another_limit(server):
    assert server.post("/wide" + PATH, bomb(80), RAW).status == 200
    answer = server.post("/wide" + PATH, bomb(91), RAW)
    assert answer.status == 413, answer
    assert "inference_max_body" in answer.error
    answer = server.post("/small" + PATH, gzip.compress(bytes(1000)), RAW)
    assert answer.status == 200, answer
    answer = server.post("/small" + PATH, gzip.compress(bytes(1001)), RAW)
    assert answer.status == 413, answer


def test_bomb_of_white_space_before_the_json(server):
    answer = server.post(PATH, bomb(300, b" "), {"Content-Encoding": "gzip"})
    assert answer.status == 400, answer
    assert answer.error


def test_bomb_of_open_brackets(server):
    answer = server.post(PATH, gzip.compress(b'{"inputs":' + b"[" * 10**7),
                         {"Content-Encoding": "gzip"})
    assert answer.status == 400, answer
    assert answer.error


def test_worker_answers_others_while_bombs_go_off(server):
    """One worker, several bombs: inflating is cut into slices."""
    data, going, statuses = bomb(63), True, []

    def throw():
        while going:
            statuses.append(server.post(PATH, data, RAW).status)

    threads = [threading.Thread(target=throw) for _ in range(3)]
    for t in threads:
        t.start()
    worst, end = 0.0, time.monotonic() + 2 * SLOW
    with server.wire() as connection:
        while time.monotonic() < end or len(statuses) < 3:
            began = time.monotonic()
            assert connection.get("/v2/health/live").status == 200
            worst = max(worst, time.monotonic() - began)
            time.sleep(0.005)
    going = False
    for t in threads:
        t.join()
    assert set(statuses) <= {200, 503}, statuses
    assert 200 in statuses
    assert worst < 0.5 * SLOW, worst
