"""Ragged inputs, batch_input and batch_output, with ONNX models made here."""

import concurrent.futures

import onnx
import pytest
from onnx import TensorProto, helper

from lib import models
from lib.server import SLOW
from lib.wire import tensor

TYPES = {"FP32": TensorProto.FLOAT, "INT32": TensorProto.INT32}


def ragged_model(datatype, rank):
    """SEEN = ROW * MADE, so that each request sees the whole batch's tensor;
    TWICE = 2 X."""
    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, TYPES[kind], shape)

    two = helper.make_tensor("TWO", TensorProto.FLOAT, [], [2.0])
    graph = helper.make_graph(
        [helper.make_node("Cast", ["MADE"], ["F"], to=TensorProto.FLOAT),
         helper.make_node("Mul", ["ROW", "F"], ["SEEN"]),
         helper.make_node("Mul", ["X", "TWO"], ["TWICE"])], "g",
        [value("ROW", "FP32", ["b", 1]), value("X", "FP32", ["n"]),
         value("MADE", datatype, ["k", "d"][:rank])],
        [value("SEEN", "FP32", ["b", None]),
         value("TWICE", "FP32", ["n"])], [two])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def config(kind, datatype):
    return f"""
name: "m" backend: "onnxruntime" max_batch_size: 8
input [ {{ name: "ROW" data_type: TYPE_FP32 dims: 1 }},
        {{ name: "X" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }} ]
output [ {{ name: "SEEN" data_type: TYPE_FP32 dims: -1 }},
         {{ name: "TWICE" data_type: TYPE_FP32 dims: -1 }} ]
batch_input {{ kind: {kind} target_name: "MADE" data_type: TYPE_{datatype}
               source_input: "X" }}
batch_output {{ target_name: "TWICE" kind: BATCH_SCATTER_WITH_INPUT_SHAPE
                source_input: "X" }}
instance_group {{ count: 1 kind: KIND_CPU }}
dynamic_batching {{ }}
"""


def start(make_server, kind, hold, datatype="INT32"):
    rank = 2 if kind == "BATCH_ITEM_SHAPE" else 1
    return make_server(
        lambda r: models.write_model(
            r, "m", config(kind, datatype),
            files={1: {"model.onnx": ragged_model(datatype, rank)}}),
        inference_env=[f"TRITONSERVER_DELAY_SCHEDULER={hold}"])


def ask_one_after_the_other(server, shapes):
    """[(SEEN, TWICE, what TWICE should be)], in the order of shapes."""
    def ask(i):
        rows, width = shapes[i]
        x = [i * 100 + k for k in range(rows * width)]
        answer = server.infer("m", {"inputs": [
            tensor("ROW", "FP32", [rows, 1], [1] * rows),
            tensor("X", "FP32", [rows, width], x)]})
        assert answer.status == 200, answer
        out = {o["name"]: o for o in answer.json()["outputs"]}
        assert out["SEEN"]["shape"][0] == rows
        assert out["TWICE"]["shape"] == [rows, width]
        assert out["TWICE"]["data"] == [2 * v for v in x]
        width = out["SEEN"]["shape"][1]
        return [out["SEEN"]["data"][k * width:][:width] for k in range(rows)]

    with concurrent.futures.ThreadPoolExecutor(len(shapes)) as pool:
        return [f.result(30 * SLOW) for f in
                [pool.submit(ask, i) for i in range(len(shapes))]]


def sums(values):
    return [sum(values[:k + 1]) for k in range(len(values))]


SIZES = [2, 4, 1, 3]

# from the counts of a batch, in its order, to what every row sees
SEEN = {
    "BATCH_ELEMENT_COUNT": lambda c: c,
    "BATCH_ACCUMULATED_ELEMENT_COUNT": sums,
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO": lambda c: [0] + sums(c),
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE": lambda c: [0] * max(c),
    "BATCH_ITEM_SHAPE_FLATTEN": lambda c: c,
}


@pytest.mark.parametrize("datatype", ["INT32", "FP32"])
@pytest.mark.parametrize("kind", SEEN)
def test_kinds(make_server, kind, datatype):
    """scheduling.md 3.17: sizes 2, 4, 1, 3, in
    the order in which they came"""
    server = start(make_server, kind, 4, datatype)
    rows = ask_one_after_the_other(server, [(1, n) for n in SIZES])
    seen = rows[0][0]
    assert all(r == [seen] for r in rows)       # one batch
    if kind.endswith("WITH_ZERO"):
        counts = [b - a for a, b in zip(seen, seen[1:])]
    elif kind == "BATCH_ACCUMULATED_ELEMENT_COUNT":
        counts = [b - a for a, b in zip([0] + seen, seen)]
    else:
        counts = SIZES if kind.endswith("AS_SHAPE") else seen
    assert sorted(counts) == sorted(SIZES)
    assert seen == SEEN[kind](counts)


def test_item_shape_has_a_row_for_every_row(make_server):
    server = start(make_server, "BATCH_ITEM_SHAPE", 2)
    assert ask_one_after_the_other(server, [(2, 3), (1, 5)]) \
        == [[[3], [3]], [[5]]]


def test_counts_include_the_batch_dimension(make_server):
    server = start(make_server, "BATCH_ELEMENT_COUNT", 2)
    rows = ask_one_after_the_other(server, [(2, 3), (1, 5)])
    assert sorted(rows[1][0]) == [5, 6]
    assert rows[0] == rows[1] * 2


def test_one_request_alone_is_a_batch_too(make_server):
    server = start(make_server, "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
                   0)
    assert ask_one_after_the_other(server, [(1, 7)]) == [[[0, 7]]]


def test_of_two_targets_the_first_alone_is_meant(make_server):
    text = config("BATCH_ELEMENT_COUNT", "INT32").replace(
        'target_name: "TWICE"', 'target_name: [ "TWICE", "SEEN" ]')
    server = make_server(lambda r: models.write_model(
        r, "m", text, files={1: {"model.onnx": ragged_model("INT32", 1)}}))
    assert ask_one_after_the_other(server, [(1, 7)]) == [[[7]]]


@pytest.mark.parametrize("old,new,reason", [
    ("TYPE_INT32\n", "TYPE_FP32\n",
     'batch input "MADE" is configured as TYPE_FP32'),
    ('target_name: "MADE"', 'target_name: "OTHER"', 'batch input "OTHER"'),
    ("BATCH_ELEMENT_COUNT", "BATCH_ITEM_SHAPE",
     'batch input "MADE" has 2 dimensions'),
    ('{ name: "ROW" data_type: TYPE_FP32 dims: 1 }',
     '{ name: "ROW" data_type: TYPE_FP32 dims: 1 allow_ragged_batch: true }',
     'input "ROW" has allow_ragged_batch')])
def test_what_does_not_fit_the_model(make_server, old, new, reason):
    text = config("BATCH_ELEMENT_COUNT", "INT32")
    assert old in text
    server = make_server(
        lambda r: models.write_model(
            r, "m", text.replace(old, new),
            files={1: {"model.onnx": ragged_model("INT32", 1)}}), wait="live")
    server.wait_log(reason)
