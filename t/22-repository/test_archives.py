"""inference archives: models from directories that clients name, as multi-model
endpoints of SageMaker load them."""

import json
import os
import pathlib
import shutil
import tempfile
import threading

import pytest

from lib import backends, models, preload, process, wire
from lib.server import SLOW
from lib.unharmed import unharmed

IN = [("IN", "INT32", [-1])]
INFER = json.dumps({"inputs": [
    {"name": "IN", "datatype": "INT32", "shape": [2],
     "data": [3, 4]}]}).encode()
PARTS = "health infer metadata repository archives"
EXPLICIT = "    inference_model_control explicit;\n"


@pytest.fixture
def place(tmp_path):
    """A function: the directory of an archive, with the models it names."""
    tmp_path.chmod(0o755)

    def make(name, *names):
        path = tmp_path / "ml" / name / "model"
        path.mkdir(parents=True)
        if names == ():
            models.identity(path.parent, "model", IN)
        for model in names:
            models.identity(path, model, IN)
        return path
    return make


@pytest.fixture
def server(make_server):
    return make_server(
        http=EXPLICIT + "    inference_errors precise;\n"
        f"    inference_backends {backends.build('failing')};\n",
        parts=PARTS, wait="live")


def load(server, name, url):
    return server.post("/v2/archives", json.dumps(
        {"model_name": name, "url": str(url)}).encode())


def begin_load(server, path, held):
    """load as x, in a thread, which waits once the file held is there:
    (the thread, its answers)"""
    answers = []
    loading = threading.Thread(
        target=lambda: answers.append(load(server, "x", path)))
    loading.start()
    assert process.wait_until(held.exists, 20 * SLOW)
    return loading, answers


def join(path, member):
    """Adds an ensemble of that model to an archive."""
    models.ensemble(path, "joined", IN, [("OUT", "INT32", [-1])],
                    models.step(member, {"IN": "IN"}, {"OUT": "OUT"}))


def unload(server, name):
    return wire.fetch(server.port, "DELETE", f"/v2/archives/{name}")


def listed(server):
    answer = server.get("/v2/archives")
    assert answer.status == 200
    return answer.json()


def index(server):
    return server.post("/v2/repository/index", b"").json()


def data(server, name):
    answer = server.post(f"/v2/models/{name}/infer", INFER)
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"]


def rejected(answer, status, words):
    assert answer.status == status, answer
    assert words in answer.error


def test_load_list_unload(server, place):
    first, second = place("a"), place("b")
    assert listed(server) == {"models": []}
    for name, path in (("x", first), ("y", second)):
        answer = load(server, name, path)
        assert (answer.status, answer.body) == (200, b"")
        assert data(server, name) == [3, 4]
    x, y = ({"modelName": n, "modelUrl": str(p.parent)}
            for n, p in (("x", first), ("y", second)))
    assert sorted(listed(server)["models"], key=str) == [x, y]
    assert server.get("/v2/archives/y").json() == y

    assert unload(server, "x").status == 200
    assert listed(server) == {"models": [y]}
    rejected(server.get("/v2/archives/x"), 404, "no model 'x' is loaded")
    rejected(unload(server, "x"), 404, "no model 'x' is loaded")
    assert server.post("/v2/models/x/infer", INFER).status == 404
    assert data(server, "y") == [3, 4]
    assert load(server, "z", first).status == 200       # it is free again
    assert data(server, "z") == [3, 4]


def test_the_only_directory_is_the_model(server, place):
    path = place("a", "inner")
    assert load(server, "x", path).status == 200
    assert data(server, "x") == [3, 4]
    assert listed(server)["models"] == [
        {"modelName": "x", "modelUrl": str(path)}]


def test_of_several_the_ensemble(server, place):
    path = place("a", "member", "zz")
    rejected(load(server, "x", path), 400, "one must be an ensemble")
    join(path, "member")
    assert load(server, "x", path).status == 200
    assert data(server, "x") == [3, 4]
    assert data(server, "member") == [3, 4]
    assert unload(server, "x").status == 200
    for name in ("x", "member"):
        assert server.post(f"/v2/models/{name}/infer", INFER).status == 404
    assert index(server) == []


def test_all_models_are_none_of_an_archive(make_server, place):
    """Of its directories the next core loads what this one has loaded."""
    server = make_server(lambda r: models.identity(r, "one", IN), parts=PARTS,
                         http=EXPLICIT + "    inference_load_model *;\n")
    path = place("a", "member", "other")
    join(path, "member")
    assert load(server, "x", path).status == 200
    for _ in range(2):
        assert {r["name"]: r.get("state", "") for r in index(server)} == {
            "one": "READY", "member": "READY", "x": "READY", "other": ""}
        server.end_core()
        assert server.wait_for("/v2/models/x/ready")
        assert server.wait_for("/v2/models/one/ready")


def test_the_names_of_an_unloaded_archive_are_free(make_server, place):
    """Of other models that get them the next core loads all."""
    server = make_server(lambda r: models.identity(r, "one", IN), parts=PARTS,
                         http=EXPLICIT + "    inference_load_model *;\n")
    path = place("a", "member")
    join(path, "member")
    assert load(server, "x", path).status == 200
    assert unload(server, "x").status == 200
    for name in ("x", "member"):
        models.identity(server.models, name, IN)
    server.end_core()
    for name in ("one", "x", "member"):
        assert server.wait_for(f"/v2/models/{name}/ready")


def test_a_reload_that_names_all_models_leaves_an_archive_alone(make_server,
                                                                place):
    server = make_server(lambda r: models.identity(r, "one", IN), parts=PARTS,
                         http=EXPLICIT, wait="live")
    path = place("a", "member", "other")
    join(path, "member")
    assert load(server, "x", path).status == 200
    for generation, name in enumerate(("*", "one", "*"), 2):
        server.write_config(
            http=EXPLICIT + f"    inference_load_model {name};\n")
        server.reload()
        server.wait_log(f"configuration generation {generation} is in force")
        assert server.wait_for("/v2/models/one/ready")
        assert server.wait_for("/v2/health/ready")
        assert {r["name"]: r.get("state", "") for r in index(server)} == {
            "one": "READY", "member": "READY", "x": "READY", "other": ""}


def test_a_reload_to_all_models_while_an_archive_loads(make_server, place):
    http = EXPLICIT + f"    inference_backends {backends.build('failing')};\n"
    server = make_server(lambda r: models.identity(r, "one", IN), parts=PARTS,
                         http=http, wait="live")
    path = place("a", "member")
    models.identity(path, "member", IN, backend="failing",
                    parameters={"fail": "initialize-hold"})
    join(path, "member")
    member = path / "member"
    (member / "hold").write_text("")
    member.chmod(0o777)
    loading, answers = begin_load(server, path, member / "held")
    server.write_config(http=http + "    inference_load_model *;\n")
    server.signal("HUP")                # the old worker waits for the load
    server.wait_log("configuration generation 2 is in force")
    assert server.wait_for("/v2/models/one/ready")
    (member / "hold").unlink()
    loading.join()
    assert answers[0].status == 200, answers
    assert {r["name"]: r.get("state", "") for r in index(server)} == {
        "one": "READY", "member": "READY", "x": "READY"}


def test_what_is_there_is_a_conflict(server, place):
    first, second = place("a"), place("b")
    assert load(server, "x", first).status == 200
    rejected(load(server, "x", first), 409, "has already been registered")
    rejected(load(server, "y", first), 409, "has already been registered")
    rejected(load(server, "x", second), 409,
             "there is a conflicting mapping for 'x'")
    assert data(server, "x") == [3, 4]
    assert load(server, "y", second).status == 200


def test_names_of_the_repositories_are_taken(make_server, place):
    """Whether these serve or not, they go on as before."""
    server = make_server(
        lambda r: [models.identity(r, name, IN) for name in ("one", "idle")],
        http=EXPLICIT + "    inference_errors precise;\n"
        "    inference_load_model one;\n", parts=PARTS)
    before = index(server)
    for name in ("one", "idle"):
        rejected(load(server, name, place("a" + name)), 409,
                 f"there is a conflicting mapping for '{name}'")
    rejected(load(server, "x", server.models / "one"), 409,
             "has already been registered")
    path = place("b", "one")
    join(path, "one")
    rejected(load(server, "x", path), 400, "there is a model 'one' already")
    assert index(server) == before
    assert data(server, "one") == [3, 4]


def test_a_repository_that_is_configured_by_a_link_is_one(make_server, place,
                                                          tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    for name in ("one", "two"):
        models.identity(real, name, IN)
    server = make_server(link, http=EXPLICIT
                         + "    inference_errors precise;\n", parts=PARTS)
    words = f"'{real}' has already been registered as '{link}'"
    for url in (real / "one", link / "one"):
        rejected(load(server, "x", url), 409, words)
    assert [r["name"] for r in index(server)] == ["one", "two"]
    assert load(server, "x", place("a")).status == 200


def test_what_lies_beside_an_archive_is_none(make_server, place):
    server = make_server(lambda r: models.identity(r, "one", IN),
                         http=EXPLICIT + "    inference_load_model one;\n",
                         parts=PARTS)
    path = place("a")
    models.identity(path.parent, "one", IN)
    models.identity(path.parent, "other", IN)
    assert load(server, "x", path).status == 200
    assert [r["name"] for r in index(server)] == ["one", "x"]
    rejected(server.post("/v2/repository/models/other/load", b""), 500,
             "failed to load 'other'")
    server.end_core()
    assert server.wait_for("/v2/models/x/ready")
    assert server.wait_for("/v2/models/one/ready")
    assert data(server, "one") == data(server, "x") == [3, 4]


def test_a_directory_that_goes_while_its_model_serves(server, place):
    path = place("a")
    assert load(server, "x", path).status == 200
    shutil.rmtree(path.parent)
    assert data(server, "x") == [3, 4]
    assert [r["state"] for r in index(server)] == ["READY"]
    assert server.status("/v2/health/ready") == 200
    assert unload(server, "x").status == 200
    assert index(server) == []


class Hung:
    """An archive on a file system that hangs between begin() and end()."""

    def __init__(self, path):
        self.path = path
        self.held, self.hold = (
            path.parent.with_name(f"{path.parent.name}.{word}")
            for word in ("held", "hold"))
        path.parent.parent.chmod(0o777)

    def begin(self):
        self.held.unlink(missing_ok=True)
        self.hold.write_text("")

    def end(self):
        self.hold.unlink()

    def server(self, make_server, names):
        return make_server(
            lambda r: models.identity(r, "one", IN), parts=PARTS,
            server="location = /status { inference status; }",
            http=EXPLICIT + f"    inference_load_model {names};\n",
            inference_env=[preload.environment("hung_directory"),
                           f"HUNG_DIRECTORY={self.path.parent}"])


def delays_nobody_else(server):
    """Calls that concern no model of the archive that hangs."""
    status = server.get("/status").json()["core"]
    assert "one" in [m["name"] for m in status["models"]]
    assert server.post("/v2/repository/models/one/load", b"").status == 200
    assert server.post("/v2/repository/models/none/load", b"").status == 500
    assert data(server, "one") == [3, 4]


def test_a_file_system_that_hangs_delays_its_own_archive(make_server, place):
    hung = Hung(place("a"))
    server = hung.server(make_server, "one")
    hung.begin()
    loading, answers = begin_load(server, hung.path, hung.held)
    assert [r["name"] for r in index(server)] == ["one"]
    assert listed(server) == {"models": []}
    delays_nobody_else(server)
    assert answers == []
    hung.end()
    loading.join()
    assert answers[0].status == 200
    assert data(server, "x") == [3, 4]


@pytest.mark.parametrize("alone", (True, False))
@pytest.mark.parametrize("names", ("one", "*"))
def test_a_file_system_that_hangs_later(make_server, place, names, alone):
    """Its model serves on, and neither other models nor the next core wait."""
    hung = Hung(place("a", *(() if alone else ("member", "other"))))
    if not alone:
        join(hung.path, "member")
    server = hung.server(make_server, names)
    assert load(server, "x", hung.path).status == 200
    loaded = {"one", "x"} | ({"member"} if not alone else set())
    there = loaded | ({"other"} if not alone else set())
    other = place("b")
    hung.begin()
    assert {r["name"] for r in index(server)} == there
    assert [m["modelName"] for m in listed(server)["models"]] == ["x"]
    delays_nobody_else(server)
    assert load(server, "y", other).status == 200
    assert unload(server, "y").status == 200
    assert data(server, "x") == [3, 4]

    server.end_core()
    assert server.wait_for("/v2/models/one/ready")
    assert process.wait_until(hung.held.exists, 20 * SLOW)
    assert {r["name"] for r in index(server)} == there
    assert listed(server) == {"models": []}
    delays_nobody_else(server)
    assert load(server, "y", other).status == 200
    hung.end()
    assert server.wait_for("/v2/models/x/ready")
    assert data(server, "x") == data(server, "y") == [3, 4]
    assert {r["name"] for r in index(server) if r.get("state") == "READY"} \
        == loaded | {"y"}
    assert unload(server, "x").status == 200
    assert {r["name"] for r in index(server)} == {"one", "y"}


@pytest.mark.parametrize("watch", (" inotify=off", ""))
def test_poll_mode_leaves_an_archive_alone(make_server, place, watch):
    """After a reload it looks at no directory of an archive."""
    hung = Hung(place("a", "member", "other"))
    join(hung.path, "member")
    server = hung.server(make_server, "one")
    assert load(server, "x", hung.path).status == 200
    hung.begin()
    server.write_config(
        http=f"    inference_model_control poll interval=200ms{watch};\n")
    server.reload()
    server.wait_log("configuration generation 2 is in force")
    models.identity(server.models, "two", IN)
    assert server.wait_for("/v2/models/two/ready")
    assert data(server, "two") == data(server, "x") == [3, 4]
    assert not hung.held.exists()
    hung.end()
    for _ in range(2):
        for name in ("one", "two", "x"):
            assert server.wait_for(f"/v2/models/{name}/ready")
        assert {r["name"]: r.get("state", "") for r in index(server)} == {
            "one": "READY", "two": "READY", "member": "READY", "x": "READY",
            "other": ""}
        server.end_core()


def test_a_directory_below_the_root(server):
    root = pathlib.Path(tempfile.mkdtemp(prefix="inference-", dir="/"))
    try:
        root.chmod(0o755)
        models.identity("/", root.name, IN)
        assert load(server, "x", root).status == 200
        assert data(server, "x") == [3, 4]
        assert listed(server) == {
            "models": [{"modelName": "x", "modelUrl": "/"}]}
        assert [r["name"] for r in index(server)] == ["x"]
        server.end_core()
        assert server.wait_for("/v2/models/x/ready")
        assert data(server, "x") == [3, 4]
        assert unload(server, "x").status == 200
    finally:
        shutil.rmtree(root)


def test_not_with_namespacing(make_server, place):
    server = make_server(
        lambda r: models.identity(r, "one", IN), parts=PARTS, http=EXPLICIT
        + "    inference_model_namespacing on;\n"
        "    inference_load_model one;\n")
    rejected(load(server, "x", place("a")), 501,
             "inference_model_namespacing is on")
    rejected(unload(server, "one"), 404, "no model 'one' is loaded")
    assert data(server, "one") == [3, 4]


def test_a_reload_may_configure_its_directory(server, place):
    """Then it is an archive no more."""
    path = place("a")
    assert load(server, "x", path).status == 200
    server.write_config(http=EXPLICIT + "    inference_errors precise;\n"
                        f"    inference_repository {path.parent};\n")
    server.reload()
    server.wait_log("configuration generation 2 is in force")
    assert process.wait_until(lambda: listed(server) == {"models": []},
                              20 * SLOW)
    rejected(unload(server, "x"), 404, "no model 'x' is loaded")
    assert server.post("/v2/repository/models/model/load", b"").status == 200
    assert data(server, "model") == [3, 4]


def test_clients_at_once(make_server, place):
    """Each load and unload is as if it were alone.  (CVE-2025-33238 was such a
    race.)"""
    server = make_server(
        lambda r: models.identity(r, "id_int32", IN), parts=PARTS,
        http=EXPLICIT + "    inference_errors precise;\n"
        "    inference_load_model id_int32;\n")
    paths = {name: place(name) for name in "xy"}
    wrong = []

    def client(name):
        for _ in range(40):
            answer = load(server, name, paths[name])
            if answer.status not in (200, 409):
                wrong.append(answer)
            answer = unload(server, name)
            if answer.status not in (200, 404):
                wrong.append(answer)
            listed(server)

    with unharmed(server):
        clients = [threading.Thread(target=client, args=(n,)) for n in "xyxy"]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
    assert wrong == []
    assert listed(server) == {"models": []}
    for name, path in paths.items():
        assert load(server, name, path).status == 200
        assert data(server, name) == [3, 4]


def test_a_load_that_fails_leaves_nothing(server, place):
    """It may be loaded again once its directory is in order."""
    path = place("a")
    config = path / "config.pbtxt"
    good = config.read_text()
    for broken, status, words in (
            ('backend: "nowhere"', 400, "unable to find"),
            ("wrong {", 400, "failed to poll from model repository"),
            ('backend: "BLOOM"', 400, "unable to find"),
            ('backend: "failing" parameters { key: "fail" value {'
             ' string_value: "initialize-memory" } }', 507,
             "CUDA out of memory")):
        config.write_text(broken)
        rejected(load(server, "x", path), status, words)
        assert listed(server) == {"models": []}
        assert index(server) == []
        rejected(unload(server, "x"), 404, "no model 'x' is loaded")
        assert server.wait_for("/v2/health/ready")
    config.write_text(good)
    assert load(server, "x", path).status == 200
    assert data(server, "x") == [3, 4]


def test_wrong_requests(server, place, tmp_path):
    path = place("a")
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("/proc")
    odd = tmp_path / os.fsdecode(b"\xff") / "model"
    shutil.copytree(path, odd)
    (tmp_path / "odd").symlink_to(odd)
    for body, words in (
            (b"", "'model_name' must be a string"),
            (b"[]", "must be an object"),
            (b"{", "failed to parse the request JSON buffer"),
            ({"model_name": "x"}, "'url' must be a string"),
            ({"model_name": 1, "url": "/"}, "'model_name' must be a string"),
            ({"model_name": "x", "url": ["/"]}, "'url' must be a string"),
            ({"model_name": "x", "url": "/a\0b"}, "NUL"),
            ({"model_name": "", "url": str(path)}, "cannot be empty"),
            ({"model_name": "../x", "url": str(path)}, "path traversal"),
            ({"model_name": "x", "url": ""}, "must be the absolute path"),
            ({"model_name": "x", "url": "models"}, "must be the absolute"),
            ({"model_name": "x", "url": "s3://b/m"}, "must be the absolute"),
            ({"model_name": "x", "url": "/"}, "cannot be / or lie in"),
            ({"model_name": "x", "url": "/proc/self"}, "cannot be"),
            ({"model_name": "x", "url": f"{path}/../../../../../../../../dev"},
             "cannot be"),
            ({"model_name": "x", "url": str(tmp_path / "link" / "self")},
             "cannot be"),
            ({"model_name": "x", "url": str(tmp_path / "odd")},
             "leads to is not valid UTF-8"),
            ({"model_name": "x", "url": f"{path}/nowhere"},
             "repository not found: No such file or directory"),
            ({"model_name": "x", "url": str(tmp_path / "file")},
             "Not a directory"),
            ({"model_name": "x", "url": str(empty)},
             "neither a config.pbtxt nor the directory of a model")):
        answer = server.post("/v2/archives", body if isinstance(body, bytes)
                             else json.dumps(body).encode())
        rejected(answer, 400, words)
    assert listed(server) == {"models": []}
    assert unload(server, "a/b").status == 404
    assert wire.fetch(server.port, "PUT", "/v2/archives", b"{}").status == 405


def test_only_where_models_are_loaded_by_request(make_server, place):
    """As Triton's port of SageMaker answers."""
    server = make_server(parts=PARTS)
    words = "repository registration is not allowed if model control mode is " \
        "not EXPLICIT"
    rejected(load(server, "x", place("a")), 400, words)
    assert unload(server, "x").status == 404
    assert listed(server) == {"models": []}


def test_only_where_it_is_listed(make_server, place):
    server = make_server(http=EXPLICIT, wait="live",
                         parts="all repository trace logging shared_memory")
    assert load(server, "x", place("a")).status == 404
    assert server.get("/v2/archives").status == 404


def test_a_reload_that_lists_them_lets_them_in(make_server, place):
    server = make_server(http=EXPLICIT, parts="health infer repository",
                         wait="live")
    path = place("a")
    assert load(server, "x", path).status == 404
    server.write_config(parts=PARTS)
    server.reload()
    answer = load(server, "x", path)
    assert answer.status == 200, answer
    assert data(server, "x") == [3, 4]


def test_the_next_core_has_them(server, place):
    first, second, third = place("a"), place("b"), place("c")
    for name, path in (("x", first), ("y", second), ("z", third)):
        assert load(server, name, path).status == 200
    assert unload(server, "y").status == 200
    (third / "config.pbtxt").unlink()           # it cannot come back
    server.end_core()
    assert server.wait_for("/v2/models/x/ready")
    assert data(server, "x") == [3, 4]
    assert [m["modelName"] for m in listed(server)["models"]] == ["x"]
    assert unload(server, "x").status == 200
    server.end_core()
    assert load(server, "x", first).status == 200       # it has not come back
    assert data(server, "x") == [3, 4]


def test_a_reload_keeps_them(server, place):
    assert load(server, "x", place("a")).status == 200
    more = server.prefix / "more"
    more.mkdir()
    server.write_config(http=EXPLICIT + f"    inference_repository {more};\n"
                        "    inference_errors precise;\n")
    server.reload()
    server.wait_log("configuration generation 2 is in force")
    assert data(server, "x") == [3, 4]
    assert [m["modelName"] for m in listed(server)["models"]] == ["x"]
    assert unload(server, "x").status == 200


def test_a_core_that_dies_while_it_loads(server, place):
    """The client is told, and may ask again."""
    path = place("a")
    good = (path / "config.pbtxt").read_text()
    models.identity(path.parent, "model", IN, backend="failing",
                    parameters={"fail": "initialize-hold"})
    (path / "hold").write_text("")
    path.chmod(0o777)
    asking, answers = begin_load(server, path, path / "held")
    assert server.get("/v2/archives/x").status == 404
    server.end_core()
    asking.join()
    rejected(answers[0], 503, "may have been carried out")
    assert listed(server) == {"models": []}
    (path / "config.pbtxt").write_text(good)
    assert load(server, "x", path).status == 200


@pytest.mark.parametrize("backend", ("identity", "failing"))
def test_an_ensemble_that_fails_leaves_no_member(server, place, backend):
    """Nor does a member that fails leave the server not ready."""
    path = place("a", "member", "other")
    models.identity(path, "member", IN, backend=backend,
                    parameters={"fail": "initialize-memory"})
    models.ensemble(path, "joined", IN, [("OUT", "FP32", [-1])],
                    models.step("member", {"IN": "IN"}, {"OUT": "OUT"}))
    rejected(load(server, "x", path), 507 if backend == "failing" else 400,
             "load failed for model 'x'")
    assert server.post("/v2/models/member/infer", INFER).status == 404
    assert index(server) == []
    assert server.wait_for("/v2/health/ready")
    server.end_core()
    assert server.wait_for("/v2/health/ready")
    assert index(server) == []


def test_a_model_that_came_with_a_request_has_its_name(server, place):
    for name in ("x", "member"):
        assert server.post(
            f"/v2/repository/models/{name}/load", json.dumps({"parameters": {
                "config": json.dumps({
                    "backend": "identity",
                    "input": [{"name": "IN", "data_type": "TYPE_INT32",
                               "dims": [-1]}],
                    "output": [{"name": "OUT", "data_type": "TYPE_INT32",
                                "dims": [-1]}]}),
                "file:1/x": ""}}).encode()).status == 200
    rejected(load(server, "x", place("a")), 409,
             "there is a conflicting mapping for 'x'")
    path = place("b", "member")
    join(path, "member")
    rejected(load(server, "y", path), 400, "there is a model 'member' already")
    assert data(server, "x") == data(server, "member") == [3, 4]
    assert server.post("/v2/repository/models/x/unload", b"").status == 200
    assert load(server, "x", place("c")).status == 200


@pytest.mark.parametrize(
    "name", ("x;y", "x y", "$(x)", "x'y", "\u00e4", "-`x`"))
def test_a_name_that_a_shell_knows(server, place, name):
    """The client chooses it, and backends put names into commands
    (CVE-2025-23316).  Directories have the operator's names."""
    path = place("a")
    rejected(load(server, name, path), 400, f"the name '{name}' of its model")
    assert index(server) == []
    inner = path / name
    inner.mkdir()
    for entry in ("config.pbtxt", "1"):
        (path / entry).rename(inner / entry)
    text = (inner / "config.pbtxt").read_text()
    (inner / "config.pbtxt").write_text(
        text.replace('name: "model"', f'name: "{name}"'))
    assert load(server, name, path).status == 200
    assert [r["name"] for r in index(server)] == [name]
