"""The core dies: inferences go to the next one, and clients see them late."""

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import re
import signal

import numpy
import pytest
import tritonclient.grpc as grpc_client
from tritonclient.utils import InferenceServerException

from lib import backends, models, process
from lib.access_log import FORMAT, WRITTEN, AccessLog
from lib.exposition import figure, wait_executing, wait_given
from lib.h2 import H2
from lib.load import Load
from lib.server import CORE, SLOW, nap
from lib.upstream import Upstream
from lib.wire import infer_path, request_bytes, tensor

KILLED = r"exited on signal"
PARTS = "health metadata config infer metrics"
VALUES = list(range(64))
BODY = json.dumps({"inputs": [tensor("IN", "INT32", [64], VALUES)]}).encode()
BLOB = numpy.arange(400_000, dtype=numpy.int32).tobytes()
HEAD = json.dumps({
    "inputs": [tensor("IN", "INT32", [400_000], binary_data_size=len(BLOB))],
    "parameters": {"binary_data_output": True}}).encode()


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "held", [("IN", "INT32", [-1])], instances=8,
                    parameters={"execute_delay_ms": "1500"})
    models.identity(repository, "brief", [("IN", "INT32", [-1])], instances=4,
                    parameters={"execute_delay_ms": "5"})


def send(server, body, tail=b"", model="held", headers=None):
    """A request under way, on a connection of its own."""
    headers = dict(headers or {})
    if tail:
        headers["Inference-Header-Content-Length"] = str(len(body))
    connection = server.wire(20)
    connection.send(request_bytes("POST", infer_path(model), body + tail,
                                  headers))
    return connection


def read(connection):
    answer = connection.read()
    connection.close()
    return answer


@pytest.mark.parametrize("body,tail,headers,check", [
    (BODY, b"", {}, lambda a: a.json()["outputs"][0]["data"] == VALUES),
    (HEAD, BLOB, {}, lambda a: a.split()[1] == BLOB),
    (gzip.compress(BODY), b"", {"Content-Encoding": "gzip"},
     lambda a: a.json()["outputs"][0]["data"] == VALUES),
    (BLOB, b"", {"Inference-Header-Content-Length": "0"},
     lambda a: a.split()[1] == BLOB)],
    ids=["json", "binary", "gzip", "raw"])
def test_executing_and_queued_requests_are_answered(make_server, body, tail,
                                                    headers, check):
    """8 may execute at once, the others wait: all come to the next core with
    all their bytes."""
    server = make_server(fill, allow_alarms=[KILLED], parts=PARTS)
    sent = [send(server, body, tail, headers=headers) for _ in range(16)]
    wait_given(server, 16)
    server.end_core()
    for connection in sent:
        answer = read(connection)
        assert answer.status == 200, answer
        assert check(answer)


def test_a_grpc_call_is_answered(make_server):
    server = make_server(fill, http2=True, allow_alarms=[KILLED], parts=PARTS)
    data = numpy.arange(100_000, dtype=numpy.int32)
    with grpc_client.InferenceServerClient(
            f"127.0.0.1:{server.port2}") as client:
        tensor_in = grpc_client.InferInput("IN", [100_000], "INT32")
        tensor_in.set_data_from_numpy(data)
        answers = []
        for _ in range(3):
            client.async_infer("held", [tensor_in],
                               lambda result, error: answers.append(
                                   (result, error)))
        wait_given(server, 3)
        server.end_core()
        assert process.wait_until(lambda: len(answers) == 3, 20 * SLOW)
    for result, error in answers:
        assert error is None, error
        assert (result.as_numpy("OUT") == data).all()


@pytest.mark.parametrize("verb", ["generate", "generate_stream"])
def test_a_generate_request_is_answered(make_server, verb):
    server = make_server(fill, allow_alarms=[KILLED],
                         parts="health metadata generate metrics")
    connection = server.wire(20)
    connection.send(request_bytes("POST", f"/v2/models/held/{verb}",
                                  json.dumps({"IN": VALUES}).encode()))
    wait_given(server, 1)
    server.end_core()
    answer = read(connection)
    assert answer.status == 200, answer
    text = answer.body.decode().removeprefix("data: ")
    assert json.loads(text)["OUT"] == VALUES


def test_no_request_fails_however_often_the_core_dies(make_server):
    """Executions are short, so none is in the midst of three deaths."""
    server = make_server(fill, workers=2, allow_alarms=[KILLED])

    def once(connection):
        answer = connection.infer("brief", BODY)
        if answer.status == 200:
            assert answer.json()["outputs"][0]["data"] == VALUES
        return answer.status

    with Load(server.port, once, count=40, patience=30.0 * SLOW) as load:
        for _ in range(6):
            load.wait_for_more(200, 30 * SLOW)
            server.end_core()
        load.wait_for_more(200, 30 * SLOW)
    assert set(load.results) == {200}, load.results


def test_six_deaths_with_eight_executing_and_fifty_queued(make_server):
    def full(repository):
        models.identity(repository, "full", [("IN", "INT32", [-1])],
                        instances=8, parameters={"execute_delay_ms": "100"})

    server = make_server(full, workers=2, allow_alarms=[KILLED],
                         parts="health infer metrics",
                         http="    inference_tries 7;")

    def once(connection):
        answer = connection.infer("full", BODY)
        if answer.status == 200:
            assert answer.json()["outputs"][0]["data"] == VALUES
        return answer.status

    def queued():
        text = server.get("/metrics").body.decode()
        found = re.search(r"^nv_inference_pending_request_count\{.*"
                          r'model="full".*\} (\d+)', text, re.M)
        return found and int(found[1])

    with Load(server.port, once, count=70, patience=60.0 * SLOW) as load:
        for _ in range(6):
            # so many wait only while all instances are busy
            assert process.wait_until(lambda: (queued() or 0) >= 50,
                                      60 * SLOW)
            server.end_core()
        load.wait_for_more(200, 60 * SLOW)
    assert set(load.results) == {200}, load.results
    retried = re.search(r"nginx_inference_retried_total (\d+)$",
                        server.get("/metrics").body.decode(), re.M)
    assert int(retried[1]) >= 6 * 58


def test_tries_are_counted_and_end(make_server):
    """A request that kills its core fails alone; others wait, and are
    answered."""
    folder = backends.build("failing")

    def with_crash(repository):
        fill(repository)
        models.identity(repository, "bad", [("IN", "INT32", [-1])],
                        backend="failing",
                        parameters={"fail": "execute-crash"})

    server = make_server(with_crash, allow_alarms=[KILLED],
                         http=FORMAT + f"inference_backends {folder};",
                         server=WRITTEN + "location /v2/models/bad/ "
                                "{ inference infer; inference_tries 3; }"
                                "location = /metrics { inference metrics; }")
    log = AccessLog(server)
    good = [send(server, BODY, model="brief") for _ in range(4)]
    bad = send(server, BODY, model="bad")
    good += [send(server, BODY, model="brief") for _ in range(4)]
    answer = read(bad)
    assert answer.status == 503
    assert "the inference core ended before it answered" in answer.error
    assert [read(c).status for c in good] == [200] * 8
    (line,) = log.lines(1, uri=infer_path("bad"))
    assert line["tries"] == "3"
    assert figure(server, "out_of_tries_total") == 1
    assert figure(server, "core_deaths_total") == 3
    assert figure(server, "suspects_total") >= 2    # its second and third
    assert figure(server, "core_hangs_total") == 0


def with_held_model(repository):
    path = models.identity(repository, "kept", [("IN", "INT32", [-1])],
                           backend="failing",
                           parameters={"fail": "initialize-hold"})
    path.chmod(0o777)


@contextlib.contextmanager
def next_core_that_loads(server):
    """Meanwhile it loads `kept`."""
    path = server.models / "kept"
    (path / "held").unlink(missing_ok=True)
    (path / "hold").write_text("")
    try:
        server.end_core()
        assert process.wait_until(lambda: (path / "held").exists(), 20 * SLOW)
        yield
    finally:
        (path / "hold").unlink()


@pytest.mark.parametrize("control", ["all", "explicit"])
def test_only_names_that_the_next_core_loads_are_waited_for(make_server,
                                                            control):
    """`kept` cannot be loaded before the other was answered."""
    named = ("inference_model_control explicit;"
             " inference_load_model kept;")

    server = make_server(
        with_held_model, allow_alarms=[KILLED],
        http=f"    inference_backends {backends.build('failing')};\n"
        + (named if control == "explicit" else ""))
    with next_core_that_loads(server):
        kept = send(server, BODY, model="kept")
        answer = read(send(server, BODY, model="unknown"))
        assert answer.status == 404, answer
        assert "unknown model: 'unknown' is not found" in answer.error
    answer = read(kept)
    assert answer.error == "closed for today"       # the model's own answer


def test_a_model_that_the_next_core_still_loads_is_not_waited_for_for_ever(
        make_server):
    """A minute without a deadline, and up to a deadline, however long the load
    takes; the answer says why, and when to come again."""
    server = make_server(
        with_held_model, allow_alarms=[KILLED], http2=True,
        http=f"    inference_backends {backends.build('failing')};\n",
        server="location /soon/ { inference all; inference_timeout 3s; }")
    loading = "the next core still loads the models of the one that ended"
    with next_core_that_loads(server):
        late = [server.wire(180), server.wire(180)]
        late[0].send(request_bytes("POST", infer_path("kept"), BODY))
        late[1].send(request_bytes("GET", "/v2/models/kept"))
        answer = server.post("/soon" + infer_path("kept"), BODY)
        assert answer.status == 503
        assert answer.error == ("Request timeout expired: no answer within "
                                f"inference_timeout of 3000 ms; {loading}")
        assert int(answer.headers["retry-after"]) > 0
        with grpc_client.InferenceServerClient(
                f"127.0.0.1:{server.port2}") as client:
            with pytest.raises(InferenceServerException) as raised:
                client.get_model_metadata("kept")
        assert raised.value.status() == "StatusCode.UNAVAILABLE"
        assert loading in raised.value.message()
        for answer in (read(c) for c in late):
            assert answer.status == 503
            assert answer.error == f"no answer within 60 s; {loading}"
            assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("company", ["long", "brief", "chain"])
def test_a_request_that_ends_its_core_fails_alone(make_server, company):
    """Steady load of other models, one try for each but the first beside the
    request that ends the core: it alone is answered 503."""
    folder = backends.build("failing")

    def with_crash(repository):
        fill(repository)
        models.identity(repository, "long", [("IN", "INT32", [-1])],
                        instances=4, parameters={"execute_delay_ms": "300"})
        models.ensemble(repository, "chain", [("IN", "INT32", [-1])],
                        [("OUT", "INT32", [-1])],
                        models.step("brief", {"IN": "IN"}, {"OUT": "between"}),
                        models.step("long", {"IN": "between"},
                                    {"OUT": "OUT"}))
        models.identity(repository, "bad", [("IN", "INT32", [-1])],
                        backend="failing",
                        parameters={"fail": "execute-crash"})

    server = make_server(
        with_crash, workers=2, allow_alarms=[KILLED],
        http=f"    inference_backends {folder}; inference_tries 2;",
        server="location /v2/models/bad/ "
               "{ inference infer; inference_tries 5; }")

    def once(connection):
        return connection.infer(company, BODY).status

    with Load(server.port, once, count=12, patience=30.0 * SLOW) as load:
        load.wait_for_more(12, 30 * SLOW)
        answer = read(send(server, BODY, model="bad"))
        load.wait_for_more(24, 30 * SLOW)
    assert answer.status == 503
    assert set(load.results) == {200}, load.results
    assert len(server.cores()) == 1


def test_a_deadline_ends_the_waiting(make_server):
    server = make_server(fill, allow_alarms=[KILLED], parts=PARTS,
                         http="    inference_timeout 2s;")
    sent = send(server, BODY)
    wait_given(server, 1)
    server.end_core()
    nap(0.2)
    os.kill(server.core(), signal.SIGSTOP)
    try:
        answer = read(sent)
    finally:
        os.kill(server.core(), signal.SIGCONT)
    assert answer.status in (503, 504), answer


def test_a_body_that_is_still_coming_goes_to_the_next_core(make_server):
    server = make_server(fill, allow_alarms=[KILLED])
    whole = request_bytes("POST", infer_path("brief"), HEAD + BLOB,
                          {"Inference-Header-Content-Length": str(len(HEAD))})
    connection = server.wire(20)
    connection.send(whole[:len(whole) // 2])
    nap(0.3)
    server.end_core()
    connection.send(whole[len(whole) // 2:])
    answer = read(connection)
    assert answer.status == 200, answer
    assert answer.split()[1] == BLOB


def test_a_borrowed_body_that_comes_after_the_core_has_died(make_server):
    """The channel that was there when the subrequest began is freed."""
    with Upstream() as upstream:
        server = make_server(fill, allow_alarms=[KILLED], server=f"""
        location /guarded {{
            auth_request /ask;
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
        location = /ask {{ internal; inference_model brief; }}
        """)
        whole = request_bytes("POST", "/guarded", BODY)
        connection = server.wire(60)
        connection.send(whole[:-len(BODY) // 2])
        nap(0.3)
        server.end_core()
        assert server.wait_for("/v2/health/ready")
        nap(2.5)                        # a second, then the sweep
        connection.send(whole[-len(BODY) // 2:])
        assert read(connection).status == 200
        assert [r["size"] for r in upstream.requests] == [len(BODY)]


@pytest.mark.parametrize("http2", [False, True])
def test_a_body_that_begins_while_there_is_no_core(make_server, tmp_path,
                                                   http2):
    """The head came before; the next core cannot be started before the body
    is there."""
    for name in (CORE, CORE.parent / "libtritonserver.so"):
        shutil.copy(name, tmp_path)
    program = tmp_path / CORE.name
    server = make_server(fill, core=program, http2=True, allow_alarms=[KILLED])
    lengths = {"inference-header-content-length": str(len(HEAD)),
               "content-length": str(len(HEAD + BLOB))}
    if http2:
        connection = H2(server.port2, 1 << 30, 60 * SLOW)
        stream = connection.post(infer_path("brief"), lengths)
        connection.sync()
    else:
        connection = server.wire(60)
        connection.send(request_bytes("POST", infer_path("brief"), None,
                                      lengths))
        nap(0.3)
    program.chmod(0o644)
    os.kill(server.core(), signal.SIGKILL)
    server.wait_log("is gone")
    server.wait_log("cannot run .*Permission denied")
    if http2:
        connection.data(stream, (HEAD + BLOB)[:30000])
        connection.sync()
    else:
        connection.send((HEAD + BLOB)[:30000])
        nap(0.3)
    program.chmod(0o755)
    if http2:
        connection.data_in_window(stream, (HEAD + BLOB)[30000:], 30000)
        answer = connection.read(stream)
    else:
        connection.send((HEAD + BLOB)[30000:])
        answer = connection.read()
    connection.close()
    assert answer.status == 200, answer.body[:300]
    assert answer.body.endswith(BLOB)


def test_a_client_that_leaves_in_between_leaves_nothing(make_server):
    server = make_server(fill, allow_alarms=[KILLED], parts=PARTS)
    sent = [send(server, HEAD, BLOB) for _ in range(16)]
    wait_given(server, 16)
    server.end_core()
    for connection in sent:
        connection.close()
    sent = [send(server, HEAD, BLOB) for _ in range(4)]
    assert [read(c).status for c in sent] == [200] * 4


def test_the_body_is_still_handed_on(make_server):
    """Tries used up, error_page sends the same bytes elsewhere."""
    def long(repository):
        models.identity(repository, "long", [("IN", "INT32", [-1])],
                        parameters={"execute_delay_ms": "60000"})

    with Upstream() as upstream:
        server = make_server(
            long, allow_alarms=[KILLED], parts=PARTS,
            http="    inference_tries 1;",
            server="inference_intercept_errors on; error_page 503 = @other;\n"
                   f"location @other {{ proxy_pass "
                   f"http://127.0.0.1:{upstream.port}; }}")
        sent = send(server, HEAD, BLOB, model="long")
        wait_executing(server, 1)
        server.end_core()
        assert read(sent).status == 200
        assert upstream.requests[-1]["size"] == len(HEAD + BLOB)
        assert upstream.requests[-1]["sha256"] == hashlib.sha256(
            HEAD + BLOB).hexdigest()


def test_a_sequence_is_not_given_to_another_core(make_server):
    def with_sequences(repository):
        models.identity(
            repository, "s", [("IN", "INT32", [-1])], max_batch=0,
            parameters={"execute_delay_ms": "2000"},
            extra="sequence_batching { }\n")

    server = make_server(with_sequences, allow_alarms=[KILLED],
                         parts="health infer metrics")
    body = json.dumps({
        "inputs": [tensor("IN", "INT32", [64], VALUES)],
        "parameters": {"sequence_id": 7, "sequence_start": True}}).encode()
    sent = send(server, body, model="s")
    wait_given(server, 1)
    server.end_core()
    answer = read(sent)
    assert answer.status == 503
    assert "sequence lost, start again" in answer.error
    assert figure(server, "out_of_tries_total") == 0


@pytest.mark.parametrize("extra,status", [
    ("", 200), ("sequence_batching { }\n", 503)], ids=["none", "sequences"])
def test_a_correlation_id_is_lost_with_sequences_alone(make_server, extra,
                                                       status):
    """The core ends before it has taken the request: the next one knows
    whether the model has sequences."""
    def with_model(repository):
        models.identity(repository, "m", [("IN", "INT32", [-1])], max_batch=0,
                        extra=extra)

    server = make_server(with_model, allow_alarms=[KILLED])
    body = json.dumps({
        "inputs": [tensor("IN", "INT32", [64], VALUES)],
        "parameters": {"sequence_id": 7, "sequence_start": True}}).encode()
    core = server.core()
    process.stop(core)
    sent = send(server, body, model="m")
    # it is in the ring when its worker has answered what came after it
    assert server.get("/v2/health/live").status == 200
    assert server.end_core() == core
    answer = read(sent)
    assert answer.status == status, answer
    if status == 503:
        assert answer.error == ("the inference core ended: sequence lost, "
                                "start again")
        assert "retry-after" not in answer.headers
    else:
        assert answer.json()["outputs"][0]["data"] == VALUES
