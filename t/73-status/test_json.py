"""The JSON of the status."""

import json

import pytest

from lib import models, process
from lib.limits import good
from lib.server import ROOT, SLOW, Server
from lib.wire import tensor

SERVED = "location = /status { inference status; }" \
    " location = /other { inference status; }" \
    " location /sub/ { inference status; }"

ASK = {"inputs": [tensor("IN", "INT32", [1], [7])]}


def status(server, path="/status"):
    answer = server.get(path)
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "application/json"
    return json.loads(answer.body)


def rows(server):
    return {(m["name"], m["version"]): m
            for m in status(server)["core"]["models"]}


def repository(folder):
    models.identity(folder, "one", [("IN", "INT32", [1])], versions=(1, 3))
    models.identity(folder, "idle", [("IN", "INT32", [1])])
    models.write_model(folder, "broken", models.identity_config(
        "broken", [("IN", "INT32", [1])], backend="nobody"))


def test_models_versions_states_and_reasons(make_server):
    server = make_server(repository, server=SERVED, wait="live", http=(
        "    inference_model_control explicit;\n"
        "    inference_load_model one; inference_load_model broken;"))
    assert process.wait_until(
        lambda: rows(server).get(("one", "3"), {}).get("state") == "READY"
        and rows(server).get(("broken", "1"), {}).get("state")
        == "UNAVAILABLE", 20 * SLOW), rows(server)
    found = rows(server)
    assert set(found) == {("one", "3"), ("broken", "1"), ("idle", "")}
    one = found["one", "3"]
    assert one["backend"] == "identity" and one["reason"] == ""
    assert one["instances"] == 1 and one["instances_busy"] == 0
    assert "nobody" in found["broken", "1"]["reason"]
    assert found["idle", ""]["state"] == ""
    core = status(server)["core"]
    assert core["name"] == "triton" and core["pid"] == server.core()
    assert core["ready"] is False and core["resources"] == []


def test_a_cache_that_is_missing(make_server):
    server = make_server(repository, server=SERVED, wait="live", http=(
        "    inference_response_cache nowhere a=b;\n"))
    assert 'response cache "nowhere": there is no' \
        in status(server)["core"]["cache_failure"]


def test_answers_are_counted_by_batch_size_and_time(make_server):
    server = make_server(
        lambda folder: models.identity(folder, "m", [("IN", "INT32", [1])],
                               max_batch=4), server=SERVED)
    for size in (1, 1, 3):
        answer = server.infer("m", {"inputs": [
            tensor("IN", "INT32", [size, 1], [7] * size)]})
        assert answer.status == 200
    assert server.infer("m", {"inputs": [
        tensor("IN", "FP32", [1, 1], [7])]}).status == 400

    def counted():
        return rows(server)["m", "1"]["success_count"] == 3
    assert process.wait_until(counted, 10 * SLOW)
    m = rows(server)["m", "1"]
    assert m["execution_count"] == 3
    assert m["batches"] == [{"size": 1, "count": 2}, {"size": 3, "count": 1}]
    bounds = status(server)["core"]["duration_bounds_ns"]
    assert bounds == sorted(bounds) and bounds[0] == 10000
    assert len(m["duration_counts"]) == len(bounds) + 1
    assert sum(m["duration_counts"]) == 3
    workers = status(server)["workers"]
    assert workers["requests"] >= 3 and workers["failed"] >= 1
    assert workers["core_starts"] == 1 and workers["core_deaths"] == 0


def test_what_queues_and_executes_and_holds_resources(limited):
    limited.model("gated", 'resources [ { name: "R" count: 2 } ]',
                  max_batch=1)
    server = limited.start("R 5", parts="health infer status")
    limited.gates["gated"].close()
    asked = [limited.ask("gated") for _ in range(3)]
    assert process.wait_until(lambda: limited.entered("gated"), 10 * SLOW)
    limited.wait_queued("gated", 2)
    m = rows(server)["gated", "1"]
    assert (m["queued"], m["executing"]) == (2, 1)
    assert (m["instances"], m["instances_busy"]) == (1, 1)
    assert m["instances_stuck"] == 0 and "sequences" not in m
    assert status(server)["core"]["resources"] == [
        {"name": "R", "global": False, "device": 0, "copies": 5, "used": 2}]
    limited.gates["gated"].open()
    good(asked)
    assert process.wait_until(
        lambda: rows(server)["gated", "1"]["instances_busy"] == 0, 10 * SLOW)
    assert status(server)["core"]["resources"][0]["used"] == 0


def test_slots_of_sequences(make_server):
    server = make_server(
        lambda folder: models.identity(
            folder, "s", [("IN", "INT32", [1])], max_batch=2, extra=(
                "sequence_batching { direct { }"
                " max_sequence_idle_microseconds: 600000000 }")),
        server=SERVED)

    def slots():
        return rows(server)["s", "1"]["sequences"]
    assert slots() == {"slots": 2, "slots_taken": 0, "backlog": 0}
    answer = server.infer("s", {
        "inputs": [tensor("IN", "INT32", [1, 1], [7])],
        "parameters": {"sequence_id": 5, "sequence_start": True}})
    assert answer.status == 200
    assert slots() == {"slots": 2, "slots_taken": 1, "backlog": 0}


def test_a_core_that_died_is_counted(make_server):
    server = make_server(models.standard_repository, server=SERVED)
    before = status(server)["core"]["pid"]
    server.end_core()
    assert process.wait_until(
        lambda: server.get("/status").status == 200
        and status(server)["core"]["pid"] != before, 20 * SLOW)
    workers = status(server)["workers"]
    assert workers["core_starts"] == 2 and workers["core_deaths"] == 1


def test_without_a_core_it_says_why_at_once(coreless):
    answer = coreless().get("/status")
    assert answer.status == 503
    assert "core" in json.loads(answer.body)["error"]


@pytest.mark.parametrize("path, accept, page", [
    ("/status", None, False),
    ("/status", "*/*", False),
    ("/status", "application/json", False),
    ("/status", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", True),
    ("/status?format=json", "text/html", False),
    ("/status?format=html", None, True),
    ("/other", "Text/HTML", True),
    ("/sub/status", None, False)])
def test_who_gets_the_page(named, path, accept, page):
    answer = named.get(path, {"Accept": accept} if accept else None)
    assert answer.status == 200
    assert answer.headers["vary"] == "Accept"
    assert answer.headers["cache-control"] == "no-store"
    kind = answer.headers["content-type"]
    assert kind == ("text/html; charset=utf-8" if page
                    else "application/json")
    assert ("content-security-policy" in answer.headers) == page


@pytest.fixture(scope="module")
def named():
    with Server(models.standard_repository, server=SERVED) as server:
        yield server


def test_it_is_served_where_it_is_listed(named):
    assert named.get("/elsewhere/status").status == 404
    assert named.post("/status", b"").status == 405
    assert named.get("/sub/metrics").status == 404


def test_the_snippet(make_server):
    server = make_server(models.standard_repository, server=(
        ROOT / "conf.d/status.conf").read_text(encoding="utf-8"))
    assert {m["state"] for m in status(server)["core"]["models"]} == {"READY"}
