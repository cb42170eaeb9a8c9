"""A server of both protocols with the models that the tools measure."""

import pytest

from lib import decoupled, models
from lib.server import BUILD, Server

PARTS = ("health metadata config infer statistics metrics repository "
         "shared_memory trace logging")


def fill(repository):
    models.identity(repository, "plain", [("IN", "FP32", [16])], max_batch=8)
    models.identity(repository, "strings", [("IN", "BYTES", [2])])
    models.identity(repository, "open", [("IN", "INT32", [-1])])
    models.identity(repository, "sequence", [("IN", "INT32", [4])],
                    max_batch=4, extra="sequence_batching { }\n")
    models.ensemble(repository, "ensemble", [("A", "FP32", [16])],
                    [("B", "FP32", [16])],
                    models.step("plain", {"IN": "A"}, {"OUT": "B"}),
                    extra="max_batch_size: 8\n")
    decoupled.repeat(repository)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    traces = tmp_path_factory.mktemp("traces") / "traces.json"
    with Server(fill, workers=2, http2=True, parts=PARTS,
                http=f"    inference_trace file={traces} level=off;",
                inference_env=[
                    f"INFERENCE_CUDA_DRIVER={BUILD}/t-cuda/libfake-cuda.so",
                    f"INFERENCE_NVML={BUILD}/t-cuda/libfake-nvml.so"]) as s:
        yield s
