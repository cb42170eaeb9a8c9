"""POST v2/repository/...: index, load, unload."""

import base64
import json
import os

import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

import numpy as np

from lib import backends, models, process
from lib.load import Load
from lib.server import SLOW
from lib.wire import chunked, request_bytes, tensor

EXPLICIT = "    inference_model_control explicit;\n"
PARTS = "health metadata config infer repository"
CONFIG = {
    "backend": "identity", "max_batch_size": 0,
    "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}]}


def repository(folder):
    models.identity(folder, "one", [("IN", "FP32", [-1])])
    models.identity(folder, "two", [("IN", "FP32", [-1])], versions=(1, 3),
                    extra="version_policy { all {} }\n")
    held(folder, "slow", "execute-hold")
    models.write_model(folder, "broken", "backend: nonsense }", (1,))
    models.write_model(folder, "homeless", models.identity_config(
        "homeless", [("IN", "FP32", [-1])], backend="nowhere"), (1,))
    (folder / "empty").mkdir()
    (folder / "empty" / "config.pbtxt").write_text(
        models.identity_config("empty", [("IN", "FP32", [-1])]))


def held(folder, name, where):
    """A model that waits there until let_go()."""
    path = models.identity(folder, name, [("IN", "FP32", [-1])],
                           backend="failing", parameters={"fail": where})
    (path / "hold").write_text("")
    path.chmod(0o777)


def wait_held(server, name):
    assert process.wait_until(
        (server.models / name / "held").exists, 20 * SLOW)


def let_go(server, name):
    (server.models / name / "hold").unlink()


@pytest.fixture
def explicit(make_server):
    return make_server(
        repository, parts=PARTS, workers=2, http=EXPLICIT
        + f"    inference_backends {backends.build('failing')};\n")


@pytest.fixture
def client(explicit):
    with triton.InferenceServerClient(explicit.url) as c:
        yield c


def ask(server, verb, model="", body=b""):
    path = "/v2/repository/index" if verb == "index" \
        else f"/v2/repository/models/{model}/{verb}"
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return server.post(path, body)


def index(server, **body):
    answer = ask(server, "index", body=body or b"")
    assert answer.status == 200, answer
    return json.loads(answer.body)


def error(answer):
    return json.loads(answer.body)["error"]


def wait_rows(server, rows):
    assert process.wait_until(
        lambda: [r for r in index(server) if r in rows] == rows,
        20 * SLOW), index(server)


def infer(client, model, values=(1.5, 2.5), version=""):
    data = np.array(values, dtype=np.float32)
    inp = triton.InferInput("IN", list(data.shape), "FP32")
    inp.set_data_from_numpy(data)
    return client.infer(model, [inp], model_version=version).as_numpy("OUT")


def test_bodies_may_begin_with_a_byte_order_mark(explicit):
    mark = b"\xef\xbb\xbf"
    assert ask(explicit, "load", "one", mark + b'{"parameters": {}}').status \
        == 200
    assert json.loads(ask(explicit, "index", body=mark
                          + b'{"ready": true}').body) == [
        {"name": "one", "version": "1", "state": "READY"}]
    answer = ask(explicit, "index", body=mark)
    assert answer.status == 400
    assert "The document is empty. at 3" in error(answer)


def test_a_model_comes_and_goes(explicit, client):
    assert client.is_server_ready()
    assert not client.is_model_ready("one")
    assert client.get_model_repository_index() == [
        {"name": n} for n in ("broken", "empty", "homeless", "one", "slow",
                              "two")]

    client.load_model("two")
    assert client.is_model_ready("two", "1") and client.is_model_ready("two")
    np.testing.assert_array_equal(infer(client, "two"), [1.5, 2.5])
    assert index(explicit, ready=True) == [
        {"name": "two", "version": v, "state": "READY"} for v in ("1", "3")]
    assert client.get_model_metadata("two")["versions"] == ["1", "3"]

    client.unload_model("two")
    assert not client.is_model_ready("two")
    wait_rows(explicit, [
        {"name": "two", "version": v, "state": "UNAVAILABLE",
         "reason": "unloaded"} for v in ("1", "3")])
    assert client.is_server_ready()
    answer = explicit.get("/v2/models/two/config")
    assert answer.status == 404
    assert error(answer) == "Request for unknown model: 'two' has no " \
        "available versions"
    answer = explicit.get("/v2/models/two/versions/1/config")
    assert answer.status == 503
    assert "version 1 is not at ready state" in error(answer)

    client.load_model("two")
    np.testing.assert_array_equal(infer(client, "two", version="1"),
                                  [1.5, 2.5])


def test_what_cannot_be_loaded_says_why(explicit, client):
    answer = ask(explicit, "load", "missing")
    assert answer.status == 500
    assert error(answer) == "failed to load 'missing', failed to poll from " \
        "model repository"
    assert ask(explicit, "load", "broken").status == 500
    answer = ask(explicit, "load", "homeless")
    assert answer.status == 400
    assert error(answer).startswith(
        "load failed for model 'homeless': version 1 is at UNAVAILABLE state:"
        " Invalid argument: unable to find backend library")
    assert error(answer).endswith(";\n")
    answer = ask(explicit, "load", "empty")
    assert answer.status == 400
    assert "at least one version must be available" in error(answer)
    assert error(explicit.get("/v2/models/empty")) \
        == "Request for unknown model: 'empty' has no available versions"
    assert error(explicit.get("/v2/models/broken")) \
        == "Request for unknown model: 'broken' is not found"
    assert ask(explicit, "load", "..").status in (400, 404)
    with pytest.raises(InferenceServerException, match="failed to poll"):
        client.load_model("missing")

    rows = {r["name"]: r for r in index(explicit)}
    assert "missing" not in rows
    assert rows["homeless"]["state"] == "UNAVAILABLE"
    assert "nowhere" in rows["homeless"]["reason"]
    assert "config.pbtxt:1:" in rows["broken"]["reason"]
    assert not client.is_server_ready()         # as Triton: it failed
    assert client.is_server_live()


def test_a_reason_is_readable_whatever_it_quotes(explicit):
    """A file's string may hold any bytes, JSON may not."""
    models.write_model(explicit.models, "bytes", 'backend: "identity"\n'
                       'input { name: "\\303\\274\\377" dims: 1 }\n')
    answer = ask(explicit, "load", "bytes")
    assert answer.status == 400
    assert "model input 'ü?' must" in error(answer)
    reason, = [r["reason"] for r in index(explicit) if r["name"] == "bytes"]
    assert "model input 'ü?' must" in reason


def test_unloading_what_nobody_knows(explicit):
    for body in (b"", {}, {"parameters": {"unload_dependents": True}}):
        answer = ask(explicit, "unload", "nobody", body)
        assert (answer.status, answer.body) == (200, b"")
        assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("verb,body,words", [
    ("index", b"{", "failed to parse the request JSON buffer"),
    ("index", b"[]", "must be an object"),
    ("index", {"ready": 1}, "must be a boolean"),
    ("load", {"parameters": []}, "'parameters' must be an object"),
    ("load", {"parameters": {"config": {}}}, "'config' must be a string"),
    ("load", {"parameters": {"speed": "high"}},
     "unrecognized load parameter 'speed'"),
    ("load", {"parameters": {"config": "{}", "file:1/m": "%%%%"}},
     "'file:1/m' is not base64"),
    ("load", b'{"parameters":{"config":"a\\u0000b"}}', "NUL"),
    ("unload", {"parameters": {"unload_dependents": "yes"}},
     "must be a boolean"),
    ("index", b'{"ready":true,"ready":false}', "duplicate object key"),
    ("load", b'{"parameters":{"config":"{}","config":"{}"}}',
     "duplicate object key"),
    ("unload", b'{"parameters":{},"parameters":{}}', "duplicate object key"),
])
def test_bad_requests(explicit, verb, body, words):
    answer = ask(explicit, verb, "one", body)
    assert answer.status == 400, answer
    assert words in error(answer)
    assert ask(explicit, "load", "one").status == 200


def test_a_repository_name_is_not_supported(explicit):
    for verb in ("load", "unload"):
        answer = explicit.post(f"/v2/repository/r/models/one/{verb}", b"")
        assert answer.status == 501
        assert error(answer) == \
            "'repository_name' specification is not supported"
    assert explicit.post("/v2/repository/r/index", b"").status == 200


def test_only_post(explicit):
    assert explicit.get("/v2/repository/index").status == 405
    assert explicit.get("/v2/repository/models/one/load").status == 405


def test_not_served_where_it_is_not_listed(make_server):
    server = make_server(
        repository, http=EXPLICIT, parts="all",
        server="location /admin/ { inference repository; }")
    assert ask(server, "index").status == 404
    assert ask(server, "load", "one").status == 404
    answer = server.post("/admin/v2/repository/models/one/load", b"")
    assert answer.status == 200, answer
    assert server.get("/v2/models/one/ready").status == 200
    assert server.get("/admin/v2/models/one/ready").status == 404


def test_none_mode_rejects_loads(make_server):
    def fill(folder):
        models.identity(folder, "one", [("IN", "FP32", [-1])])

    server = make_server(fill, parts=PARTS)
    for verb in ("load", "unload"):
        answer = ask(server, verb, "one")
        assert answer.status == 503
        assert error(answer) == "explicit model load / unload is not allowed" \
            " if polling is enabled; inference_model_control is none, not " \
            "explicit (inference-server: --model-control-mode=explicit)"
    assert index(server) == [{"name": "one", "version": "1",
                              "state": "READY"}]


def test_models_of_the_start(make_server):
    server = make_server(
        repository, parts=PARTS, http=EXPLICIT
        + "    inference_load_model two;\n    inference_load_model one;\n")
    assert [(r["name"], r["version"]) for r in index(server, ready=True)] == [
        ("one", "1"), ("two", "1"), ("two", "3")]


@pytest.mark.parametrize("strict", ["on", "off"])
def test_strict_readiness(make_server, strict):
    server = make_server(
        repository, parts=PARTS, wait="live", http=EXPLICIT
        + "    inference_load_model one;\n    inference_load_model gone;\n"
        + f"    inference_strict_readiness {strict};\n")
    assert server.wait_for("/v2/models/one/ready")
    assert server.wait_for("/v2/health/ready",
                           status=400 if strict == "on" else 200)
    rows = [r for r in index(server) if r["name"] == "gone"]
    assert rows[0]["reason"] == "model not found in any model repository."
    assert ask(server, "unload", "gone").status == 200
    assert server.wait_for("/v2/health/ready")


def test_configuration_with_the_request(explicit, client):
    client.load_model("one", config=json.dumps(dict(CONFIG,
                                                    max_batch_size=5)))
    assert client.get_model_config("one")["max_batch_size"] == 5
    client.load_model("one")                    # nothing newer: it stays
    assert client.get_model_config("one")["max_batch_size"] == 5
    path = explicit.models / "one" / "config.pbtxt"
    path.write_text(path.read_text())
    client.load_model("one")
    assert client.get_model_config("one")["max_batch_size"] == 0
    with pytest.raises(InferenceServerException, match="failed to poll"):
        client.load_model("one", config="{")
    np.testing.assert_array_equal(infer(client, "one"), [1.5, 2.5])


def private_folders(name):
    return [f for f in os.listdir("/tmp") if f.startswith("inference-model-")
            and os.path.isdir(f"/tmp/{f}/{name}")]


def test_files_with_the_request(explicit, client):
    name = "sent_" + explicit.id
    config = json.dumps(dict(CONFIG, name=name))
    client.load_model(name, config=config, files={
        "file:2/data": os.urandom(3_000_000), "file:notes.txt": b""})
    np.testing.assert_array_equal(infer(client, name), [1.5, 2.5])
    assert client.get_model_metadata(name)["versions"] == ["2"]
    folders = private_folders(name)
    assert len(folders) == 1
    assert os.stat(f"/tmp/{folders[0]}").st_mode & 0o777 == 0o700
    assert name not in {r["name"] for r in index(explicit)}

    with pytest.raises(InferenceServerException, match="failed to poll"):
        client.load_model(name, config=config, files={"file:../x": b"x"})
    np.testing.assert_array_equal(infer(client, name), [1.5, 2.5])
    assert private_folders(name) == folders

    answer = ask(explicit, "load", "one", {"parameters": {
        "file:1/x": base64.b64encode(b"x").decode()}})
    assert answer.status == 500                 # files need a configuration

    client.unload_model(name)
    assert process.wait_until(lambda: not private_folders(name), 20 * SLOW)


def test_files_of_more_than_64_mebibytes(make_server):
    """Of JSON, that is: the location says how much it may be."""
    server = make_server(parts=PARTS, http=EXPLICIT, server="""
        location /large/ { inference repository; inference_max_body 100m; }
    """)
    body = json.dumps({"parameters": {
        "config": json.dumps(CONFIG),
        "file:1/weights": base64.b64encode(bytes(50 << 20)).decode()}})
    path = "/v2/repository/models/brought/load"
    for head in ({}, {"Transfer-Encoding": "chunked"}):
        data = body.encode()
        data = chunked(data, 1 << 20) if head else data
        answer = server.post(path, data, head)
        assert answer.status == 400
        assert "67108864 bytes; inference_max_json_size" in error(answer)
        assert server.post("/large" + path, data, head).status == 200
        assert server.get("/v2/models/brought/ready").status == 200
    answer = server.post("/large" + path, b"{" + b" " * (100 << 20))
    assert answer.status == 413


def test_private_files_go_with_the_server(make_server):
    server = make_server(repository, http=EXPLICIT, parts=PARTS)
    name = "sent_" + server.id
    with triton.InferenceServerClient(server.url) as c:
        c.load_model(name, config=json.dumps(dict(CONFIG, name=name)),
                     files={"file:1/data": b"x"})
    assert private_folders(name)
    server.stop()
    assert not private_folders(name)


def test_a_broken_reload_keeps_the_model(explicit, client):
    client.load_model("one")
    path = explicit.models / "one" / "config.pbtxt"
    good = path.read_text()
    path.write_text(good.replace('"identity"', '"nowhere"'))
    with pytest.raises(InferenceServerException, match="load failed"):
        client.load_model("one")
    np.testing.assert_array_equal(infer(client, "one"), [1.5, 2.5])
    row, = index(explicit, ready=True)
    assert "nowhere" in row["reason"]
    path.write_text(good)
    client.load_model("one")
    assert index(explicit, ready=True) == [
        {"name": "one", "version": "1", "state": "READY"}]


ONE = {"inputs": [tensor("IN", "FP32", [2], [1, 2])]}


def test_no_request_fails_while_a_model_is_loaded_again(explicit, client):
    """scheduling.md 9.6"""
    client.load_model("one")

    def once(connection):
        return connection.infer("one", ONE).status

    with Load(explicit.port, once) as load:
        for i in range(20):
            (explicit.models / "one" / "1" / "data").write_text(str(i))
            client.load_model("one")
            load.wait_for_more(10, 30 * SLOW)
    assert set(load.results) == {200}, load.results


def test_a_running_request_outlives_the_unload(explicit, client):
    """scheduling.md 9.5"""
    client.load_model("slow")
    with explicit.wire(60) as connection:
        connection.send(request_bytes("POST", "/v2/models/slow/infer",
                                      json.dumps(ONE).encode(), {}))
        wait_held(explicit, "slow")
        client.unload_model("slow")
        row, = [r for r in index(explicit) if r["name"] == "slow"]
        assert row["state"] == "UNLOADING"
        assert not client.is_model_ready("slow")
        let_go(explicit, "slow")
        answer = connection.read()
        assert "closed for today" in error(answer)      # the backend's word
    wait_rows(explicit, [{"name": "slow", "version": "1",
                          "state": "UNAVAILABLE", "reason": "unloaded"}])


def test_other_models_answer_while_one_loads(make_server):
    """A load waits on threads of its own: not on intake's or an instance's."""
    def fill(folder):
        models.identity(folder, "one", [("IN", "FP32", [-1])])
        held(folder, "late", "initialize-hold")

    server = make_server(
        fill, parts=PARTS, http=EXPLICIT + "    inference_load_model one;\n"
        + f"    inference_backends {backends.build('failing')};\n")
    with server.wire(60) as loading:
        loading.send(request_bytes(
            "POST", "/v2/repository/models/late/load", b"", {}))
        wait_held(server, "late")
        for _ in range(50):
            assert server.infer("one", ONE).status == 200
        assert {"name": "late", "version": "1", "state": "LOADING"} \
            in index(server)
        let_go(server, "late")
        assert loading.read().status == 200
    assert server.get("/v2/models/late/ready").status == 200


def test_a_reload_of_nginx_leaves_loaded_models(explicit, client):
    client.load_model("one")
    old = set(explicit.workers())
    explicit.write_config(http=EXPLICIT + "    inference_load_model two;\n")
    explicit.signal("HUP")
    assert process.wait_until(lambda: set(explicit.workers()) - old,
                              20 * SLOW)
    assert explicit.wait_for("/v2/models/two/ready")
    assert explicit.infer("one", ONE).status == 200
    assert [r["name"] for r in index(explicit, ready=True)] \
        == ["one", "two", "two"]


def test_poll_mode_follows_the_disk(make_server):
    def fill(folder):
        models.identity(folder, "one", [("IN", "FP32", [-1])])

    server = make_server(fill, parts=PARTS, http="    "
                         "inference_model_control poll interval=200ms;\n")
    assert ask(server, "load", "one").status == 503

    models.identity(server.models, "two", [("IN", "FP32", [-1])],
                    max_batch=2)
    assert server.wait_for("/v2/models/two/ready")
    (server.models / "one").rename(server.prefix / "away")
    assert server.wait_for("/v2/models/one/ready", status=404)
    models.identity(server.models, "two", [("IN", "FP32", [-1])],
                    max_batch=5)
    assert process.wait_until(lambda: json.loads(server.get(
        "/v2/models/two/config").body)["max_batch_size"] == 5, 20 * SLOW)
    (server.prefix / "away").rename(server.models / "one")
    assert server.wait_for("/v2/models/one/ready")
    assert server.get("/v2/models/two/ready").status == 200


def test_loads_and_unloads_outlive_the_core(make_server):
    """design.md section 3: the next core replays the journal."""
    server = make_server(
        repository, parts=PARTS, allow_alarms=[r"exited on signal 9"],
        http=EXPLICIT + "    inference_load_model one;\n"
        "    inference_load_model homeless;\n", wait="live")
    name = "sent_" + server.id
    with triton.InferenceServerClient(server.url) as c:
        assert server.wait_for("/v2/models/one/ready")
        c.load_model("two", config=json.dumps(dict(
            CONFIG, name="two", max_batch_size=3,
            version_policy={"specific": {"versions": [1]}})))
        c.load_model(name, config=json.dumps(dict(CONFIG, name=name)),
                     files={"file:4/data": b"x" * 100000})
        c.load_model("one")
        c.unload_model("one")
        c.unload_model("homeless")
    for _ in range(2):
        server.end_core()
        assert server.wait_for("/v2/health/ready")
        with triton.InferenceServerClient(server.url) as c:
            assert index(server, ready=True) == [
                {"name": "two", "version": "1", "state": "READY"}]
            assert c.get_model_config("two")["max_batch_size"] == 3
            np.testing.assert_array_equal(infer(c, name, version="4"),
                                          [1.5, 2.5])
            assert not c.is_model_ready("one")
        assert process.wait_until(lambda: len(private_folders(name)) == 1,
                                  20 * SLOW)      # the dead core's are gone
    with triton.InferenceServerClient(server.url) as c:
        c.load_model("one")
        c.unload_model(name)
    server.end_core()
    assert server.wait_for("/v2/models/one/ready")
    assert server.wait_for("/v2/models/two/ready")
    assert server.get(f"/v2/models/{name}/ready").status == 404


def other_repository(server, name):
    folder = server.prefix / name
    folder.mkdir()
    return folder


def reload_with(server, *folders, http=""):
    """HUP, with those repositories besides the first."""
    server.write_config(http=http + "".join(
        f"    inference_repository {f};\n" for f in folders))
    server.reload()


@pytest.mark.parametrize("mode", ["none", "poll interval=1h"])
def test_a_reload_of_nginx_changes_the_repositories(make_server, mode):
    """Models come and go with them; one that stays never misses a request."""
    def fill(folder):
        models.identity(folder, "one", [("IN", "FP32", [-1])])

    http = f"    inference_model_control {mode};\n"
    server = make_server(fill, parts=PARTS, workers=2, http=http)
    more = other_repository(server, "more")
    models.identity(more, "two", [("IN", "FP32", [-1])])
    core = server.core()

    def once(connection):
        return connection.infer("one", ONE).status

    with Load(server.port, once, count=4) as load:
        for i in range(3):
            reload_with(server, more, http=http)
            assert server.wait_for("/v2/models/two/ready")
            assert server.wait_for("/v2/health/ready")
            assert server.infer("two", ONE).status == 200
            load.wait_for_more(10, 30 * SLOW)
            reload_with(server, http=http)
            assert server.wait_for("/v2/models/two/ready", status=404)
            assert process.wait_until(lambda: index(server) == [
                {"name": "one", "version": "1", "state": "READY"}],
                20 * SLOW)
            assert server.wait_for("/v2/health/ready")
            server.wait_said("model=two version=1 is ready", i + 1)
            load.wait_for_more(10, 30 * SLOW)
    assert set(load.results) == {200}, load.results
    assert server.cores() == [core]
    server.wait_said("model=one version=1 is ready")


def test_a_reload_of_nginx_moves_a_model(make_server):
    server = make_server(lambda folder: models.identity(
        folder, "one", [("IN", "FP32", [-1])]), parts=PARTS,
        allow_alarms=[r"not unique across all model repositories"])
    first, second = (other_repository(server, n) for n in ("a", "b"))
    models.identity(first, "two", [("IN", "FP32", [-1])], max_batch=2)
    models.identity(second, "two", [("IN", "FP32", [-1])], max_batch=5)

    def max_batch():
        answer = server.get("/v2/models/two/config")
        return answer.status == 200 \
            and json.loads(answer.body)["max_batch_size"]

    reload_with(server, first)
    assert process.wait_until(lambda: max_batch() == 2, 20 * SLOW)
    reload_with(server, second)
    assert process.wait_until(lambda: max_batch() == 5, 20 * SLOW)
    reload_with(server, first, second)
    assert server.wait_for("/v2/models/two/ready", status=404)
    assert {"name": "two", "state": "UNAVAILABLE",
            "reason": "model appears in two or more repositories"} \
        in index(server)
    reload_with(server, first)
    assert process.wait_until(lambda: max_batch() == 2, 20 * SLOW)
    server.wait_said("model=one version=1 is ready")


def test_repositories_change_under_explicit_control(make_server):
    def fill(folder):
        models.identity(folder, "one", [("IN", "FP32", [-1])])

    http = EXPLICIT + "    inference_load_model one;\n"
    server = make_server(fill, parts=PARTS, http=http,
                         allow_alarms=[r"exited on signal 9"])
    more = other_repository(server, "more")
    models.identity(more, "two", [("IN", "FP32", [-1])])
    reload_with(server, more, http=http)
    assert process.wait_until(
        lambda: {"name": "two"} in index(server), 20 * SLOW)
    assert ask(server, "load", "two").status == 200
    assert server.infer("two", ONE).status == 200

    reload_with(server, http=http)
    assert server.wait_for("/v2/models/two/ready", status=404)
    assert ask(server, "load", "two").status == 500
    server.end_core()                   # and the next one doesn't miss it
    assert server.wait_for("/v2/models/one/ready")
    assert server.wait_for("/v2/health/ready")
    assert [r["name"] for r in index(server)] == ["one"]


def test_readiness_while_an_added_repository_is_loaded(make_server):
    def fill(folder):
        models.identity(folder, "one", [("IN", "FP32", [-1])])

    http = f"    inference_backends {backends.build('failing')};\n"
    server = make_server(fill, parts=PARTS, http=http,
                         allow_alarms=[r"homeless", r"nowhere"])
    more = other_repository(server, "more")
    held(more, "late", "initialize-hold")
    reload_with(server, more, http=http)
    assert process.wait_until((more / "late" / "held").exists, 20 * SLOW)
    assert server.get("/v2/health/ready").status == 400
    assert server.infer("one", ONE).status == 200
    (more / "late" / "hold").unlink()
    assert server.wait_for("/v2/health/ready")

    bad = other_repository(server, "bad")
    models.write_model(bad, "homeless", models.identity_config(
        "homeless", [("IN", "FP32", [-1])], backend="nowhere"), (1,))
    reload_with(server, bad, http=http)
    assert server.wait_for("/v2/models/late/ready", status=404)
    assert process.wait_until(
        lambda: [r["state"] for r in index(server)] == [
            "UNAVAILABLE", "READY"], 20 * SLOW)
    assert server.get("/v2/health/ready").status == 400
    reload_with(server, bad,
                http=http + "    inference_strict_readiness off;\n")
    assert server.wait_for("/v2/health/ready")
    reload_with(server, http=http)      # it is wanted no more
    assert server.wait_for("/v2/health/ready")
    assert server.infer("one", ONE).status == 200
