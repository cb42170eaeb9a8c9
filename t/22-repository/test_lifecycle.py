"""Loads, reloads and unloads in the order and at the moments that hurt."""

import base64
import json
import os
import shutil
import urllib.parse

import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

from lib import backends, models, process
from lib.load import Load
from lib.repository import (EXPLICIT, IN, ONE, PARTS, ask, by_name, held,
                            index, is_away, let_go, loaded, rows, settled,
                            wait_held, wait_state, works)
from lib.server import CORE, SLOW
from lib.wire import request_bytes, tensor

ALL = "version_policy { all {} }\n"
POLL = "    inference_model_control poll interval=200ms;\n"


def good(folder):
    models.identity(folder, "good", IN)


@pytest.fixture
def serve(make_server):
    """A server whose models may have the backend "failing"."""
    def start(fill, http=EXPLICIT, **kw):
        return make_server(
            fill, parts=PARTS, http=http
            + f"    inference_backends {backends.build('failing')};\n", **kw)
    return start


def start_call(server, connection, verb, model):
    connection.send(request_bytes(
        "POST", f"/v2/repository/models/{model}/{verb}", b"", {}))


# ---- what was loaded, and what it says

def test_a_failed_model_that_is_unloaded(serve):
    """The server was told to have it: it is not ready without it."""
    def fill(folder):
        good(folder)
        models.identity(folder, "bad", IN, backend="nowhere")

    server = serve(fill, wait="live", http=EXPLICIT
                   + "    inference_load_model good;\n"
                     "    inference_load_model bad;\n")
    assert server.wait_for("/v2/models/good/ready")
    is_away(settled(server)["bad"][0], "nowhere")
    assert ask(server, "unload", "bad").status == 200
    is_away(rows(server, "bad")[0], "nowhere")
    assert server.get("/v2/health/ready").status == 400
    models.identity(server.models, "bad", IN)
    assert ask(server, "load", "bad").status == 200
    assert server.wait_for("/v2/health/ready")


@pytest.mark.parametrize("strict", ["on", "off"])
@pytest.mark.parametrize("trouble", [
    "missing", "file", "fifo", "loop", "config", "model", "none"])
def test_readiness_after_trouble_at_the_start(serve, tmp_path, trouble,
                                              strict):
    def fill(folder):
        good(folder)
        if trouble == "config":
            models.write_model(folder, "bad", "rubbish {")
        if trouble == "model":
            models.identity(folder, "bad", IN, backend="failing",
                            parameters={"fail": "initialize-error"})

    other = tmp_path / "other"
    make = {"missing": lambda: None, "file": lambda: other.write_text(""),
            "fifo": lambda: os.mkfifo(other),
            "loop": lambda: other.symlink_to("other")}.get(trouble)
    more = ""
    if make is not None:
        make()
        more = f"    inference_repository {other};\n"
    server = serve(fill, wait="live", http=more
                   + f"    inference_strict_readiness {strict};\n")
    assert server.wait_for("/v2/models/good/ready")
    works(server)
    if make is None:
        settled(server)
    else:                                       # nobody knows what it holds
        answer = ask(server, "index")
        assert answer.status in (404, 500) and str(other) in answer.error
    ready = trouble == "none" or strict == "off"
    assert server.wait_for("/v2/health/ready", status=200 if ready else 400)
    assert server.get("/v2/health/live").status == 200


@pytest.mark.parametrize("name", [
    "", "  ", "\t", ".", "..", "a/b", "/", "../good", "a\nb", "a\0b", "\x7f",
    "n" * 256, "n" * 300, "n" * 5000, "%2e%2e", "good/../good"])
def test_names_that_are_no_models(serve, name):
    server = serve(good)
    quoted = urllib.parse.quote(name, safe="")      # taken as it stands
    answer = ask(server, "load", quoted)
    assert 400 <= answer.status <= 500, answer
    for path in ("", "/ready", "/config", "/infer"):
        found = server.get(f"/v2/models/{quoted}{path}").status
        assert 400 <= found < 500, (path, found)
    assert ask(server, "unload", quoted).status < 500
    assert index(server) == [{"name": "good"}]
    assert ask(server, "load", "good").status == 200
    works(server)


def test_a_name_of_bytes_that_are_no_text(serve):
    server = serve(good)
    with server.wire() as connection:
        for verb in ("load", "unload"):
            connection.send(b"POST /v2/repository/models/a\xff\xfeb/"
                            + verb.encode() + b" HTTP/1.1\r\nHost: h\r\n"
                            b"Content-Length: 0\r\n\r\n")
            answer = connection.read()
            assert answer.status == 400, answer
            assert "not valid UTF-8" in answer.error
    assert index(server) == [{"name": "good"}]


def test_loading_again_loads_nothing(serve):
    def fill(folder):
        good(folder)
        models.identity(folder, "bad", IN, backend="failing",
                        parameters={"fail": "initialize-error"})

    server = serve(fill)
    for _ in range(3):
        assert ask(server, "load", "good").status == 200
        assert ask(server, "load", "bad").status == 400
    assert loaded(server, "good", {1: 1})
    assert process.wait_until(lambda: server.log_text().count(
        "model=bad version=1 failed to load") == 3, 20 * SLOW)
    models.identity(server.models, "bad", IN)
    assert ask(server, "load", "bad").status == 200
    works(server, "bad")


# ---- versions

def test_only_the_version_that_changed_is_loaded_again(serve):
    server = serve(lambda f: models.identity(f, "m", IN, versions=(1, 2),
                                             extra=ALL))
    assert ask(server, "load", "m").status == 200
    (server.models / "m" / "2" / "data").write_text("new")
    assert ask(server, "load", "m").status == 200
    assert loaded(server, "m", {1: 1, 2: 2})
    (server.models / "m" / "4").mkdir()
    assert ask(server, "load", "m").status == 200
    assert loaded(server, "m", {1: 1, 2: 2, 4: 1})
    shutil.rmtree(server.models / "m" / "1")
    assert ask(server, "load", "m").status == 200
    wait_state(server, "m", "UNAVAILABLE")
    assert rows(server, "m")[0]["reason"] == "unloaded"
    assert loaded(server, "m", {1: 1, 2: 2, 4: 1})
    assert server.get("/v2/models/m").json()["versions"] == ["2", "4"]


def policy(path, version):
    (path / "config.pbtxt").write_text(models.identity_config(
        "m", IN, extra=f"version_policy {{ specific {{ versions: {version} }}"
                       " }\n"))


def test_a_policy_switches_versions_without_a_gap(serve):
    def fill(folder):
        policy(models.identity(folder, "m", IN, versions=(1, 2)), 1)

    server = serve(fill)
    assert ask(server, "load", "m").status == 200

    def once(connection):
        return connection.infer("m", ONE).status

    with Load(server.port, once) as load:
        for i in range(10):
            version = 2 - i % 2
            policy(server.models / "m", version)
            assert ask(server, "load", "m").status == 200
            assert server.get("/v2/models/m").json()["versions"] \
                == [str(version)]
            load.wait_for_more(5, 30 * SLOW)
    assert set(load.results) == {200}, load.results


# ---- while something else goes on

def test_calls_meet_a_load_that_is_under_way(serve):
    """Both wait for it; they have their effects in the order they came."""
    def fill(folder):
        good(folder)
        held(folder, "m", "initialize-hold")

    server = serve(fill)
    with server.wire(60) as first, server.wire(60) as second, \
            server.wire(60) as third:
        start_call(server, first, "load", "m")
        wait_held(server, "m")
        start_call(server, second, "load", "m")
        start_call(server, third, "unload", "m")
        assert ask(server, "load", "good").status == 200     # not held up
        works(server)
        assert rows(server, "m") == [
            {"name": "m", "version": "1", "state": "LOADING"}]
        let_go(server, "m")
        for connection in (first, second, third):
            assert connection.read().status == 200
    wait_state(server, "m", "UNAVAILABLE")
    assert rows(server, "m")[0]["reason"] == "unloaded"


def test_files_that_are_replaced_during_the_load(serve):
    """Models that were there when it began are loaded, and the next poll sees
    the others."""
    def fill(folder):
        good(folder)
        held(folder, "m", "initialize-hold", max_batch=2)

    server = serve(fill, http=POLL, wait="live")
    assert server.wait_for("/v2/models/good/ready")
    wait_held(server, "m")
    models.identity(server.models, "m", IN, max_batch=5)    # and its backend
    works(server)
    let_go(server, "m")
    assert process.wait_until(lambda: server.get(
        "/v2/models/m/config").status == 200 and server.get(
            "/v2/models/m/config").json()["max_batch_size"] == 5, 20 * SLOW)
    assert server.wait_for("/v2/health/ready")


def test_a_folder_that_vanishes_during_the_load(serve):
    def fill(folder):
        good(folder)
        held(folder, "m", "initialize-hold")

    server = serve(fill)
    with server.wire(60) as loading:
        start_call(server, loading, "load", "m")
        wait_held(server, "m")
        (server.models / "m").rename(server.prefix / "away")
        (server.prefix / "away" / "hold").unlink()
        assert loading.read().status == 200
    assert rows(server, "m") == []              # no directory
    assert server.get("/v2/models/m/ready").status == 200
    assert ask(server, "load", "m").status == 500
    assert server.get("/v2/models/m/ready").status == 200
    assert ask(server, "unload", "m").status == 200
    assert server.wait_for("/v2/models/m/ready", status=404)


@pytest.mark.parametrize("where", ["initialize", "execute"])
def test_quit_while_a_model_is_busy(serve, where):
    """nginx ends when it is over; what came is answered."""
    def fill(folder):
        good(folder)
        held(folder, "m", f"{where}-hold")

    server = serve(fill)
    assert ask(server, "load", "good").status == 200
    with server.wire(60) as busy:
        if where == "initialize":
            start_call(server, busy, "load", "m")
        else:
            assert ask(server, "load", "m").status == 200
            busy.send(request_bytes("POST", "/v2/models/m/infer",
                                    json.dumps(ONE).encode(), {}))
        wait_held(server, "m")
        if where == "execute":                  # unloading in the background
            assert ask(server, "unload", "m").status == 200
        server.signal("QUIT")
        server.wait_log("gracefully shutting down")
        let_go(server, "m")
        answer = busy.read()
        assert answer.status == (200 if where == "initialize" else 503)
    server.process.wait(30 * SLOW)
    server.stop()


# ---- with the request

def config(name="m", **more):
    return json.dumps({"backend": "identity", "name": name, "input": [
        {"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}], "output": [
            {"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}], **more})


@pytest.mark.parametrize("override,words", [
    (config(maxBatchSize=3), None),             # camelCase is JSON's own
    (config(max_batch_size="3"), None),
    (config(name=""), None),
    (config(name="other"), "directory name 'm' for model 'other'"),
    (config(inputs=[]), "unknown field"),
    (config(max_batch_size=1.5), "max_batch_size"),
    (config(max_batch_size=10 ** 30), "max_batch_size"),
    (config(version_policy={"all": {}, "latest": {}}), "version_policy"),
    ('{"input":' + '[' * 100_000, "Invalid config override"),
    ('{"parameters":' * 10_000, "Invalid config override"),
    ("", "Invalid config override"), ("[]", "Invalid config override"),
    ("null", "Invalid config override"),
    (config(backend="\x1f\u0080"), "backend"),
])
def test_configurations_that_come_with_the_load(serve, override, words):
    server = serve(lambda f: models.identity(f, "m", IN))
    answer = ask(server, "load", "m", {"parameters": {"config": override}})
    if words is None:
        assert answer.status == 200, answer
        works(server, "m") if "atch" not in override else None
        assert server.get("/v2/models/m/config").json()["name"] == "m"
        return
    assert answer.status in (400, 500), answer
    is_away(rows(server, "m")[0], words)
    assert ask(server, "load", "m").status == 200
    works(server, "m")


def test_an_empty_configuration_is_completed(serve):
    """By the core from the files' names, by the backend from the file."""
    source = os.path.join(os.path.dirname(__file__), "../../examples/models")

    def fill(folder):
        shutil.copytree(os.path.join(source, "digits"), folder / "digits")
        (folder / "digits" / "config.pbtxt").unlink()

    server = serve(fill)
    answer = ask(server, "load", "digits", {"parameters": {"config": "{}"}})
    assert answer.status == 200, answer
    found = server.get("/v2/models/digits/config").json()
    assert (found["name"], found["backend"], found["platform"],
            found["default_model_filename"]) == (
        "digits", "onnxruntime", "onnxruntime_onnx", "model.onnx")
    assert found["input"] and found["output"]


@pytest.mark.parametrize("path,words", [
    ("file:../x", "must stay within model directory"),
    ("file:1/../../x", "must stay within model directory"),
    ("file:", "must stay within model directory"),
    ("file:1/", "must stay within model directory"),
    ("file:" + "n" * 300, "File name too long"),
    ("file:" + "d/" * 3000 + "x", "File name too long"),
    ("file:1/data/x", "created as a file"),
    ("file:/etc/inner", None), ("file:1/a b\u00e9", None),
    ("file:1/..x", None),
    ("file:a/../../x", "must stay within model directory"),
    ("file:1/x/..", "must stay within model directory"),
    ("file:new/../1/./x", None), ("file://1//./a/../../1/x", None)])
def test_files_that_come_with_the_load(serve, path, words):
    server = serve(good)
    data = base64.b64encode(b"x").decode()
    answer = ask(server, "load", "good", {"parameters": {
        "config": config("good"), "file:1/data": data, path: data}})
    if words is None:
        assert answer.status == 200, answer
        works(server)
        return
    assert answer.status == 500, answer
    is_away(rows(server, "good")[0], words)
    assert ask(server, "load", "good").status == 200
    works(server)


def test_the_same_files_twice_with_other_content(serve):
    """A model of its own each time: it is never taken for unchanged."""
    server = serve(good)
    for i in range(3):
        data = base64.b64encode(b"%d" % i).decode()
        assert ask(server, "load", "good", {"parameters": {
            "config": config("good"), "file:1/data": data}}).status == 200
        works(server)
    assert loaded(server, "good", {1: 3})


# ---- polling

def test_a_second_repository_with_the_same_name(serve, tmp_path):
    tmp_path.chmod(0o755)
    server = serve(lambda f: (good(f), models.identity(f, "m", IN)),
                   http=POLL + f"    inference_repository {tmp_path};\n")
    works(server, "m")
    models.identity(tmp_path, "m", IN, versions=(3,))
    assert server.wait_for("/v2/models/m/ready", status=404)
    assert rows(server, "m") == [
        {"name": "m", "state": "UNAVAILABLE",
         "reason": "model appears in two or more repositories"}]
    works(server)
    shutil.rmtree(server.models / "m")
    assert server.wait_for("/v2/models/m/ready")
    works(server, "m", version="3")
    assert loaded(server, "good", {1: 1})


def test_labels_that_change_load_their_model_again(serve):
    def fill(folder):
        good(folder)
        path = models.identity(folder, "m", IN, outputs=[
            ("OUT", "FP32", [-1], 'label_filename: "labels.txt"')])
        (path / "labels.txt").write_text("a\nb\n")

    server = serve(fill, http=POLL)
    path = server.models / "m" / "labels.txt"

    def label():
        answer = server.infer("m", dict(ONE, outputs=[
            {"name": "OUT", "parameters": {"classification": 1}}]))
        return answer.json()["outputs"][0]["data"][0] \
            if answer.status == 200 else answer

    assert label() == "2.500000:1:b"
    path.write_bytes(b"x\r\ny\r")               # no line end of ours
    assert process.wait_until(lambda: label() == "2.500000:1:y\r", 20 * SLOW)
    path.unlink()
    assert process.wait_until(
        lambda: "labels.txt" in rows(server, "m")[0].get("reason", ""),
        20 * SLOW)
    assert label() == "2.500000:1:y\r"               # the old one goes on
    path.symlink_to("/etc/passwd")
    assert process.wait_until(
        lambda: "is outside model directory" in rows(server, "m")[0].get(
            "reason", ""), 20 * SLOW)
    path.unlink()
    path.write_text("p\nq")
    assert process.wait_until(lambda: label() == "2.500000:1:q", 20 * SLOW)
    assert loaded(server, "good", {1: 1})


def test_the_index_asked_in_every_way(serve):
    server = serve(lambda f: (good(f), models.identity(f, "m", IN)))
    with triton.InferenceServerClient(server.url) as client:
        client.load_model("m")
        for body in (b"", b"{}", b'{"ready":false}'):
            assert by_name(server) == {
                "good": [{"name": "good"}], "m": [
                    {"name": "m", "version": "1", "state": "READY"}]}
            assert ask(server, "index", body=body).status == 200
        assert index(server, ready=True) == [
            {"name": "m", "version": "1", "state": "READY"}]
        for ready in ("yes", 1, None, []):
            answer = ask(server, "index", body={"ready": ready})
            assert answer.status == 400, answer
            assert "must be a boolean" in answer.error
        shutil.rmtree(server.models / "m")
        assert by_name(server) == {"good": [{"name": "good"}]}
        assert client.is_model_ready("m")
        with pytest.raises(InferenceServerException):
            client.load_model("m")
        assert client.is_model_ready("m")


def test_a_repository_that_comes_later(serve, tmp_path):
    """Its models are unknown: until then the server is not ready."""
    tmp_path.chmod(0o755)
    late = tmp_path / "late"
    server = serve(good, wait="live", http=POLL
                   + f"    inference_repository {late};\n")
    assert server.wait_for("/v2/models/good/ready")
    assert server.get("/v2/health/ready").status == 400
    answer = ask(server, "index")
    assert answer.status == 500 and "late' can't be listed" in answer.error
    models.identity(tmp_path / "new", "m", IN)
    (tmp_path / "new").rename(late)
    assert server.wait_for("/v2/models/m/ready")
    assert server.wait_for("/v2/health/ready")
    shutil.rmtree(late / "m")
    late.rename(tmp_path / "away")              # what serves goes on
    assert server.wait_for("/v2/health/ready")
    works(server, "m")
    works(server)


def test_quit_with_a_batch_that_waits_for_more(serve):
    """It waits no longer than its delay, and is answered."""
    server = serve(lambda f: models.identity(
        f, "m", IN, max_batch=8, extra="dynamic_batching {"
        " preferred_batch_size: 8 max_queue_delay_microseconds: 1000000 }\n"),
        http="")
    with server.wire(60) as waiting:
        waiting.send(request_bytes("POST", "/v2/models/m/infer", json.dumps({
            "inputs": [tensor("IN", "FP32", [1, 2], [1, 2.5])]}).encode(),
            {}))
        server.signal("QUIT")
        answer = waiting.read()
        assert answer.status == 200, answer
    server.process.wait(30 * SLOW)
    server.stop()


def test_stop_while_a_model_loads_for_good(serve):
    """nginx waits for no model; the core is given its drain time."""
    def fill(folder):
        good(folder)
        held(folder, "m", "initialize-hold")

    server = serve(fill, http="", wait="live",
                   core=f"{CORE} drain=1s")
    assert server.wait_for("/v2/models/good/ready")
    wait_held(server, "m")
    works(server)
    server.stop("TERM")
