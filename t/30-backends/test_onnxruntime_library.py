"""The onnxruntime backend and its library in Python give the same outputs."""

import functools

import ml_dtypes
import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from lib import models, parity

ROWS = 6
FLOATS = ["FP32", "FP64", "INT32", "INT64"]
ELEM = {"FP16": TensorProto.FLOAT16, "BF16": TensorProto.BFLOAT16,
        "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE,
        "BYTES": TensorProto.STRING}


def elem(datatype):
    return ELEM.get(datatype) or getattr(TensorProto, datatype)


def moves(datatype, batched):
    """BOTH is A and B one behind the other, TURNED that with its last two
    dimensions exchanged, FLAT what A has, in a line."""
    first = ["n"] if batched else []
    rank = len(first) + 2
    turn = list(range(rank - 2)) + [rank - 1, rank - 2]
    shape = helper.make_tensor("shape", TensorProto.INT64, [len(first) + 1],
                               [0] * len(first) + [-1])
    return model_of(
        [helper.make_node("Concat", ["A", "B"], ["BOTH"], axis=rank - 1),
         helper.make_node("Transpose", ["BOTH"], ["TURNED"], perm=turn),
         helper.make_node("Reshape", ["A", "shape"], ["FLAT"])],
        [("A", datatype, [*first, "h", "w"]),
         ("B", datatype, [*first, "h", 3])],
        [("BOTH", datatype, [*first, "h", None]),
         ("TURNED", datatype, [*first, None, "h"]),
         ("FLAT", datatype, [*first, None])], [shape])


def sums(datatype, batched):
    """Fixed dims, so that outputs are written in place: SUM = A + B, and
    PRODUCT = A times a matrix."""
    first = ["n"] if batched else [2]
    matrix = numpy.arange(12).reshape(4, 3)
    weights = helper.make_tensor("W", elem(datatype), [4, 3],
                                 matrix.flatten().tolist())
    return model_of(
        [helper.make_node("Add", ["A", "B"], ["SUM"]),
         helper.make_node("MatMul", ["A", "W"], ["PRODUCT"])],
        [("A", datatype, [*first, 4]), ("B", datatype, [*first, 4])],
        [("SUM", datatype, [*first, 4]), ("PRODUCT", datatype, [*first, 3])],
        [weights])


def model_of(nodes, inputs, outputs, initializers):
    def value(name, datatype, shape):
        return helper.make_tensor_value_info(name, elem(datatype), shape)

    graph = helper.make_graph(nodes, "g", [value(*i) for i in inputs],
                              [value(*o) for o in outputs], initializers)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def all_models():
    for batched in (False, True):
        suffix = "batched" if batched else "single"
        rows = ROWS if batched else 0
        for datatype in models.ALL_DATATYPES:
            yield moves(datatype, batched), parity.Model(
                f"moves_{datatype.lower()}_{suffix}",
                {"A": (datatype, ["h", "w"]), "B": (datatype, ["h", 3])},
                ["BOTH", "TURNED", "FLAT"], rows)
        for datatype in FLOATS:
            dims = [4] if batched else [2, 4]
            yield sums(datatype, batched), parity.Model(
                f"sums_{datatype.lower()}_{suffix}",
                {"A": (datatype, dims), "B": (datatype, dims)},
                ["SUM", "PRODUCT"], rows, whole=True)


def config(model):
    if not model.rows:
        inputs = [(name, datatype,
                   [-1 if isinstance(d, str) else d for d in dims])
                  for name, (datatype, dims) in model.inputs.items()]
        # without inputs in it the model would be completed as a batching one
        return 'backend: "onnxruntime"\nmax_batch_size: 0\n' \
            + models.io_block("input", inputs) + outputs_block(model) \
            + "instance_group { count: 2 kind: KIND_CPU }\n"
    return f'backend: "onnxruntime"\nmax_batch_size: {4 * ROWS}\n' \
        "dynamic_batching { max_queue_delay_microseconds: 2000 }\n"


def outputs_block(model):
    datatype = model.inputs["A"][0]
    dims = {"BOTH": [-1, -1], "TURNED": [-1, -1], "FLAT": [-1],
            "SUM": [2, 4], "PRODUCT": [2, 3]}
    return models.io_block("output", [(name, datatype, dims[name])
                                      for name in model.outputs])


def predict(session, model, arrays):
    outputs = session.get_outputs()
    if model.inputs["A"][0] == "BF16":
        return predict_bfloat16(session, arrays, outputs)
    if model.inputs["A"][0] == "BYTES":     # the library takes texts
        arrays = {name: numpy.vectorize(latin, otypes=[object])(array)
                  for name, array in arrays.items()}
    found = session.run(None, arrays)
    if model.inputs["A"][0] == "BYTES":
        found = [numpy.vectorize(unlatin, otypes=[object])(a) for a in found]
    return {o.name: array for o, array in zip(outputs, found)}


# Any bytes as a text that the library gives back as it was.
def latin(data):
    return data.decode("latin-1")


def unlatin(data):
    return data.encode("latin-1")


def predict_bfloat16(session, arrays, outputs):
    """numpy has no such type: outputs are written over memory of ours."""
    def over(array):
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
            array.view(numpy.uint16), TensorProto.BFLOAT16)

    values = {name: over(array) for name, array in arrays.items()}
    shapes = [v.shape() for v in session.run_with_ort_values(None, values)]
    found = {o.name: numpy.empty(shape, ml_dtypes.bfloat16)
             for o, shape in zip(outputs, shapes)}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    for name, array in found.items():
        binding.bind_ortvalue_output(name, over(array))
    session.run_with_iobinding(binding)
    return found


@pytest.fixture(scope="module")
def pairs():
    return list(all_models())


def test_outputs_are_those_of_the_library(make_server, pairs):
    """Of parity.COUNT random inputs of each of 36 models."""
    def fill(repository):
        for data, model in pairs:
            models.write_model(repository, model.name, config(model), (1,),
                               {1: {"model.onnx": data}})

    server = make_server(fill, parts="all")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    company = 0
    for seed, (data, model) in enumerate(pairs):
        session = onnxruntime.InferenceSession(
            data, options, providers=["CPUExecutionProvider"])
        parity.check(server, model,
                     functools.partial(predict, session, model),
                     parity.COUNT, seed)
        if model.rows:
            company += parity.joined(server, model.name)
    assert company > 0, "no two requests ran together"
