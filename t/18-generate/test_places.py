"""Locations, other modules beside us, and limits."""

import pytest

from lib import arena, decoupled, events, models
from lib.server import Server
from lib.upstream import Upstream

ARENA = 200 << 20
STREAM = "generate_stream"


def fill(repository):
    models.standard_repository(repository)
    decoupled.square(repository)


@pytest.fixture(scope="module")
def server():
    with Upstream() as upstream, Server(
            fill, parts="health infer", http=f"""
    inference_memory {ARENA};
    inference_max_body {ARENA};
""", server=f"""
        location /g/ {{ inference generate; }}
        location = /one {{ inference_model square generate; }}
        location = /some {{ inference_model square 1 generate_stream; }}
        location = /old {{ inference_model id_int32 infer; }}
        location ~ ^/of/(\\w+)$ {{ inference_model $1 generate; }}
        location /g/little/ {{
            inference_max_body 100; inference generate;
        }}
        location /pages {{
            inference_intercept_errors on;
            error_page 404 400 = @other;
            inference_model nobody generate_stream;
        }}
        location @other {{ return 403 "another"; }}
        location /asks {{
            auth_request /g/v2/models/square/generate;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location /mirrored {{
            mirror /some;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location = /page {{
            ssi on; default_type text/html; ssi_types *;
            return 200 'begin <!--# include virtual="/body" --> end';
        }}
""") as s:
        yield s


def post(server, path, body, **kw):
    return events.post(server.port, path, body, **kw)


def test_locations_serve_what_they_list(server):
    for verb in ("generate", STREAM):
        path = events.path("square", verb)
        assert post(server, path, {"IN": 1}).status == 404
        assert post(server, "/g" + path, {"IN": 1}).status == 200
    assert post(server, "/g/v2/models/id_int32/infer", {}).status == 404


def test_a_location_of_one_model(server):
    assert post(server, "/one", {"IN": 1}).json()["OUT"] == 1
    assert [e["OUT"] for e in post(server, "/some", {"IN": 2}).events()] == \
        [2, 2]
    answer = post(server, "/old", {"inputs": [{
        "name": "IN", "datatype": "INT32", "shape": [1], "data": [5]}]})
    assert answer.json()["outputs"][0]["data"] == [5]
    assert post(server, "/of/id_int32", {"IN": 3}).json()["OUT"] == 3
    assert post(server, "/of/nobody", {"IN": 3}).status == 404
    with server.wire() as connection:
        assert connection.get("/one").status == 405


def test_error_pages(server):
    answer = post(server, "/pages", {"IN": 1})
    assert (answer.status, answer.body) == (403, b"another")


def test_subrequests(server):
    """A model has a say by its status, or only sees the request."""
    assert post(server, "/asks", {"IN": 1}).status == 200
    assert post(server, "/asks", {"IN": "x"}).status in (403, 500)
    assert post(server, "/mirrored", {"IN": 3}).status == 200


def test_limits_of_a_body(server):
    path = events.path("id_int32")
    answer = post(server, "/g/little" + path, {"IN": list(range(100))})
    assert answer.status == 413
    assert "inference_max_body" in answer.error
    for verb in ("generate", STREAM):
        path = "/g" + events.path("id_bytes", verb)
        answer = post(server, path, b'{"IN": "' + b"x" * (64 << 20) + b'"}')
        assert answer.status == 400
        assert answer.error == \
            "request JSON is larger than the limit of 67108864 bytes; " \
            "inference_max_json_size (--http-max-input-size) sets another " \
            "limit"
    arena.assert_empty(server, ARENA)


def test_a_body_of_the_largest_size(server):
    text = b'{"IN": "' + b"x" * ((64 << 20) - 10) + b'"}'
    assert len(text) == 64 << 20
    answer = post(server, "/g" + events.path("id_bytes"), text)
    assert answer.status == 200
    assert answer.body.count(b"x") == (64 << 20) - 10
    arena.assert_empty(server, ARENA)


def test_tensors_are_bounded_together(server):
    """Numbers take more room than their text."""
    n = 9 << 20
    answer = post(server, "/g" + events.path("id_int64"),
                  b'{"IN": [' + b"1," * n + b"1]}")
    assert answer.status == 400
    assert answer.error == "the request's tensors take more than the limit " \
        "of 67108864 bytes with input 'IN'; inference_max_json_size " \
        "(--http-max-input-size) sets another limit"
    arena.assert_empty(server, ARENA)


def test_a_full_arena(server):
    answer = post(server, "/g" + events.path("id_bytes"), b"",
                  headers={"Content-Length": str(ARENA + 1)})
    assert answer.status in (413, 503), answer
