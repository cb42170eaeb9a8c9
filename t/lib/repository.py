"""The repository API over HTTP, and models that wait until they are let go."""

import json

from lib import models, process
from lib.server import SLOW
from lib.wire import tensor

PARTS = "health metadata config infer repository"
EXPLICIT = "    inference_model_control explicit;\n"
IN = [("IN", "FP32", [-1])]
ONE = {"inputs": [tensor("IN", "FP32", [2], [1, 2.5])]}


def ask(server, verb, model="", body=b""):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    path = "/v2/repository/index" if verb == "index" \
        else f"/v2/repository/models/{model}/{verb}"
    return server.post(path, body)


def index(server, **body):
    answer = ask(server, "index", body=body or b"")
    assert answer.status == 200, answer
    return json.loads(answer.body)


def rows(server, model):
    return [r for r in index(server) if r["name"] == model]


def by_name(server):
    """{name: its rows}"""
    found = {}
    for row in index(server):
        found.setdefault(row["name"], []).append(row)
    return found


def settled(server):
    """by_name, once nothing is LOADING."""
    assert process.wait_until(
        lambda: not any(r.get("state") == "LOADING" for r in index(server)),
        30 * SLOW), index(server)
    return by_name(server)


def wait_state(server, model, state, version="1"):
    assert process.wait_until(lambda: any(
        r.get("version") == version and r["state"] == state
        for r in rows(server, model)), 20 * SLOW), index(server)


def is_away(row, *words):
    assert row["state"] == "UNAVAILABLE", row
    for word in words:
        assert word in row["reason"], row


def works(server, model="good", version=""):
    answer = server.infer(model, ONE, version=version)
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [1, 2.5]


def loads_of(server, model, version=1):
    return server.log_text().count(
        f"model={model} version={version} is ready")


def loaded(server, model, counts):
    """Whether each version, {1: how often}, was; the log comes a bit later."""
    return process.wait_until(lambda: all(
        loads_of(server, model, v) == n for v, n in counts.items()),
        20 * SLOW)


def held(directory, name, where, **kw):
    """A model that waits there until let_go(); its backend is "failing"."""
    path = models.identity(directory, name, IN, backend="failing",
                           parameters={"fail": where}, **kw)
    (path / "hold").write_text("")
    path.chmod(0o777)


def wait_held(server, name):
    assert process.wait_until(
        (server.models / name / "held").exists, 20 * SLOW)


def let_go(server, name):
    (server.models / name / "hold").unlink()
