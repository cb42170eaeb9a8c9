"""The backend and the library in Python give the same outputs."""

import functools

import pytest

from lib import models, openvino_models, parity
from lib.openvino_models import Direct, op, parameter

ROWS = 6
SUMS = ["FP16", "FP32", "FP64", "INT32", "INT64"]


def moves(datatype, batched):
    """BOTH is A and B one behind the other, TURNED that with its last two
    dimensions exchanged."""
    first = [-1] if batched else []
    rank = len(first) + 2
    a = parameter("A", datatype, [*first, -1, -1])
    b = parameter("B", datatype, [*first, -1, 3])
    both = op.concat([a, b], rank - 1)
    turn = list(range(rank - 2)) + [rank - 1, rank - 2]
    return openvino_models.model([a, b], {
        "BOTH": both, "TURNED": op.transpose(both, op.constant(turn))})


def sums(datatype, batched):
    """Fixed dims, so that outputs are written in place: SUM = A + B, TWICE =
    A beside A."""
    shape = [-1 if batched else 2, 4]
    a = parameter("A", datatype, shape)
    b = parameter("B", datatype, shape)
    return openvino_models.model([a, b], {"SUM": op.add(a, b),
                                          "TWICE": op.concat([a, a], 1)})


def texts(batched):
    x = [-1, -1] if batched else [-1]
    return openvino_models.copy_model("BYTES", x)


def all_models():
    for batched in (False, True):
        suffix = "batched" if batched else "single"
        rows = ROWS if batched else 0
        for datatype in models.ALL_DATATYPES:
            if datatype != "BYTES":
                yield moves(datatype, batched), parity.Model(
                    f"moves_{datatype.lower()}_{suffix}",
                    {"A": (datatype, ["h", "w"]), "B": (datatype, ["h", 3])},
                    ["BOTH", "TURNED"], rows)
        for datatype in SUMS:
            dims = [4] if batched else [2, 4]
            yield sums(datatype, batched), parity.Model(
                f"sums_{datatype.lower()}_{suffix}",
                {"A": (datatype, dims), "B": (datatype, dims)},
                ["SUM", "TWICE"], rows, whole=True)
        yield texts(batched), parity.Model(
            f"texts_{suffix}", {"X": ("BYTES", ["w"])}, ["Y"], rows)


def config(model):
    if model.rows:
        return f"max_batch_size: {4 * ROWS}\n" \
            "dynamic_batching { max_queue_delay_microseconds: 2000 }\n"
    # without inputs in it the model would be completed as a batching one
    dims = {"BOTH": [-1, -1], "TURNED": [-1, -1], "SUM": [2, 4],
            "TWICE": [2, 8], "Y": [-1]}
    datatype = next(iter(model.inputs.values()))[0]
    return "max_batch_size: 0\n" + models.io_block("input", [
        (name, datatype, [-1 if isinstance(d, str) else d for d in dims])
        for name, (datatype, dims) in model.inputs.items()]) \
        + models.io_block("output", [(name, datatype, dims[name])
                                     for name in model.outputs]) \
        + "instance_group { count: 2 kind: KIND_CPU }\n"


def predict(direct, arrays):
    return direct(**arrays)


@pytest.fixture(scope="module")
def pairs():
    return list(all_models())


def test_outputs_are_those_of_the_library(make_server, pairs):
    """Of parity.COUNT random inputs of each of 38 models."""
    def fill(repository):
        for data, model in pairs:
            openvino_models.write(repository, model.name, data,
                                  extra=config(model))

    server = make_server(fill, parts="all")
    company = 0
    for seed, (data, model) in enumerate(pairs):
        parity.check(server, model, functools.partial(predict, Direct(data)),
                     parity.COUNT, seed)
        if model.rows:
            company += parity.joined(server, model.name)
    assert company > 0, "no two requests ran together"
