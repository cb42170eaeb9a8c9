"""generate_stream: server-sent events."""

import gzip
import subprocess

import pytest

from lib import events
from lib.server import SLOW

STREAM = "generate_stream"


def test_events(ask):
    answer = ask("repeat", {"IN": [4, 5], "DELAY": [0, 0], "WAIT": 0}, STREAM)
    assert answer.status == 200
    assert answer.headers["content-type"] == \
        "text/event-stream; charset=utf-8"
    assert "content-length" not in answer.headers
    assert answer.body == (
        b'data: {"IDX":0,"OUT":4,"model_name":"repeat","model_version":"1"}'
        b'\n\n'
        b'data: {"IDX":1,"OUT":5,"model_name":"repeat","model_version":"1"}'
        b'\n\n')


@pytest.mark.parametrize("n", [1, 2, 100, 5000])
def test_as_many_as_the_model_sends(ask, n):
    got = ask("square", {"IN": n}, STREAM).events()
    assert [e["OUT"] for e in got] == [n] * n


@pytest.mark.parametrize("n", [0, 1, 3, 2000])
def test_a_decoupled_ensemble(ask, n):
    """The parameters of its responses are those that Triton's have."""
    got = ask("squares", {"N": n, "id": "e"}, STREAM).events()
    assert got == [{"M": n, "id": "e", "model_name": "squares",
                    "model_version": "1", "sequence_end": False,
                    "sequence_id": 0, "sequence_start": False}] * n


def test_an_error_in_a_decoupled_ensemble(ask):
    """It may overtake what the step has sent before."""
    answer = ask("squares", {"N": -3}, STREAM)
    text = answer.error if answer.status != 200 \
        else answer.events()[-1]["error"]
    assert "a negative number ends like this" in text


def test_a_model_that_is_not_decoupled(ask):
    got = ask("id_int32", {"IN": [1, 2], "id": "i"}, STREAM).events()
    assert got == [{"OUT": [1, 2], "id": "i", "model_name": "id_int32",
                    "model_version": "1"}]


def test_no_response_is_an_empty_stream(ask):
    answer = ask("square", {"IN": 0}, STREAM)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_the_order_is_the_model_s(ask):
    values = list(range(300))
    got = ask("repeat", {"IN": values, "DELAY": [0] * 300, "WAIT": 0},
              STREAM).events()
    assert [(e["IDX"], e["OUT"]) for e in got] == [(i, i) for i in values]


def test_each_event_comes_at_once(server):
    """The model waits between them: each is here before the next is made."""
    body = {"IN": [1, 2, 3], "DELAY": [0, 60_000, 0], "WAIT": 0}
    with events.Open(server.port, events.path("repeat", STREAM), body) as o:
        assert o.read()["OUT"] == 1


def test_an_error_after_responses_is_an_event(ask):
    got = ask("square", {"IN": -3}, STREAM)
    assert got.status == 200
    *data, last = got.events()
    assert [e["OUT"] for e in data] == [-3] * 3
    assert last == {"error": "a negative number ends like this"}


def test_an_error_before_any_response_is_the_answer(ask):
    answer = ask("repeat", {"IN": [1, 2], "DELAY": [1], "WAIT": 1}, STREAM)
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.error


def test_long_events(ask):
    values = list(range(150_000))
    assert ask("id_int32", {"IN": values}, STREAM).events()[0]["OUT"] == values
    text = "line\n\n" * 50_000
    assert ask("echo", {"WORDS": text}, STREAM).events()[0]["WORDS_OUT"] == text


def test_a_connection_is_used_again(server):
    with server.wire() as connection:
        for n in (1, 3, 0, -2):
            answer = connection.post(events.path("square", STREAM),
                                     events.encode({"IN": n}))
            assert len(events.parse(answer.body)) == (n if n >= 0 else 1 - n)


def test_http_2(server):
    done = subprocess.run(
        ["curl", "-sS", "--http2-prior-knowledge", "-m", str(60 * SLOW),
         "-d", '{"IN": 200}', f"http://127.0.0.1:{server.port2}"
         + events.path("square", STREAM)], capture_output=True, check=True)
    assert [e["OUT"] for e in events.parse(done.stdout)] == [200] * 200


def test_compressed_requests(ask):
    answer = ask("square", gzip.compress(b'{"IN": 4}'), STREAM,
                 headers={"Content-Encoding": "gzip"})
    assert len(answer.events()) == 4


def test_many_at_a_time(server):
    opened = [events.Open(server.port, events.path("repeat", STREAM),
                          {"IN": [i] * 20, "DELAY": [5] * 20, "WAIT": 0})
              for i in range(40)]
    try:
        for i, o in enumerate(opened):
            assert [e["OUT"] for e in o.rest()] == [i] * 20
    finally:
        for o in opened:
            o.close()
