"""Models for backend openvino, made by the openvino package, and the library
called directly: the answers that the backend has to give.

A test module that imports this one is skipped where the package is not
installed, and under TSan, which does not see how the library's threads wait
for each other.
"""

import pathlib

import ml_dtypes
import numpy
import pytest

from lib import models
from lib.server import SANITIZER

openvino = pytest.importorskip("openvino")
from openvino import opset13 as op  # noqa: E402
from openvino import opset15 as op15  # noqa: E402

if SANITIZER == "tsan":
    pytest.skip("the library is not instrumented", allow_module_level=True)

TYPE = {"BOOL": openvino.Type.boolean, "UINT8": openvino.Type.u8,
        "UINT16": openvino.Type.u16, "UINT32": openvino.Type.u32,
        "UINT64": openvino.Type.u64, "INT8": openvino.Type.i8,
        "INT16": openvino.Type.i16, "INT32": openvino.Type.i32,
        "INT64": openvino.Type.i64, "FP16": openvino.Type.f16,
        "BF16": openvino.Type.bf16, "FP32": openvino.Type.f32,
        "FP64": openvino.Type.f64, "BYTES": openvino.Type.string}
NUMPY = {"BOOL": numpy.bool_, "FP16": numpy.float16, "FP32": numpy.float32,
         "FP64": numpy.float64, "BF16": ml_dtypes.bfloat16,
         "BYTES": numpy.object_}

# as the backend compiles where a model has no parameters
SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "ENABLE_CPU_PINNING": "NO",
            "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": 1}


def numpy_type(datatype):
    return NUMPY.get(datatype) or numpy.dtype(datatype.lower()).type


def parameter(name, datatype, shape):
    node = op.parameter(shape, TYPE[datatype], name=name)
    node.output(0).get_tensor().set_names({name})
    return node


def model(inputs, outputs):
    """outputs: {name: node}"""
    results = []
    for name, node in outputs.items():
        result = op.result(node)
        result.output(0).get_tensor().set_names({name})
        results.append(result)
    return openvino.Model(results, inputs, "m")


def add_model(shape=(-1, 2), datatype="FP32"):
    """SUM = LHS + RHS, DIFFERENCE = LHS - RHS."""
    lhs = parameter("LHS", datatype, shape)
    rhs = parameter("RHS", datatype, shape)
    return model([lhs, rhs], {"SUM": op.add(lhs, rhs),
                              "DIFFERENCE": op.subtract(lhs, rhs)})


def copy_model(datatype, shape):
    """Y = X twice over along the last dimension; of texts once."""
    x = parameter("X", datatype, shape)
    if datatype == "BYTES":
        begins, ends, chars = op15.string_tensor_unpack(x).outputs()
        y = op15.string_tensor_pack(begins, ends, chars)
    else:
        y = op.concat([x, x], -1)
    return model([x], {"Y": y})


def nonzero_model():
    """Rows that depend on the data: not as many as the batch."""
    x = parameter("X", "FP32", [-1, 2])
    found = op.transpose(op.non_zero(x, "i64"), op.constant([1, 0]))
    return model([x], {"Y": op.convert(found, "f32")})


def save(m, path):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    openvino.save_model(m, path, compress_to_fp16=False)


def write(repository, name, m, config=None, extra="", version=1):
    """A model of backend openvino; config None: the name, backend and extra."""
    save(m, pathlib.Path(repository) / name / str(version) / "model.xml")
    if config is None:
        config = f'name: "{name}"\nbackend: "openvino"\n' + extra
    return models.write_model(repository, name, config)


class Direct:
    """The library itself on a model or file."""

    def __init__(self, source, **settings):
        core = openvino.Core()
        self.compiled = core.compile_model(
            source if isinstance(source, openvino.Model) else str(source),
            "CPU", {**SETTINGS, **settings})
        self.request = self.compiled.create_infer_request()

    def __call__(self, **inputs):
        """{output: array}"""
        for i, port in enumerate(self.compiled.inputs):
            name = next(n for n in port.names if n in inputs)
            self.request.set_input_tensor(i, _tensor(port, inputs[name]))
        self.request.infer()
        return {port.any_name: _array(self.request.get_output_tensor(i))
                for i, port in enumerate(self.compiled.outputs)}


def _tensor(port, array):
    t = openvino.Tensor(port.element_type, openvino.Shape(array.shape))
    if array.dtype == numpy.object_:
        t.str_data = numpy.vectorize(_text, otypes=[str])(array)
    elif array.dtype == ml_dtypes.bfloat16:
        t.data.view(numpy.uint16)[:] = array.view(numpy.uint16)
    else:
        t.data[:] = array
    return t


def _array(t):
    if t.element_type == openvino.Type.string:
        return numpy.vectorize(_data, otypes=[object])(t.str_data)
    if t.element_type == openvino.Type.bf16:
        return t.data.view(numpy.uint16).view(ml_dtypes.bfloat16).copy()
    return t.data.copy()


# Any bytes as a text without zeros, of which numpy would drop those at the
# end; copied by the library it is the same bytes again.
def _text(data):
    return "".join(chr(0x100 + b) for b in data)


def _data(text):
    return bytes(ord(c) - 0x100 for c in text)
