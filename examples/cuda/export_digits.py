"""Writes the weights of examples/models/digits for the kernels of digits_cuda.

The file holds float32 numbers without a head, in the order of layout.h: the
two matrices by rows, each followed by its bias.

    pip install onnx
    python3 examples/cuda/export_digits.py
"""

import pathlib

import numpy as np
import onnx
from onnx import numpy_helper

HERE = pathlib.Path(__file__).parent
MODEL = HERE.parent / "models/digits/1/model.onnx"
WEIGHTS = HERE / "models/digits_cuda/1/weights.bin"


def main():
    parts = {t.name: numpy_helper.to_array(t)
             for t in onnx.load(MODEL).graph.initializer}
    assert parts["ink"] == 16
    WEIGHTS.write_bytes(b"".join(
        np.ascontiguousarray(parts[name], "<f4").tobytes()
        for name in ("w1", "b1", "w2", "b2")))


if __name__ == "__main__":
    main()
