"""One command replaces the core: executions end, the rest goes to the next
core, and no client sees more than a delay."""

import json
import os
import shutil
import signal

import pytest

from lib import backends, crowd, models, process, upgrade
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.crowd import Crowd
from lib.exposition import figure, wait_executing, wait_given
from lib.load import Load
from lib.repository import PARTS, held, let_go, wait_held
from lib.server import CORE, SANITIZER, SLOW, nap
from lib.wire import infer_path, request_bytes, tensor

VALUES = [1, 2, 3]
BODY = json.dumps({"inputs": [tensor("IN", "INT32", [3], VALUES)]}).encode()
SEQUENCE = "sequence lost, start again"


def fill(repository):
    models.identity(repository, "brief", [("IN", "INT32", [-1])], instances=4,
                    parameters={"execute_delay_ms": "5"})
    models.identity(repository, "held", [("IN", "INT32", [-1])], instances=2,
                    parameters={"execute_delay_ms": "1500"})
    models.identity(repository, "long", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "6000"})
    models.identity(repository, "sequence", [("IN", "INT32", [-1])],
                    max_batch=0, parameters={"execute_delay_ms": "3000"},
                    extra="sequence_batching { }\n")


def send(server, model, body=BODY):
    connection = server.wire(60)
    connection.send(request_bytes("POST", infer_path(model), body))
    return connection


def read(connection):
    answer = connection.read()
    connection.close()
    return answer


def reload(server, **changes):
    server.write_config(**changes)
    supervisors = server.supervisors()
    server.signal("HUP")
    assert process.wait_until(
        lambda: server.supervisors()
        and not set(server.supervisors()) & set(supervisors), 20 * SLOW)


def once(model):
    def ask(connection):
        answer = connection.infer(model, BODY)
        if answer.status == 200:
            assert answer.json()["outputs"][0]["data"] == VALUES
        return answer.status
    return ask


def test_nothing_fails_under_load(make_server):
    server = make_server(fill, workers=2)
    with Load(server.port, once("brief"), count=20,
              patience=60.0 * SLOW) as load, \
            Load(server.port, once("held"), count=8,
                 patience=60.0 * SLOW) as slow:
        for _ in range(4):
            load.wait_for_more(100, 60 * SLOW)
            core = server.end_core("QUIT")
            server.wait_log(f"core {core} has ended as it was told to")
        load.wait_for_more(100, 60 * SLOW)
    assert set(load.results) == {200}, load.results
    assert set(slow.results) == {200}, slow.results
    assert "exited" not in server.log_text()


def test_every_protocol_is_answered(make_server):
    """Messages of streams and events of generate_stream, too."""
    server = make_server(crowd.fill, workers=2, http2=True, connections=1000,
                         http=crowd.HTTP, server=crowd.SERVER,
                         parts="health metadata config infer generate")
    with Crowd(server, sizes=(1 << 10,)) as clients:
        for _ in range(3):
            clients.wait_for_more(2)
            server.end_core("QUIT")
        clients.wait_for_more(2)
    clients.check()


def test_what_executes_ends_and_what_waits_goes_on(make_server):
    """Nothing is executed twice."""
    server = make_server(fill, http=FORMAT, server=WRITTEN,
                         parts="health infer metrics")
    log = AccessLog(server)
    sent = [send(server, "held") for _ in range(6)]
    wait_given(server, 6)
    server.end_core("QUIT")
    assert [read(c).status for c in sent] == [200] * 6
    lines = log.lines(6, uri=infer_path("held"))
    assert [line["tries"] for line in lines] == ["1"] * 6
    text = server.get("/metrics").body.decode()
    assert "nginx_inference_core_starts_total 2" in text
    assert "nginx_inference_core_deaths_total 0" in text


def test_a_suspect_that_waits_goes_to_the_next_core(make_server):
    """Another one executes; what waits for it has not begun."""
    def two_long(repository):
        models.identity(repository, "two", [("IN", "INT32", [-1])],
                        instances=2, parameters={"execute_delay_ms": "6000"})

    server = make_server(two_long, parts="health infer statistics metrics",
                         allow_alarms=["exited on signal 9"])
    sent = [send(server, "two") for _ in range(2)]
    wait_executing(server, 2)
    server.end_core()
    assert server.wait_for("/v2/models/two/ready")
    wait_executing(server, 1)           # suspects execute alone
    server.end_core("QUIT")
    assert [read(c).status for c in sent] == [200] * 2
    (stats,) = server.get("/v2/models/two/stats").json()["model_stats"]
    assert stats["execution_count"] == 1


def test_after_a_reload_the_core_is_replaced_as_well(make_server):
    """The supervisor did not start it."""
    server = make_server(fill, parts="health infer metrics")
    reload(server)
    sent = [send(server, "held") for _ in range(4)]
    wait_given(server, 4)
    core = server.end_core("QUIT")
    assert [read(c).status for c in sent] == [200] * 4
    server.wait_log(f"core {core} has ended as it was told to")


@pytest.mark.parametrize("adopted", [False, True])
@pytest.mark.parametrize("how,signo", [
    ("crash", 6),
    # a sanitizer takes the signal, and exits
    *([] if SANITIZER else [("overflow", 11)])])
def test_a_core_that_crashes_while_it_ends_has_died(make_server, adopted, how,
                                                    signo):
    """Whether or not its supervisor can wait for it, and whether or not the
    thread has a stack left."""
    def with_crash(repository):
        models.identity(repository, "bad", [("IN", "INT32", [-1])],
                        backend="failing",
                        parameters={"fail": f"finalize-{how}"})

    server = make_server(
        with_crash, allow_alarms=[f"exited on signal {signo}",
                                  "ended, its last"],
        parts="health metrics",
        http=f"    inference_backends {backends.build('failing')};\n")
    if adopted:
        reload(server)
        server.wait_log(f"core {server.core()} is watched")
    core = server.end_core("QUIT")
    server.wait_log(f"core {core} " + ("ended" if adopted
                                       else f"exited on signal {signo}")
                    + ", its last output was")
    assert server.wait_for("/v2/health/ready")
    assert figure(server, "core_deaths_total") == 1
    assert "has ended as it was told to" not in server.log_text()


def test_a_sequence_gets_its_error(make_server):
    """The request that executes is answered; those behind it are told."""
    server = make_server(fill, parts="health metadata infer metrics")

    def request(start):
        return send(server, "sequence", json.dumps({
            "inputs": [tensor("IN", "INT32", [3], VALUES)],
            "parameters": {"sequence_id": 7, "sequence_start": start,
                           "sequence_end": False}}).encode())

    first = request(True)
    wait_executing(server, 1)
    behind = [request(False), request(False)]
    wait_executing(server, 1, 2)
    server.end_core("QUIT")
    assert read(first).status == 200
    for connection in behind:
        answer = read(connection)
        assert answer.status == 503
        assert SEQUENCE in answer.error
    assert server.wait_for("/v2/models/sequence/ready")
    assert read(request(True)).status == 200


def test_a_load_that_goes_on_fails_no_request(make_server):
    """Nobody has asked for it: poll mode makes it."""
    server = make_server(
        fill, parts=PARTS, http="    inference_model_control poll"
        " interval=200ms;\n"
        f"    inference_backends {backends.build('failing')};\n")
    held(server.models, "slow", "initialize-hold")
    wait_held(server, "slow")
    core = server.core()
    os.kill(core, signal.SIGQUIT)
    server.wait_log("the core leaves")
    sent = send(server, "brief")
    nap(12)                     # for longer than a worker waits for a core
    assert server.core() == core
    let_go(server, "slow")
    assert read(sent).status == 200
    assert server.core() != core
    assert server.wait_for("/v2/models/slow/ready")


def test_an_execution_longer_than_drain_is_begun_again(make_server):
    server = make_server(fill, http=FORMAT, server=WRITTEN, start=False,
                         parts="health infer metrics")
    server.write_config(core_options=" drain=1s dump=on")
    server.start()
    log = AccessLog(server)
    sent = send(server, "long")
    wait_executing(server, 1)
    server.end_core("QUIT")
    server.wait_log("leaves before 1 requests have ended")
    assert read(sent).status == 200
    (line,) = log.lines(1, uri=infer_path("long"))
    assert line["tries"] == "2"


def test_a_changed_program_and_settings_reach_the_next_core(make_server,
                                                            tmp_path):
    server = make_server(fill)
    core = server.core()
    for name in (CORE, CORE.parent / "libtritonserver.so"):
        shutil.copy(name, tmp_path)
    program = tmp_path / CORE.name
    reload(server, core=program, core_options=" spin=5us dump=on",
           environment="    inference_env INF_TEST_NEW=yes;\n"
           + server.fields["environment"])
    for line in (r"the core program has changed from .* waits for the next"
                 rf" core: \"kill -QUIT {core}\" starts it",
                 r"the core's environment has changed, which waits for the"
                 rf" next core: \"kill -QUIT {core}\" starts it",
                 rf"changed settings wait for the next core, which "
                 rf"\"kill -QUIT {core}\" starts: inference_core spin="):
        server.wait_log(line)
    assert server.core() == core
    with Load(server.port, once("brief"), patience=60.0 * SLOW) as load:
        load.wait_for_more(20, 60 * SLOW)
        server.end_core("QUIT")
        load.wait_for_more(20, 60 * SLOW)
    assert set(load.results) == {200}, load.results
    core = server.core()
    assert os.readlink(f"/proc/{core}/exe") == str(program)
    assert process.environ(core)["INF_TEST_NEW"] == "yes"


@pytest.mark.parametrize("how", ["reload", "binary upgrade"])
def test_a_program_that_was_replaced_is_named(make_server, tmp_path, how):
    """With the version that runs, and how to start the new one; not before,
    and not once that runs."""
    tmp_path.chmod(0o755)

    def lay():
        """As package managers do it."""
        for name in (CORE, CORE.parent / "libtritonserver.so"):
            shutil.copy(name, tmp_path / "new")
            os.replace(tmp_path / "new", tmp_path / name.name)

    lay()
    program = tmp_path / CORE.name
    server = make_server(fill, core=program, daemon=True)
    core = server.core()
    reload(server)
    assert "has been replaced" not in server.log_text()

    lay()
    if how == "reload":
        reload(server)
    else:
        upgrade.finish(server, *upgrade.begin(server))
    server.wait_log(
        rf'\[warn\] .*the program "{program}" has been replaced, core {core} of'
        r" nginx-inference \d+\.\d+\.\d+ goes on, and the new program waits for"
        rf' the next core: "kill -QUIT {core}" starts it')
    assert server.core() == core

    said = server.log_text().count("has been replaced")
    server.end_core("QUIT")
    assert server.wait_for("/v2/health/ready")
    reload(server)
    assert server.log_text().count("has been replaced") == said


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_a_core_that_is_stopped_is_followed_by_another(make_server, name):
    """At once: what executes is begun again."""
    server = make_server(fill, workers=2)
    with Load(server.port, once("brief"), count=20,
              patience=60.0 * SLOW) as load:
        load.wait_for_more(100, 60 * SLOW)
        server.end_core(name)
        load.wait_for_more(100, 60 * SLOW)
    assert set(load.results) == {200}, load.results
