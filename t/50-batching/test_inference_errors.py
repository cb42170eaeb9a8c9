"""inference_errors: who is told what, by real clients."""

import json
import os
import signal

import numpy
import pytest
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

from lib import arena, backends, models, process
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.server import SLOW, Server
from lib.wire import infer_path, request_bytes, tensor

PLACES = """
        location /precise/ { inference all; inference_errors precise; }
        location = /mine { inference_model m; inference_errors precise; }
        location /triton/ { inference all; inference_errors triton; }
"""

FULL = "default_queue_policy { max_queue_size: 1 }"
SHORT = "default_queue_policy { default_timeout_microseconds: 50000 }"

REQUEST = json.dumps({"inputs": [tensor("IN", "INT32", [1, 1], [1])]}).encode()


def post(server, path):
    return server.post(path, REQUEST)


@pytest.fixture
def busy(batching):
    """A model with one request running, and the server that it is part of."""
    asked = []

    def start(policy, **kw):
        server = batching.start(policy, server=PLACES + kw.pop("server", ""),
                                **kw)
        batching.gate.close()
        asked.append(batching.ask(0))
        batching.gate.wait_entered()
        return server

    yield start
    batching.gate.open_all()
    assert all(f.result(20 * SLOW).status == 200 for f in asked)


def test_a_full_queue(busy, batching):
    server = busy(FULL)
    waiting = batching.ask(1)
    batching.wait_queued(1)
    for path, status in (("/v2/models/m/infer", 503),
                         ("/triton/v2/models/m/infer", 503),
                         ("/precise/v2/models/m/infer", 429),
                         ("/mine", 429)):
        answer = post(server, path)
        assert answer.status == status, path
        assert answer.error.endswith("Exceeds maximum queue size")
        assert answer.headers["retry-after"] == "1"
    batching.gate.open()
    assert waiting.result(20 * SLOW).status == 200


def test_a_client_library_sees_it(busy, batching):
    server = busy(FULL)
    waiting = batching.ask(1)
    batching.wait_queued(1)
    with client.InferenceServerClient(server.url + "/precise") as c:
        x = client.InferInput("IN", [1, 1], "INT32")
        x.set_data_from_numpy(numpy.array([[7]], numpy.int32))
        with pytest.raises(InferenceServerException,
                           match="Exceeds maximum queue size") as error:
            c.infer("m", [x])
        assert error.value.status() == "429"
    batching.gate.open()
    assert waiting.result(20 * SLOW).status == 200


def test_a_timeout_in_the_queue(busy):
    server = busy(SHORT, http=FORMAT)
    for path, status in (("/v2/models/m/infer", 503),
                         ("/precise/v2/models/m/infer", 504), ("/mine", 504)):
        answer = post(server, path)
        assert answer.status == status, path
        assert answer.error.endswith("Request timeout expired")
        assert "retry-after" not in answer.headers


def test_a_timeout_of_the_location(busy):
    server = busy("", server="""
        location /soon/ { inference all; inference_errors precise;
                          inference_timeout 50ms; }
        location /then/ { inference all; inference_timeout 50ms; }
    """)
    for path, status in (("/soon/v2/models/m/infer", 504),
                         ("/then/v2/models/m/infer", 503)):
        answer = post(server, path)
        assert answer.status == status
        assert answer.error.startswith("Request timeout expired")


def test_other_endpoints_time_out_too(make_server):
    server = make_server(models.standard_repository, parts="all", server="""
        location /soon/ { inference all metrics; inference_errors precise;
                          inference_timeout 100ms; }
    """)
    core = int(server.wait_log(r"core (\d+) started")[1])
    process.stop(core)
    try:
        for path in ("/soon/v2", "/soon/v2/models/id_int32",
                     "/soon/v2/models/id_int32/config", "/soon/metrics",
                     "/soon/v2/models/stats", "/soon/v2/health/ready",
                     "/soon/v2/models/id_int32/ready"):
            answer = server.get(path)
            assert answer.status == 504, path
            assert "inference_timeout of 100 ms" in answer.error
    finally:
        os.kill(core, signal.SIGCONT)
    assert server.wait_for("/soon/v2/health/ready")


def failing(repository):
    models.identity(repository, "gone", [("IN", "INT32", [1])], max_batch=1,
                    backend="failing",
                    parameters={"fail": "execute-cancelled"})
    models.identity(repository, "closed", [("IN", "INT32", [1])], max_batch=1,
                    backend="failing", parameters={"fail": "nowhere"})
    models.identity(repository, "short", [("IN", "INT32", [1])], max_batch=1,
                    backend="failing",
                    parameters={"fail": "execute-memory"})


def test_what_a_backend_says(make_server):
    folder = backends.build("failing")
    server = make_server(failing, server=PLACES, http=FORMAT
                         + f"    inference_backends {folder};\n")
    for path, gone in (("", 400), ("/triton", 400), ("/precise", 499)):
        answer = post(server, path + infer_path("gone"))
        assert (answer.status, answer.error) == (gone, "given up on purpose")
        # a backend's UNAVAILABLE is no queue's
        answer = post(server, path + infer_path("closed"))
        assert (answer.status, answer.error) == (503, "closed for today")
        assert "retry-after" not in answer.headers
    for path, short in (("", 500), ("/triton", 500), ("/precise", 507)):
        answer = post(server, path + infer_path("short"))
        assert (answer.status, answer.error) == (short, "CUDA out of memory")


def test_a_client_that_has_gone_is_logged_as_499(busy, batching):
    server = busy("", http=FORMAT, server=WRITTEN)
    log = AccessLog(server)
    for path in (infer_path("m"), "/precise" + infer_path("m")):
        with server.wire() as connection:
            connection.send(request_bytes("POST", path, REQUEST))
            batching.wait_queued(1)
        assert log.line(uri=path)["status"] == 499
        batching.wait_queued(0)


def test_a_model_that_is_not_ready_is_503(make_server):
    server = make_server(models.standard_repository, server="""
        location /precise/ { inference all repository;
                             inference_errors precise; }
    """, http="    inference_model_control explicit;\n"
              "    inference_load_model id_int32;\n")
    answer = server.post("/precise/v2/repository/models/id_int32/unload", b"")
    assert answer.status == 200, answer
    assert process.wait_until(
        lambda: post(server, "/precise/v2/models/id_int32/versions/1/infer")
        .status == 503, 10 * SLOW)
    answer = post(server, "/precise/v2/models/id_int32/versions/1/infer")
    assert answer.error.endswith("is not at ready state")


ARENA = 64 << 20


def test_a_full_arena(make_server):
    server = make_server(models.standard_repository, server=PLACES,
                         http=f"    inference_memory {ARENA};"
                              "    inference_max_body 0;\n")
    raw = {"Inference-Header-Content-Length": "0"}
    with server.wire(60) as holder:
        holder.send(request_bytes("POST", infer_path("id_uint8"), headers={
            **raw, "Content-Length": str(ARENA - (1 << 20))}))
        for _ in range(40):
            holder.send(b"z" * (1 << 20))
        assert process.wait_until(
            lambda: arena.asks_to_continue(server, 30 << 20) == 503,
            10 * SLOW)
        for path, status in (("", 503), ("/precise", 429)):
            with server.wire() as connection:
                connection.send(request_bytes(
                    "POST", path + infer_path("id_uint8"), headers={
                        **raw, "Content-Length": str(30 << 20)}))
                answer = connection.read()
            assert answer.status == status
            assert "inference_memory" in answer.error
            assert answer.headers["retry-after"] == "1"
        # what can never fit is neither
        answer = server.post("/precise" + infer_path("id_uint8"), b"", {
            **raw, "Content-Length": str(ARENA + 1)})
        assert answer.status == 413
    arena.assert_empty(server, ARENA)


def test_it_is_inherited(make_server):
    """http, server, location: the innermost counts."""
    server = make_server(failing, http=f"""
    inference_backends {backends.build("failing")};
    inference_errors precise;
""", server="""
        inference_errors triton;
        location /inner/ { inference all; inference_errors precise;
            location /inner/most/ { inference all; inference_errors triton; }
            location /inner/same/ { inference all; }
        }
        location /outer/ { inference all; }
""")
    for path, status in (("", 400), ("/outer", 400), ("/inner", 499),
                         ("/inner/same", 499), ("/inner/most", 400)):
        assert post(server, path + infer_path("gone")).status == status, path


def test_http_s_value_reaches_locations(make_server):
    server = make_server(failing, http=f"""
    inference_backends {backends.build("failing")};
    inference_errors precise;
""")
    assert post(server, infer_path("gone")).status == 499


def test_error_page_sees_the_precise_status(busy):
    server = busy(SHORT, server="""
        location /p/ { inference all; inference_errors precise;
                       inference_intercept_errors on;
                       error_page 504 = @elsewhere; }
        location @elsewhere { return 200 "elsewhere"; }
""")
    answer = post(server, "/p" + infer_path("m"))
    assert (answer.status, answer.body) == (200, b"elsewhere")


@pytest.mark.parametrize("value", ["exact", "on", ""])
def test_nothing_else_is_a_value(make_server, value):
    server = make_server(start=False, server=f"""
        location /p/ {{ inference all; inference_errors "{value}"; }}
""")
    status, text = server.check_config()
    assert status != 0
    assert f'invalid value "{value}"' in text


@pytest.mark.parametrize("name", ["priority", "timeout"])
@pytest.mark.parametrize("value", ["-1", "18446744073709551616", "1.5",
                                   '"1"', "1e30", "null", "true"])
def test_numbers_out_of_range_are_400(quiet, name, value):
    body = REQUEST[:-1] + f',"parameters":{{"{name}":{value}}}}}'.encode()
    for path in (infer_path("m"), "/precise" + infer_path("m")):
        answer = quiet.post(path, body)
        assert answer.status == 400
        assert f"'{name}'" in answer.error
        assert "from 0 to 18446744073709551615" in answer.error


@pytest.mark.parametrize("value", ["0", "60000000", "18446744073709551615"])
@pytest.mark.parametrize("name", ["priority", "timeout"])
def test_numbers_in_range_are_taken(quiet, name, value):
    """A priority beyond the levels is the default one's."""
    body = REQUEST[:-1] + f',"parameters":{{"{name}":{value}}}}}'.encode()
    assert quiet.post(infer_path("m"), body).status == 200


@pytest.mark.parametrize("value", ["-4", "18446744073709551616", "2.5"])
@pytest.mark.parametrize("name", ["binary_data_size",
                                  "shared_memory_byte_size",
                                  "shared_memory_offset"])
def test_sizes_out_of_range_are_400(quiet, name, value):
    region = '"shared_memory_region":"r",' if "shared" in name else ""
    body = ('{"inputs":[{"name":"IN","datatype":"INT32","shape":[1,1],'
            f'"parameters":{{{region}"{name}":{value}}}}}]}}').encode()
    answer = quiet.post(infer_path("m"), body)
    assert answer.status == 400
    assert f"'{name}'" in answer.error
    assert "from 0 to 18446744073709551615" in answer.error


@pytest.fixture(scope="module")
def quiet():
    def fill(repository):
        models.identity(
            repository, "m", [("IN", "INT32", [1])], max_batch=4,
            extra="dynamic_batching { priority_levels: 3"
                  " default_priority_level: 2 default_queue_policy {"
                  " allow_timeout_override: true } }\n")

    with Server(fill, server=PLACES) as s:
        yield s
