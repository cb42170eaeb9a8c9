"""Readiness while a model that serves is loaded again: no question is ever
answered by "not ready", however the load ends."""

import pytest

from lib import backends, models, process
from lib.prober import Prober
from lib.repository import EXPLICIT, IN, PARTS, let_go, rows, wait_held
from lib.server import SLOW

POLL = "    inference_model_control poll interval=100ms;\n"
LOAD = ("    inference_load_model m;\n    inference_load_model e;\n"
        "    inference_load_model other;\n")
RETRIES = "    inference_model_load retries=1;\n"
OTHER = 'parameters { key: "again" value { string_value: "1" } }\n'


def config(fail="", extra=""):
    return models.identity_config(
        "m", IN, backend="failing", extra=extra,
        parameters={"fail": f"initialize-hold {fail}".strip()})


def fill(folder):
    """m waits in its loads while a file "hold" is there; e is made of it."""
    models.write_model(folder, "m", config()).chmod(0o777)
    models.identity(folder, "other", IN)
    models.ensemble(folder, "e", IN, [("OUT", "FP32", [-1])],
                    models.step("m", {"IN": "IN"}, {"OUT": "OUT"}))


@pytest.fixture
def serve(make_server):
    def start(http=EXPLICIT + LOAD):
        return make_server(
            fill, parts=PARTS, http2=True, workers=2,
            http=http
            + f"    inference_backends {backends.build('failing')};\n")
    return start


def put(m, text):
    """A poll sees it whole."""
    (m / "new").write_text(text)
    (m / "new").replace(m / "config.pbtxt")


def change_files(m, fail=""):
    if fail:
        put(m, config(fail))
    (m / "1" / "data").write_text("new")


def add_version(m, fail=""):
    if fail:
        put(m, config(fail))
    (m / "2").mkdir()


def add_one_of_two(m, fail=""):
    (m / "2").mkdir()
    put(m, config(fail, extra="version_policy { all {} }\n"))


def change_config(m, fail=""):
    put(m, config(fail, extra=OTHER))


def load(server, connection, body=b"{}"):
    connection.send(
        b"POST /v2/repository/models/m/load HTTP/1.1\r\nHost: x\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body)


@pytest.mark.parametrize("fails", [False, True], ids=["good", "bad"])
@pytest.mark.parametrize("change", [change_files, add_version, add_one_of_two,
                                    change_config])
def test_a_request(serve, change, fails):
    server = serve()
    m = server.models / "m"
    with Prober(server, ["m", "e", "other"]) as prober, \
            server.wire(120) as connection:
        (m / "hold").write_text("")
        (m / "held").unlink()
        change(m, "initialize-error" if fails else "")
        load(server, connection)
        wait_held(server, "m")
        prober.more()
        let_go(server, "m")
        assert connection.read().status == (400 if fails else 200)
        prober.more()
        if fails:
            assert any("failing on purpose" in r.get("reason", "")
                       for r in rows(server, "m")), rows(server, "m")
            server.wait_log("model=m version=. failed to load: "
                            "failing on purpose")


@pytest.mark.parametrize("fails", [False, True], ids=["good", "bad"])
def test_an_override(serve, fails):
    server = serve()
    m = server.models / "m"
    fail = "initialize-hold initialize-error" if fails else "initialize-hold"
    with Prober(server, ["m", "e", "other"]) as prober, \
            server.wire(120) as connection:
        (m / "hold").write_text("")
        (m / "held").unlink()
        body = (b'{"parameters":{"config":"{\\"backend\\":\\"failing\\",'
                b'\\"input\\":[{\\"name\\":\\"IN\\",\\"data_type\\":'
                b'\\"TYPE_FP32\\",\\"dims\\":[-1]}],\\"output\\":[{\\"name\\":'
                b'\\"OUT\\",\\"data_type\\":\\"TYPE_FP32\\",\\"dims\\":[-1]}],'
                b'\\"parameters\\":{\\"fail\\":{\\"string_value\\":\\"'
                + fail.encode() + b'\\"}}}"}}')
        load(server, connection, body)
        wait_held(server, "m")
        prober.more()
        let_go(server, "m")
        assert connection.read().status == (400 if fails else 200)
        prober.more()


@pytest.mark.parametrize("fails", [False, True], ids=["good", "bad"])
@pytest.mark.parametrize("change", [change_files, add_version, change_config])
def test_a_poll(serve, change, fails):
    server = serve(POLL)
    m = server.models / "m"
    with Prober(server, ["m", "e", "other"]) as prober:
        (m / "held").unlink()
        (m / "hold").write_text("")
        change(m, "initialize-error" if fails else "")
        wait_held(server, "m")
        prober.more()
        let_go(server, "m")
        if fails:
            server.wait_log("model=m version=. failed to load: ", 60 * SLOW)
        prober.more(20)


def test_a_reload_of_nginx_beside_a_load(serve):
    """The same configuration, one with other load options, one with another
    repository."""
    server = serve()
    m = server.models / "m"
    more = server.prefix / "more"
    models.identity(more, "later", IN)
    own = (EXPLICIT + LOAD
           + f"    inference_backends {backends.build('failing')};\n")
    with Prober(server, ["m", "e", "other"]) as prober, \
            server.wire(120) as connection:
        (m / "hold").write_text("")
        (m / "held").unlink()
        change_files(m)
        load(server, connection)
        wait_held(server, "m")
        for http in (own, own + RETRIES, own + RETRIES
                     + f"    inference_repository {more};\n"):
            workers = set(server.workers())     # the load's goes on
            server.write_config(http=http)
            server.signal("HUP")
            assert process.wait_until(
                lambda: len(set(server.workers()) - workers) == 2, 60 * SLOW)
            prober.more()
        server.wait_log("the repositories have changed", 30 * SLOW)
        let_go(server, "m")
        assert process.wait_until(
            lambda: server.log_text().count("model=m version=1 is ready")
            == 2, 60 * SLOW)
        prober.more()
