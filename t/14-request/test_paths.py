"""An endpoint that a location denies is out of reach, however its path is
written."""

import json
import random
import re

import pytest

from lib import models, process
from lib.server import SLOW, Server, free_port
from lib.wire import Wire, request_bytes

PARTS = ("health metadata config infer statistics repository trace logging "
         "metrics")

# two servers that differ in merge_slashes, with the same locations
SERVER = """
    server {{
        listen 127.0.0.1:{port};
        merge_slashes {merge};
        access_log {merge}.log reached;
        location / {{ inference {parts}; }}
        location /under/ {{ inference {parts}; }}
        location /v2/repository {{ deny all; }}
        location /under/v2/repository {{ deny all; }}
        location /v2/models/id_int32 {{ deny all; }}
        location = /v2/health/ready {{ deny all; }}
        location ~ ^/v2/models/[^/]+/(config|stats)$ {{ deny all; }}
        location ~ %73 {{ deny all; }}
    }}
"""
HTTP = """
    inference_model_control explicit;
    inference_load_model *;
    log_format reached escape=json
        '{"written":"$request_uri","seen":"$uri","status":$status,'
        '"verb":"$inference_verb","model":"$inference_model"}';
"""

# what the path that the locations have seen may reach, and nothing else
NAME = "[^/]+"
VERSIONS = "(/versions/[0-9]+)?"
MAY = [(verb, re.compile("(/under)?" + path)) for verb, path in [
    ("infer", f"/v2/models/(?P<m>{NAME}){VERSIONS}/infer"),
    ("live", "/v2/health/live"),
    ("ready", "/v2/health/ready"),
    ("model_ready", f"/v2/models/(?P<m>{NAME}){VERSIONS}/ready"),
    ("statistics", "/v2/models/stats"),
    ("statistics", f"/v2/models/(?P<m>{NAME}){VERSIONS}/stats"),
    ("config", f"/v2/models/(?P<m>{NAME}){VERSIONS}/config"),
    ("generate", f"/v2/models/(?P<m>{NAME}){VERSIONS}/generate"),
    ("metadata", "/v2"),
    ("model_metadata", f"/v2/models/(?P<m>{NAME}){VERSIONS}"),
    ("metrics", "/metrics/?"),
    ("trace", f"/v2/models/(?P<m>{NAME})/trace/setting"),
    ("logging", "/v2/logging")]]

DENIED = [re.compile(p) for p in [
    "(/under)?/v2/repository", "/v2/models/id_int32", "/v2/health/ready$",
    "/v2/models/[^/]+/(config|stats)$", ".*%73"]]

STEMS = [
    "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/id_int32",
    "/v2/models/id_int32/infer", "/v2/models/id_int32/versions/1/ready",
    "/v2/models/id_fp32", "/v2/models/id_fp32/config", "/v2/models/%73",
    "/v2/models/id_fp32/versions/1/config", "/v2/models/stats", "/metrics",
    "/v2/models/id_fp32/infer", "/v2/repository/index", "/v2/logging",
    "/v2/repository/x/index", "/v2/repository/models/id_fp32/load",
    "/v2/repository/models/id_fp32/unload",
    "/v2/repository/x/models/id_fp32/unload",
    "/v2/models/id_fp32/trace/setting", "/v2/models/id_fp32/generate"]
ODD = [".", "..", "", "%2e", "%2E%2e", ".%2e", "..%2f", "%2F", "%2f..", "%5C",
       "..%5c..", "%2e%2e%2f", "x%2F..%2F..", "...", "x", "%00", "%0a", ";",
       "%25", "%2561", "%3F", "#", "\xe4"]


def paths(seed, count):
    """Endpoints' paths with segments that come, go and are written anew."""
    rng = random.Random(seed)
    for _ in range(count):
        parts = rng.choice(STEMS).split("/")
        if rng.random() < 0.2:
            parts[1:1] = ["under"]
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            at = rng.randrange(1, len(parts) + 1)
            change = rng.random()
            if change < 0.4:
                parts.insert(at, rng.choice(ODD))
            elif change < 0.6:
                # away and back: what is left is where it was
                parts[at:at] = rng.choice([
                    ["x", ".."], ["v2", "repository", "..", ".."],
                    ["x%2F..%2Fy", ".."], ["..%2Fx"], [".", "."], ["", ""]])
            elif change < 0.9 and parts[at - 1]:
                word = parts[at - 1]
                i = rng.randrange(len(word))
                if word[i] != "%":
                    form = rng.choice(["%{:02x}", "%{:02X}"])
                    parts[at - 1] = word[:i] + form.format(ord(word[i])) \
                        + word[i + 1:]
            else:
                parts[at:at] = rng.choice(STEMS).split("/")[1:]
        yield "/".join(parts) or "/"


def three_models(repository):
    for name in ("id_int32", "id_fp32", "%73"):
        models.identity(repository, name, [("IN", "INT32", [-1])])


@pytest.fixture(scope="module")
def server():
    ports = {"on": free_port(), "off": free_port()}
    with Server(three_models, http=HTTP + "".join(
            SERVER.format(merge=merge, port=port, parts=PARTS)
            for merge, port in ports.items())) as s:
        s.ports = ports
        yield s


def ask(server, merge, written):
    """The log line of each path, by GET and by POST."""
    log = server.prefix / f"{merge}.log"

    def text():
        return log.read_text("latin-1").split("\n")[:-1]

    before = len(text())
    wire = Wire(server.ports[merge])
    for path in written:
        for method in ("GET", "POST"):
            wire.next().send(request_bytes(method, "\0", b"").replace(
                b"\0", path.encode("latin-1"), 1))
            wire.read()
    wire.close()
    lines = process.wait_until(
        lambda: len(x := text()[before:]) == 2 * len(written) and x,
        10 * SLOW)
    return [json.loads(line) for line in lines]


def wrong(line):
    """The fault: an endpoint that its location does not show."""
    if line["status"] == 403 or not line["verb"]:
        return None
    if any(d.match(line["seen"]) for d in DENIED):
        return "denied"
    for verb, path in MAY:
        match = path.fullmatch(line["seen"])
        if verb == line["verb"] and match:
            model = match.groupdict().get("m") or ""
            return None if line["status"] in (404, 405) \
                or line["model"] == model else "another model"
    return "another endpoint"


@pytest.mark.parametrize("merge", ["on", "off"])
@pytest.mark.parametrize("path", [
    "/v2/repository/../index", "/v2/repository/%2e%2e/index",
    "/v2/repository/.%2E/index", "/v2/repository/x%2F..%2F../index",
    "/v2/repository/x%2f..%2F..%2f../index", "/v2/repository/./index",
    "/v2/repository/models/..%2F..%2F..%2Fx/load",
    "/under/v2/repository/../index", "/v2/repository/../models/a/load",
    "/v2/models/id_int32/../config", "/v2/models/%73"])
def test_no_spelling_passes_what_is_denied(server, merge, path):
    for line in ask(server, merge, [path]):
        assert wrong(line) is None and line["status"] in (403, 404, 405), line


@pytest.mark.parametrize("merge", ["on", "off"])
def test_random_spellings_reach_what_their_location_shows(server, merge):
    lines = ask(server, merge, list(paths(merge, 2000)))
    bad = [(why, line) for line in lines if (why := wrong(line))]
    assert not bad, f"{len(bad)} of {len(lines)}: {bad[:10]}"
    statuses = {line["status"] for line in lines}
    assert {200, 400, 403, 404, 405} <= statuses
    assert {"live", "metadata", "model_metadata", "metrics"} <= {
        line["verb"] for line in lines if line["status"] == 200}


def test_encoded_slashes_and_dot_segments_are_404(server):
    for path in ("/v2%2Fhealth/live", "/v2/health%2flive", "/v2/./health/live",
                 "/v2/x/../health/live", "/v2/health/x/%2e%2e/live", "//v2",
                 "/v2//health/live", "/v2/health/live/.", "/v2/health/live/"):
        for merge in ("on", "off"):
            get, post = ask(server, merge, [path])
            assert get["status"] == 404 and post["status"] == 404, get
            assert get["verb"] == post["verb"] == ""


def test_a_name_with_an_escape_names_no_other_model(server):
    """Triton looks names up as they are written; no location has seen it."""
    for name in ("id%5ffp32", "%69d_fp32", "%73", "%2573"):
        answer = server.get(f"/v2/models/{name}/ready")
        assert answer.status == 404, answer
        assert f"'{name}'" in answer.error, answer


NAMED = """
    server {{
        listen 127.0.0.1:{port};
        location /v2 {{ inference {parts}; }}
        location /v2/repository {{ deny all; }}
        location /v2/models/id_int32 {{ deny all; }}
        location = /metrics {{ deny all; }}
        location /under/v2/ {{ inference {parts}; }}
        location /under/v2/repository {{ deny all; }}
        location /under/metrics {{ inference metrics; }}
    }}
"""


def test_a_location_named_like_an_endpoint_is_no_prefix(make_server):
    """A second "/v2" would lead past the locations that deny the first."""
    port = free_port()
    server = make_server(three_models, http=HTTP + NAMED.format(
        port=port, parts=PARTS))

    def statuses(*written):
        wire = Wire(port)
        for path in written:
            wire.next().send(request_bytes("GET", path, b""))
            yield wire.read().status
            wire.next().send(request_bytes("POST", path, b""))
            yield wire.read().status
        wire.close()

    assert set(statuses(
        "/v2/v2/models/id_int32/config", "/v2/v2/repository/index",
        "/v2/v2/repository/models/id_fp32/unload", "/v2/metrics",
        "/v2/v2", "/v2/v2/v2", "/under/v2/v2/repository/index",
        "/under/v2/under/v2/repository/index", "/under/v2/metrics",
        "/under/metrics/metrics")) == {404}
    assert set(statuses("/v2/repository/index", "/under/v2/repository/index",
                        "/metrics", "/v2/models/id_int32/config")) == {403}
    assert list(statuses("/v2/models/id_fp32/config", "/under/v2",
                         "/under/v2/models/id_fp32/config",
                         "/under/metrics"))[::2] == [200, 404, 200, 200]
    assert server.get("/v2/health/ready").status == 200
