"""Requests through ensembles, as clients see them."""

import concurrent.futures
import json

import numpy
import pytest
import tritonclient.http as triton

from lib import backends, decoupled, exposition, models, process, wire
from lib.load import Load
from lib.models import ensemble, step
from lib.server import SLOW, Server, nap
from lib.wire import tensor

PARTS = "health metadata config infer statistics repository"
CACHE = "    inference_response_cache local size=4m;\n"


def x(name, *options):
    return (name, "FP32", [-1], *options)


def counting(folder, name, **more):
    cached = more.pop("cached", False)
    models.write_model(
        folder, name, f'name: "{name}"\nbackend: "counting"\n'
        + models.io_block("input", [("IN", "FP32", [-1, -1])])
        + models.io_block("output", [("OUT", "FP32", [-1, -1]),
                                     ("COUNT", "INT64", [1])])
        + models.parameter_block(more)
        + ("response_cache { enable: true }\n" if cached else ""))


def repository(folder):
    models.identity(folder, "id", [x("IN")], instances=2)
    models.identity(folder, "pair", [x("IN0"), x("IN1", "optional: true")])
    models.identity(folder, "text", [("IN", "BYTES", [-1])])
    models.identity(folder, "batched", [("IN", "FP32", [2])], max_batch=8,
                    extra="dynamic_batching { }\n")
    models.identity(folder, "slow", [x("IN")], instances=4,
                    parameters={"execute_delay_ms": "30"})
    models.identity(folder, "fails", [x("IN")],
                    parameters={"fail_execute": "no luck today"})
    line = {"IN": "IN"}, {"OUT": "m"}
    ensemble(folder, "fan", [x("IN")], [x("A"), x("B")],
             step("id", *line),
             step("pair", {"IN0": "m"}, {"OUT0": "A"}),
             step("slow", {"IN": "m"}, {"OUT": "B"}))
    ensemble(folder, "maybe", [x("IN"), x("MORE", "optional: true")],
             [x("A"), x("B")],
             step("pair", {"IN0": "IN", "IN1": "MORE"},
                  {"OUT0": "A", "OUT1": "B"}))
    ensemble(folder, "texts", [("IN", "BYTES", [-1])],
             [("OUT", "BYTES", [-1])], step("text", *line),
             step("text", {"IN": "m"}, {"OUT": "OUT"}))
    ensemble(folder, "texts_within", [("IN", "BYTES", [-1])],
             [("OUT", "BYTES", [-1])],
             step("texts", {"IN": "IN"}, {"OUT": "OUT"}))
    ensemble(folder, "rows", [("IN", "FP32", [2])], [("OUT", "FP32", [2])],
             step("batched", *line), step("batched", {"IN": "m"},
                                          {"OUT": "OUT"}),
             extra="max_batch_size: 8\n")
    ensemble(folder, "broken", [x("IN")], [x("OUT")],
             step("id", *line), step("fails", {"IN": "m"}, {"OUT": "OUT"}))
    for name, policy in (
            ("hasty", "default_timeout_microseconds: 1000"),
            ("narrow", "max_queue_size: 1")):
        models.identity(
            folder, name, [x("IN")], max_batch=8,
            extra="dynamic_batching { max_queue_delay_microseconds: 60000000"
                  f" default_queue_policy {{ {policy} }} }}\n")
        ensemble(folder, f"{name}_step", [x("IN")], [x("OUT")],
                 step(name, {"IN": "IN"}, {"OUT": "OUT"}),
                 extra="max_batch_size: 8\n")
    ensemble(folder, "nested", [x("IN")], [x("OUT")],
             step("fan", {"IN": "IN"}, {"A": "m"}),
             step("id", {"IN": "m"}, {"OUT": "OUT"}))
    ensemble(folder, "limited", [x("IN")], [x("OUT")],
             "max_inflight_requests: 3",
             step("id", {"IN": "IN"}, {"OUT": "OUT"}))
    decoupled.square(folder)
    ensemble(folder, "stream", [("IN", "INT32", [1])],
             [("OUT", "INT32", [1])],
             step("square", {"IN": "IN"}, {"OUT": "OUT"}))


@pytest.fixture(scope="module")
def server():
    with Server(repository, workers=2, parts=PARTS, log_level="debug",
                http="    inference_log info verbose=1;\n",
                server="location = /scrape { inference metrics; }\n") as s:
        yield s


def ask(server, model, values, outputs=None, name="IN", datatype="FP32",
        shape=None, **more):
    body = dict({"inputs": [tensor(name, datatype, shape or [len(values)],
                                   values)]}, **more)
    if outputs:
        body["outputs"] = [{"name": o} for o in outputs]
    return server.infer(model, body)


def data(answer):
    assert answer.status == 200, answer
    return {o["name"]: o["data"] for o in answer.json()["outputs"]}


def count(server, model, what="inference_count"):
    answer = json.loads(server.get(f"/v2/models/{model}/stats").body)
    return answer["model_stats"][0][what]


def test_one_response_with_all_outputs(server):
    before = {m: count(server, m) for m in ("id", "pair", "slow", "fan")}
    answer = ask(server, "fan", [1.5, 2.5], id="seven")
    assert data(answer) == {"A": [1.5, 2.5], "B": [1.5, 2.5]}
    body = answer.json()
    assert body["model_name"] == "fan" and body["id"] == "seven"
    for name, was in before.items():
        assert process.wait_until(
            lambda n=name, w=was: count(server, n) == w + 1, 5 * SLOW), name


def test_what_is_not_asked_for_does_not_run(server):
    before = count(server, "slow")
    assert data(ask(server, "fan", [1.0], ["A"])) == {"A": [1.0]}
    assert count(server, "slow") == before


def test_an_optional_input_that_is_not_there(server):
    assert data(ask(server, "maybe", [1.0])) == {"A": [1.0]}
    server.wait_log("model=maybe: Composing models did not output tensor B")
    both = server.infer("maybe", {"inputs": [
        tensor("IN", "FP32", [1], [1.0]), tensor("MORE", "FP32", [1], [2.0])]})
    assert data(both) == {"A": [1.0], "B": [2.0]}


def test_the_limit_of_a_step_is_logged(server):
    assert data(ask(server, "limited", [1.0])) == {"OUT": [1.0]}
    server.wait_log("Ensemble model 'limited' configured with"
                    " max_inflight_requests: 3")


def test_strings_and_batches(server):
    assert data(ask(server, "texts", ["a", "", "ccc"], datatype="BYTES")) \
        == {"OUT": ["a", "", "ccc"]}
    rows = [float(i) for i in range(6)]
    assert data(ask(server, "rows", rows, shape=[3, 2])) == {"OUT": rows}
    wrong = ask(server, "rows", rows * 3, shape=[9, 2])
    assert wrong.status == 400 and "batch-size must be <= 8" in wrong.error


@pytest.mark.parametrize("model", ["text", "texts", "texts_within"])
def test_malformed_strings_are_told_of_the_client_s_own_input(server, model):
    """They are found by the thread of the first step, and told as if they had
    been when the request came; what is sent beside it is answered."""
    before = count(server, "texts", "inference_stats")["fail"]["count"]
    for tail, text in (
            (b"\4\0\0\0abc", "incomplete string data for inference input 'IN'"
             " for model '%s', 1 more bytes expected"),
            (b"\0\0\0\0\0", "incomplete string length indicator for inference"
             " input 'IN' for model '%s', expecting 4 bytes but only 1 bytes"
             " available. Please make sure the string length indicator is in"
             " one buffer."),
            (b"\0\0\0\0" * 2, "unexpected number of string elements 2 for"
             " inference input 'IN' for model '%s', expecting 1")):
        answer = server.infer(model, {"id": "r1", "inputs": [tensor(
            "IN", "BYTES", [1], binary_data_size=len(tail))]}, tail)
        assert answer.status == 400, answer
        assert answer.error == "[request id: r1] " + text % model
        assert data(ask(server, model, ["a"], datatype="BYTES")) \
            == {"OUT": ["a"]}
    assert count(server, "texts", "inference_stats")["fail"]["count"] == before


def test_ensembles_in_ensembles(server):
    assert data(ask(server, "nested", [4.0])) == {"OUT": [4.0]}


@pytest.mark.parametrize("size", [1, 1000, 3_000_000])
def test_a_real_client(server, size):
    values = numpy.random.default_rng(size).random(size, numpy.float32)
    with triton.InferenceServerClient(server.url,
                                      network_timeout=60 * SLOW) as c:
        source = triton.InferInput("IN", [size], "FP32")
        source.set_data_from_numpy(values)
        answer = c.infer("fan", [source], request_id="9")
        for name in ("A", "B"):
            assert (answer.as_numpy(name) == values).all()


def test_a_sequence_is_passed_through(server):
    for i, flags in enumerate([(True, False), (False, False), (False, True)]):
        answer = ask(server, "nested", [1.0], parameters={
            "sequence_id": 42, "sequence_start": flags[0],
            "sequence_end": flags[1]})
        said = answer.json()["parameters"]
        assert said["sequence_id"] == 42, i
        assert (said["sequence_start"], said["sequence_end"]) == flags
    answer = ask(server, "nested", [1.0], parameters={
        "sequence_id": "name", "sequence_start": True})
    assert answer.json()["parameters"]["sequence_id"] == "name"


def test_an_error_is_told_and_counted_once(server):
    before = count(server, "broken", "inference_stats")["fail"]["count"]
    answer = ask(server, "broken", [1.0])
    assert answer.status == 500, answer
    assert answer.error == "in ensemble 'broken', no luck today"
    assert process.wait_until(lambda: count(
        server, "broken", "inference_stats")["fail"]["count"] == before + 1,
        5 * SLOW)
    text = server.get("/scrape").body.decode()
    line, = [s for s in text.splitlines() if s.startswith(
        "nv_inference_request_failure{") and 'model="broken"' in s
        and 'reason="OTHER"' in s]
    assert float(line.split()[-1]) == before + 1
    assert not [s for s in text.splitlines() if s.startswith(
        "nv_inference_request_failure{") and 'model="broken"' in s
        and 'reason="OTHER"' not in s and not s.endswith(" 0")]


def failures(server, model):
    text = exposition.scrape(server, "/scrape")
    return {r: text.value("nv_inference_request_failure", model=model,
                          version="1", reason=r)
            for r in ("REJECTED", "CANCELED", "BACKEND", "OTHER")}


def test_what_a_step_s_queue_rejects_is_a_failure_of_another_kind(server):
    answer = ask(server, "hasty_step", [1.0], shape=[1, 1])
    assert answer.status == 503, answer
    assert answer.error == "in ensemble 'hasty_step', Request timeout expired"
    one = {"REJECTED": 0, "CANCELED": 0, "BACKEND": 0, "OTHER": 1}
    assert process.wait_until(
        lambda: failures(server, "hasty_step") == one, 5 * SLOW), \
        failures(server, "hasty_step")
    assert failures(server, "hasty") == dict(one, REJECTED=1, OTHER=0)


def test_a_step_s_full_queue_is_a_failure_of_the_ensemble_alone(server):
    body = json.dumps({"inputs": [tensor("IN", "FP32", [1, 1], [1.0])]})
    with wire.Wire(server.port) as first:       # it stays in the queue
        first.send(wire.request_bytes(
            "POST", wire.infer_path("narrow_step"), body.encode()))
        assert process.wait_until(lambda: exposition.scrape(
            server, "/scrape").value("nv_inference_pending_request_count",
                                     model="narrow", version="1") == 1,
            5 * SLOW)
        answer = ask(server, "narrow_step", [1.0], shape=[1, 1])
        assert answer.status == 503, answer
        assert answer.error == \
            "in ensemble 'narrow_step', [request id: <id_unknown>] Exceeds " \
            "maximum queue size"
        assert process.wait_until(
            lambda: failures(server, "narrow_step")["OTHER"] == 1, 5 * SLOW)
        assert not any(failures(server, "narrow").values())


def test_statistics_are_sums_of_the_steps(server):
    stats = count(server, "nested", "inference_stats")
    answer = ask(server, "nested", [1.0])
    assert answer.status == 200
    assert process.wait_until(lambda: count(
        server, "nested", "inference_stats")["success"]["count"]
        == stats["success"]["count"] + 1, 5 * SLOW)
    stats = count(server, "nested", "inference_stats")
    assert stats["queue"]["ns"] == 0
    assert stats["compute_infer"]["count"] == stats["success"]["count"]
    assert 0 < sum(stats["compute_" + part]["ns"] for part in (
        "input", "infer", "output")) < stats["success"]["ns"]


def test_a_stream_needs_a_streaming_call(server):
    answer = ask(server, "stream", [1], datatype="INT32")
    assert answer.status == 501
    assert answer.error.endswith("HTTP end point doesn't support models with"
                                 " decoupled transaction policy")


def test_many_at_once(server):
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        asked = [(i, pool.submit(ask, server, "fan", [float(i)]))
                 for i in range(200)]
        for i, future in asked:
            assert data(future.result(60 * SLOW)) == {"A": [i], "B": [i]}


# ---- the response cache

def test_a_hit_runs_no_step(make_server):
    def fill(folder):
        counting(folder, "c")
        counting(folder, "kept", cached=True)
        for name, model, extra in (
                ("whole", "c", "response_cache { enable: true }\n"),
                ("part", "kept", "")):
            ensemble(folder, name, [("IN", "FP32", [-1, -1])],
                     [("OUT", "FP32", [-1, -1]), ("N", "INT64", [1])],
                     step(model, {"IN": "IN"}, {"OUT": "OUT", "COUNT": "N"}),
                     extra=extra)

    server = make_server(fill, parts=PARTS, http=CACHE,
                         backends=backends.build("counting"))

    def numbers(model, *values):
        return [data(ask(server, model, [v], shape=[1, 1]))["N"][0]
                for v in values]

    assert numbers("whole", 1.0, 1.0, 2.0, 1.0) == [1, 1, 2, 1]
    stats = count(server, "whole", "inference_stats")
    assert (stats["cache_hit"]["count"], stats["cache_miss"]["count"]) \
        == (2, 2)
    assert count(server, "c") == 2
    assert numbers("part", 5.0, 5.0, 6.0) == [1, 1, 2]
    assert count(server, "kept", "inference_stats")["cache_hit"]["count"] == 1
    assert count(server, "part", "inference_stats")["success"]["count"] == 3
    assert count(server, "part", "inference_stats")["cache_hit"]["count"] == 0


# ---- what happens between two steps

def three_slow(folder):
    models.identity(folder, "slow", [x("IN")], instances=2,
                    parameters={"execute_delay_ms": "1000"})
    ensemble(folder, "three", [x("IN")], [x("OUT")],
             step("slow", {"IN": "IN"}, {"OUT": "a"}),
             step("slow", {"IN": "a"}, {"OUT": "b"}),
             step("slow", {"IN": "b"}, {"OUT": "OUT"}))


def test_a_stop_waits_for_all_steps(make_server):
    server = make_server(three_slow, parts="health infer metrics")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        futures = [pool.submit(ask, server, "three", [float(i)])
                   for i in range(4)]
        exposition.wait_given(server, 4)
        server.signal("QUIT")
        for i, future in enumerate(futures):
            assert data(future.result(30 * SLOW)) == {"OUT": [i]}
    server.stop()


def test_a_client_that_goes_takes_its_steps_along(make_server):
    server = make_server(three_slow, parts=PARTS + " metrics")
    connection = server.wire()
    body = json.dumps({"inputs": [tensor("IN", "FP32", [1], [1.0])]}).encode()
    connection.send(b"POST /v2/models/three/infer HTTP/1.1\r\nHost: x\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body) + body)
    exposition.wait_executing(server, 1, model="slow")
    connection.close()
    assert process.wait_until(lambda: count(
        server, "three", "inference_stats")["fail"]["count"] == 1, 10 * SLOW)

    def steps():
        slow = count(server, "slow", "inference_stats")
        return slow["success"]["count"] + slow["fail"]["count"]

    assert process.wait_until(lambda: steps() == 1, 10 * SLOW)
    nap(1.5)
    assert steps() == 1


def test_a_killed_core_costs_no_request(make_server):
    def fill(folder):
        models.identity(folder, "id", [x("IN")], instances=2)
        models.identity(folder, "slow", [x("IN")], instances=2,
                        parameters={"execute_delay_ms": "20"})
        ensemble(folder, "two", [x("IN")], [x("OUT")],
                 step("slow", {"IN": "IN"}, {"OUT": "m"}),
                 step("id", {"IN": "m"}, {"OUT": "OUT"}))

    def once(connection):
        answer = connection.infer("two", {"inputs": [
            tensor("IN", "FP32", [1], [3.0])]})
        if answer.status == 200:
            assert data(answer) == {"OUT": [3.0]}
        return answer.status

    server = make_server(fill, workers=2, allow_alarms=[
        r"process \d+ exited on signal 9"])
    with Load(server.port, once) as load:
        for _ in range(3):
            load.wait_for_more(20, 30 * SLOW)
            server.end_core()
            assert server.wait_for("/v2/health/ready")
        load.wait_for_more(50, 30 * SLOW)
    assert load.results["hung"] == 0, load.results
    assert load.results["lost"] == 0, load.results
    assert set(load.results) <= {200, 404, 503}, load.results
    assert load.results[200] > 50
