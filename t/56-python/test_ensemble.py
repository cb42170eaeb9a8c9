"""Python models as steps of an ensemble: inputs that several steps read, and
what they write into them."""

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

from lib import models, python_backend
from lib.python_backend import TEXT, text, words

NUMBERS = models.io_block("input", [("IN", "FP32", [-1])]) \
    + models.io_block("output", [("OUT", "FP32", [-1])])
# writes over its input
DOUBLE = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            x = pb.get_input_tensor_by_name(r, "IN").as_numpy()
            x *= 2
            answers.append(pb.InferenceResponse([pb.Tensor("OUT", x)]))
        return answers
"""
PAIR = models.io_block("input", [("A", "FP32", [-1]), ("B", "FP32", [-1])]) \
    + models.io_block("output", [("SUM", "FP32", [-1])])
ADD = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("SUM",
            pb.get_input_tensor_by_name(r, "A").as_numpy()
            + pb.get_input_tensor_by_name(r, "B").as_numpy())])
            for r in requests]
"""
SHOUT = """\
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", np.array(
            [w.upper() + b"!" for w in
             pb.get_input_tensor_by_name(r, "IN").as_numpy()],
            dtype=object))]) for r in requests]
"""
FAIL = """\
class TritonPythonModel:
    def execute(self, requests):
        raise ValueError("no such step")
"""


def fill(repository):
    for name, config, source in [("double", NUMBERS, DOUBLE),
                                 ("add", PAIR, ADD), ("shout", TEXT, SHOUT),
                                 ("fail", NUMBERS, FAIL)]:
        python_backend.model(repository, name, config, source)
    models.identity(repository, "copy", [("IN", "FP32", [-1])])
    step = models.step
    # 2x + (x + 2x)
    models.ensemble(
        repository, "tree", [("X", "FP32", [-1])], [("Y", "FP32", [-1])],
        step("double", {"IN": "X"}, {"OUT": "D"}),
        step("copy", {"IN": "D"}, {"OUT": "E"}),
        step("add", {"A": "X", "B": "D"}, {"SUM": "S"}),
        step("add", {"A": "E", "B": "S"}, {"SUM": "Y"}))
    models.ensemble(
        repository, "loud", [("X", "BYTES", [-1])], [("Y", "BYTES", [-1])],
        step("shout", {"IN": "X"}, {"OUT": "Z"}),
        step("shout", {"IN": "Z"}, {"OUT": "Y"}))
    models.ensemble(
        repository, "broken", [("X", "FP32", [-1])], [("Y", "FP32", [-1])],
        step("double", {"IN": "X"}, {"OUT": "D"}),
        step("fail", {"IN": "D"}, {"OUT": "Y"}))


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
        yield s


@pytest.mark.parametrize("module", [httpclient, grpcclient],
                         ids=["http", "grpc"])
@pytest.mark.parametrize("size", [0, 1, 1000, 1 << 18])
def test_steps(server, module, size):
    x = np.arange(size, dtype=np.float32)
    tensor = module.InferInput("X", x.shape, "FP32")
    tensor.set_data_from_numpy(x)
    with module.InferenceServerClient(
            server.url if module is httpclient
            else f"127.0.0.1:{server.port2}") as client:
        for _ in range(3):
            y = client.infer("tree", [tensor]).as_numpy("Y")
            assert np.array_equal(y, 5 * x)


def test_strings(server):
    body = text("a", "bc")
    body["inputs"][0]["name"] = "X"
    assert words(server.infer("loud", body)) == ["A!!", "BC!!"]


def test_a_step_that_fails(server):
    answer = server.infer("broken", {"inputs": [{
        "name": "X", "datatype": "FP32", "shape": [1], "data": [1]}]})
    assert answer.status == 500
    assert "no such step" in answer.error
