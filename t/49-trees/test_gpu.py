"""The models of examples/trees on a GPU: the same bits as on the host."""

import numpy
import pytest

from lib import gpu, models, trees
from lib.server import ROOT, Server

EXAMPLES = ROOT / "examples/trees/models"
OUTPUTS = ("output__0", "raw", "leaf_id", "score_per_tree")
FEATURES = {"digits_xgboost": 64, "digits_lightgbm": 64,
            "diabetes_xgboost": 10, "diabetes_lightgbm": 10}


def fill(directory):
    for name in FEATURES:
        path, = (EXAMPLES / name / "1").iterdir()
        for kind in ("CPU", "GPU"):
            models.write_model(
                directory, f"{name}_{kind}", 'backend: "trees"\n'
                "max_batch_size: 4096\n"
                f"instance_group {{ kind: KIND_{kind} }}\n"
                + models.io_block("output", [
                    (o, "INT32" if o == "leaf_id" else "FP32", [-1])
                    for o in OUTPUTS]),
                (1,), {1: {path.name: path.read_bytes()}})


@pytest.fixture(scope="module")
def served():
    with Server(fill, inference_env=gpu.env(kernels=trees.host_kernels()),
                http=trees.compiler()) as server:
        yield server


@pytest.mark.parametrize("name", FEATURES)
def test_answers_are_the_host_s(served, name):
    rng = numpy.random.default_rng(5)
    scale = 16 if name.startswith("digits") else 0.1
    x = rng.normal(size=(3000, FEATURES[name])) * scale
    x[rng.random(x.shape) < 0.1] = numpy.nan
    x = x.astype(numpy.float32)
    for rows in (x, x[:1], x[5:38]):
        on_host = trees.answer(served, name + "_CPU", rows, OUTPUTS)
        on_gpu = trees.answer(served, name + "_GPU", rows, OUTPUTS)
        for kind, a, b in zip(OUTPUTS, on_host, on_gpu):
            assert a.shape == b.shape and a.tobytes() == b.tobytes(), kind
