"""Makes the model in examples/models/sunspots from the numbers of sunspots.

sunspots.csv has the yearly numbers from 1700 to 2008, as NOAA's National
Geophysical Data Center gave them out (public domain; the package statsmodels
has the same file).  The model forecasts the next year by an autoregression
over the last nine, the order that is usual for this series, on square roots,
whose spread is the same in years with many spots and with few.  The weights
are least squares over the years up to 1979.

The nine years are a state of the sequence: a client sends one year at a time,
and the server keeps the state.

    pip install numpy onnx onnxruntime
    python3 examples/sunspots/train.py
"""

import csv
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ORDER = 9
LAST_TRAINED = 1979
HERE = pathlib.Path(__file__).parent
MODEL = HERE.parent / "models" / "sunspots"


def main():
    with (HERE / "sunspots.csv").open() as file:
        rows = list(csv.DictReader(file))
    years = np.array([int(row["year"]) for row in rows])
    numbers = np.array([float(row["number"]) for row in rows], np.float32)

    weights, mean = fit(np.sqrt(numbers[years <= LAST_TRAINED]))
    path = MODEL / "1" / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(to_onnx(weights, mean), path)

    # what counts is the file, run by the library that will run it
    forecasts = run(onnxruntime.InferenceSession(path), numbers)
    later = years[1:] > LAST_TRAINED
    error = np.abs(forecasts[:-1] - numbers[1:])[later]
    same = np.abs(numbers[:-1] - numbers[1:])[later]
    print(f"{later.sum()} years that the model has not seen: mean error "
          f"{error.mean():.1f}, of \"as this year\" {same.mean():.1f}; "
          f"{path.stat().st_size} bytes")


def fit(roots):
    """Weights of the last nine years, oldest first, around the mean."""
    mean = roots.mean()
    off = roots - mean
    past = np.stack([off[i:len(off) - ORDER + i] for i in range(ORDER)], 1)
    weights, *_ = np.linalg.lstsq(past, off[ORDER:], rcond=None)
    return weights.astype(np.float32), np.float32(mean)


def to_onnx(weights, mean):
    """START is 1 in the first request of a sequence: then the years before it
    are not known, and count as the mean."""
    def constant(name, value):
        return numpy_helper.from_array(np.asarray(value), name)

    def tensor(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    nodes = [
        helper.make_node("Cast", ["START"], ["new"], to=TensorProto.BOOL),
        helper.make_node("Unsqueeze", ["new", "last"], ["new_column"]),
        helper.make_node("Where", ["new_column", "none", "PAST"], ["past"]),
        helper.make_node("Sqrt", ["number"], ["root"]),
        helper.make_node("Sub", ["root", "mean"], ["off"]),
        helper.make_node("Concat", ["past", "off"], ["ten"], axis=1),
        helper.make_node("Slice", ["ten", "last", "end", "last"], ["NEXT"]),
        helper.make_node("MatMul", ["NEXT", "weights"], ["next_off"]),
        helper.make_node("Add", ["next_off", "mean"], ["next_root"]),
        helper.make_node("Relu", ["next_root"], ["positive"]),
        helper.make_node("Mul", ["positive", "positive"], ["forecast"]),
    ]
    graph = helper.make_graph(
        nodes, "sunspots",
        [tensor("number", ["n", 1]), tensor("START", ["n"]),
         tensor("PAST", ["n", ORDER])],
        [tensor("forecast", ["n", 1]), tensor("NEXT", ["n", ORDER])],
        [constant("none", np.float32([0])),
         constant("mean", mean.reshape(1)),
         constant("weights", weights.reshape(ORDER, 1)),
         constant("last", np.int64([1])),
         constant("end", np.int64([ORDER + 1]))])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def run(session, numbers):
    """The forecast after each year, of one sequence."""
    past = np.zeros((1, ORDER), np.float32)
    forecasts = []
    for i, number in enumerate(numbers):
        forecast, past = session.run(["forecast", "NEXT"], {
            "number": number.reshape(1, 1),
            "START": np.float32([1 if i == 0 else 0]), "PAST": past})
        forecasts.append(forecast[0, 0])
    return np.array(forecasts)


if __name__ == "__main__":
    main()
