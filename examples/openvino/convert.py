"""Converts examples/models/digits to OpenVINO's own format, the model in
models/digits here, and compares the answers of both files.

    pip install openvino==2026.4.1 onnxruntime
    python3 examples/openvino/convert.py
"""

import json
import pathlib

import numpy as np
import onnxruntime
import openvino

HERE = pathlib.Path(__file__).parent
SOURCE = HERE.parent / "models/digits/1/model.onnx"
TARGET = HERE / "models/digits/1/model.xml"


def main():
    model = openvino.Core().read_model(SOURCE)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    openvino.save_model(model, TARGET, compress_to_fp16=False)

    # the digits that the model has not seen while it was trained
    digits = json.loads((HERE.parent / "digits/digits.json").read_text())
    images = np.array([d["image"] for d in digits], np.float32)
    expected, = onnxruntime.InferenceSession(SOURCE).run(
        None, {"image": images})
    compiled = openvino.Core().compile_model(
        TARGET, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    got = compiled(images)[0]
    print(f"largest difference: {np.abs(got - expected).max():.1e}; "
          f"{TARGET.stat().st_size} + "
          f"{TARGET.with_suffix('.bin').stat().st_size} bytes")


if __name__ == "__main__":
    main()
