"""The response cache through nginx: what hits, what misses, what is kept."""

import concurrent.futures
import re

import numpy
import pytest
import tritonclient.http as triton

from lib import backends, models, process
from lib.server import SLOW, nap
from lib.wire import tensor

FOLDERS = "    inference_backends {folder};\n"


def config(name, cached=True, **parameters):
    return (f'name: "{name}"\nbackend: "counting"\n'
            + models.io_block("input", [("IN", "FP32", [-1, -1], ""),
                                        ("MORE", "FP32", [-1],
                                         "optional: true")])
            + models.io_block("output", [("OUT", "FP32", [-1, -1]),
                                         ("COUNT", "INT64", [1])])
            + "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
            + models.parameter_block(parameters)
            + ("response_cache { enable: true }\n" if cached else ""))


def repository(folder):
    for name in ("one", "other"):
        models.write_model(folder, name, config(name))
    models.write_model(folder, "versions", config("versions")
                       + "version_policy { all {} }\n", (1, 2))
    models.write_model(folder, "plain", config("plain", cached=False))
    models.write_model(folder, "failing", config("failing", fail_first=1))
    models.write_model(folder, "slow", config("slow", delay_ms=400))


def start(make_server, cache="local size=1m", **more):
    return make_server(
        repository, backends=backends.build("counting"),
        http=f"    inference_response_cache {cache};\n" if cache else "",
        **more)


@pytest.fixture(scope="module")
def cached():
    from lib.server import Server
    with Server(repository, workers=2, backends=backends.build("counting"),
                http="    inference_response_cache local size=4m;\n") as s:
        yield s


def ask(server, values, model="one", shape=None, outputs=None, version="",
        **more):
    body = {"inputs": [tensor("IN", "FP32", shape or [1, len(values)],
                              values)]}
    if outputs:
        body["outputs"] = [{"name": o} for o in outputs]
    return server.infer(model, dict(body, **more), version=version)


def count(answer):
    """How often the model had run when the answer was made."""
    assert answer.status == 200, answer
    outputs = {o["name"]: o for o in answer.json()["outputs"]}
    return outputs["COUNT"]["data"][0]


def test_the_same_request_hits(cached):
    """scheduling.md 7.1 and 7.2"""
    first = ask(cached, [1, 2, 3])
    second = ask(cached, [1, 2, 3])
    assert count(second) == count(first)
    assert second.json() == first.json()
    assert ask(cached, [1, 2, 4]).json() != first.json()


def test_a_hit_has_its_own_id(cached):
    first = ask(cached, [9, 1], id="a").json()
    second = ask(cached, [9, 1], id="b").json()
    assert (first.pop("id"), second.pop("id")) == ("a", "b")
    assert first == second


def test_tritonclient_gets_the_same_from_the_cache(cached):
    value = numpy.random.default_rng(5).random((4, 300), numpy.float32)
    given = triton.InferInput("IN", value.shape, "FP32")
    given.set_data_from_numpy(value)
    with triton.InferenceServerClient(cached.url) as client:
        answers = [client.infer("other", [given]) for _ in range(3)]
    assert len({int(a.as_numpy("COUNT")[0]) for a in answers}) == 1
    for answer in answers:
        assert numpy.array_equal(answer.as_numpy("OUT"), value)


def test_the_order_of_inputs_does_not_matter(cached):
    """scheduling.md 7.2"""
    a = tensor("IN", "FP32", [1, 2], [5, 6])
    b = tensor("MORE", "FP32", [3], [7, 8, 9])
    first = cached.infer("one", {"inputs": [a, b]})
    second = cached.infer("one", {"inputs": [b, a]})
    assert count(first) == count(second)


@pytest.mark.parametrize("change", [
    {"shape": [6, 1]}, {"shape": [2, 3]}, {"outputs": ["COUNT"]},
    {"parameters": {"p": 2}}, {"parameters": {"q": 1}}, {"parameters": {}},
    {"model": "other"}], ids=str)
def test_another_request_misses(cached, change):
    """scheduling.md 7.3 and 7.8"""
    asked = {"values": [1, 2, 3, 4, 5, 6], "parameters": {"p": 1}}
    ask(cached, **asked)
    executed = count(ask(cached, [1000, 0]))
    again = count(ask(cached, **asked))
    assert again < executed, "the request itself does not hit"
    if "model" in change:
        # no cross hit: the other model counts by itself
        assert ask(cached, **asked, **change).json()["model_name"] == "other"
        return
    answer = ask(cached, **{**asked, **change})
    assert count(answer) > again
    if "shape" in change:
        out = [o for o in answer.json()["outputs"] if o["name"] == "OUT"]
        assert out[0]["shape"] == change["shape"]


def test_outputs_asked_for_are_those_answered(cached):
    """scheduling.md 7.4"""
    first = ask(cached, [41, 42], outputs=["OUT"]).json()
    both = ask(cached, [41, 42]).json()
    assert [o["name"] for o in first["outputs"]] == ["OUT"]
    assert {o["name"] for o in both["outputs"]} == {"OUT", "COUNT"}


def test_versions_have_answers_of_their_own(cached):
    """scheduling.md 7.8"""
    first = ask(cached, [3, 3], "versions", version="1").json()
    second = ask(cached, [3, 3], "versions", version="2").json()
    assert (first["model_version"], second["model_version"]) == ("1", "2")


def test_an_error_is_not_kept(cached):
    """scheduling.md 7.5"""
    assert ask(cached, [1, 1], "failing").status == 500
    assert count(ask(cached, [1, 1], "failing")) == 2
    assert count(ask(cached, [1, 1], "failing")) == 2


def test_a_model_that_did_not_ask_is_not_cached(cached):
    assert [count(ask(cached, [2, 2], "plain")) for _ in range(3)] == [1, 2, 3]


def test_large_inputs_hit_too(cached):
    """These are looked up by the cache's own threads."""
    value = list(range(100000))
    first = ask(cached, value)
    second = ask(cached, value)
    assert count(first) == count(second)
    assert first.json() == second.json()


def test_identical_requests_in_flight_share_one_execution(cached):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(cached, [7, 7], "slow"),
                                range(8)))
    assert {count(a) for a in answers} == {1}


def test_those_who_wait_go_on_when_the_first_client_leaves(cached):
    """Its request is executing then: the others get what comes of it, or
    run again."""
    body = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,1],' \
           b'"data":[77]}]}'
    from lib import wire
    with wire.Wire(cached.port) as first:
        first.send(wire.request_bytes("POST", "/v2/models/slow/infer", body))
        nap(0.1)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            others = [pool.submit(ask, cached, [77], "slow")
                      for _ in range(3)]
            nap(0.1)
            first.close()
            assert all(o.result().status == 200 for o in others)


def test_the_oldest_goes_first(make_server):
    """scheduling.md 7.7: room for two answers of 4 KB and a bit, not three."""
    server = start(make_server, "local size=10k")
    values = [[n] * 1000 for n in range(4)]
    assert [count(ask(server, v)) for v in values[:3]] == [1, 2, 3]
    assert count(ask(server, values[1])) == 2          # still there, used
    assert count(ask(server, values[3])) == 4          # 2 is given up for it
    assert count(ask(server, values[1])) == 2
    assert count(ask(server, values[3])) == 4
    assert count(ask(server, values[0])) == 5          # gone since 2 came
    assert count(ask(server, values[2])) == 6


def test_an_answer_larger_than_the_cache_is_served_uncached(make_server):
    """scheduling.md 7.6"""
    server = start(make_server, "local size=2k")
    assert [count(ask(server, [1] * 1000)) for _ in range(3)] == [1, 2, 3]
    assert [count(ask(server, [1] * 10)) for _ in range(3)] == [4, 4, 4]
    server.wait_log(
        "Failed to insert key: Requested byte_size: .* is greater than")


def test_the_smallest_cache_keeps_nothing(make_server):
    server = start(make_server, "local size=128")
    assert [count(ask(server, [1])) for _ in range(2)] == [1, 2]
    server.wait_log(
        "Failed to insert key: Requested byte_size: .* is greater than")


def test_without_a_cache_models_are_served(make_server):
    server = start(make_server, "")
    assert [count(ask(server, [1])) for _ in range(2)] == [1, 2]
    server.wait_log("model=one version=1: response_cache is enabled, but the"
                    " server has no response cache")


@pytest.mark.parametrize("more,text", [
    ("model_transaction_policy { decoupled: true }",
     "Response Cache does not currently support model bad with 'decoupled'"),
    ("sequence_batching { }",
     "Response Cache does not currently support model bad with sequence")])
def test_models_that_cannot_be_cached_are_rejected(make_server, more, text):
    """scheduling.md 7.10"""
    def fill(folder):
        repository(folder)
        models.write_model(folder, "bad", config("bad") + more)

    server = make_server(
        fill, backends=backends.build("counting"), wait="live",
        http="    inference_response_cache local size=1m;\n")
    server.wait_log(re.escape(text))


def test_many_distinct_requests_keep_within_the_bound(make_server):
    """scheduling.md 7.11"""
    server = start(make_server, "local size=1m")
    with server.wire() as connection:
        for n in range(600):
            answer = connection.infer("one", {"inputs": [
                tensor("IN", "FP32", [1, 1000], [n] * 1000)]})
            assert count(answer) == n + 1
        kept = sum(count(connection.infer("one", {"inputs": [tensor(
            "IN", "FP32", [1, 1000], [n] * 1000)]})) == n + 1
            for n in reversed(range(400, 600)))
    assert kept == 200


def metric(server, name):
    """The value of a family of one series, or None."""
    text = server.get("/metrics").body.decode()
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M)
    return float(found[1]) if found else None


def test_metrics_count_hits_and_misses(make_server):
    """scheduling.md 7.1"""
    server = start(make_server, parts="health infer metrics")
    for n in (1, 2, 1, 1):
        ask(server, [n])
        ask(server, [n], "plain")
    labels = '{model="one",version="1"}'
    # a backend reports after it has answered
    process.wait_until(lambda: f"nv_inference_exec_count{labels} 2\n"
                       in server.get("/metrics").body.decode(), 10 * SLOW)
    text = server.get("/metrics").body.decode()
    assert f"nv_cache_num_hits_per_model{labels} 2\n" in text
    assert f"nv_cache_num_misses_per_model{labels} 2\n" in text
    assert f"nv_inference_request_success{labels} 4\n" in text
    assert f"nv_inference_count{labels} 2\n" in text
    assert f"nv_inference_exec_count{labels} 2\n" in text
    assert 'per_model{model="plain"' not in text
    assert metric(server, "nv_cache_num_entries") == 2
    assert metric(server, "nv_cache_num_hits") == 2
    assert metric(server, "nv_cache_num_misses") == 2
    assert metric(server, "nv_cache_num_lookups") == 4
    assert metric(server, "nv_cache_num_evictions") == 0
    assert 0 < metric(server, "nv_cache_util") < 0.01


def test_evictions_are_counted(make_server):
    server = start(make_server, "local size=10k",
                   parts="health infer metrics")
    for n in range(5):
        ask(server, [n] * 1000)
    assert metric(server, "nv_cache_num_entries") == 2
    assert metric(server, "nv_cache_num_evictions") == 3


def test_without_a_cache_there_are_no_families_of_it(make_server):
    server = start(make_server, "", parts="health infer metrics")
    ask(server, [1])
    assert "nv_cache" not in server.get("/metrics").body.decode()
