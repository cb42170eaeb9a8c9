"""Loads and unloads asked for by prebuilt programs: NVIDIA's front end over
gRPC, and a Python model from inside its own process."""

import json
import os
import subprocess

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from lib import models, prebuilt, process, wire
from lib.server import BACKENDS, Server, free_port
from lib.wire import tensor

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TEXT = (models.io_block("input", [("IN", "BYTES", [-1])])
        + models.io_block("output", [("OUT", "BYTES", [-1])]))

# A call that is answered at once may end the process: the prebuilt backend
# frees a lock that its other half still holds, under NVIDIA's own server too
# (some hundred calls).  Loading a model in Python takes long enough.
MANAGER = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        pb.load_model("worker")
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor(
            "OUT", pb.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests]
"""

WORKER = """\
class TritonPythonModel:
    def execute(self, requests):
        return []
"""


def test_a_python_model_loads_another_while_it_is_loaded():
    def fill(folder):
        prebuilt.model(folder, "manager", TEXT, MANAGER)
        prebuilt.model(folder, "worker", TEXT, WORKER)

    with Server(fill, backends=prebuilt.folder(),
                inference_env=prebuilt.environment(),
                http="    inference_model_control explicit;\n"
                     "    inference_load_model manager;\n") as server:
        answer = server.infer("manager", {
            "inputs": [tensor("IN", "BYTES", [1], ["x"])]})
        assert answer.status == 200, answer
        assert server.get("/v2/models/worker/ready").status == 200


@pytest.fixture
def front_end(tmp_path):
    """gRPC port of the front end in explicit mode, and its models."""
    repository = tmp_path / "models"
    repository.mkdir()
    models.identity(repository, "copy", [("IN", "FP32", [-1])])
    http, grpc = free_port(), free_port()
    log = tmp_path / "log"
    with open(log, "wb") as out:
        server = subprocess.Popen(
            [str(prebuilt.front_end()), "--model-repository", str(repository),
             "--model-control-mode", "explicit",
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
        yield grpc
        server.terminate()
        assert server.wait(40) == 0, log.read_text()
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def test_the_front_end_loads_and_unloads(front_end):
    value = numpy.arange(10, dtype=numpy.float32)
    given = triton.InferInput("IN", value.shape, "FP32")
    given.set_data_from_numpy(value)
    with triton.InferenceServerClient(f"127.0.0.1:{front_end}") as client:
        index = client.get_model_repository_index(as_json=True)
        assert index == {"models": [{"name": "copy"}]}
        client.load_model("copy")
        answer = client.infer("copy", [given])
        assert numpy.array_equal(answer.as_numpy("OUT"), value)

        client.load_model("sent", config=json.dumps({
            "backend": "identity", "max_batch_size": 0,
            "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}],
            "output": [{"name": "OUT", "data_type": "TYPE_FP32",
                        "dims": [-1]}]}), files={"file:1/data": b"\0\1"})
        answer = client.infer("sent", [given])
        assert numpy.array_equal(answer.as_numpy("OUT"), value)

        client.unload_model("copy")
        assert not client.is_model_ready("copy")
        client.unload_model("sent", unload_dependents=True)
        with pytest.raises(InferenceServerException, match="failed to load"):
            client.load_model("missing")
        assert process.wait_until(
            lambda: client.get_model_repository_index(as_json=True) == {
                "models": [{"name": "copy", "version": "1",
                            "state": "UNAVAILABLE", "reason": "unloaded"}]},
            20)
