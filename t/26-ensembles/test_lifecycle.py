"""When an ensemble is there: it comes after its models, goes with them, comes
back with them, and is made anew when one of them was."""

import concurrent.futures
import json
import os
import shutil
import signal
import time

import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from lib import backends, models, process
from lib.load import Load
from lib.repository import held, let_go, wait_held
from lib.server import SLOW, nap
from lib.wire import request_bytes, tensor

PARTS = "health metadata config infer statistics repository"
EXPLICIT = "    inference_model_control explicit;\n"
POLL = "    inference_model_control poll interval=200ms;\n"
TENSORS = models.io_block("input", [("IN", "FP32", [-1])]) \
    + models.io_block("output", [("OUT", "FP32", [-1])])


def ensemble_config(composing, extra=""):
    """One composing model after the other; "m:3" is version 3, "m" the
    latest."""
    steps = []
    for i, model in enumerate(composing):
        name, _, version = model.partition(":")
        source = f"t{i}" if i else "IN"
        target = f"t{i + 1}" if i + 1 < len(composing) else "OUT"
        steps.append(
            f'step {{ model_name: "{name}" model_version: {version or -1}'
            f' input_map {{ key: "IN" value: "{source}" }}'
            f' output_map {{ key: "OUT" value: "{target}" }} }}')
    return 'platform: "ensemble"\n' + TENSORS + extra \
        + "ensemble_scheduling {\n  " + "\n  ".join(steps) + "\n}\n"


def ensemble(folder, name, *composing, versions=(1,), extra=""):
    return models.write_model(folder, name, ensemble_config(composing, extra),
                              versions)


def identity(folder, name, **kw):
    return models.identity(folder, name, [("IN", "FP32", [-1])], **kw)


def repository(folder):
    ensemble(folder, "a_line", "m", "z_line", "m")
    ensemble(folder, "z_line", "m", "n")
    ensemble(folder, "alone", "n")
    identity(folder, "m")
    identity(folder, "n")


def index(server, **body):
    answer = server.post("/v2/repository/index", json.dumps(body).encode())
    assert answer.status == 200, answer
    return json.loads(answer.body)


def rows(server):
    """The READY models, and why the rest isn't."""
    return {r["name"]: "READY" if r.get("state") == "READY"
            else r.get("reason", "") for r in index(server)}


def ready(server):
    return {r["name"] for r in index(server, ready=True)}


def wait_ready(server, *names):
    assert process.wait_until(lambda: ready(server) == set(names),
                              20 * SLOW), index(server)


@pytest.fixture
def explicit(make_server):
    return make_server(repository, parts=PARTS, workers=2, http=EXPLICIT)


@pytest.fixture
def client(explicit):
    with triton.InferenceServerClient(explicit.url) as c:
        yield c


def unload_dependents(client, name):
    client.unload_model(name, unload_dependents=True)


# ---- none and the start

def test_ensembles_of_the_start(make_server):
    server = make_server(repository, parts=PARTS)
    with triton.InferenceServerClient(server.url) as c:
        for name in ("a_line", "z_line", "alone", "m", "n"):
            assert c.is_model_ready(name)
        assert c.get_model_metadata("a_line") == {
            "name": "a_line", "versions": ["1"], "platform": "ensemble",
            "inputs": [{"name": "IN", "datatype": "FP32", "shape": [-1]}],
            "outputs": [{"name": "OUT", "datatype": "FP32", "shape": [-1]}]}
        config = c.get_model_config("a_line")
        assert config["platform"] == "ensemble"
        assert config["model_transaction_policy"] == {"decoupled": False}
        assert [s["model_name"] for s in
                config["ensemble_scheduling"]["step"]] == ["m", "z_line", "m"]
        assert not config.get("instance_group")
        stats, = c.get_inference_statistics("a_line")["model_stats"]
        assert (stats["name"], stats["version"]) == ("a_line", "1")
        assert stats["inference_count"] == 0


def test_what_cannot_be_made_says_why_and_holds_up_nobody(make_server):
    def fill(folder):
        repository(folder)
        ensemble(folder, "absent", "m", "nowhere", "neither")
        ensemble(folder, "late_version", "m:7")
        models.write_model(folder, "no_version", ensemble_config(
            ["m"]).replace("model_version: -1", ""))
        ensemble(folder, "self", "self")
        ensemble(folder, "circle_a", "circle_b")
        ensemble(folder, "circle_b", "circle_c", "m")
        ensemble(folder, "circle_c", "circle_a")
        ensemble(folder, "on_circle", "circle_a")
        ensemble(folder, "on_broken", "homeless")
        models.write_model(folder, "homeless", models.identity_config(
            "homeless", [("IN", "FP32", [-1])], backend="nowhere"))
        models.write_model(folder, "misfit", ensemble_config(["other"]))
        models.identity(folder, "other", [("IN", "INT8", [-1])])

    server = make_server(fill, parts=PARTS, wait="live")
    wait_ready(server, "a_line", "z_line", "alone", "m", "n", "other")
    assert process.wait_until(lambda: "" not in rows(server).values(),
                              20 * SLOW), index(server)
    why = {k: v.removeprefix("Invalid argument: ")
           for k, v in rows(server).items()}
    assert why["absent"] == "ensemble absent contains models that are not " \
        "available or ambiguous: nowhere, neither"
    assert why["late_version"] == "ensemble 'late_version' depends on 'm' " \
        "whose required version 7 is not loaded."
    assert why["no_version"] == "ensemble 'no_version' depends on 'm' whose " \
        "required version 0 is not loaded."
    circle = "circular dependency between ensembles: "
    assert why["self"] == circle + "self -> ... -> self -> self (self -> self)"
    assert why["circle_a"] == circle + "circle_a -> ... -> circle_c -> " \
        "circle_a (circle_a -> circle_b -> circle_c -> circle_a)"
    assert why["circle_b"] == circle + "circle_b -> ... -> circle_a -> " \
        "circle_b (circle_b -> circle_c -> circle_a -> circle_b)"
    assert why["circle_c"] == circle + "circle_c -> ... -> circle_b -> " \
        "circle_c (circle_c -> circle_a -> circle_b -> circle_c)"
    assert why["on_circle"].startswith(
        "ensemble 'on_circle' depends on 'circle_a' which is not valid. "
        "Model 'circle_a' failed with error: ")
    assert why["on_broken"].startswith(
        "ensemble 'on_broken' depends on 'homeless' which has no loaded "
        "version. Model 'homeless' loading failed with error: version 1 is at"
        " UNAVAILABLE state: ")
    assert "misfit" in why["misfit"] and "other" in why["misfit"]
    assert server.status("/v2/health/ready") == 400
    for name in ("absent", "self", "misfit"):
        server.wait_log(f"model={name} version=1 failed to load: ")


# ---- explicit

def test_composing_models_come_with_it_and_stay_unless_asked(explicit, client):
    client.load_model("alone")
    client.load_model("a_line")
    assert ready(explicit) == {"a_line", "z_line", "alone", "m", "n"}
    client.unload_model("a_line")
    wait_ready(explicit, "z_line", "alone", "m", "n")
    client.load_model("a_line")
    unload_dependents(client, "a_line")
    wait_ready(explicit, "alone", "n")      # which "alone" needs
    unload_dependents(client, "alone")
    wait_ready(explicit)
    assert process.wait_until(
        lambda: set(rows(explicit).values()) == {"unloaded"}, 20 * SLOW)
    assert process.wait_until(client.is_server_ready, 20 * SLOW)


def test_what_was_loaded_by_request_stays(explicit, client):
    client.load_model("m")
    client.load_model("z_line")
    client.load_model("n")                  # it came with z_line before
    unload_dependents(client, "z_line")
    wait_ready(explicit, "m")


def test_it_goes_with_its_composing_model_and_returns(explicit, client):
    client.load_model("a_line")
    for name, flag in (("n", False), ("m", True)):
        client.unload_model(name, unload_dependents=flag)
        assert not client.is_model_ready("z_line")
        assert not client.is_model_ready("a_line")
        assert rows(explicit)["z_line"] == "Invalid argument: ensemble " \
            f"'z_line' depends on '{name}' which has no loaded version."
        assert "depends on" in rows(explicit)["a_line"]
        answer = explicit.get("/v2/models/z_line/config")
        assert answer.status == 503
        assert json.loads(answer.body)["error"] == (
            "Request for unknown model: 'z_line' is not at ready state: "
            f"ensemble 'z_line' depends on '{name}' which has no loaded "
            "version.")
        assert process.wait_until(          # somebody wanted it so
            client.is_server_ready, 20 * SLOW)
        client.load_model(name)
        assert ready(explicit) == {"a_line", "z_line", "m", "n"}


def test_a_load_that_fails_comes_when_it_can(explicit, client):
    ensemble(explicit.models, "early", "m", "later")
    with pytest.raises(InferenceServerException, match=(
            "load failed for model 'early': ensemble early contains models "
            "that are not available or ambiguous: later\n")):
        client.load_model("early")
    assert client.is_server_ready()         # as if nobody had asked for it
    identity(explicit.models, "later")
    client.load_model("later")
    assert ready(explicit) == {"early", "m", "later"}
    assert client.is_server_ready()


def test_a_configuration_with_the_request(explicit, client):
    client.load_model("alone")
    config = {
        "platform": "ensemble", "max_batch_size": 0,
        "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}],
        "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}],
        "ensemble_scheduling": {"step": [{
            "model_name": "m", "model_version": -1,
            "input_map": {"IN": "IN"}, "output_map": {"OUT": "OUT"}}]}}
    client.load_model("alone", config=json.dumps(config))
    client.unload_model("n")
    assert ready(explicit) == {"alone", "m"}
    client.unload_model("m")
    client.load_model("m")                  # with the same configuration
    assert ready(explicit) == {"alone", "m"}
    steps = client.get_model_config("alone")["ensemble_scheduling"]["step"]
    assert [s["model_name"] for s in steps] == ["m"]


def test_a_new_version_of_a_composing_model(explicit, client):
    ensemble(explicit.models, "first", "m:1")
    client.load_model("alone")
    client.load_model("z_line")
    client.load_model("first")
    identity(explicit.models, "m", versions=(2,))
    client.load_model("m")
    assert rows(explicit)["first"].endswith(
        "depends on 'm' whose required version 1 is not loaded.")
    assert "z_line" in ready(explicit)
    shutil.rmtree(explicit.models / "m" / "2")
    client.load_model("m")
    assert "first" in ready(explicit)


ONE = {"inputs": [tensor("IN", "FP32", [2], [1.5, 2.5])]}


def test_no_request_fails_while_composing_models_are_reloaded(explicit, client):
    client.load_model("a_line")

    def once(connection):
        answer = connection.infer("a_line", ONE)
        assert answer.status != 200 or answer.json()["outputs"][0]["data"] \
            == [1.5, 2.5]
        return answer.status

    with Load(explicit.port, once, count=4) as load:
        for i in range(20):
            name = "mn"[i % 2]
            (explicit.models / name / "1" / "data").write_text(str(i))
            client.load_model(name)
            load.wait_for_more(10, 30 * SLOW)
    assert set(load.results) == {200}, load.results


@pytest.mark.parametrize("name", ["both", "beside", "top"])
def test_an_unload_waits_for_an_ensemble_that_waits_for_others(make_server,
                                                               name):
    """The load came first; the ensemble has others in it."""
    def fill(folder):
        identity(folder, "m")
        held(folder, "waits", "initialize-hold")
        ensemble(folder, "both", "m", "waits")
        ensemble(folder, "alone", "waits")
        ensemble(folder, "beside", "m", "alone")
        ensemble(folder, "above", "both")
        ensemble(folder, "top", "above")

    server = make_server(
        fill, parts=PARTS,
        http=EXPLICIT + f"    inference_backends {backends.build('failing')};"
        "\n")

    def ask(name, verb):
        return server.post(f"/v2/repository/models/{name}/{verb}", b"")

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        load = pool.submit(ask, name, "load")
        wait_held(server, "waits")
        assert process.wait_until(lambda: "m" in ready(server), 20 * SLOW)
        unload = pool.submit(ask, "m", "unload")
        nap(0.3)
        assert ready(server) == {"m"} and not unload.done()
        let_go(server, "waits")
        answer = load.result(20 * SLOW)
        assert answer.status == 200, answer
        answer = unload.result(20 * SLOW)
        assert answer.status == 200, answer
    wait_ready(server, "waits", *["alone"] * (name == "beside"))
    assert "has no loaded version" in rows(server)[name]


def test_a_running_request_outlives_its_composing_models(make_server):
    def fill(folder):
        repository(folder)
        identity(folder, "m", parameters={"execute_delay_ms": "700"})

    server = make_server(fill, parts=PARTS, http=EXPLICIT)
    with triton.InferenceServerClient(server.url) as c, \
            server.wire(60) as connection:
        c.load_model("a_line")
        connection.send(request_bytes("POST", "/v2/models/a_line/infer",
                                      json.dumps(ONE).encode(), {}))
        assert process.wait_until(lambda: c.get_inference_statistics("m")[
            "model_stats"][0]["inference_count"], 20 * SLOW)
        c.unload_model("m")
        c.unload_model("n")
        assert not ready(server)
        answer = connection.read()
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] == [1.5, 2.5]
    assert process.wait_until(lambda: rows(server)["m"] == "unloaded",
                              20 * SLOW)


def test_labels_are_those_of_the_step(make_server):
    def fill(folder):
        path = models.identity(
            folder, "vision", [("IN", "FP32", [4])],
            outputs=[("OUT", "FP32", [4], 'label_filename: "labels.txt"')])
        (path / "labels.txt").write_text("dog\ncat\nhen\nowl\n")
        models.identity(folder, "m", [("IN", "FP32", [4])])
        for name, composing in (("inner", ("m", "vision")),
                              ("outer", ("m", "inner")),
                              ("none", ("vision", "m"))):
            models.write_model(folder, name, ensemble_config(
                composing).replace("[ -1 ]", "[ 4 ]"))

    server = make_server(fill, parts=PARTS)
    body = {"inputs": [tensor("IN", "FP32", [4], [0, 9, -1, 3])],
            "outputs": [{"name": "OUT", "parameters": {"classification": 1}}]}
    for name, text in (("outer", "9.000000:1:cat"), ("inner",
                       "9.000000:1:cat"), ("none", "9.000000:1")):
        answer = server.infer(name, body)
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] == [text]


def test_ensembles_outlive_the_core(make_server):
    server = make_server(repository, parts=PARTS, http=EXPLICIT,
                         allow_alarms=[r"exited on signal 9"])
    with triton.InferenceServerClient(server.url) as c:
        c.load_model("alone")
        c.load_model("a_line")
        c.unload_model("alone")
    for _ in range(2):
        server.end_core()
        assert server.wait_for("/v2/models/a_line/ready")
        wait_ready(server, "a_line", "z_line", "m", "n")
    with triton.InferenceServerClient(server.url) as c:
        unload_dependents(c, "a_line")      # it knows who came by itself
    wait_ready(server)


# ---- poll, and other repositories

def test_poll_mode(make_server):
    def fill(folder):
        ensemble(folder, "alone", "n")
        identity(folder, "n")

    server = make_server(fill, parts=PARTS, http=POLL)
    ensemble(server.models, "line", "m", "n")
    assert process.wait_until(lambda: "not available" in rows(server).get(
        "line", ""), 20 * SLOW)
    identity(server.models, "m")
    wait_ready(server, "alone", "line", "m", "n")

    (server.models / "n").rename(server.prefix / "away")
    wait_ready(server, "m")
    assert process.wait_until(lambda: "depends on 'n'" in rows(server)[
        "alone"], 20 * SLOW)
    shutil.rmtree(server.models / "alone")
    assert process.wait_until(lambda: "alone" not in rows(server), 20 * SLOW)
    time.sleep(1)                           # that it goes there is no sign
    (server.prefix / "away").rename(server.models / "n")
    wait_ready(server, "line", "m", "n")


def test_a_reload_of_nginx_brings_and_takes_composing_models(make_server):
    def fill(folder):
        ensemble(folder, "line", "m")
        identity(folder, "own")

    server = make_server(fill, parts=PARTS, wait="live")
    other = server.prefix / "other"
    other.mkdir()
    identity(other, "m")
    wait_ready(server, "own")
    for folders, names in (([other], ("line", "m", "own")), ([], ("own",)),
                           ([other], ("line", "m", "own"))):
        server.write_config(http="".join(
            f"    inference_repository {f};\n" for f in folders))
        server.signal("HUP")
        wait_ready(server, *names)


# ---- a process of a composing model

def test_a_lost_process_of_a_composing_model(make_server):
    config = ('backend: "forker"\n'
              + models.io_block("input", [("IN", "INT32", [1])])
              + models.io_block("output", [("PID", "INT32", [1])]))

    def fill(folder):
        models.write_model(folder, "stub", config)
        models.write_model(folder, "line", (
            'platform: "ensemble"\n'
            + models.io_block("input", [("IN", "INT32", [1])])
            + models.io_block("output", [("PID", "INT32", [1])])
            + 'ensemble_scheduling { step { model_name: "stub" model_version:'
            ' -1 input_map { key: "IN" value: "IN" } output_map { key: "PID"'
            ' value: "PID" } } }'))

    server = make_server(fill, parts=PARTS, backends=backends.build("forker"))
    children = process.descendants(server.core())
    assert len(children) == 1
    os.kill(children[0], signal.SIGKILL)
    server.wait_log(r"model=line version=1 is being unloaded: ensemble 'line'"
                    r" depends on 'stub' which has no loaded version\. Model"
                    rf" 'stub' loading failed .*process {children[0]} ")
    wait_ready(server, "line", "stub")
    again = process.descendants(server.core())
    assert len(again) == 1 and again != children
