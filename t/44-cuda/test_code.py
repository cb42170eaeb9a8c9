"""What code reaches: memory by shapes that do not fit each other, the driver,
the loader."""

import shutil

import pytest

from lib import cuda
from lib.wire import tensor


def add(server, a, b, model="vector_add"):
    return server.infer(model, {"inputs": [
        tensor("a", "FP32", [1, len(a)], a),
        tensor("b", "FP32", [1, len(b)], b)]})


@pytest.mark.parametrize("a,b", [(3, 2), (2, 3), (1000, 0)])
def test_inputs_that_do_not_fit_each_other(make_server, tmp_path, a, b):
    server = make_server(
        lambda r: shutil.copytree(cuda.EXAMPLES / "vector_add",
                                  r / "vector_add"), **cuda.options(tmp_path))
    answer = add(server, [1] * a, [1] * b)
    assert answer.status == 400, answer
    assert f'"a[0] == b[0]" (require_1): {a} is not {b}' in answer.error
    assert add(server, [1, 2], [3, 4]).json()["outputs"][0]["data"] == [4, 6]
