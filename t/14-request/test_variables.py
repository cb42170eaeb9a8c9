"""A client's values go into headers by our variables."""

import json

import pytest

from lib import models
from lib.access_log import FORMAT, AccessLog
from lib.server import Server
from lib.upstream import Upstream
from lib.wire import tensor


@pytest.fixture(scope="module")
def server():
    with Upstream() as upstream, Server(
            models.standard_repository, http=FORMAT, server=f"""
        access_log access.log inference;
        add_header X-Model "$inference_model" always;
        add_header X-Id "$inference_request_id" always;
        add_header X-Sequence "$inference_sequence_id" always;
        location ~ ^/ask/(?<m>(?s:.+))$ {{
            inference_model $m;
            inference_intercept_errors on;
            error_page 404 = @upstream;
        }}
        location @upstream {{
            proxy_set_header X-Model "$inference_model";
            proxy_set_header X-Id "$inference_request_id";
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
    """) as s:
        s.upstream = upstream
        yield s


def body(**more):
    return json.dumps({"inputs": [tensor("IN", "INT32", [1], [1])], **more})


CASES = [
    ("a\r\nX-More: 1\r\n\r\n<b>", r"a\x0D\x0AX-More: 1\x0D\x0A\x0D\x0A<b>"),
    ("a\x9b1m\x80\x9f\xa0", "a" + r"\xC2\x9B1m\xC2\x80\xC2\x9F" + "\xa0"),
    ("\n", r"\x0A"), ("\1\x1f\x7f", r"\x01\x1F\x7F"), ("\t", r"\x09"),
    ("back\\slash", "back\\slash"), ("gr\u00fc\u00dfe", "gr\u00fc\u00dfe"),
    ("n" * 5000, "n" * 1024), ("\u00e9" * 600, "\u00e9" * 512),
    ("n" + "\u00e9" * 600, "n" + "\u00e9" * 511), ("\r" * 2000, r"\x0D" * 1024)]


@pytest.mark.parametrize("text,shown", CASES)
def test_ids_are_one_line(server, text, shown):
    log = AccessLog(server)
    with server.wire() as connection:
        sequence = {"sequence_id": text} if len(text) < 100 else {}
        answer = connection.post("/ask/id_int32", body(
            id=text, parameters=sequence).encode())
        assert answer.status == 200, answer
        assert answer.json()["id"] == text
        assert answer.headers["x-id"] == shown
        assert answer.headers.get("x-sequence", "") == (sequence and shown
                                                        or "")
        assert "x-more" not in answer.headers
        # nothing was taken for a next answer
        assert connection.get("/v2/health/live").status == 200
    line = log.line(uri="/ask/id_int32")
    assert line["id"] == shown


def test_a_name_is_one_line(server):
    server.upstream.requests.clear()
    answer = server.post("/ask/a%0d%0aX-More:%201%0d%0a%0d%0aGET%20/", body(
        id="1\r\nX-More: 1").encode())
    assert answer.status == 200, answer             # the upstream's
    record, = server.upstream.requests
    assert "x-more" not in record["headers"]
    assert record["headers"]["x-id"] == r"1\x0D\x0AX-More: 1"
    assert record["headers"]["x-model"] \
        == r"a\x0D\x0AX-More: 1\x0D\x0A\x0D\x0AGET /"
    assert answer.headers["x-model"] == record["headers"]["x-model"]
