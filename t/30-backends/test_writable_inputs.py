"""A backend that writes into its inputs: INFERENCE_WRITABLE_INPUTS."""

import json

import pytest

from lib import backends, models, process
from lib.server import SLOW, Server
from lib.wire import tensor

IN = ("INPUT0", "INT32", [-1])
OUT = ("OUTPUT0", "INT32", [-1])
TWICE = """platform: "ensemble"
input [ { name: "X" data_type: TYPE_INT32 dims: -1 } ]
output [
  { name: "INVERTED" data_type: TYPE_INT32 dims: -1 },
  { name: "COPIED" data_type: TYPE_INT32 dims: -1 }
]
ensemble_scheduling {
  step { model_name: "same" model_version: -1
    input_map { key: "INPUT0" value: "X" }
    output_map { key: "OUTPUT0" value: "shared" } }
  step { model_name: "inverting" model_version: -1
    input_map { key: "INPUT0" value: "shared" }
    output_map { key: "OUTPUT0" value: "INVERTED" } }
  step { model_name: "same" model_version: -1
    input_map { key: "INPUT0" value: "shared" }
    output_map { key: "OUTPUT0" value: "COPIED" } }
}
"""


def inverting(repository, name, value):
    models.write_model(repository, name, models.identity_config(
        name, [IN], [OUT], backend="inverting",
        parameters={"INFERENCE_WRITABLE_INPUTS": value}))


def repository(folder):
    inverting(folder, "inverting", "true")
    models.write_model(folder, "same", models.identity_config(
        "same", [IN], [OUT], parameters={"execute_delay_ms": "20"}))
    models.write_model(folder, "twice", TWICE)


@pytest.fixture(scope="module")
def server():
    folder = backends.build("inverting")
    backends.copy_identity(folder / "identity")
    with Server(repository, backends=folder) as s:
        yield s


def values(answer):
    assert answer.status == 200, answer
    return {o["name"]: o["data"] for o in answer.json()["outputs"]}


@pytest.mark.parametrize("count", [1, 16, 100_000])
def test_its_model_writes_where_nobody_else_reads(server, count):
    data = list(range(count))
    for _ in range(3):
        got = values(server.infer("inverting", {
            "inputs": [tensor("INPUT0", "INT32", [count], data)]}))
        assert got == {"OUTPUT0": [~n for n in data]}


def test_a_tensor_that_steps_share_stays_as_it_was(server):
    for n in range(20):
        got = values(server.infer("twice", {
            "inputs": [tensor("X", "INT32", [2], [n, -n])]}))
        assert got == {"INVERTED": [~n, ~-n], "COPIED": [n, -n]}


def test_another_value_fails_the_load(make_server):
    folder = backends.build("inverting")
    server = make_server(lambda f: inverting(f, "wrong", "yes"),
                         backends=folder, wait="live",
                         parts="health repository")
    index = process.wait_until(lambda: [
        row for row in server.post("/v2/repository/index", b"").json()
        if row.get("state") == "UNAVAILABLE"], 10 * SLOW)
    assert "'INFERENCE_WRITABLE_INPUTS' of wrong must be 'true' or 'false'" \
        in index[0]["reason"]


@pytest.mark.parametrize("sent", [{}, {"parameters": {
    "INFERENCE_WRITABLE_INPUTS": {"string_value": "false"}}}])
def test_a_load_request_takes_no_copies_away(make_server, sent):
    """The backend then wrote into the worker's memory, which ended the core:
    for all clients, and again with each request."""
    server = make_server(
        lambda f: inverting(f, "inverting", "true"),
        backends=backends.build("inverting"),
        parts="health metadata config infer repository",
        http="    inference_model_control explicit;\n"
             "    inference_load_model *;\n")
    core = server.core()
    config = server.get("/v2/models/inverting/config").json()
    del config["parameters"]
    answer = server.post(
        "/v2/repository/models/inverting/load",
        json.dumps({"parameters": {"config": json.dumps(
            {**config, **sent})}}).encode())
    got = server.infer("inverting", {
        "inputs": [tensor("INPUT0", "INT32", [2], [1, 2])]})
    assert server.cores() == [core]
    assert values(got) == {"OUTPUT0": [~1, ~2]}
    assert answer.status == 400
    assert "INFERENCE_WRITABLE_INPUTS" in answer.error
