"""Writes the ONNX files in models/ that onnxruntime.c runs.

Only needed to change them: python3 t/backends-fake/make_models.py
(needs the packages onnx and numpy).
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).parent / "models"
OPSET = [helper.make_opsetid("", 17)]

TYPES = {
    "BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8,
    "UINT16": TensorProto.UINT16, "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8,
    "INT16": TensorProto.INT16, "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64, "FP16": TensorProto.FLOAT16,
    "FP32": TensorProto.FLOAT, "FP64": TensorProto.DOUBLE,
    "BYTES": TensorProto.STRING, "BF16": TensorProto.BFLOAT16,
}


def tensor(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(name, nodes, inputs, outputs, initializers=(), filename="model.onnx"):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=OPSET, ir_version=8)
    path = ROOT / name / "1" / filename
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)


def main():
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64

    # two inputs, two outputs, an open batch dimension with a name
    save("add", [helper.make_node("Add", ["A", "B"], ["SUM"]),
                 helper.make_node("Sub", ["A", "B"], ["DIFF"])],
         [tensor("A", f32, ["N", 4]), tensor("B", f32, ["N", 4])],
         [tensor("SUM", f32, ["N", 4]), tensor("DIFF", f32, ["N", 4])])

    # the same in a directory of that name
    save("folder", [helper.make_node("Neg", ["A"], ["Y"])],
         [tensor("A", f32, [2])], [tensor("Y", f32, [2])],
         filename="model.onnx/model.onnx")

    # every datatype through one model
    save("types", [helper.make_node("Identity", ["IN_" + t], ["OUT_" + t])
                   for t in TYPES],
         [tensor("IN_" + t, TYPES[t], ["N", 3]) for t in TYPES],
         [tensor("OUT_" + t, TYPES[t], ["N", 3]) for t in TYPES])

    # strings alone, the shape of the output not known beforehand
    save("strings", [helper.make_node("Identity", ["S"], ["T"])],
         [tensor("S", TensorProto.STRING, [None, 2])],
         [tensor("T", TensorProto.STRING, [None, 2])])

    # an output whose size depends on the data
    save("nonzero", [helper.make_node("NonZero", ["X"], ["WHERE"])],
         [tensor("X", f32, [None])], [tensor("WHERE", i64, [1, None])])

    # an output that is declared as [2,4] and comes out as S says
    save("liar", [helper.make_node("Reshape", ["X", "S"], ["Y"])],
         [tensor("X", f32, [2, 4]), tensor("S", i64, [2])],
         [tensor("Y", f32, [2, 4])])

    # tensors without dimensions
    save("scalar", [helper.make_node("Neg", ["X"], ["Y"])],
         [tensor("X", f32, [])], [tensor("Y", f32, [])])

    # nothing but the batch dimension
    save("rows", [helper.make_node("Neg", ["X"], ["Y"])],
         [tensor("X", f32, ["N"])], [tensor("Y", f32, ["N"])])

    # an output that loses the batch dimension
    save("collapse", [helper.make_node("ReduceSum", ["X"], ["Y"],
                                       keepdims=0)],
         [tensor("X", f32, ["N", 2])], [tensor("Y", f32, [])])
    # rows of zeros are dropped
    save("shrink", [helper.make_node("ReduceMax", ["X"], ["MAX"], axes=[1],
                                     keepdims=0),
                    helper.make_node("Cast", ["MAX"], ["KEEP"],
                                     to=TensorProto.BOOL),
                    helper.make_node("Compress", ["X", "KEEP"], ["Y"],
                                     axis=0)],
         [tensor("X", f32, ["N", 2])], [tensor("Y", f32, ["M", 2])])

    # an input with a default
    bias = helper.make_tensor("BIAS", f32, [2], np.float32([10, 20]))
    save("bias", [helper.make_node("Add", ["X", "BIAS"], ["Y"])],
         [tensor("X", f32, ["N", 2]), tensor("BIAS", f32, [2])],
         [tensor("Y", f32, ["N", 2])], [bias])

    # one string without dimensions
    save("word", [helper.make_node("Identity", ["X"], ["Y"])],
         [tensor("X", TYPES["BYTES"], [])], [tensor("Y", TYPES["BYTES"], [])])

    # one row of bias for each, where there is none in the request
    row = helper.make_tensor("BIAS", f32, [1, 2], np.float32([[10, 20]]))
    save("bias_rows", [helper.make_node("Add", ["X", "BIAS"], ["Y"])],
         [tensor("X", f32, ["N", 2]), tensor("BIAS", f32, ["M", 2])],
         [tensor("Y", f32, ["N", 2])], [row])

    # an input that is no tensor
    save("sequence", [helper.make_node("SequenceLength", ["X"], ["Y"])],
         [helper.make_tensor_sequence_value_info("X", f32, None)],
         [tensor("Y", i64, [])])

    # an output that is no tensor, beside one that is
    save("two", [helper.make_node("SequenceConstruct", ["X"], ["LIST"]),
                 helper.make_node("Neg", ["X"], ["Y"])],
         [tensor("X", f32, [1])],
         [helper.make_tensor_sequence_value_info("LIST", f32, None),
          tensor("Y", f32, [1])])

    # a sum for each sequence: what starts anew forgets the state.  Then an
    # element of Z that is not there fails the run.
    save("running",
         [helper.make_node("Sub", ["ONE", "START"], ["KEEP"]),
          helper.make_node("Unsqueeze", ["KEEP", "AXIS"], ["COLUMN"]),
          helper.make_node("Mul", ["S", "COLUMN"], ["OLD"]),
          helper.make_node("Add", ["X", "OLD"], ["SUM"]),
          helper.make_node("Identity", ["SUM"], ["Y"]),
          helper.make_node("Gather", ["TABLE", "I"], ["Z"])],
         [tensor("X", f32, ["N", 2]), tensor("S", f32, ["N", 2]),
          tensor("START", f32, ["N"]), tensor("I", i64, ["N", 1])],
         [tensor("Y", f32, ["N", 2]), tensor("SUM", f32, ["N", 2]),
          tensor("Z", f32, ["N", 1])],
         [helper.make_tensor("ONE", f32, [1], [1.0]),
          helper.make_tensor("AXIS", i64, [1], [1]),
          helper.make_tensor("TABLE", f32, [3], [1.0, 2.0, 3.0])])

    # a state that grows: what came so far, strings
    save("history",
         [helper.make_node("Concat", ["H", "X"], ["HH"], axis=1)],
         [tensor("X", TYPES["BYTES"], ["N", 1]),
          tensor("H", TYPES["BYTES"], ["N", None])],
         [tensor("HH", TYPES["BYTES"], ["N", None])])

    # fails while it runs: an index out of range
    save("gather", [helper.make_node("Gather", ["X", "I"], ["Y"])],
         [tensor("X", f32, [3]), tensor("I", i64, [1])],
         [tensor("Y", f32, [1])])


if __name__ == "__main__":
    main()
