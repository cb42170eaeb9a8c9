"""Loads and requests that cannot work say why; other models serve."""

import os
import pathlib
import shutil
import subprocess

import numpy
import pytest
from onnx import TensorProto, helper

from lib import gpu, models, openvino_models
from lib.openvino_models import add_model, op, openvino, parameter
from lib.repository import EXPLICIT, PARTS, ask, rows
from lib.server import BUILD, ROOT, SANITIZER
from lib.wire import tensor

GOOD = {"inputs": [tensor("LHS", "FP32", [1, 2], [1, 2]),
                   tensor("RHS", "FP32", [1, 2], [3, 4])]}
IO = {"LHS": ("input", "FP32", [2]), "RHS": ("input", "FP32", [2]),
      "SUM": ("output", "FP32", [2]), "DIFFERENCE": ("output", "FP32", [2])}


def file(name, data):
    def fill(repository):
        models.write_model(repository, "bad", 'backend: "openvino"\n', (1,),
                           {1: {name: data} if name else {}})
    return fill


def pipe(repository):
    file(None, b"")(repository)
    os.mkfifo(pathlib.Path(repository) / "bad/1/model.onnx")


def add(extra, change=None, model=add_model):
    def fill(repository):
        directory = openvino_models.write(repository, "bad", model(),
                                          extra=extra)
        if change:
            change(directory / "1")
    return fill


def io(**changes):
    """The configuration of add_model's tensors, with some of them changed."""
    found = {name: changes.get(name, entry) for name, entry in IO.items()}
    found.update((n, e) for n, e in changes.items() if n not in IO)
    return "".join(models.io_block(kind, [
        (name, *entry[1:]) for name, entry in found.items()
        if entry and entry[0] == kind]) for kind in ("input", "output"))


def cut(name, size):
    def change(directory):
        path = directory / name
        path.write_bytes(path.read_bytes()[:size])
    return change


def weighted():
    x = parameter("X", "FP32", [-1, 64])
    return openvino_models.model([x], {"Y": op.matmul(
        x, op.constant(numpy.ones((64, 64), numpy.float32)), False, False)})


def remembering():
    x = parameter("X", "FP32", [1, 2])
    info = openvino.op.util.VariableInfo()
    info.data_shape = openvino.PartialShape([1, 2])
    info.data_type = openvino_models.TYPE["FP32"]
    info.variable_id = "v"
    variable = openvino.op.util.Variable(info)
    total = op.add(x, op.read_value(x, variable))
    m = openvino_models.model([x], {"Y": total})
    m.add_sinks([op.assign(total, variable)])
    return m


def renamed(name):
    return lambda directory: (directory / "model.xml").rename(directory / name)


def reworded(old, new):
    def change(directory):
        path = directory / "model.xml"
        text = path.read_text().replace('type="Assign"', "type='Assign'")
        assert old in text
        path.write_text(text.replace(old, new).replace("'Assign'",
                                                       "'Ass&#105;gn'"))
    return change


def own_operator():
    graph = helper.make_graph(
        [helper.make_node("Unheard", ["X"], ["Y"], domain="own")], "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, ["n", 2])])
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("own", 1)
    ]).SerializeToString()


def complex_numbers():
    graph = helper.make_graph(
        [helper.make_node("Identity", ["X"], ["Y"])], "g",
        [helper.make_tensor_value_info("X", TensorProto.COMPLEX64, [2])],
        [helper.make_tensor_value_info("Y", TensorProto.COMPLEX64, [2])])
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17)]).SerializeToString()


LOADS = {
    "no file": (file(None, b""), [
        "Unavailable: unable to find '",
        "/bad/1/model.xml' for model 'bad'; it may be "]),
    "another name": (
        add('default_model_filename: "other.xml"\n'), ["/bad/1/other.xml"]),
    "a name that leads out": (
        add('default_model_filename: "../../bad/1/model.xml"\n'),
        ["default_model_filename", "../../bad/1/model.xml"]),
    "an empty file": (file("model.xml", b""), ["/bad/1/model.xml"]),
    "a pipe": (pipe, ["/bad/1/model.onnx", "neither a file nor a directory"]),
    "no model": (file("model.xml", b"<net><layers/></net>"),
                 ["/bad/1/model.xml"]),
    "not XML": (file("model.xml", b"\0\1\2 no model" * 10),
                ["/bad/1/model.xml"]),
    "not ONNX": (file("model.onnx", b"no model" * 10),
                 ["/bad/1/model.onnx"]),
    "not TFLite": (file("model.tflite", b"no model" * 10),
                   ["/bad/1/model.tflite"]),
    "no SavedModel": (file("model.saved_model/saved_model.pb",
                           b"no model" * 10), ["/bad/1/model.saved_model"]),
    "not Paddle": (file("model.pdmodel", b"no model" * 10),
                   ["/bad/1/model.pdmodel"]),
    "half a model": (add("", cut("model.xml", 400)), ["/bad/1/model.xml"]),
    "half the weights": (add("", cut("model.bin", 1000), weighted),
                         ["/bad/1/model.xml"]),
    "an unknown operator": (file("model.onnx", own_operator()),
                            ["/bad/1/model.onnx", "Unheard"]),
    "an unknown type": (file("model.onnx", complex_numbers()),
                        ["/bad/1/model.onnx"]),
    "a model with state": (add("", None, remembering),
                           ["/bad/1/model.xml", "ReadValue"]),
    "a model with state by another name": (
        add("", renamed("model.onnx"), remembering),
        ["/bad/1/model.onnx", "ReadValue"]),
    "a model with state in other words": (
        add("", reworded('type="ReadValue"', "type = 'Read&#86;alue'"),
            remembering), ["/bad/1/model.xml", "ReadValue"]),
    "another input": (
        add("max_batch_size: 4\n" + io(LHS=None, OTHER=("input", "FP32",
                                                       [2]))),
        ["Invalid argument: unexpected inference input 'OTHER', allowed"
         " inputs are: LHS, RHS"]),
    "an input too few": (add("max_batch_size: 4\n" + io(LHS=None)),
                         ["Invalid argument: unable to load model 'bad', "
                          "configuration expects 1 inputs, model provides 2: "
                          "none is for 'LHS'"]),
    "another output": (
        add("max_batch_size: 4\n" + io(OTHER=("output", "FP32", [2]))),
        ["unexpected inference output 'OTHER', allowed outputs are: SUM,"
         " DIFFERENCE"]),
    "other dims": (
        add("max_batch_size: 4\n" + io(LHS=("input", "FP32", [3]))),
        ["model 'bad', tensor 'LHS': the model expects 2 dimensions (shape"
         " [-1,2]) but", "making complete shape [-1,3])"]),
    "other dims of an output": (
        add("max_batch_size: 4\n" + io(SUM=("output", "FP32", [2, 2]))),
        ["model 'bad', tensor 'SUM': the model expects 2 dimensions (shape"
         " [-1,2]) but", "making complete shape [-1,2,2])"]),
    "texts for numbers": (
        add("max_batch_size: 4\n" + io(LHS=("input", "BYTES", [2]))),
        ["configuration expects datatype TYPE_STRING for input 'LHS', model"
         " provides TYPE_FP32"]),
    "reshape to another rank": (
        add("max_batch_size: 4\n" + io(LHS=("input", "FP32", [2, 2]))
            + models.parameter_block({"RESHAPE_IO_LAYERS": "YES"})),
        ["RESHAPE_IO_LAYERS", 'input "LHS"', "[2,2]"]),
    "reshape to what operators reject": (
        add("max_batch_size: 0\n" + io(LHS=("input", "FP32", [1, 5]),
                                       RHS=("input", "FP32", [1, 7]),
                                       SUM=("output", "FP32", [1, 5]),
                                       DIFFERENCE=("output", "FP32", [1, 5]))
            + models.parameter_block({"RESHAPE_IO_LAYERS": "YES"})),
        ["cannot take the shapes of the configuration"]),
    "a GPU": (add("instance_group { kind: KIND_GPU count: 1 gpus: [ 0 ] }\n"),
              []),
}


# the library leaks what it has thrown, or asks for 2^63 bytes in vain
LEAKS = ["no model", "not XML", "not ONNX", "not TFLite", "no SavedModel"]


@pytest.mark.parametrize("case", LOADS)
def test_the_reason_of_a_failed_load(make_server, case):
    if SANITIZER and case in LEAKS:
        pytest.skip("the library leaks what a failed load has thrown")
    fill, words = LOADS[case]

    def both(repository):
        openvino_models.write(repository, "good", add_model())
        fill(repository)

    server = make_server(both, http=EXPLICIT, parts=PARTS,
                         allow_alarms=["model=bad"])
    assert ask(server, "load", "good").status == 200
    answer = ask(server, "load", "bad")
    assert answer.status != 200
    reason, = {r["reason"] for r in rows(server, "bad")}
    for word in words:
        assert word in reason
    assert "\n" not in reason and "Exception from" not in reason
    assert server.infer("good", GOOD).status == 200


def test_an_instance_on_a_gpu(make_server):
    server = make_server(add("instance_group { kind: KIND_GPU count: 1"
                             " gpus: [ 0 ] }\n"), wait="live",
                         inference_env=gpu.env(), allow_alarms=["model=bad"])
    server.wait_log("unable to load model 'bad', Triton openVINO backend "
                    "supports only CPU device")


def test_a_runtime_that_is_not_there(make_server, tmp_path):
    """The backend without the library beside it."""
    directory = tmp_path / "backends/openvino"
    directory.mkdir(parents=True)
    for each in (tmp_path, tmp_path / "backends", directory):
        each.chmod(0o755)
    shutil.copy(BUILD / "backends/openvino/libtriton_openvino.so", directory)
    reason = missing(make_server, directory.parent)
    assert "libopenvino_c.so" in reason
    assert "install the package openvino==" in reason


def test_a_build_without_the_runtime(make_server, tmp_path):
    """The directory alone, where cmake finds no OpenVINO."""
    log = subprocess.run(
        ["cmake", "-G", "Ninja", "-S", str(ROOT / "backends/openvino"),
         "-B", str(tmp_path / "b"), "-DOPENVINO_INCLUDE=NO-NOTFOUND",
         "-DOPENVINO_LIBRARY=NO-NOTFOUND", "-DCMAKE_FIND_ROOT_PATH=/nowhere",
         "-DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY",
         "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY"],
        capture_output=True, text=True, check=True)
    assert "backend openvino is left out" in log.stderr
    subprocess.run(["ninja", "-C", str(tmp_path / "b")],
                   stdout=subprocess.DEVNULL, check=True)
    tmp_path.chmod(0o755)
    reason = missing(make_server, tmp_path / "b/backends")
    assert "install the package openvino" in reason


def missing(make_server, backends):
    server = make_server(lambda r: openvino_models.write(
        r, "add", add_model()), http=EXPLICIT, parts=PARTS,
        backends=backends, allow_alarms=["model=add"])
    assert ask(server, "load", "add").status != 200
    reason, = {r["reason"] for r in rows(server, "add")}
    return reason


def test_requests_that_do_not_fit(make_server):
    def fill(repository):
        openvino_models.write(repository, "add", add_model())
        x = parameter("X", "FP32", [-1, -1])
        y = parameter("Y", "FP32", [-1, -1])
        openvino_models.write(
            repository, "open", openvino_models.model(
                [x, y], {"Z": op.add(x, y, "NONE")}),
            extra="max_batch_size: 0\n"
            + models.io_block("input", [("X", "FP32", [-1, -1]),
                                        ("Y", "FP32", [-1, -1])])
            + models.io_block("output", [("Z", "FP32", [-1, -1])]))

    server = make_server(fill)
    wide = [tensor("LHS", "FP32", [1, 3], [1, 2, 3]), GOOD["inputs"][1]]
    assert server.infer("add", {"inputs": wide}).status == 400
    rows_differ = [tensor("LHS", "FP32", [2, 2], [1, 2, 3, 4]),
                   GOOD["inputs"][1]]
    assert server.infer("add", {"inputs": rows_differ}).status == 400
    answer = server.infer("open", {"inputs": [
        tensor("X", "FP32", [2, 3], [0] * 6),
        tensor("Y", "FP32", [4, 3], [0] * 12)]})
    assert answer.status == 500 and b"execution failed" in answer.body
    # the next one is answered
    answer = server.infer("open", {"inputs": [
        tensor("X", "FP32", [1, 3], [1, 2, 3]),
        tensor("Y", "FP32", [1, 3], [1, 1, 1])]})
    assert answer.json()["outputs"][0]["data"] == [2, 3, 4]
    assert server.infer("add", GOOD).status == 200


def test_a_model_that_breaks_its_word_on_rows(make_server):
    """The first dimension depends on the data, so it is not the batch."""
    server = make_server(lambda r: openvino_models.write(
        r, "nonzero", openvino_models.nonzero_model(),
        extra="max_batch_size: 4\n"))

    def infer(*values):
        return server.infer("nonzero", {"inputs": [tensor(
            "X", "FP32", [len(values) // 2, 2], values)]})

    assert infer(0, 5).json()["outputs"][0]["data"] == [0, 1]
    for values in ((1, 1), (0, 0), (1, 1, 1, 0)):
        answer = infer(*values)
        assert answer.status == 500, answer
        assert b"its first dimension is" in answer.body
    assert infer(5, 0).json()["outputs"][0]["data"] == [0, 0]
