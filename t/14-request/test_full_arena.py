"""inference_memory is in use: who is rejected, how, and until when."""

import threading

import pytest

from lib import arena, models, process
from lib.exposition import figure
from lib.server import SLOW, Server, nap
from lib.wire import request_bytes

ARENA = 64 << 20
UINT8 = "/v2/models/id_uint8/infer"
RAW = {"Inference-Header-Content-Length": "0"}
MEBIBYTE = b"z" * (1 << 20)


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, server="""
        location /twice/ {
            inference infer; inference_intercept_errors on;
            error_page 503 = @again;
        }
        location @again { return 200 "later"; }
        location = /metrics { inference metrics; }
    """, http=f"    inference_memory {ARENA}; inference_max_body 0;") as s:
        yield s


def holder(server, mebibytes):
    """A client that has sent so much of its body and then waits."""
    connection = server.wire(60)
    connection.send(request_bytes("POST", UINT8, headers={
        **RAW, "Content-Length": str((mebibytes + 1) << 20)}))
    for _ in range(mebibytes):
        connection.send(MEBIBYTE)
    return connection


def held(server, mebibytes):
    """The holder's bytes have arrived."""
    rest = ARENA - (mebibytes << 20) + 1
    assert process.wait_until(
        lambda: arena.asks_to_continue(server, rest) == 503, 10 * SLOW)


@pytest.mark.parametrize("size", [ARENA + 1, 5_000_000_000, 2**62])
def test_body_that_can_never_fit_is_413(server, size):
    with server.wire() as connection:
        connection.send(request_bytes("POST", UINT8, headers={
            **RAW, "Content-Length": str(size)}))
        answer = connection.read()
        assert answer.status == 413, answer
        assert "inference_memory" in answer.error
        assert str(size) in answer.error


def test_body_that_does_not_fit_now_is_503_with_retry_after(server):
    with holder(server, 40):
        held(server, 40)
        before = figure(server, "arena_full_total")
        with server.wire() as connection:
            connection.send(request_bytes("POST", UINT8, headers={
                **RAW, "Content-Length": str(30 << 20)}))
            answer = connection.read()
        assert answer.status == 503, answer
        assert answer.headers["retry-after"] == "1"
        assert "inference_memory" in answer.error
        assert figure(server, "arena_full_total") == before + 1
        answer = server.post(UINT8, MEBIBYTE, RAW)      # small ones fit
        assert answer.status == 200, answer
    arena.assert_empty(server, ARENA)
    answer = server.post(UINT8, MEBIBYTE * 60, RAW)
    assert answer.status == 200, answer
    assert answer.split()[1] == MEBIBYTE * 60


def test_arena_that_fills_up_while_a_body_comes(server):
    """Its length is not known: the rejection comes in the midst of it."""
    with holder(server, 40), server.wire(30) as connection:
        held(server, 40)
        connection.send(request_bytes("POST", UINT8, headers={
            **RAW, "Transfer-Encoding": "chunked"}))
        try:
            for _ in range(40):
                connection.send(b"100000\r\n" + MEBIBYTE + b"\r\n")
        except OSError:
            pass                # the answer is there already
        answer = connection.read()
        assert answer.status == 503, answer
        assert answer.headers["retry-after"] == "1"
    arena.assert_empty(server, ARENA)


def test_endless_chunks_are_413_or_503(server):
    with server.wire(30) as connection:
        connection.send(request_bytes("POST", UINT8, headers={
            **RAW, "Transfer-Encoding": "chunked"}))
        try:
            for _ in range(100):
                connection.send(b"100000\r\n" + MEBIBYTE + b"\r\n")
        except OSError:
            pass
        answer = connection.read()
        assert answer.status in (413, 503), answer
        assert "inference_memory" in answer.error
    arena.assert_empty(server, ARENA)


def test_rejected_body_can_go_elsewhere(server):
    with holder(server, 40):
        held(server, 40)
        with server.wire() as connection:
            connection.send(request_bytes("POST", "/twice" + UINT8, headers={
                **RAW, "Content-Length": str(30 << 20)}) + MEBIBYTE)
            answer = connection.read()
        assert (answer.status, answer.body) == (200, b"later")
    arena.assert_empty(server, ARENA)


def test_bodies_that_are_announced_are_not_charged(server):
    """Only what has been received counts: all these wait together."""
    connections = [server.wire() for _ in range(20)]
    for connection in connections:
        connection.send(request_bytes("POST", UINT8, headers={
            **RAW, "Content-Length": str(40 << 20)}) + b"x" * 1000)
    nap(0.3)
    answer = server.post(UINT8, MEBIBYTE * 30, RAW)
    assert answer.status == 200, answer
    for connection in connections:
        connection.close()
    arena.assert_empty(server, ARENA)


def test_more_than_fits_at_once_is_answered_or_told_to_come_again(server):
    statuses, lock = [], threading.Lock()

    def ask(byte):
        body = bytes([byte]) * (12 << 20)
        for _ in range(5):
            try:
                answer = server.post(UINT8, body, RAW)
            except OSError:
                continue        # rejected while the body was on its way
            assert answer.status != 200 or answer.split()[1] == body
            with lock:
                statuses.append(answer.status)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert 200 in statuses
    assert set(statuses) <= {200, 503}, statuses
    arena.assert_empty(server, ARENA)
