"""Loads of backend onnxruntime that cannot work say why; other models
serve."""

import re

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

from lib import models
from lib.repository import PARTS, settled
from lib.server import Server
from lib.wire import tensor

ELEM = {"FP32": TensorProto.FLOAT, "COMPLEX64": TensorProto.COMPLEX64}
X, Y = ("X", "FP32", [2]), ("Y", "FP32", [2])


def graph(nodes, datatype="FP32", opsets=(("", 17),), ir_version=8,
          initializers=()):
    x, y = (helper.make_tensor_value_info(name, ELEM[datatype], ["n", 2])
            for name in "XY")
    return helper.make_model(
        helper.make_graph(nodes, "g", [x], [y], list(initializers)),
        ir_version=ir_version,
        opset_imports=[helper.make_opsetid(*o) for o in opsets])


def node(operator, inputs=("X",), outputs=("Y",), **more):
    return helper.make_node(operator, inputs, outputs, **more)


def identity(**more):
    return graph([node("Identity")], **more).SerializeToString()


def with_weights():
    """X times a matrix whose numbers are in weights.bin."""
    matrix = onnx.numpy_helper.from_array(
        numpy.ones((2, 2), numpy.float32), "W")
    data = matrix.raw_data
    onnx.external_data_helper.set_external_data(matrix, "weights.bin", 0,
                                                len(data))
    matrix.ClearField("raw_data")
    model = graph([node("MatMul", ["X", "W"])], initializers=[matrix])
    return model.SerializeToString(), data


GOOD = identity()
WEIGHTED, WEIGHTS = with_weights()


def file(data, **more):
    return {"model.onnx": data, **more}, ""


def configured(inputs=(X,), outputs=(Y,), more=""):
    return file(GOOD)[0], "max_batch_size: 4\n" + more \
        + models.io_block("input", inputs) \
        + models.io_block("output", outputs)


# name: (files and more of the configuration, what the reason says beside the
# name of the file or the model)
LOADS = {
    "no_file": (({"other.onnx": GOOD}, ""),
                "/1/model.onnx' for model instance 'no_file'"),
    "another_name": ((file(GOOD)[0], 'default_model_filename: "other.onnx"\n'),
                     "/1/other.onnx"),
    "outside": ((file(GOOD)[0],
                 'default_model_filename: "../../good/1/model.onnx"\n'),
                "must stay within the version directory"),
    "empty": (file(b""), "it is empty"),
    "text": (file(b"this is no model"), "not an ONNX file, or cut off"),
    "archive": (file(b"PK\3\4" + bytes(100)), "not an ONNX file, or cut off"),
    "half": (file(GOOD[:len(GOOD) // 2]), "not an ONNX file, or cut off"),
    "almost_all": (file(GOOD[:-3]), "not an ONNX file, or cut off"),
    "no_weights": (file(WEIGHTED), "weights.bin"),
    "half_the_weights": (
        file(WEIGHTED, **{"weights.bin": WEIGHTS[:7]}), "initializer: W"),
    "operator": (file(graph([node("Unheard")]).SerializeToString()),
                 "No Op registered for Unheard"),
    "domain": (file(graph([node("Unheard", domain="own")],
                          opsets=[("", 17), ("own", 1)]).SerializeToString()),
               "own:Unheard(-1) is not a registered function/op"),
    "opset": (file(identity(opsets=[("", 999)])), "Opset 999"),
    "format": (file(identity(ir_version=99)), "IR version: 99"),
    "datatype": (file(identity(datatype="COMPLEX64")), "tensor(complex64)"),
    "circle": (file(graph([node("Add", ["X", "Z"]),
                           node("Identity", ["Y"], ["Z"])])
                    .SerializeToString()), "not acyclic"),
    "input_name": (configured([("OTHER", "FP32", [2])]),
                   "unexpected inference input 'OTHER', allowed inputs are: "
                   "X"),
    "more_inputs": (configured([X, ("Z", "FP32", [2])]),
                    "configuration expects 2 inputs, model provides 1: the "
                    "model has no 'Z'"),
    "output_name": (configured(outputs=[("OTHER", "FP32", [2])]),
                    "unexpected inference output 'OTHER', allowed outputs are:"
                    " Y"),
    "input_type": (configured([("X", "INT64", [2])]),
                   "configuration expects datatype TYPE_INT64 for input 'X', "
                   "model provides TYPE_FP32"),
    "texts": (configured([("X", "BYTES", [2])]), "TYPE_STRING"),
    "output_type": (configured(outputs=[("Y", "FP64", [2])]),
                    "configuration expects datatype TYPE_FP64 for output "
                    "'Y'"),
    "input_dims": (configured([("X", "FP32", [3])]),
                   "tensor 'X': the model expects 2 dimensions (shape [-1,2]) "
                   "but the model configuration specifies 2 dimensions (an "
                   "initial batch dimension because max_batch_size > 0 followed"
                   " by the explicit tensor shape, making complete shape "
                   "[-1,3])"),
    "input_rank": (configured([("X", "FP32", [2, 2])]),
                   "specifies 3 dimensions (an initial batch dimension "),
    "output_dims": (configured(outputs=[("Y", "FP32", [3])]),
                    "tensor 'Y': the model expects 2 dimensions (shape "),
    "optional": (configured([(*X, "optional: true")]),
                 "'optional' is set to true for input 'X' while the backend "
                 "model doesn't support optional input"),
    "level": (configured(more="optimization { graph { level: 77 } }\n"),
              "optimization.graph.level is 77"),
    "accelerator": (configured(
        more="optimization { execution_accelerators { "
        'cpu_execution_accelerator { name: "unheard" } } }\n'),
        "unknown Execution Accelerator 'unheard' is requested"),
    "threads": (configured(more=models.parameter_block(
        {"intra_op_thread_count": "many"})),
        'parameter "intra_op_thread_count" is "many"'),
    "too_many_threads": (configured(more=models.parameter_block(
        {"inter_op_thread_count": "1025"})),
        '"inter_op_thread_count" is "1025"; it must be a whole number from 0 '
        "to 1024"),
}


@pytest.fixture(scope="module")
def server():
    def fill(repository):
        for name, ((files, extra), _) in {
                **LOADS, "good": (file(GOOD), "")}.items():
            models.write_model(repository, name, 'backend: "onnxruntime"\n'
                               + extra, (1,), {1: files})

    with Server(fill, parts=PARTS).start("live") as s:
        s.found = settled(s)
        yield s


@pytest.mark.parametrize("name", LOADS)
def test_the_reason_of_a_failed_load(server, name):
    row, = server.found[name]
    assert row["state"] == "UNAVAILABLE"
    assert LOADS[name][1] in row["reason"]
    assert 'model "' not in row["reason"]       # the row has its name
    assert "\n" not in row["reason"]
    answer = server.infer("good", {"inputs": [
        tensor("X", "FP32", [1, 2], [1, 2])]})
    assert answer.json()["outputs"][0]["data"] == [1, 2]


@pytest.mark.parametrize("name", ["operator", "opset", "format", "circle"])
def test_an_error_of_the_library_begins_with_its_number(server, name):
    row, = server.found[name]
    assert re.match(r"Internal: onnx runtime error \d+: Load model from \S+"
                    r"/model\.onnx failed:", row["reason"]), row
