"""inference_model_namespacing: equal names in two repositories."""

import json
import re
import shutil

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from lib import backends, models, process
from lib.server import SLOW

ON = "    inference_model_namespacing on;\n"
EXPLICIT = ON + "    inference_model_control explicit;\n"
PARTS = "health metadata config infer statistics repository"
METRICS = "        location = /metrics { inference metrics; }\n"
AMBIGUOUS = ("There are 2 identifiers of model 'm' in global map, model "
             "namespace must be provided to resolve ambiguity.")
READY = {"name": "m", "version": "1", "state": "READY"}
CONFIG = {
    "backend": "identity", "max_batch_size": 0,
    "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}]}


def add(folder, name, max_batch=0):
    models.identity(folder, name, [("IN", "FP32", [-1])], max_batch=max_batch)


@pytest.fixture
def two(make_server, tmp_path):
    """A function: a server with the repositories models and more, in which
    both have m, and each a model of its own."""
    def start(http, **kw):
        tmp_path.chmod(0o755)
        more = tmp_path / "more"
        more.mkdir()
        add(more, "m", 8)
        add(more, "second", 8)

        def fill(folder):
            add(folder, "m", 4)
            add(folder, "first", 4)

        server = make_server(
            fill, parts=PARTS, server=METRICS, http=http
            + f"    inference_repository {more};\n", **kw)
        server.more = more
        return server

    return start


def index(server, **body):
    answer = server.post("/v2/repository/index", json.dumps(body).encode())
    assert answer.status == 200, answer
    return answer.json()


def count(server, row):
    return sum(r == row for r in index(server))


def logged(server, text, times=1):
    """So often until now; the log may come late."""
    return process.wait_until(
        lambda: server.log_text().count(text) >= times, 20 * SLOW) \
        and server.log_text().count(text) == times


def infer(client, name):
    x = triton.InferInput("IN", [1, 2], "FP32")
    x.set_data_from_numpy(np.array([[1.5, 2.5]], np.float32))
    return client.infer(name, [x])


def rejected(call, *arguments):
    with pytest.raises(InferenceServerException) as e:
        call(*arguments)
    return e.value


def max_batch(server):
    answer = server.get("/v2/models/m/config")
    return answer.status == 200 and json.loads(answer.body)["max_batch_size"]


def test_without_it_neither_of_two_is_served(two):
    server = two("", wait="live",
                 allow_alarms=[r"not unique across all model repositories"])
    assert server.wait_for("/v2/models/first/ready")
    assert process.wait_until(
        lambda: server.status("/v2/models/m/ready") == 404, 20 * SLOW)
    assert {"name": "m", "state": "UNAVAILABLE", "reason":
            "model appears in two or more repositories"} in index(server)


def test_both_are_loaded_and_a_bare_name_is_rejected(two):
    server = two(ON)
    assert count(server, READY) == 2
    assert len(index(server, ready=True)) == 4
    for name, rows in (("m", 2), ("first", 1), ("second", 1)):
        assert logged(server, f"::{name} version=1 is ready", rows)

    with triton.InferenceServerClient(server.url) as c:
        infer(c, "first")
        infer(c, "second")
        e = rejected(infer, c, "m")
        assert e.status() == "400" and AMBIGUOUS in e.message()
        for call in (c.get_model_metadata, c.get_model_config,
                     c.get_inference_statistics):
            e = rejected(call, "m")
            assert e.status() == "400" and AMBIGUOUS in e.message()
        assert not c.is_model_ready("m")
        e = rejected(infer, c, "nobody")
        assert e.status() == "400"
        assert e.message() \
            == "Request for unknown model: 'nobody' is not found"


def test_statistics_and_metrics_show_both(two):
    server = two(ON)
    with triton.InferenceServerClient(server.url) as c:
        infer(c, "second")
        rows = c.get_inference_statistics()["model_stats"]
    assert sorted(r["name"] for r in rows) == ["first", "m", "m", "second"]

    text = server.get("/metrics").body.decode()
    samples = dict(re.findall(
        r"^nv_inference_request_success\{(.*)\} (\S+)$", text, re.M))
    assert samples == {
        f'model="{name}",namespace="{folder}",version="1"': value
        for folder, name, value in (
            (server.models, "first", "0"), (server.models, "m", "0"),
            (server.more, "m", "0"), (server.more, "second", "1"))}


def test_without_it_metrics_have_no_namespace(make_server):
    server = make_server(lambda folder: add(folder, "m"), server=METRICS,
                         parts=PARTS)
    text = server.get("/metrics").body.decode()
    assert 'nv_inference_count{model="m",version="1"} 0' in text
    assert "namespace" not in text


def test_loads_and_unloads_are_for_both(two):
    server = two(EXPLICIT)
    assert {"name": "m"} in index(server)
    with triton.InferenceServerClient(server.url) as c:
        c.load_model("m")
        assert count(server, READY) == 2
        assert AMBIGUOUS in rejected(infer, c, "m").message()
        c.load_model("m", config=json.dumps(dict(CONFIG, max_batch_size=2)))
        assert count(server, READY) == 2
        c.unload_model("m")
        assert process.wait_until(lambda: count(server, {
            "name": "m", "version": "1", "state": "UNAVAILABLE",
            "reason": "unloaded"}) == 2, 20 * SLOW)
        assert rejected(infer, c, "m").message() \
            == "Request for unknown model: 'm' is not found"

        shutil.rmtree(server.more / "m")        # now it is one
        c.load_model("m")
        assert c.get_model_config("m")["max_batch_size"] == 4
        infer(c, "m")
        e = rejected(c.load_model, "nobody")
        assert "failed to load 'nobody', failed to poll" in e.message()
        c.unload_model("nobody")


def test_files_of_a_request_are_one_more(two):
    server = two(EXPLICIT)
    with triton.InferenceServerClient(server.url) as c:
        shutil.rmtree(server.more / "m")
        c.load_model("m")
        c.load_model("m", config=json.dumps(dict(CONFIG, max_batch_size=2)),
                     files={"file:1/data": b"x"})
        assert AMBIGUOUS in rejected(infer, c, "m").message()
        text = server.get("/metrics").body.decode()
        assert 'nv_inference_count{model="m",version="1"}' in text
        c.load_model("m")                       # the repository's again
        assert c.get_model_config("m")["max_batch_size"] == 4
        infer(c, "m")


def test_one_moves_to_the_other_repository(two):
    server = two(EXPLICIT)
    with triton.InferenceServerClient(server.url) as c:
        c.load_model("first")
        infer(c, "first")
        (server.models / "first").rename(server.more / "first")
        infer(c, "first")                       # nobody has looked yet
        c.load_model("first")
        assert c.get_model_config("first")["max_batch_size"] == 4
        infer(c, "first")
        assert logged(server, f"model={server.models}::first version=1 is"
                      " being unloaded")
        assert logged(server, f"model={server.more}::first version=1 is ready")


def test_poll_mode_follows_each_of_them(two):
    server = two(ON + "    inference_model_control poll interval=200ms;\n")
    assert not max_batch(server)
    (server.more / "m").rename(server.prefix / "away")
    assert process.wait_until(lambda: max_batch(server) == 4, 20 * SLOW)
    (server.models / "m").rename(server.prefix / "away2")
    (server.prefix / "away").rename(server.more / "m")
    assert process.wait_until(lambda: max_batch(server) == 8, 20 * SLOW)
    (server.prefix / "away2").rename(server.models / "m")
    assert process.wait_until(lambda: count(server, READY) == 2, 20 * SLOW)
    assert server.get("/v2/models/m/config").status == 400


def test_a_reload_of_nginx_brings_and_takes_one(two):
    server = two(ON)
    core = server.core()
    server.write_config(http=ON)                # without more
    server.reload()
    assert process.wait_until(lambda: max_batch(server) == 4, 20 * SLOW)
    assert server.get("/v2/models/second/ready").status == 400

    server.write_config(http=ON + f"    inference_repository {server.more};\n")
    server.signal("HUP")
    assert process.wait_until(lambda: count(server, READY) == 2, 20 * SLOW)
    assert server.cores() == [core]
    assert logged(server, f"model={server.models}::m version=1 is ready")


def test_switching_it_waits_for_the_next_core(two):
    server = two(ON, allow_alarms=[r"exited on signal 9",
                                   r"not unique across all model repositories"])
    old = server.supervisors()
    server.write_config(
        http=f"    inference_repository {server.more};\n")
    server.signal("HUP")
    server.wait_log("changed settings wait for the next core.*"
                    "inference_model_namespacing")
    assert process.wait_until(
        lambda: not set(old) & set(server.supervisors()), 20 * SLOW)
    assert count(server, READY) == 2
    server.end_core()
    assert server.wait_for("/v2/models/first/ready")
    assert process.wait_until(lambda: not count(server, READY), 20 * SLOW)


def test_both_outlive_the_core(two):
    server = two(EXPLICIT + "    inference_load_model second;\n",
                 allow_alarms=[r"exited on signal 9"])
    with triton.InferenceServerClient(server.url) as c:
        c.load_model("m", config=json.dumps(dict(CONFIG, max_batch_size=2)))
        c.load_model("first")
        (server.models / "first").rename(server.more / "first")
        c.load_model("first")
        c.unload_model("second")
    for _ in range(2):
        server.end_core()
        assert server.wait_for("/v2/health/ready")
        assert count(server, READY) == 2
        assert server.wait_for("/v2/models/first/ready")
        assert server.get("/v2/models/second/ready").status == 400
    text = server.get("/metrics").body.decode()
    for folder in (server.models, server.more):
        assert f'model="m",namespace="{folder}",version="1"' in text
    assert logged(server, f"model={server.more}::first version=1 is ready", 3)


def test_the_check_finds_nothing_wrong_with_equal_names(two):
    server = two(ON, start=False)
    status, text = server.check_config()
    assert status == 0 and "two or more" not in text, text
    server.write_config(http=f"    inference_repository {server.more};\n"
                        "    inference_check strict;\n")
    status, text = server.check_config()
    assert status == 1 and "not unique across all model repositories" in text


def test_one_that_kills_the_core_is_left_out_alone(two):
    """It counts against the one in its repository, not against the other."""
    def crashing(server):
        models.identity(server.more, "m", [("IN", "FP32", [-1])],
                        backend="failing",
                        parameters={"fail": "initialize-crash"})

    server = two(ON + f"    inference_backends {backends.build('failing')};\n",
                 start=False, allow_alarms=["exited on signal"])
    crashing(server)
    server.start("")
    assert process.wait_until(lambda: {
        "name": "m", "version": "1", "state": "UNAVAILABLE", "reason":
        "Unavailable: the core died 2 times while this model was loading: it "
        "is quarantined until a request loads it or its files change"}
        in ready_index(server), 60 * SLOW)
    assert process.wait_until(lambda: READY in ready_index(server), 20 * SLOW)
    server.wait_log("::m version=1 was loading")


def ready_index(server):
    """Nothing while there is no core."""
    try:
        return index(server)
    except (AssertionError, OSError, ValueError):
        return []
