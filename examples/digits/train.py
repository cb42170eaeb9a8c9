"""Trains the model in examples/models/digits and writes the test digits.

The data are 1,797 handwritten digits, 8 by 8 pixels of 0 (paper) to 16 (ink),
that come inside the package scikit-learn.  A quarter of them is kept away from
training; accuracy is measured on that quarter, and digits.json holds ten of
it, one of each kind.

    pip install scikit-learn onnx onnxruntime
    python3 examples/digits/train.py
"""

import json
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

SEED = 7
HERE = pathlib.Path(__file__).parent
MODEL = HERE.parent / "models" / "digits"
WORDS = ["zero", "one", "two", "three", "four",
         "five", "six", "seven", "eight", "nine"]


def main():
    digits = load_digits()
    train, test, train_is, test_is = train_test_split(
        digits.images.astype(np.float32), digits.target, test_size=0.25,
        random_state=SEED, stratify=digits.target)

    network = MLPClassifier((64,), alpha=1e-3, max_iter=400,
                            random_state=SEED)
    network.fit(train.reshape(len(train), 64) / 16, train_is)

    path = MODEL / "1" / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(to_onnx(network), path)
    (MODEL / "labels.txt").write_text("\n".join(WORDS) + "\n")

    # what counts is the file, run by the library that will run it
    session = onnxruntime.InferenceSession(path)
    scores, = session.run(None, {"image": test})
    answers = scores.argmax(axis=1)
    right = int((answers == test_is).sum())
    print(f"{right} of {len(test)} unseen digits are read right "
          f"({right / len(test):.2%}); {path.stat().st_size} bytes")

    samples = [{"label": WORDS[n],
                "image": test[test_is == n][0].astype(int).tolist()}
               for n in range(10)]
    rows = ",\n".join(" " + json.dumps(s) for s in samples)
    (HERE / "digits.json").write_text(f"[\n{rows}\n]\n")


def to_onnx(network):
    """image [N,8,8] -> divide by 16 -> 64 -> relu -> 10 -> softmax."""
    (w1, w2), (b1, b2) = network.coefs_, network.intercepts_
    weights = {"w1": w1, "b1": b1, "w2": w2, "b2": b2}
    constants = [numpy_helper.from_array(v.astype(np.float32), k)
                 for k, v in weights.items()]
    constants.append(numpy_helper.from_array(np.float32(16), "ink"))

    nodes = [
        helper.make_node("Flatten", ["image"], ["flat"], axis=1),
        helper.make_node("Div", ["flat", "ink"], ["pixels"]),
        helper.make_node("Gemm", ["pixels", "w1", "b1"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "w2", "b2"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"], axis=1),
    ]
    # both first dimensions have one name: the batch
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT,
                                       ["batch", 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT,
                                       ["batch", 10])],
        constants)
    return helper.make_model(graph, ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


if __name__ == "__main__":
    main()
