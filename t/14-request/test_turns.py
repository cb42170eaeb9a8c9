"""A worker's event loop works on one request in slices and counts them."""

import json
import re

import pytest

from lib import models
from lib.server import Server
from lib.wire import tensor

MIB = 1 << 20
SLICE = MIB             # the most bytes that one turn may work on
PARTS = "health metadata config infer statistics repository metrics"
MANY = 300


def fill(repository):
    models.standard_repository(repository)
    note = "a parameter of some length, of which there are very many; " * 5
    models.identity(repository, "wordy", [("IN", "INT32", [-1])],
                    parameters={f"p{i}": note + str(i) for i in range(10000)})
    for i in range(MANY):
        models.identity(repository, f"one_of_many_{i:03}",
                        [("IN", "INT32", [-1])])


@pytest.fixture(scope="module")
def server():
    with Server(fill, parts=PARTS) as s:
        yield s


def metric(server, name):
    text = server.get("/metrics").body.decode()
    return float(re.search(rf"^nginx_inference_{name} (.*)$", text, re.M)[1])


def slices_of(server, ask):
    before = metric(server, "slices_total")
    answer = ask()
    assert answer.status == 200, answer
    return answer, metric(server, "slices_total") - before


def test_json_is_read_and_written_in_slices(server):
    values = list(range(1_200_000))
    body = json.dumps({"inputs": [
        tensor("IN", "INT32", [len(values)], values)]}).encode()
    answer, slices = slices_of(
        server, lambda: server.post("/v2/models/id_int32/infer", body))
    assert answer.json()["outputs"][0]["data"] == values
    # it is read once, and the numbers in it are read and written once more
    assert slices >= 2 * len(body) // SLICE


def test_a_small_request_needs_no_second_turn(server):
    body = json.dumps({"inputs": [tensor("IN", "INT32", [1], [1])]}).encode()
    _, slices = slices_of(
        server, lambda: server.post("/v2/models/id_int32/infer", body))
    assert slices == 0


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_a_large_answer_of_a_call_is_whole(server, encoding):
    headers = {"Accept-Encoding": encoding} if encoding else {}
    answer, slices = slices_of(server, lambda: server.get(
        "/v2/models/wordy/config", headers=headers))
    assert len(answer.body) > 3 * MIB
    parameters = answer.json()["parameters"]
    assert len(parameters) == 10000
    assert parameters["p9999"]["string_value"].endswith("; 9999")
    # the worker passes on what the core has made
    assert slices == 0


def test_answers_about_many_models(server):
    answer, slices = slices_of(server, lambda: server.get("/v2/models/stats"))
    names = {m["name"] for m in answer.json()["model_stats"]}
    assert {f"one_of_many_{i:03}" for i in range(MANY)} <= names
    answer, more = slices_of(
        server, lambda: server.post("/v2/repository/index", b""))
    names = {m["name"] for m in answer.json()}
    assert {f"one_of_many_{i:03}" for i in range(MANY)} <= names
    assert slices == more == 0


def test_the_longest_turn_is_told(server):
    longest = metric(server, "longest_turn_us")
    assert longest > 0
    assert metric(server, "longest_turn_us") >= longest
