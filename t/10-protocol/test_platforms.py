"""conf.d/sagemaker.conf and conf.d/vertex-ai.conf as they stand, with a name
in the place of MODEL."""

import json

import pytest

from lib import backends, models, wire
from lib.server import ROOT, free_port

RAW = {"Inference-Header-Content-Length": "0"}
REDIRECT = "X-Vertex-Ai-Triton-Redirect"


@pytest.fixture
def platform(make_server):
    """A function that starts a server with that snippet, and gives its port
    and that of REST."""
    def start(name, fill=models.standard_repository):
        text = (ROOT / f"conf.d/{name}.conf").read_text(encoding="utf-8")
        port = free_port()
        server = make_server(fill, http=text.replace(
            "listen 8080", f"listen 127.0.0.1:{port}").replace(
            "/MODEL/", "/id_uint8/")
            + f"inference_backends {backends.build('failing')};\n")
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
    assert wire.fetch(port, "GET", "/models").json() == {"models": []}
    assert wire.fetch(port, "GET", "/models/id_uint8").status == 404
    for path in ("/", "/models/", "/ping/x", "/v2", "/v2/health/live",
                 "/v2/models/id_uint8/infer"):
        unmatched(infer(port, path))


def test_sagemaker_tells_of_a_model_that_lacks_memory(platform):
    """There alone, as Triton does."""
    port, rest = platform(
        "sagemaker", lambda repository: models.identity(
            repository, "hungry", [("IN", "UINT8", [-1])], backend="failing",
            parameters={"fail": "execute-memory"}))
    for at, path, status in ((port, "/models/hungry/invoke", 507),
                             (rest, "/v2/models/hungry/infer", 500)):
        answer = infer(at, path)
        assert answer.status == status, answer
        assert "CUDA out of memory" in answer.error


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
    for path in ("nowhere", "v3/models/id_uint8", "/", "metrics/x"):
        unmatched(infer(port, "/predict", {REDIRECT: path}))
    for call in ("region/r/register", "unregister", "region/r/unregister",
                 "status", "region/r/status"):
        answer = infer(port, "/predict",
                       {REDIRECT: f"v2/systemsharedmemory/{call}"})
        assert answer.status == 403 and "over this port" in answer.error
    for path in ("/", "/predict/x", "/v2/models/id_uint8/infer",
                 "/v2/systemsharedmemory/status"):
        unmatched(infer(port, path))
        unmatched(infer(port, path, {REDIRECT: "v2/health/live"}))


def test_vertex_ai_posts_every_request(platform):
    """Also those of endpoints that are got, with a body or without; the
    connection goes on."""
    port, rest = platform("vertex-ai")
    with wire.Wire(port) as connection:
        for path in ("v2", "v2/models/id_uint8", "/v2/health/ready",
                     "v2/models/id_uint8/versions/1/ready",
                     "v2/models/id_uint8/config"):
            want = wire.fetch(rest, "GET", "/" + path.lstrip("/"))
            for body in (b"", b"x" * 100000):
                answer = connection.request("POST", "/predict", body,
                                          {REDIRECT: path})
                assert answer.status == 200, (path, answer)
                assert answer.body == want.body
    for path, found in (("metrics", "nv_inference_count"),
                        ("v2/models/stats", "id_uint8")):
        answer = wire.fetch(port, "POST", "/predict", b"", {REDIRECT: path})
        assert answer.status == 200 and found in answer.body.decode()
    for path in ("v2/models/../ready", "v2/models/nobody/stats",
                 "v2/models/id_uint8%2f/ready"):
        assert wire.fetch(port, "POST", "/predict", b"",
                          {REDIRECT: path}).status in (400, 404)


@pytest.mark.parametrize("name, path", [
    ("sagemaker", "/invocations"), ("vertex-ai", "/predict")])
def test_binary_tensors_by_the_media_type(platform, name, path):
    port, _ = platform(name)
    media = f"application/vnd.{name}-triton.binary+json;json-header-size="
    text = json.dumps({
        "inputs": [{"name": "IN", "datatype": "UINT8", "shape": [3],
                    "parameters": {"binary_data_size": 3}}],
        "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}],
    }).encode()

    def ask(content_type):
        return wire.fetch(port, "POST", path, text + b"abc",
                          {"Content-Type": content_type})

    for given in (f"{media}{len(text)}", f"{media}{len(text)}; charset=x",
                  f"{media.upper()}{len(text)}"):
        answer = ask(given)
        assert answer.status == 200, answer
        size = int(answer.headers["inference-header-content-length"])
        assert answer.headers["content-type"] == (
            f"{media}{size}" if name == "sagemaker"
            else "application/octet-stream")
        assert answer.body[size:] == b"abc"
        json.loads(answer.body[:size])

    total = len(text) + 3
    for given, error in (
            (f"x/{media}{len(text)}", "expect MIME type for binary data "
             f"starts with '{media}', got: x/{media}{len(text)}"),
            (f"{media}x7", "Unable to parse inference header size, got: x7"),
            (media, "Unable to parse inference header size, got: "),
            (f"{media}-1", "inference header size should be in range (0, "
             f"{total}), got: -1"),
            (f"{media}12345", "inference header size should be in range (0, "
             f"{total}), got: 12345")):
        answer = ask(given)
        assert answer.status == 400 and answer.error == error
    assert ask("application/json").status == 400
