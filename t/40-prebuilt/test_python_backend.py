"""Models in Python, run by NVIDIA's prebuilt backend, unmodified."""

import json
import os
import sys
import uuid

import pytest

from lib import models, prebuilt
from lib.server import Server, shm_names
from lib.wire import tensor

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

PAIR = (models.io_block("input", [("A", "FP32", [-1]), ("B", "FP32", [-1])])
        + models.io_block("output", [("SUM", "FP32", [-1]),
                                     ("DIFF", "FP32", [-1])]))
TEXT = (models.io_block("input", [("IN", "BYTES", [-1])])
        + models.io_block("output", [("OUT", "BYTES", [-1])]))

ADD_SUB = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            a = pb.get_input_tensor_by_name(request, "A").as_numpy()
            b = pb.get_input_tensor_by_name(request, "B").as_numpy()
            answers.append(pb.InferenceResponse([
                pb.Tensor("SUM", a + b), pb.Tensor("DIFF", a - b)]))
        return answers
"""

CALLER = """\
import asyncio
import triton_python_backend_utils as pb

class TritonPythonModel:
    def call(self, request, model):
        return pb.InferenceRequest(
            model_name=model, requested_output_names=["SUM", "DIFF"],
            inputs=request.inputs())
    def answer(self, response):
        if response.has_error():
            return pb.InferenceResponse(
                error=pb.TritonError("called: " + response.error().message()))
        return pb.InferenceResponse(response.output_tensors())
"""

SYNC_CALLER = CALLER + """\
    def execute(self, requests):
        return [self.answer(self.call(r, "add_sub").exec()) for r in requests]
"""

ASYNC_CALLER = CALLER + """\
    async def execute(self, requests):
        return [self.answer(r) for r in await asyncio.gather(
            *[self.call(r, "add_sub").async_exec() for r in requests])]
"""

LOST_CALLER = CALLER + """\
    def execute(self, requests):
        return [self.answer(self.call(r, "absent").exec()) for r in requests]
"""

RAISER = """\
class TritonPythonModel:
    def execute(self, requests):
        raise ValueError("this model never works")
"""

REJECTER = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse(error=pb.TritonError(
            "not this one", pb.TritonError.UNAVAILABLE)) for r in requests]
"""

TELLER = """\
import json
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.args = args
    def execute(self, requests):
        answers = []
        for request in requests:
            told = json.dumps({
                "parameters": json.loads(request.parameters()),
                "id": request.request_id(),
                "model": self.args["model_name"],
                "version": self.args["model_version"],
                "kind": self.args["model_instance_kind"]})
            answers.append(pb.InferenceResponse([pb.Tensor(
                "OUT", numpy.array([told.encode()], dtype=object))]))
        return answers
"""

DECOUPLED = """\
class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            request.get_response_sender().send(flags=1)
"""

SHOUT = """\
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_name"].encode()
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUT", numpy.array(
            [self.name + b" " + s.upper() for s in
             pb.get_input_tensor_by_name(r, "IN").as_numpy()],
            dtype=object))]) for r in requests]
"""


def fill(repository):
    prebuilt.derived("t_shout", SHOUT)
    models.write_model(repository, "shouter",
                       'name: "shouter"\nbackend: "t_shout"\n' + TEXT)
    for name, config, source in [
            ("add_sub", PAIR, ADD_SUB), ("sync", PAIR, SYNC_CALLER),
            ("async", PAIR, ASYNC_CALLER), ("lost", PAIR, LOST_CALLER),
            ("raiser", TEXT, RAISER), ("rejecter", TEXT, REJECTER),
            ("teller", TEXT, TELLER),
            ("decoupled", TEXT
             + "model_transaction_policy { decoupled: true }\n", DECOUPLED)]:
        prebuilt.model(repository, name, config, source)


def regions(prefix):
    return [name for name in shm_names() if name.startswith(prefix)]


def make(models_of, prefix):
    """prefix: of the names in /dev/shm, by the backend's own setting."""
    return Server(
        models_of, backends=prebuilt.folder(),
        inference_env=prebuilt.environment(),
        http=f"    inference_backend_config python "
             f"shm-region-prefix-name={prefix};")


@pytest.fixture(scope="module")
def python():
    prefix = f"inf_t_{uuid.uuid4().hex}"
    with make(fill, prefix) as s:
        assert regions(prefix)
        yield s
    assert not regions(prefix)


def pair(a, b):
    return {"inputs": [tensor("A", "FP32", [len(a)], a),
                       tensor("B", "FP32", [len(b)], b)]}


def text(parameters=None, **more):
    return dict({"inputs": [tensor("IN", "BYTES", [1], ["x"])],
                 "parameters": parameters or {}}, **more)


def data(answer):
    assert answer.status == 200, answer
    return {o["name"]: o["data"] for o in answer.json()["outputs"]}


def test_a_forwarding_library_stands_in_for_the_original(python):
    with open(f"/proc/{python.core()}/maps", encoding="utf-8") as maps:
        mapped = maps.read()
    assert "libtriton_python.so" in mapped
    assert "/memfd:libtritonserver-" in mapped
    assert "nvidia_pytriton.libs/libtritonserver" not in mapped


def test_adds_and_subtracts(python):
    assert data(python.infer("add_sub", pair([1, 2.5], [3, 0.5]))) == {
        "SUM": [4, 3], "DIFF": [-2, 2]}


@pytest.mark.parametrize("caller", ["sync", "async"])
def test_calls_another_model(python, caller):
    for n in range(20):
        assert data(python.infer(caller, pair([n], [1]))) == {
            "SUM": [n + 1], "DIFF": [n - 1]}


def test_call_of_an_absent_model_fails_with_its_name(python):
    answer = python.infer("lost", pair([1], [1]))
    assert answer.status >= 400
    assert "absent" in answer.error


def test_an_exception_is_the_answer(python):
    answer = python.infer("raiser", text())
    assert answer.status == 500
    assert "this model never works" in answer.error


def test_an_error_keeps_its_code(python):
    answer = python.infer("rejecter", text())
    assert answer.status == 503
    assert "not this one" in answer.error


def test_parameters_and_id_arrive(python):
    sent = {"word": "yes", "number": -3, "flag": True, "half": 0.5}
    told = json.loads(data(python.infer("teller", text(sent, id="r7")))
                      ["OUT"][0])
    assert told == {"parameters": sent, "id": "r7", "model": "teller",
                    "version": "1", "kind": "CPU"}


def test_decoupled_model_is_rejected_over_http(python):
    answer = python.infer("decoupled", text())
    assert answer.status == 501
    assert "decoupled" in answer.error


def test_a_backend_may_be_a_model_py(python):
    assert data(python.infer("shouter", text()))["OUT"] == ["shouter X"]
    config = python.get("/v2/models/shouter/config").json()
    assert config["runtime"] == "model.py"
    assert config["backend"] == "t_shout"


def test_an_array_the_stub_cannot_read_is_told(make_server):
    """The stub takes the size of an element from where numpy 1 had it; of
    numpy 2 it reads 0, and answers with no bytes at all."""
    server = make_server(
        lambda r: prebuilt.model(r, "add_sub", PAIR, ADD_SUB),
        backends=prebuilt.folder(), inference_env=[
            f'"PATH={os.path.dirname(sys.executable)}:/usr/bin:/bin"'])
    answer = server.infer("add_sub", pair([1], [3]))
    assert answer.status == 500
    assert answer.error.startswith(
        "output 'SUM' that backend 'python' made for model 'add_sub' has no "
        "buffer: FP32, shape [1], 0 bytes")
