"""An object storage that takes requests and does not answer: all other
models start, serves, comes and goes as if there were none."""

import json

import pytest

from lib import models, process
from lib.s3 import IN, upload, works
from lib.server import SLOW
from lib.wire import request_bytes

pytestmark = pytest.mark.parametrize("service", ["s3"], indirect=True)

ALL_PARTS = "health metadata config infer repository"
KILLED = [r"exited on signal 9"]


@pytest.fixture
def silence(service):
    service.gate.fall_silent()
    yield service.gate
    service.gate.speak()
    assert not service.gate.bad_signatures


@pytest.fixture
def start(service, bucket, mount, make_server):
    """A server with near on the disk and far in the bucket."""
    upload(service, bucket, "r", lambda f: models.identity(f, "far", IN))

    def begin(http="", near=lambda f: models.identity(f, "near", IN), **kw):
        line = f"    inference_repository {service.address(bucket + '/r')};\n"
        return make_server(
            near, http=line + http, wait=kw.pop("wait", "live"),
            parts=ALL_PARTS, inference_env=service.environment(mount), **kw)
    return begin


def load(server, name):
    return server.post(f"/v2/repository/models/{name}/load", b"").status


def index(server):
    answer = server.post("/v2/repository/index", b"")
    assert answer.status == 200, answer
    return {r["name"]: r.get("state") for r in json.loads(answer.body)}


def is_asked(gate):
    return process.wait_until(lambda: gate.kept > 0, 20 * SLOW)


@pytest.mark.parametrize("http", [
    "",
    "    inference_model_control poll interval=200ms;\n",
    "    inference_model_control explicit;\n"
    "    inference_load_model *;\n",
    "    inference_model_control explicit;\n"
    "    inference_load_model far;\n    inference_load_model near;\n",
], ids=["none", "poll", "star", "named"])
def test_what_lies_here_serves_at_once(start, silence, http):
    server = start(http)
    assert server.wait_for("/v2/models/near/ready")
    works(server, "near")
    assert is_asked(silence)
    assert server.get("/v2/health/live").status == 200
    assert server.get("/v2/health/ready").status == 400
    assert server.get("/v2/models/far/ready").status == 503
    answer = server.get("/v2/models/far")
    assert answer.status == 503 and "not at ready state" in answer.error
    assert index(server)["near"] == "READY"
    works(server, "near", 7)

    silence.speak()
    assert server.wait_for("/v2/health/ready")
    works(server, "far")
    works(server, "near")
    assert index(server) == {"far": "READY", "near": "READY"}


def test_an_answer_that_takes_seconds_is_waited_for(service, start):
    service.gate.break_next(kind="slow", times=1, seconds=2)
    server = start()
    assert server.wait_for("/v2/models/near/ready")
    works(server, "near")
    assert server.wait_for("/v2/health/ready")
    works(server, "far")


def test_a_service_that_says_no_is_not_ready(service, start):
    """As it was when nothing else could start before: but the rest serves."""
    service.gate.break_next(kind="status", times=10 ** 6, status=403,
                            body=b"<Error><Code>AccessDenied</Code></Error>")
    try:
        server = start()
        assert server.wait_for("/v2/models/near/ready")
        server.wait_log(r"\[error\][^\n]*can't be listed[^\n]*AccessDenied")
        works(server, "near")
        assert server.get("/v2/health/ready").status == 400
        answer = server.post("/v2/repository/index", b"")
        assert answer.status == 500 and "AccessDenied" in answer.error
    finally:
        service.gate.faults.clear()
    assert process.wait_until(lambda: server.post(
        "/v2/repository/index", b"").status == 200, 20 * SLOW)
    assert server.wait_for("/v2/health/ready")
    works(server, "far")


def test_loads_wait_for_what_only_the_service_can_have(start, silence):
    server = start("    inference_model_control explicit;\n")
    assert server.get("/v2/health/ready").status == 200
    assert load(server, "near") == 200
    works(server, "near")

    with server.wire(60) as wire:
        wire.send(request_bytes("POST", "/v2/repository/models/far/load",
                                b""))
        assert is_asked(silence)
        assert load(server, "near") == 200
        assert index(server) == {"near": "READY"}
        silence.speak()
        assert wire.read().status == 200
    works(server, "far")


def test_models_come_back_while_the_service_is_silent(service, start):
    """The core dies: what was loaded by request is loaded again, and a call
    about a model that is not there yet waits for it."""
    server = start("    inference_model_control explicit;\n",
                   allow_alarms=KILLED)
    for name in ("near", "far"):
        assert load(server, name) == 200
        works(server, name)

    service.gate.fall_silent()
    waiting = server.wire(120)
    try:
        server.end_core()
        assert server.wait_for("/v2/models/near/ready")
        works(server, "near")
        assert is_asked(service.gate)
        assert server.get("/v2/health/ready").status == 400
        waiting.send(request_bytes("GET", "/v2/models/far"))
        assert index(server) == {"far": "LOADING", "near": "READY"}
        server.end_core()               # and once more
        assert server.wait_for("/v2/models/near/ready")
        works(server, "near")
    finally:
        service.gate.speak()
    with waiting:
        assert waiting.read().status == 200
    assert server.wait_for("/v2/health/ready")
    works(server, "far")


def test_polls_go_on_while_the_service_is_silent(
        service, bucket, start):
    server = start("    inference_model_control poll interval=200ms;\n",
                   wait="ready")
    service.gate.fall_silent()
    try:
        assert is_asked(service.gate)
        models.identity(server.models, "new", IN)
        assert server.wait_for("/v2/models/new/ready")
        works(server, "new")
        works(server, "far")
        server.models.joinpath("near").rename(server.prefix / "away")
        assert server.wait_for("/v2/models/near/ready", status=404)
        works(server, "far")
        assert server.wait_for("/v2/health/ready")  # "near" is destroyed now
    finally:
        service.gate.speak()
    upload(service, bucket, "r", lambda f: models.identity(f, "late", IN))
    assert server.wait_for("/v2/models/late/ready")
    works(server, "far")


def test_a_list_of_models_that_does_not_come_holds_up_nothing(
        service, start):
    server = start(wait="ready")
    service.gate.fall_silent()
    try:
        with server.wire(60) as wire:
            wire.send(request_bytes("POST", "/v2/repository/index", b""))
            assert is_asked(service.gate)
            assert server.get("/v2/health/ready").status == 200
            assert server.get("/v2/models/far").status == 200
            works(server, "far")
            service.gate.speak()
            assert wire.read().status == 200
    finally:
        service.gate.speak()


def ensemble(folder):
    models.identity(folder, "near", IN)
    models.write_model(
        folder, "both", 'platform: "ensemble"\nmax_batch_size: 0\n'
        + models.io_block("input", IN)
        + models.io_block("output", [("OUT", "FP32", [-1])])
        + 'ensemble_scheduling { step { model_name: "far" model_version: -1'
        ' input_map { key: "IN" value: "IN" }'
        ' output_map { key: "OUT" value: "OUT" } } }\n')


@pytest.mark.parametrize("http", [
    "",
    "    inference_model_control explicit;\n"
    "    inference_load_model near;\n    inference_load_model both;\n",
], ids=["none", "named"])
def test_an_ensemble_waits_for_its_model(start, silence, http):
    server = start(http, near=ensemble)
    assert server.wait_for("/v2/models/near/ready")
    assert is_asked(silence)
    assert server.get("/v2/models/both/ready").status != 200
    assert server.get("/v2/health/ready").status == 400
    silence.speak()
    assert server.wait_for("/v2/health/ready")
    works(server, "both")


def test_a_reload_of_nginx_is_not_held_up(start, silence, tmp_path):
    """One more directory comes, the silent bucket goes."""
    server = start()
    assert is_asked(silence)
    models.identity(tmp_path, "more", IN)
    line = f"    inference_repository {tmp_path};\n"
    bucket = server.fields["http"]
    server.write_config(http=bucket + line)
    server.signal("HUP")
    assert server.wait_for("/v2/models/more/ready")
    works(server, "more")
    assert server.get("/v2/health/ready").status == 400
    server.write_config(http=line)
    server.signal("HUP")
    assert server.wait_for("/v2/health/ready")
    works(server, "near")
    works(server, "more")


def test_a_reload_of_nginx_goes_by_what_the_service_had(
        service, bucket, start, tmp_path):
    """It falls silent later; what is new there comes when it speaks."""
    server = start(wait="ready")
    upload(service, bucket, "r", lambda f: models.identity(f, "late", IN))
    models.identity(tmp_path, "more", IN)
    service.gate.fall_silent()
    try:
        server.write_config(http=server.fields["http"]
                            + f"    inference_repository {tmp_path};\n")
        server.signal("HUP")
        assert server.wait_for("/v2/models/more/ready")
        works(server, "more")
        works(server, "far")
    finally:
        service.gate.speak()
    assert server.wait_for("/v2/models/late/ready")
    assert server.wait_for("/v2/health/ready")


def test_the_end_is_not_held_up(start, silence):
    """stop() looks for what is left and kills nobody."""
    server = start()
    assert server.wait_for("/v2/models/near/ready")
    assert is_asked(silence)
    server.stop()


def test_a_name_in_both_serves_until_both_are_known(
        service, bucket, start, silence):
    server = start(near=lambda f: models.identity(f, "far", IN))
    assert server.wait_for("/v2/models/far/ready")
    works(server, "far")
    silence.speak()
    assert server.wait_for("/v2/models/far/ready", status=404)
    server.wait_log("in two repositories now: it is unloaded")
    assert index(server) == {"far": "UNAVAILABLE"}
