"""A model that calls numpy gives what numpy gives here, for every datatype."""

import numpy
import pytest

from lib import models, parity, python_backend

ROWS = 6
# one without numpy's type is passed on; NVIDIA's crashes at it
TYPES = [t for t in models.ALL_DATATYPES
         if t != "BF16" or not python_backend.PREBUILT]

# for each datatype: BOTH is A and B one behind the other, TURNED that with its
# last two dimensions exchanged
MODEL = """\
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse(self.outputs(r)) for r in requests]
    def outputs(self, request):
        tensors = {t.name(): t for t in request.inputs()}
        outputs = []
        for kind in [n[2:] for n in tensors if n[0] == "A"]:
            a, b = tensors["A_" + kind], tensors["B_" + kind]
            if kind == "BF16":
                outputs += [pb.Tensor.from_dlpack("BOTH_BF16", a.to_dlpack()),
                            pb.Tensor.from_dlpack("TURNED_BF16", b)]
                continue
            both = np.concatenate([a.as_numpy(), b.as_numpy()], -1)
            outputs += [
                pb.Tensor("BOTH_" + kind, both),
                pb.Tensor("TURNED_" + kind, np.swapaxes(both, -1, -2))]
        return outputs
"""


def config(rows):
    return (f"max_batch_size: {4 * ROWS}\ndynamic_batching {{ "
            "max_queue_delay_microseconds: 2000 }\n" if rows else "") \
        + models.io_block("input", [(f"{name}_{t}", t, [-1, -1])
                                    for t in TYPES for name in "AB"]) \
        + models.io_block("output", [(f"{name}_{t}", t, [-1, -1])
                                     for t in TYPES
                                     for name in ("BOTH", "TURNED")])


def predict(arrays):
    found = {}
    for t in TYPES:
        a, b = arrays[f"A_{t}"], arrays[f"B_{t}"]
        both = numpy.concatenate([a, b], -1)
        found[f"BOTH_{t}"], found[f"TURNED_{t}"] = (a, b) if t == "BF16" \
            else (both, numpy.swapaxes(both, -1, -2))
    return found


@pytest.mark.parametrize("name,rows", [("single", 0), ("batched", ROWS)])
def test_outputs_are_those_of_numpy(name, rows):
    """Of parity.COUNT requests with random inputs of every datatype."""
    with python_backend.serve(lambda r: python_backend.model(
            r, name, config(rows), MODEL), parts="all") as server:
        parity.check(server, parity.Model(
            name, {f"{tensor}_{t}": (t, ["h", width]) for t in TYPES
                   for tensor, width in (("A", "w"), ("B", 3))},
            [f"{tensor}_{t}" for t in TYPES for tensor in ("BOTH", "TURNED")],
            rows), predict, parity.COUNT)
        assert rows == 0 or parity.joined(server, name) > 0
