"""The conformance backend through nginx: every rule of the C interface."""

import concurrent.futures
import json
import re
import struct
import subprocess

import pytest

from lib import backends, models, process
from lib.server import BUILD, SLOW
from lib.wire import tensor

INPUTS = [("A", "FP32", [-1]),
          ("B", "INT32", [2, 2], "reshape { shape: [ 4 ] } optional: true"),
          ("S", "BYTES", [-1], "optional: true")]
OUTPUTS = [("X", "FP32", [-1]),
           ("Y", "INT32", [2, 2], "reshape { shape: [ 4 ] }"),
           ("Z", "BYTES", [-1])]


def model(repository, name="conformance", instances=2, **kw):
    models.identity(repository, name, INPUTS, outputs=OUTPUTS, max_batch=4,
                    instances=instances, backend="conformance", **kw)


@pytest.fixture
def start(make_server, tmp_path):
    """A server with the backend, and the file of its events."""
    def make(fill=model, **kw):
        folder = backends.build("conformance")
        make.events = tmp_path / "events"
        return make_server(fill, http=f"    inference_backends {folder};",
                           inference_env=[
                               f"INF_CONFORMANCE_EVENTS={make.events}"], **kw)
    yield make
    failed = [line for line in make.events.read_text().splitlines()
              if line.startswith("FAILED")]
    assert not failed


def request(scenario=None, **more):
    parameters = dict(more, **({"scenario": scenario} if scenario else {}))
    return {"inputs": [tensor("A", "FP32", [1, 2], [1.5, 2.5])],
            "parameters": parameters}


def symbols(library, which):
    out = subprocess.run(["nm", "-D", which, library], capture_output=True,
                         text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()
            if line.split()[-1].startswith("TRITONBACKEND_")}


def test_every_exported_function_is_called():
    library = backends.build("conformance") \
        / "conformance/libtriton_conformance.so"
    exported = symbols(BUILD / "libtritonserver.so", "--defined-only")
    assert len(exported) > 80
    assert not exported - symbols(library, "--undefined-only")


def test_every_rule_holds(start):
    server = start()
    answer = server.infer("conformance", request(
        text="t", number=3, half=0.5, yes=True))
    assert answer.status == 200, answer
    body = answer.json()
    assert body["outputs"][0]["data"] == [1.5, 2.5]
    assert body["parameters"]["text"] == 'a "quoted" text'
    assert body["parameters"]["yes"] is True
    assert body["parameters"]["half"] == 0.5


def test_rules_hold_for_all_inputs_and_binary_data(start):
    server = start()
    head = {"id": "7", "inputs": [
        tensor("S", "BYTES", [2, 2], ["a", "", "c", "dd"]),
        tensor("B", "INT32", [2, 2, 2], list(range(8))),
        tensor("A", "FP32", [2, 2], binary_data_size=16)],
        "outputs": [{"name": "X", "parameters": {"binary_data": True}}]}
    tail = struct.pack("4f", 1, 2, 3, 4)
    answer = server.infer("conformance", head, tail)
    assert answer.status == 200, answer
    assert answer.split()[1] == tail


@pytest.mark.parametrize("extra", [
    "dynamic_batching { }", "dynamic_batching { preferred_batch_size: [ 2 ] }"
])
def test_rules_hold_for_a_batched_model(start, extra):
    server = start(lambda r: model(r, extra=extra + "\n"))
    assert server.infer("conformance", request()).status == 200


def test_rules_hold_when_many_ask_at_once(start):
    server = start(lambda r: model(r, instances=3), workers=2)
    names = [None, "later", "error", "texts"]
    status = {None: 200, "later": 200, "error": 409, "texts": 200}

    def one(i):
        name = names[i % 4]
        answer = server.infer("conformance", request(name))
        return answer if answer.status not in (
            status[name], 500 if name == "error" else 200, 400) else None

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert not [a for a in pool.map(one, range(200)) if a is not None]


def test_an_answer_may_come_after_the_release(start):
    server = start()
    for _ in range(20):
        answer = server.infer("conformance", request("later"))
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] == [1.5]


def test_texts_are_what_backends_parse(start):
    server = start()
    answer = server.infer("conformance", request("texts"))
    assert answer.status == 200, answer
    config, settings, policy, artifacts, repository, name = \
        answer.json()["outputs"][0]["data"]
    assert config == server.get("/v2/models/conformance/config").body.decode()
    assert re.fullmatch(
        r'\{"cmdline":\{"auto-complete-config":"(true|false)",'
        r'"backend-directory":"[^"]*",'
        r'"min-compute-capability":"\d+\.\d{6}",'
        r'"default-max-batch-size":"4"\}\}', settings)
    assert policy == '{"cpu":{}}'
    assert artifacts.endswith("/t-backends/conformance")
    assert repository == str(server.models / "conformance")
    assert name in ("conformance_0_0", "conformance_0_1")


def test_a_client_that_goes_cancels(start):
    server = start(lambda r: model(r, instances=1))
    with server.wire() as connection:

        body = json.dumps(request("cancel")).encode()
        connection.send(b"POST /v2/models/conformance/infer HTTP/1.1\r\n"
                        b"Host: x\r\nContent-Length: %d\r\n\r\n" % len(body)
                        + body)
        assert process.wait_until(
            lambda: "waiting" in start.events.read_text(), 10 * SLOW)
    assert process.wait_until(
        lambda: "cancelled" in start.events.read_text(), 10 * SLOW)
    assert server.infer("conformance", request()).status == 200


@pytest.mark.parametrize("where", ["ModelInitialize",
                                   "ModelInstanceInitialize"])
def test_a_failure_is_named_and_finalized(start, where):
    def fill(repository):
        model(repository, "bad", parameters={"fail": where})
        model(repository, "good")

    server = start(fill, wait="live")
    server.wait_log(f"model=bad .*failing on purpose in {where}")
    assert server.wait_for("/v2/models/good/ready")
    assert server.get("/v2/models/bad/ready").status in (404, 503)
    assert server.infer("good", request()).status == 200
    text = start.events.read_text()
    assert "ModelFinalize bad" in text
    assert "ModelFinalize good" not in text


def test_a_failed_execution_answers_each_request(start):
    server = start(lambda r: model(
        r, parameters={"fail": "ModelInstanceExecute"}))
    for _ in range(5):
        answer = server.infer("conformance", request())
        assert answer.status == 503, answer
        assert "on purpose in ModelInstanceExecute" in answer.error


def test_life_ends_with_the_server(start):
    server = start()
    server.stop()
    lines = start.events.read_text().splitlines()
    assert lines[0] == "Initialize backend"
    assert lines[1] == "GetBackendAttribute backend"
    assert lines[-2:] == ["ModelFinalize conformance", "Finalize backend"]

