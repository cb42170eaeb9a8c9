"""States of sequences that the core keeps for onnxruntime: the example of a
real time series, and small models."""

import concurrent.futures
import csv
import re
import shutil
import subprocess
import sys

import numpy
import onnxruntime
import pytest
from onnx import TensorProto, helper

from lib import models
from lib.server import ROOT
from lib.wire import tensor

EXAMPLE = ROOT / "examples/models/sunspots"
ORDER = 9
LONG = "max_sequence_idle_microseconds: 600000000\n"
START = ('control_input [ { name: "START" control [ {'
         ' kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ]\n')


def numbers():
    with (ROOT / "examples/sunspots/sunspots.csv").open() as file:
        return [(int(row["year"]), float(row["number"]))
                for row in csv.DictReader(file)]


def put_example(repository):
    shutil.copytree(EXAMPLE, repository / "sunspots")


def step(server, model, id, name, datatype, value, *, start=False, end=False,
         shape=(1, 1), outputs=None):
    body = {"parameters": {"sequence_id": id, "sequence_start": start,
                           "sequence_end": end},
            "inputs": [tensor(name, datatype, list(shape), value)]}
    if outputs is not None:
        body["outputs"] = [{"name": o} for o in outputs]
    return server.infer(model, body)


def data(answer, index=0):
    assert answer.status == 200, answer
    return answer.json()["outputs"][index]["data"]


def library(series):
    session = onnxruntime.InferenceSession(
        EXAMPLE / "1/model.onnx", providers=["CPUExecutionProvider"])
    past = numpy.full((1, ORDER), numpy.nan, numpy.float32)
    for i, number in enumerate(series):
        forecast, past = session.run(["forecast", "NEXT"], {
            "number": numpy.float32([[number]]),
            "START": numpy.float32([i == 0]), "PAST": past})
        yield float(forecast[0, 0])


def test_forecasts_of_sequences_side_by_side(make_server):
    """Each of twelve sequences begins in another year; slots are eight."""
    server = make_server(put_example, parts="all")
    series = [n for _, n in numbers()]

    def run(id):
        mine = series[id * 10:id * 10 + 60]
        got = [data(step(server, "sunspots", id, "number", "FP32", [n],
                         start=i == 0, end=i == len(mine) - 1))[0]
               for i, n in enumerate(mine)]
        return got, list(library(mine))

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for got, expected in pool.map(run, range(1, 13)):
            assert got == pytest.approx(expected, rel=1e-5, abs=1e-4)
    row = server.get("/v2/models/sunspots/stats").json()["model_stats"][0]
    assert int(row["inference_count"]) == 12 * 60
    assert any(int(b["batch_size"]) > 1 for b in row["batch_stats"])


def test_example_of_sunspots(make_server):
    """By the command of its README."""
    server = make_server(put_example)
    done = subprocess.run(
        [sys.executable, ROOT / "examples/sunspots/ask.py", "--url",
         server.url], capture_output=True, text=True, check=True, timeout=60)
    assert len(re.findall(r"^\d{4}  ", done.stdout, re.M)) == 30
    error, = re.findall(r"mean error of 29 years: ([\d.]+)", done.stdout)
    # the first nine of the sequence are long over
    assert float(error) == pytest.approx(11.5, abs=0.05)
    config = server.get("/v2/models/sunspots/config").json()
    assert [i["name"] for i in config["input"]] == ["number"]
    assert [o["name"] for o in config["output"]] == ["forecast"]


WARMUP = """model_warmup { name: "w" batch_size: 2
    inputs { key: "number" value { data_type: TYPE_FP32 dims: 1
        zero_data: true } }
    inputs { key: "START" value { data_type: TYPE_FP32 dims: 1
        zero_data: true } }
    inputs { key: "PAST" value { data_type: TYPE_FP32 dims: 9
        random_data: true } } }
"""


def test_warm_up_leaves_no_state(make_server):
    def fill(repository):
        put_example(repository)
        path = repository / "sunspots/config.pbtxt"
        path.write_text(path.read_text() + WARMUP)

    server = make_server(fill, parts="all")
    row = server.get("/v2/models/sunspots/stats").json()["model_stats"][0]
    assert int(row["inference_count"]) == 2
    first, = library([90])
    assert data(step(server, "sunspots", 1, "number", "FP32", [90],
                     start=True)) == pytest.approx([first], rel=1e-5)


def keep_model(datatype, rows=("n",), size=("m",)):
    """OUT = NEXT = PAST with IN behind it."""
    def value(name, shape):
        return helper.make_tensor_value_info(name, datatype, shape)

    graph = helper.make_graph(
        [helper.make_node("Concat", ["PAST", "IN"], ["NEXT"],
                          axis=len(rows)),
         helper.make_node("Identity", ["NEXT"], ["OUT"])], "g",
        [value("IN", [*rows, 1]), value("PAST", [*rows, *size])],
        [value("NEXT", [*rows, "k"]), value("OUT", [*rows, "k"])])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8).SerializeToString()


def put_keep(repository, datatype, *, rows=4, more="", output=()):
    kind = {"BYTES": TensorProto.STRING, "FP32": TensorProto.FLOAT}[datatype]
    type_ = models.config_type(datatype)
    config = ('backend: "onnxruntime"\n' + f"max_batch_size: {rows}\n"
              + models.io_block("input", [("IN", datatype, [1])])
              + models.io_block("output", [("OUT", datatype, [-1]), *output])
              + "sequence_batching {\n" + LONG
              + '  state [ { input_name: "PAST" output_name: "NEXT"'
              f" data_type: {type_} dims: [ -1 ] {more} }} ]\n}}\n")
    return models.write_model(
        repository, "keep", config, (1,),
        {1: {"model.onnx": keep_model(kind, ("n",) if rows else ())}})


ZERO = ('initial_state: { name: "zero" data_type: TYPE_FP32 dims: [ 2 ]'
        " zero_data: true }")
FILE = ('initial_state: { name: "file" data_type: TYPE_FP32 dims: [ 2 ]'
        ' data_file: "two" }')


@pytest.mark.parametrize("more,first", [
    (ZERO, [0, 0]), (FILE, [1.5, -2]),
    (ZERO + " use_same_buffer_for_input_output: true"
     " use_growable_memory: true", [0, 0])])
def test_state_that_grows(make_server, more, first):
    def fill(repository):
        folder = put_keep(repository, "FP32", more=more)
        if "two" in more:
            (folder / "initial_state").mkdir()
            (folder / "initial_state/two").write_bytes(
                numpy.float32([1.5, -2]).tobytes())

    server = make_server(fill)
    for i in range(40):
        for id in (1, 2):
            got = data(step(server, "keep", id, "IN", "FP32", [i * id],
                            start=i == 0))
            assert got == first + [k * id for k in range(i + 1)]
    assert data(step(server, "keep", 1, "IN", "FP32", [9], start=True)) \
        == first + [9]


def test_state_without_batches(make_server):
    server = make_server(lambda r: put_keep(r, "FP32", rows=0, more=ZERO))
    for i in range(3):
        got = data(step(server, "keep", 5, "IN", "FP32", [i], shape=[1],
                        start=i == 0))
        assert got == [0, 0] + list(range(i + 1))


def test_state_of_strings_that_clients_may_see(make_server):
    server = make_server(lambda r: put_keep(
        r, "BYTES", output=[("NEXT", "BYTES", [-1])]))
    said = []
    for i, word in enumerate(["", "once", "upon a time"]):
        answer = step(server, "keep", "tale", "IN", "BYTES", [word],
                      start=i == 0, outputs=["NEXT", "OUT"])
        said.append(word)
        # an open dim is 1 at first, and a string without initial_state empty
        assert data(answer, 0) == data(answer, 1) == ["", *said]
    answer = step(server, "keep", "tale", "IN", "BYTES", ["x"], outputs=[])
    assert answer.status == 200, answer


def test_request_that_fails_leaves_the_state_as_it_was(make_server):
    server = make_server(lambda r: put_keep(r, "FP32", more=ZERO))
    assert data(step(server, "keep", 1, "IN", "FP32", [1], start=True)) \
        == [0, 0, 1]
    answer = step(server, "keep", 1, "IN", "FP32", [1, 2], shape=[1, 2])
    assert answer.status == 400, answer
    assert data(step(server, "keep", 1, "IN", "FP32", [2])) == [0, 0, 1, 2]


@pytest.mark.parametrize("shape", [["n"], ["n", 1]])
def test_controls_of_one_dimension_or_two(make_server, shape):
    """START as the model has it: [N] or [N,1]."""
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["START", "SHAPE"], ["S"]),
         helper.make_node("Add", ["IN", "S"], ["OUT"])], "g",
        [helper.make_tensor_value_info("IN", TensorProto.FLOAT, ["n", 1]),
         helper.make_tensor_value_info("START", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("OUT", TensorProto.FLOAT, ["n", 1])],
        [helper.make_tensor("SHAPE", TensorProto.INT64, [2], [-1, 1])])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    server = make_server(lambda r: models.write_model(
        r, "add", 'backend: "onnxruntime"\nmax_batch_size: 4\n'
        "sequence_batching {\n" + LONG + START + "}\n", (1,),
        {1: {"model.onnx": model.SerializeToString()}}))
    for id in (1, 2, 3):
        assert data(step(server, "add", id, "IN", "FP32", [10],
                         start=True)) == [11]
        assert data(step(server, "add", id, "IN", "FP32", [20])) == [20]
