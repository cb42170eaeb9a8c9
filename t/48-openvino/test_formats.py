"""Files of each format that the library reads.  All models answer SUM = X + X
over [-1, 2]; protobuf and flatbuffers are written here by hand, because the
packages that write such models are many times larger than the library."""

import pathlib
import struct

import flatbuffers
import pytest
from onnx import TensorProto, helper

from lib import models, openvino_models
from lib.openvino_models import op
from lib.server import SANITIZER
from lib.wire import tensor

DATA = [[1.5, -2], [0, 4]]


# ---- protobuf: (number, value); a value is an int, a float, bytes or a text

def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def message(*fields):
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def entry(key, value):
    return message((1, key), (2, value))


def saved_model():
    """TensorFlow's saved_model.proto, meta_graph.proto, graph.proto."""
    shape = message((2, message((1, -1))), (2, message((1, 2))))
    attr_type = message((6, 1))                     # DT_FLOAT
    nodes = [
        message((1, "x"), (2, "Placeholder"), (5, entry("dtype", attr_type)),
                (5, entry("shape", message((7, shape))))),
        message((1, "sum"), (2, "AddV2"), (3, "x"), (3, "x"),
                (5, entry("T", attr_type)))]

    def info(name):
        return message((1, name), (2, 1), (3, shape))

    signature = message((1, entry("X", info("x:0"))),
                        (2, entry("SUM", info("sum:0"))),
                        (3, "tensorflow/serving/predict"))
    graph = message(*((1, n) for n in nodes), (4, message((1, 1087))))
    return message((1, 1), (2, message(
        (1, message((4, "serve"), (5, "2.16.1"))), (2, graph),
        (5, entry("serving_default", signature)))))


def paddle():
    """Paddle's framework.proto."""
    fp32, lod_tensor, feed, fetch = 5, 7, 9, 10

    def var(name, kind, dims=None):
        if dims is None:
            return message((1, name), (2, message((1, kind))), (3, 1))
        shape = message((1, fp32), *((2, d) for d in dims))
        return message((1, name), (2, message(
            (1, kind), (3, message((1, shape))))))

    def operator(kind, inputs, outputs, attrs):
        return message(
            *((1, message((1, k), (2, v))) for k, v in inputs.items()),
            *((2, message((1, k), (2, v))) for k, v in outputs.items()),
            (3, kind),
            *((4, message((1, k), (2, 0), (3, v))) for k, v in attrs.items()))

    return message((1, message(
        (1, 0), (2, -1),
        (3, var("feed", feed)), (3, var("fetch", fetch)),
        (3, var("X", lod_tensor, [-1, 2])),
        (3, var("SUM", lod_tensor, [-1, 2])),
        (4, operator("feed", {"X": "feed"}, {"Out": "X"}, {"col": 0})),
        (4, operator("elementwise_add", {"X": "X", "Y": "X"}, {"Out": "SUM"},
                     {"axis": -1})),
        (4, operator("fetch", {"X": "SUM"}, {"Out": "fetch"}, {"col": 0})))),
        (4, message((1, 2006000))))


def tflite():
    """TensorFlow Lite's schema.fbs."""
    b = flatbuffers.Builder(1024)

    def table(count, *slots):
        """slots: (number, how to prepend, value)"""
        b.StartObject(count)
        for number, kind, value in slots:
            getattr(b, f"Prepend{kind}Slot")(number, value, 0)
        return b.EndObject()

    def vector(items, size, prepend):
        b.StartVector(size, len(items), size)
        for item in reversed(items):
            prepend(item)
        return b.EndVector()

    def ints(*items):
        return vector(items, 4, b.PrependInt32)

    def offsets(*items):
        return vector(items, 4, b.PrependUOffsetTRelative)

    def tensor_of(name):
        text = b.CreateString(name)
        shape, signature = ints(1, 2), ints(-1, 2)
        return table(8, (0, "UOffsetTRelative", shape),
                     (2, "Uint32", 0), (3, "UOffsetTRelative", text),
                     (7, "UOffsetTRelative", signature))

    tensors = offsets(tensor_of("X"), tensor_of("SUM"))
    read, written = ints(0, 0), ints(1)
    options = table(2)
    add_options = 11
    operators = offsets(table(
        9, (1, "UOffsetTRelative", read), (2, "UOffsetTRelative", written),
        (3, "Uint8", add_options), (4, "UOffsetTRelative", options)))
    inputs, outputs = ints(0), ints(1)
    graph = offsets(table(
        5, (0, "UOffsetTRelative", tensors), (1, "UOffsetTRelative", inputs),
        (2, "UOffsetTRelative", outputs),
        (3, "UOffsetTRelative", operators)))
    codes = offsets(table(4, (2, "Int32", 1)))      # ADD is 0
    buffers = offsets(table(3))
    b.Finish(table(8, (0, "Uint32", 3), (1, "UOffsetTRelative", codes),
                   (2, "UOffsetTRelative", graph),
                   (4, "UOffsetTRelative", buffers)),
             file_identifier=b"TFL3")
    return bytes(b.Output())


def onnx_model(node="Add", domain=""):
    graph = helper.make_graph(
        [helper.make_node(node, ["X", "X"], ["SUM"], domain=domain)], "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("SUM", TensorProto.FLOAT, ["n", 2])])
    return helper.make_model(
        graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    ).SerializeToString()


def intermediate(directory):
    x = openvino_models.parameter("X", "FP32", [-1, 2])
    model = openvino_models.model([x], {"SUM": op.add(x, x)})
    openvino_models.save(model, directory / "model.xml")
    return {f.name: f.read_bytes() for f in directory.iterdir()}


def files(form, directory):
    return {
        "ir": lambda: intermediate(directory),
        "onnx": lambda: {"model.onnx": onnx_model()},
        "onnx in a directory": lambda: {"model.onnx/model.onnx": onnx_model()},
        "tflite": lambda: {"model.tflite": tflite()},
        "saved model": lambda: {
            "model.saved_model/saved_model.pb": saved_model()},
        "paddle": lambda: {"model.pdmodel": paddle()},
    }[form]()


@pytest.mark.parametrize("form", ["ir", "onnx", "onnx in a directory",
                                  "tflite", "saved model", "paddle"])
@pytest.mark.parametrize("named", [False, True])
def test_format(make_server, tmp_path, form, named):
    """The usual name is found, and any other by default_model_filename; the
    configuration is completed from the file."""
    if form == "saved model" and SANITIZER:
        pytest.skip("the library asks for 2^63 bytes, which fails")

    def fill(repository):
        found = files(form, tmp_path)
        config = 'backend: "openvino"\n'
        if named:
            found = {rename(name): data for name, data in found.items()}
            file = pathlib.PurePath(next(
                n for n in found if not n.endswith(".bin"))).parts[0]
            config += f'default_model_filename: "{file}"\n'
        models.write_model(repository, "m", config, (1,), {1: found})

    server = make_server(fill)
    config = server.get("/v2/models/m/config").json()
    assert config["max_batch_size"] == 4
    assert [(i["name"], i["data_type"], i["dims"]) for i in config["input"]] \
        == [("X", "TYPE_FP32", [2])]
    answer = server.infer("m", {"inputs": [tensor("X", "FP32", [2, 2], DATA)]})
    assert answer.status == 200, answer
    output, = answer.json()["outputs"]
    assert output["name"] == "SUM" and output["shape"] == [2, 2]
    assert output["data"] == [3, -4, 0, 8]


def rename(path):
    return "/".join(part.replace("model.", "other.", 1)
                    if not i else part
                    for i, part in enumerate(path.split("/")))


def test_files_name_no_backend_needed(make_server, tmp_path):
    """model.xml implies the backend, as in Triton."""
    server = make_server(lambda r: models.write_model(
        r, "m", None, (1,), {1: intermediate(tmp_path)}))
    assert server.get("/v2/models/m/config").json()["backend"] == "openvino"
    answer = server.infer("m", {"inputs": [tensor("X", "FP32", [1, 2],
                                                  [3, 4])]})
    assert answer.json()["outputs"][0]["data"] == [6, 8]
