"""NVIDIA's prebuilt server program over our library: a second client."""

import json
import os
import subprocess

import numpy
import pytest
import tritonclient.grpc as triton

from lib import models, prebuilt, process, wire
from lib.server import BACKENDS, free_port

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(scope="module")
def ports(tmp_path_factory):
    """(HTTP, gRPC) of a running server, which must end well."""
    folder = tmp_path_factory.mktemp("front-end")
    (folder / "models").mkdir()
    models.identity(folder / "models", "copy", [("IN", "FP32", [-1])])
    http, grpc = free_port(), free_port()
    log = folder / "log"
    with open(log, "wb") as out:
        server = subprocess.Popen(
            [str(prebuilt.front_end()),
             "--model-repository", str(folder / "models"),
             "--backend-directory", str(BACKENDS), "--allow-metrics", "false",
             "--http-address", "127.0.0.1", "--http-port", str(http),
             "--grpc-address", "127.0.0.1", "--grpc-port", str(grpc)],
            env=os.environ, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT)

    def ready():
        try:
            return wire.fetch(http, "GET", "/v2/health/ready").status == 200
        except OSError:
            return server.poll() is not None

    try:
        assert process.wait_until(ready, 30, 0.1) and server.poll() is None, \
            log.read_text()
        yield http, grpc
        server.terminate()
        assert server.wait(40) == 0, log.read_text()
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def test_infers_over_http(ports):
    answer = wire.fetch(ports[0], "POST", "/v2/models/copy/infer", json.dumps(
        {"inputs": [wire.tensor("IN", "FP32", [3], [1, 2, 3])]}).encode())
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [1, 2, 3]


def test_infers_over_grpc(ports):
    value = numpy.arange(1000, dtype=numpy.float32)
    tensor = triton.InferInput("IN", value.shape, "FP32")
    tensor.set_data_from_numpy(value)
    with triton.InferenceServerClient(f"127.0.0.1:{ports[1]}") as client:
        assert client.is_model_ready("copy")
        answer = client.infer("copy", [tensor])
    assert numpy.array_equal(answer.as_numpy("OUT"), value)


def test_an_absent_model_is_rejected(ports):
    answer = wire.fetch(ports[0], "POST", "/v2/models/absent/infer",
                        b'{"inputs":[]}')
    assert answer.status == 404
    assert "absent" in answer.error
