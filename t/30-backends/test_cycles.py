"""Loads and unloads of one model: INF_CYCLES of them (30)."""

import numpy
from onnx import TensorProto, helper, numpy_helper

from lib import cycles, models
from lib.server import SANITIZER
from lib.wire import tensor

SIDES = 2048, 1024      # of the weights: 8 MiB, which show if a load keeps them
SPARE = 4 << 20         # for small pieces, in all cycles


def heavy_model():
    weights = numpy.ones(SIDES, numpy.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["X", "W"], ["Y"])], "g",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT,
                                       ["n", SIDES[0]])],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT,
                                       ["n", SIDES[1]])],
        [numpy_helper.from_array(weights, "W")])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8).SerializeToString()


def test_onnxruntime_gives_memory_back(make_server):
    server = make_server(
        lambda r: models.write_model(
            r, "heavy", 'backend: "onnxruntime"\n', (1,),
            {1: {"model.onnx": heavy_model()}}),
        http=cycles.EXPLICIT, parts="all repository", wait="live",
        inference_env=cycles.ENV)

    def infer():
        answer = server.infer("heavy", {"inputs": [
            tensor("X", "FP32", [1, SIDES[0]], [1] * SIDES[0])],
            "outputs": [{"name": "Y", "parameters": {"classification": 1}}]})
        assert answer.status == 200, answer
        assert float(answer.json()["outputs"][0]["data"][0].split(":")[0]) \
            == SIDES[0]

    early, late = cycles.run(server, "heavy", infer)
    print(f"held after a third: {early >> 10} kB, in the end: {late >> 10} kB")
    # a sanitizer keeps what is freed
    assert SANITIZER or late - early < SPARE, (early, late)
