"""conf.d/sagemaker.conf and conf.d/vertex-ai.conf as they stand, with a name
in the place of MODEL."""

import pytest

from lib import models, wire
from lib.server import ROOT, free_port

RAW = {"Inference-Header-Content-Length": "0"}
REDIRECT = "X-Vertex-Ai-Triton-Redirect"


@pytest.fixture
def platform(make_server):
    """A function that starts a server with that snippet, and gives its port
    and that of REST."""
    def start(name):
        text = (ROOT / f"conf.d/{name}.conf").read_text(encoding="utf-8")
        port = free_port()
        server = make_server(models.standard_repository, http=text.replace(
            "listen 8080", f"listen 127.0.0.1:{port}").replace(
            "/MODEL/", "/id_uint8/"))
        return port, server.port
    return start


def infer(port, path, headers=None):
    return wire.fetch(port, "POST", path, b"x", {**RAW, **(headers or {})})


def unmatched(answer):
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.error == "not found on this port"


def test_sagemaker(platform):
    port, rest = platform("sagemaker")
    assert wire.fetch(port, "GET", "/ping").status == 200
    expected = infer(rest, "/v2/models/id_uint8/infer")
    for path in ("/invocations", "/models/id_uint8/invoke"):
        answer = infer(port, path)
        assert answer.status == 200 and answer.body == expected.body
    assert infer(port, "/models/other/invoke").status == 404
    for path in ("/", "/models", "/ping/x", "/v2", "/v2/health/live",
                 "/v2/models/id_uint8/infer"):
        unmatched(infer(port, path))


def test_vertex_ai(platform):
    port, rest = platform("vertex-ai")
    assert wire.fetch(port, "GET", "/health").status == 200
    expected = infer(rest, "/v2/models/id_uint8/infer")
    assert infer(port, "/predict").body == expected.body
    for path in ("v2/models/id_uint8/stats", "/v2/models/id_uint8/config"):
        answer = wire.fetch(port, "GET", "/predict", None, {REDIRECT: path})
        assert answer.status == 200 and "id_uint8" in answer.body.decode()
    for path in ("v2/repository/index", "v2/../v2/repository/index",
                 "v2/x/../repository/models/id_uint8/load",
                 "v2/repository/models/id_uint8/lo%61d"):
        assert infer(port, "/predict", {REDIRECT: path}).status == 404
    for path in ("v2/repository/models/id_uint8/load",
                 "/v2/repository/models/id_uint8/unload",
                 "v2/repository/any/models/id_uint8/unload"):
        answer = infer(port, "/predict", {REDIRECT: path})
        assert answer.status == 403 and "over this port" in answer.error
    assert infer(port, "/predict", {REDIRECT: "metrics"}).body == expected.body
    for call in ("region/r/register", "unregister", "region/r/unregister",
                 "status", "region/r/status"):
        answer = infer(port, "/predict",
                       {REDIRECT: f"v2/systemsharedmemory/{call}"})
        assert answer.status == 403 and "over this port" in answer.error
    for path in ("/", "/predict/x", "/v2/models/id_uint8/infer",
                 "/v2/systemsharedmemory/status"):
        unmatched(infer(port, path))
        unmatched(infer(port, path, {REDIRECT: "v2/health/live"}))
