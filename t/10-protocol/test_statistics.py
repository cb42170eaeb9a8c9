"""v2/models/stats and v2/models/NAME/stats, as Triton's extension says."""

import time

import numpy as np
import pytest
import tritonclient.http as http

from lib import models
from lib.server import Server
from lib.wire import tensor

DURATIONS = {"success", "fail", "queue", "compute_input", "compute_infer",
             "compute_output", "cache_hit", "cache_miss"}


def fill(repository):
    models.identity(repository, "one", [("IN", "FP32", [-1])])
    models.identity(repository, "many", [("IN", "FP32", [-1])],
                    versions=(1, 4), max_batch=8,
                    extra="version_policy: { all {} }\n"
                          "dynamic_batching { }\n")
    models.identity(repository, "kept", [("IN", "FP32", [-1])],
                    extra="response_cache { enable: true }\n")


@pytest.fixture(scope="module")
def server():
    s = Server(fill, parts="all",
               http="    inference_response_cache local size=1m;\n").start()
    yield s
    s.stop()


def ask(server, model, value=1.5, shape=(2,), status=200):
    answer = server.infer(model, {"inputs": [
        tensor("IN", "FP32", list(shape), [value] * int(np.prod(shape)))]})
    assert answer.status == status, answer


def stats(server, path):
    answer = server.get(path)
    assert answer.status == 200, answer
    return answer.json()["model_stats"]


def test_shape_of_an_unused_model(server):
    (row,) = stats(server, "/v2/models/one/stats")
    assert row["name"] == "one"
    assert row["version"] == "1"
    assert row["last_inference"] == 0
    assert row["inference_count"] == row["execution_count"] == 0
    assert set(row["inference_stats"]) == DURATIONS
    for duration in row["inference_stats"].values():
        assert duration == {"count": 0, "ns": 0}
    assert row["batch_stats"] == []
    assert row["response_stats"] == {}
    assert row["memory_usage"] == []


def test_requests_are_counted(server):
    before = int(time.time() * 1000)
    ask(server, "many", shape=(3, 2))
    ask(server, "many", shape=(3, 2))
    ask(server, "many", shape=(1, 2))
    ask(server, "many", shape=(9, 2), status=400)
    newest, = [r for r in stats(server, "/v2/models/many/stats")
               if r["version"] == "4"]
    assert newest["inference_count"] == 7
    assert newest["execution_count"] == 3
    assert before <= newest["last_inference"] <= time.time() * 1000
    inference = newest["inference_stats"]
    for name in ("success", "queue", "compute_input", "compute_infer",
                 "compute_output"):
        assert inference[name]["count"] == 3, name
    assert inference["success"]["ns"] >= inference["queue"]["ns"]
    assert [(b["batch_size"], b["compute_infer"]["count"])
            for b in newest["batch_stats"]] == [(1, 1), (3, 2)]


def test_hits_and_misses_are_counted(server):
    for value in (1, 1, 1, 2):
        ask(server, "kept", value=value)
    (row,) = stats(server, "/v2/models/kept/stats")
    assert row["inference_stats"]["cache_hit"]["count"] == 2
    assert row["inference_stats"]["cache_miss"]["count"] == 2
    assert row["execution_count"] == 2


def test_one_version_all_versions_all_models(server):
    assert [r["version"] for r in stats(
        server, "/v2/models/many/versions/1/stats")] == ["1"]
    assert sorted(r["version"] for r in stats(
        server, "/v2/models/many/stats")) == ["1", "4"]
    assert {r["name"] for r in stats(server, "/v2/models/stats")} \
        == {"one", "many", "kept"}


def test_the_client_reads_it(server):
    with http.InferenceServerClient(f"127.0.0.1:{server.port}") as client:
        rows = client.get_inference_statistics("one", "1")["model_stats"]
        assert rows[0]["name"] == "one"
        assert len(client.get_inference_statistics()["model_stats"]) == 4
        assert "statistics" in client.get_server_metadata()["extensions"]


@pytest.mark.parametrize("path, words", [
    ("/v2/models/nobody/stats", "requested model 'nobody' is not available"),
    ("/v2/models/one/versions/7/stats",
     "requested model version is not available for model 'one'"),
])
def test_what_is_not_there(server, path, words):
    answer = server.get(path)
    assert answer.status == 400
    assert answer.error == words


def test_a_location_that_does_not_list_it(make_server):
    server = make_server(fill, parts="health infer")
    assert server.get("/v2/models/one/stats").status == 404


def test_other_methods(server):
    assert server.post("/v2/models/one/stats", b"").status in (404, 405)
