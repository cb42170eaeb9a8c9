"""Loads that do not return from their backend."""

import pathlib

import pytest

from lib import backends, models, process
from lib.exposition import figure
from lib.repository import (EXPLICIT, IN, PARTS, ask, held, index, is_away,
                            let_go, rows, wait_held, works)
from lib.server import SLOW

LIMIT = "    inference_model_load timeout=1s;\n"
TEXT = "its load has not returned for 1 s (inference_model_load timeout=)"
HANGS = "initialize-hold initialize-child"


def fill(folder):
    models.identity(folder, "good", IN)
    held(folder, "m", HANGS)


@pytest.fixture
def serve(make_server):
    def start(fill_=fill, http=EXPLICIT, wait="live", limit=LIMIT):
        return make_server(
            fill_, parts=PARTS + " metrics", wait=wait, http=http + limit
            + f"    inference_backends {backends.build('failing')};\n")
    return start


def wait_stuck(server, count):
    assert process.wait_until(
        lambda: figure(server, "stuck_loads") == count,
        30 * SLOW)


def child(server):
    return int((server.models / "m" / "child").read_text())


def is_given_up(answer):
    assert answer.status == 400, answer
    assert "load failed for model 'm'" in answer.error
    assert TEXT in answer.error
    assert "can be loaded again" in answer.error


def test_the_request_is_answered_and_the_process_killed(serve):
    server = serve()
    with server.wire(120) as connection:
        is_given_up(connection.post("/v2/repository/models/m/load", b"{}"))
    is_away(rows(server, "m")[0], TEXT)
    server.wait_log("model=m version=1 failed to load: its load has not.*1 "
                    "processes that it had started are killed; loads stuck "
                    "now: 1")
    assert process.wait_until(lambda: not process.alive(child(server)),
                              20 * SLOW)
    wait_stuck(server, 1)
    assert ask(server, "load", "good").status == 200
    works(server)
    assert ask(server, "unload", "m").status == 200

    let_go(server, "m")
    server.wait_log("model=m: a load that was given up has returned after ")
    wait_stuck(server, 0)
    assert rows(server, "m")[0]["state"] == "UNAVAILABLE"
    assert server.get("/v2/models/m/ready").status in (404, 503)
    assert ask(server, "load", "m").status == 200
    assert server.get("/v2/models/m/ready").status == 200


def test_the_old_version_serves_and_the_server_is_ready(serve):
    def old(folder):
        fill(folder)
        (pathlib.Path(folder) / "m" / "hold").unlink()

    server = serve(old)
    assert ask(server, "load", "m").status == 200
    assert server.get("/v2/health/ready").status == 200
    (server.models / "m" / "hold").write_text("")
    (server.models / "m" / "1" / "data").write_text("new")
    with server.wire(120) as connection:
        is_given_up(connection.post("/v2/repository/models/m/load", b"{}"))
    row = rows(server, "m")[0]
    assert row["state"] == "READY"
    assert TEXT in row["reason"]
    assert server.get("/v2/models/m/ready").status == 200
    assert server.get("/v2/health/ready").status == 200
    let_go(server, "m")
    wait_stuck(server, 0)
    assert ask(server, "load", "m").status == 200
    assert not rows(server, "m")[0].get("reason")


@pytest.mark.parametrize("strict,status", [("on", 400), ("off", 200)])
def test_the_start_is_over(serve, strict, status):
    server = serve(http="    inference_strict_readiness "
                        f"{strict};\n")
    wait_held(server, "m")
    wait_stuck(server, 1)
    assert server.wait_for("/v2/health/ready", status=status)
    works(server)
    is_away(rows(server, "m")[0], TEXT)
    assert not [r for r in index(server) if r.get("state") == "LOADING"]
    let_go(server, "m")
    wait_stuck(server, 0)


def test_every_loader_is_stuck(serve):
    """Each is replaced at once: the next load doesn't wait for it."""
    def many(folder):
        models.identity(folder, "good", IN)
        for name in ("m", "n"):
            held(folder, name, HANGS)

    server = serve(many, limit="    inference_model_load timeout=1s "
                               "threads=1;\n")
    with server.wire(120) as m, server.wire(120) as n:
        for connection, name in ((m, "m"), (n, "n")):
            answer = connection.post(f"/v2/repository/models/{name}/load",
                                     b"{}")
            assert answer.status == 400, answer
    wait_stuck(server, 2)
    assert ask(server, "load", "good").status == 200
    works(server)
    let_go(server, "m")
    let_go(server, "n")
    wait_stuck(server, 0)


def test_a_stop_does_not_wait_for_it(serve):
    server = serve()
    with server.wire(120) as connection:
        is_given_up(connection.post("/v2/repository/models/m/load", b"{}"))
    server.stop()


def test_the_limit_follows_a_reload_of_nginx(serve):
    server = serve(limit="")
    with server.wire(120) as connection:
        server.write_config(
            http=EXPLICIT + LIMIT
            + f"    inference_backends {backends.build('failing')};\n")
        server.signal("HUP")
        server.wait_log("configuration generation [0-9]+ is in force")
        assert server.wait_for("/v2/health/ready")      # loads begin with it
        is_given_up(connection.next().post(
            "/v2/repository/models/m/load", b"{}"))
    let_go(server, "m")
    wait_stuck(server, 0)
