"""Decoupled models through our own HTTP: one answer can't carry many.

`repeat` and `square` answer from threads of their own; how they stream is
shown in 40-prebuilt through a client that can.
"""

import json

import pytest

from lib import decoupled
from lib.wire import tensor

TEXT = "HTTP end point doesn't support models with decoupled transaction " \
    "policy"


def fill(repository):
    decoupled.repeat(repository)
    decoupled.square(repository)


@pytest.fixture
def server(make_server):
    return make_server(fill)


def inputs():
    return {"inputs": [tensor("IN", "INT32", [2], [1, 2]),
                       tensor("DELAY", "UINT32", [2], [0, 0]),
                       tensor("WAIT", "UINT32", [1], [0])]}


def test_infer_is_rejected(server):
    for model, body in [("repeat", inputs()), ("square", {"inputs": [
            tensor("IN", "INT32", [1], [3])]})]:
        answer = server.infer(model, body)
        assert answer.status == 501
        assert answer.error == TEXT or answer.error == \
            f"[request id: <id_unknown>] {TEXT}"


def test_the_rejection_comes_before_the_inputs_are_looked_at(server):
    """As Triton: the model is asked first, then the tensors."""
    for body in ({"inputs": []},
                 {"inputs": [tensor("NONE", "FP32", [1], [1])]}):
        answer = server.infer("repeat", body)
        assert answer.status == 501, answer
        assert TEXT in answer.error


def test_it_is_an_ordinary_model_otherwise(server):
    assert server.get("/v2/models/repeat/ready").status == 200
    config = server.get("/v2/models/repeat/config").json()
    assert config["model_transaction_policy"] == {"decoupled": True}
    metadata = server.get("/v2/models/repeat").json()
    assert [t["name"] for t in metadata["inputs"]] == ["IN", "DELAY", "WAIT"]
    assert [t["name"] for t in metadata["outputs"]] == ["OUT", "IDX"]


def test_a_model_location_rejects_too(make_server):
    server = make_server(
        fill, server="        location = /ask { inference_model repeat; }")
    answer = server.post("/ask", json.dumps(inputs()).encode())
    assert answer.status == 501
    assert TEXT in answer.error
