"""One server block in front of everything: models of its own core, of balanced
nodes by `map`, and of a tritonserver by `error_page`."""

import pytest
from tritonclient.grpc import service_pb2 as pb

from bench.peer import Peer
from lib import models, prebuilt, process
from lib.grpc_client import Client, Failure
from lib.nodes import upstream
from lib.server import SLOW
from lib.wire import tensor

MISSING = prebuilt.missing()

SERVER = """\
        location /v2/ {
            inference all;
            inference_upstream triton;
            inference_intercept_errors on;
            error_page 404 = @triton;
        }
        location = /v2/repository/index {
            inference repository;
            inference_upstream triton;
            allow 127.0.0.1;
            deny all;
        }
        location ~ ^/v2/models/far_ {
            inference_peek on;
            proxy_pass http://$pool;
        }
        location @triton { proxy_pass http://triton; }
        location /inference.GRPCInferenceService/ {
            inference all grpc;
            inference_upstream triton;
            inference_intercept_errors on;
            error_page 404 = @triton_grpc;
        }
        location = /inference.GRPCInferenceService/RepositoryIndex {
            inference repository grpc;
            inference_upstream triton;
        }
        location @triton_grpc { grpc_pass grpc://triton_grpc; }
"""


def one(*names):
    def fill(repository):
        for name in names:
            models.identity(repository, name, [("IN", "INT32", [-1])])
    return fill


def infer(server, model):
    answer = server.infer(model, {"inputs": [tensor("IN", "INT32", [2],
                                                    [1, 2])]})
    return answer.status, answer.json()["outputs"][0]["data"] \
        if answer.status == 200 else answer.error


def count(server, model):
    stats = server.get(f"/v2/models/{model}/stats").json()["model_stats"][0]
    return stats["inference_stats"]["success"]["count"]


def every_call(client, model):
    """All that a client of gRPC asks of a model."""
    names = {"name": model}
    assert client.call("ModelReady", pb.ModelReadyRequest(**names)).ready
    assert client.call("ModelMetadata",
                       pb.ModelMetadataRequest(**names)).name == model
    assert client.call("ModelConfig",
                       pb.ModelConfigRequest(**names)).config.name == model
    assert client.numbers(model, [1, 2]) == [1, 2]


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_every_model_is_answered_where_it_is(make_server, tmp_path):
    nodes = [make_server(one("far_a"), parts="health infer statistics")
             for _ in range(2)]
    (tmp_path / "models").mkdir()
    one("near", "theirs")(tmp_path / "models")
    triton = Peer(tmp_path / "models", tmp_path, grpc=True)
    try:
        front = make_server(
            one("near"), workers=2, parts="health", server=SERVER, http2=True,
            http="    map $inference_model $pool {\n"
            "        far_a nodes; default triton; }\n"
            f"    upstream triton {{ server 127.0.0.1:{triton.port}; }}\n"
            f"    upstream triton_grpc {{ server 127.0.0.1:{triton.port2}; }}\n"
            + upstream([n.port for n in nodes]))
        assert process.wait_until(
            lambda: front.log_text().count('upstream "nodes" is ready') == 2,
            10 * SLOW)
        for _ in range(20):
            for model in ("near", "far_a", "theirs"):
                assert infer(front, model) == (200, [1, 2])
        assert count(front, "near") == 20
        each = [count(n, "far_a") for n in nodes]
        assert sum(each) == 20
        assert min(each) > 0
        assert infer(front, "far_b")[0] == 404          # of the map's default
        assert infer(front, "nobody_s")[0] == 404
        assert front.get("/v2/models/theirs").json()["name"] == "theirs"
        rows = front.post("/v2/repository/index", b"").json()
        assert [r["name"] for r in rows] == ["near", "theirs"]
        assert front.post("/v2/repository/models/theirs/unload",
                          b"").error == "Not Found"
        assert front.status("/v2/health/ready") == 200
        with Client(front.port2) as client:
            every_call(client, "near")
            every_call(client, "theirs")
            with pytest.raises(Failure, match="INVALID_ARGUMENT .*'theirs' is "
                               "not available"):       # no 404, as Triton's
                client.call("ModelStatistics",
                            pb.ModelStatisticsRequest(name="theirs"))
            with pytest.raises(Failure, match="nobody_s"):
                client.call("ModelMetadata",
                            pb.ModelMetadataRequest(name="nobody_s"))
            rows = client.call("RepositoryIndex").models
            assert [r.name for r in rows] == ["near", "theirs"]
    finally:
        triton.stop()
    assert infer(front, "near") == (200, [1, 2])
    assert infer(front, "far_a") == (200, [1, 2])
    assert front.status("/v2/health/ready") == 503
    front.signal("QUIT")        # before the nodes that it probes
    assert front.process.wait(20 * SLOW) == 0
