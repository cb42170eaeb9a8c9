"""The worked examples of the protocol's reference: each conversation with our
launcher and, where it is there, with the real server, whose command lines are
the same."""

import contextlib
import dataclasses
import json
import os
import shutil

import pytest

from lib import backends, models, prebuilt, process, wire
from lib.front_end import FrontEnd
from lib.launcher import Launcher
from lib.regions import Object
from lib.server import BACKENDS, SLOW

JSON, TEXT = "application/json", "text/plain"
BINARY = "application/octet-stream"
EVENTS = "text/event-stream; charset=utf-8"
LENGTH = "inference-header-content-length"
KEY = f"/inf-t-{os.getpid()}-cam0"

# Where the real server answers otherwise; those on purpose are in
# docs/differences.md.
DIFFERENCES = {
    "malformed JSON is 400": {"status": 500},
    "every error is application/json": {"kind": TEXT},
    "no GPU in the build, none in the machine": {
        "answer": {"error": "failed to register shared memory region:"
                            " invalid args"}},
}


@dataclasses.dataclass
class Example:
    method: str
    path: str
    body: object = None         # bytes, or JSON
    headers: dict = dataclasses.field(default_factory=dict)
    status: int = 200
    answer: object = b""        # bytes, or JSON
    tail: bytes = b""           # tensors after it
    kind: str = JSON            # Content-Type
    differs: str = ""           # a name of DIFFERENCES
    soon: bool = False          # not at once


def get(path, *answer, **kw):
    return Example("GET", path, None, {}, *answer, **kw)


def post(path, body, *answer, headers=None, **kw):
    return Example("POST", path, body, headers or {}, *answer, **kw)


def error(text):
    return {"error": text}


def output(name, datatype, shape, **more):
    return {"name": name, "datatype": datatype, "shape": shape, **more}


def of(model, version, *outputs, **more):
    return {**more, "model_name": model, "model_version": version,
            "outputs": list(outputs)}


LHS = {"name": "LHS", "datatype": "INT32", "shape": [1, 2]}
MASK = {"name": "MASK", "datatype": "BOOL", "shape": [1, 2]}
MASKED = {**MASK, "data": [True, False]}
BLEND = "/v2/models/blend/infer"
BINARY_BLEND = (
    b'{"id":"b-1","inputs":[{"name":"LHS","datatype":"INT32","shape":[1,2],'
    b'"parameters":{"binary_data_size":8}},{"name":"MASK","datatype":"BOOL",'
    b'"shape":[1,2],"parameters":{"binary_data_size":2}}],"outputs":[{"name":'
    b'"SUM","parameters":{"binary_data":true}}]}')
HANDLE = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4v" \
    "MDEyMzQ1Njc4OTo7PD0+Pw=="
SCALE = {"backend": "identity", "max_batch_size": 8,
         "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [-1]}],
         "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [-1]}]}


def sequence(id, start):
    return {"inputs": [wire.tensor("IN", "FP32", [1], [0.5])],
            "parameters": {"sequence_id": id, "sequence_start": start,
                           "sequence_end": False, "lang": "fi"}}


CONVERSATIONS = {
    "model metadata": [
        get("/v2/models/blend/versions/3", 200, {
            "name": "blend", "versions": ["3"], "platform": "blend",
            "inputs": [{**LHS, "shape": [-1, 2]}, {**MASK, "shape": [-1, 2]}],
            "outputs": [output("SUM", "INT32", [-1, 2])]})],
    "JSON both ways": [
        post(BLEND, {"id": "j-1", "inputs": [{**LHS, "data": [[7, -2]]},
                                             MASKED]},
             200, of("blend", "3", output("SUM", "INT32", [1, 2],
                                          data=[7, 0]), id="j-1"))],
    "binary both ways": [
        post(BLEND, BINARY_BLEND + bytes.fromhex("07000000 feffffff 0100"),
             200, of("blend", "3", output(
                 "SUM", "INT32", [1, 2],
                 parameters={"binary_data_size": 8}), id="b-1"),
             bytes.fromhex("07000000 00000000"), BINARY,
             headers={LENGTH: "252"})],
    "raw binary": [
        post("/v2/models/scale/infer",
             bytes.fromhex("0000003f 0000803f 00000040"), 200,
             of("scale", "1", output("Y", "FP32", [1, 3],
                                     parameters={"binary_data_size": 12})),
             bytes.fromhex("0000003f 0000803f 00000040"), BINARY,
             headers={LENGTH: "0"})],
    "BYTES in as JSON, out binary": [
        post("/v2/models/echo/infer",
             {"inputs": [wire.tensor("WORDS", "BYTES", [2],
                                     ["h\u00e9", "a\0b"])],
              "parameters": {"binary_data_output": True}}, 200,
             of("echo", "1", output("WORDS_OUT", "BYTES", [2],
                                    parameters={"binary_data_size": 14})),
             bytes.fromhex("03000000 68c3a9 03000000 610062"), BINARY)],
    "classification": [
        post("/v2/models/vision/infer",
             {"inputs": [wire.tensor("PIX", "FP32", [1, 4],
                                     [0.25, 9, -1, 3.5])],
              "outputs": [{"name": "SCORES",
                           "parameters": {"classification": 2}}]},
             200, of("vision", "2", output(
                 "SCORES", "BYTES", [1, 2],
                 data=["9.000000:1:cat", "3.500000:3:owl"])))],
    "repository": [
        post("/v2/repository/models/scale/unload", b""),
        post("/v2/repository/index", {"ready": False}, 200, [
            {"name": "asr"},
            {"name": "blend", "version": "3", "state": "READY"},
            {"name": "chat", "version": "1", "state": "READY"},
            {"name": "echo", "version": "1", "state": "READY"},
            {"name": "failing"},
            {"name": "scale", "version": "1", "state": "UNAVAILABLE",
             "reason": "unloaded"},
            {"name": "vision", "version": "2", "state": "READY"}], soon=True),
        post("/v2/repository/models/scale/load", {"parameters": {
            "config": json.dumps(SCALE), "file:1/model.txt":
            "cHJpbnQoMSk="}})],
    "a sequence": [
        post("/v2/repository/models/asr/load", b""),
        post("/v2/models/asr/infer", sequence("call-17", True), 200,
             of("asr", "1", output("OUT", "FP32", [1], data=[0.5]))),
        post("/v2/models/asr/infer", sequence("call-18", False), 400,
             error("inference request for sequence call-18 to model 'asr' must"
                   " specify the START flag on the first request of the"
                   " sequence"))],
    "system shared memory": [
        post("/v2/systemsharedmemory/region/in0/register",
             {"key": KEY, "offset": 0, "byte_size": 4096}),
        get("/v2/systemsharedmemory/region/in0/status", 200,
            [{"name": "in0", "key": KEY, "offset": 0, "byte_size": 4096}]),
        post(BLEND, {"inputs": [{**LHS, "parameters": {
            "shared_memory_region": "in0", "shared_memory_offset": 64,
            "shared_memory_byte_size": 8}}, MASKED]}, 200,
            of("blend", "3", output("SUM", "INT32", [1, 2], data=[7, 0]))),
        post("/v2/systemsharedmemory/region/in0/unregister", b"")],
    "CUDA shared memory": [
        post("/v2/cudasharedmemory/region/g0/register",
             {"raw_handle": {"b64": HANDLE}, "device_id": 0,
              "byte_size": 1048576}, 400,
             error("failed to register CUDA shared memory region: 'g0', GPUs"
                   " not supported"),
             differs="no GPU in the build, none in the machine")],
    "generate": [
        post("/v2/models/chat/generate",
             {"text_input": "hi", "parameters": {"max_tokens": 3}}, 200,
             {"model_name": "chat", "model_version": "1",
              "text_output": "hello"})],
    "a stream with a late failure": [
        post("/v2/models/chat/generate_stream", {"text_input": "you"}, 200,
             b'data: {"model_name":"chat","model_version":"1","text_output":'
             b'"he"}\n\ndata: {"error":"kv cache exhausted"}\n\n',
             kind=EVENTS)],
    "errors": [
        post(BLEND, b'{"inputs":[', 400, error(
            "failed to parse the request JSON buffer: Invalid value. at 11"),
            differs="malformed JSON is 400"),
        post("/v2/models/ghost/infer", {"inputs": []}, 404,
             error("Request for unknown model: 'ghost' is not found"),
             differs="every error is application/json"),
        get("/v2/logging", 403,
            error("This API is restricted, expecting header 'x-ops-key'"),
            differs="every error is application/json"),
        get(BLEND, 405, error("Method Not Allowed"),
            differs="every error is application/json")],
    "a model that failed": [
        get("/v2/health/ready", kind=TEXT),
        post("/v2/repository/models/failing/load", b"", 400,
             error("load failed for model 'failing': version 1 is at"
                   " UNAVAILABLE state: Internal: not today;\n")),
        get("/v2/health/ready", 400, kind=TEXT)],
}


def fill(repository):
    models.standard_repository(repository)
    for folder in repository.iterdir():
        if folder.name not in ("vision", "scale", "echo"):
            shutil.rmtree(folder)
    of_library(repository, "blend", 3, "max_batch_size: 8\n"
               + models.io_block("input", [("LHS", "INT32", [2]),
                                           ("MASK", "BOOL", [2])])
               + models.io_block("output", [("SUM", "INT32", [2])]))
    of_library(repository, "chat", 1,
               "model_transaction_policy { decoupled: true }\n"
               + models.io_block("input", [("text_input", "BYTES", [1])])
               + models.io_block("output", [("text_output", "BYTES", [1])]))
    models.identity(repository, "asr", [("IN", "FP32", [-1])],
                    extra="sequence_batching { }\n")
    models.identity(repository, "failing", [("IN", "FP32", [-1])],
                    parameters={"fail_initialize": "not today"})


def of_library(repository, name, version, config):
    """A model of t/backends/<name>.c, with the library beside it."""
    folder = models.write_model(repository, name, f'backend: "{name}"\n'
                                + config, versions=(version,))
    shutil.copy(backends.build(name) / name / f"libtriton_{name}.so", folder)


LOADED = ["blend", "chat", "echo", "scale", "vision"]
RESTRICTED = "--http-restricted-api=logging:x-ops-key=s3"


@pytest.fixture(scope="module", params=["ours", "real"])
def port(request, tmp_path_factory):
    if request.param == "real":
        if prebuilt.missing():
            pytest.skip(prebuilt.missing())
        with FrontEnd(fill, program=prebuilt.TRITON / "bin/tritonserver",
                      mode="explicit", load=LOADED,
                      arguments=[RESTRICTED]) as real:
            yield real.http_port
        return

    folder = tmp_path_factory.mktemp("ours")
    (folder / "models").mkdir()
    fill(folder / "models")
    ours = Launcher(
        folder, f"--model-repository={folder / 'models'}",
        f"--backend-directory={BACKENDS}", "--model-control-mode=explicit",
        *(f"--load-model={name}" for name in LOADED), RESTRICTED,
        "--allow-client-shm=true", "--grpc-address=127.0.0.1",
        "--metrics-address=127.0.0.1")
    try:
        ours.wait_ready()
        ours.wait_log("Started HTTPService")  # what fails now ends nothing
        yield ours.port
    finally:
        status = ours.stop()
    assert status == 0


@pytest.fixture
def camera():
    """The object that a region lies in; 7 and -2 are in it."""
    with contextlib.closing(Object(
            4096, bytes(64) + bytes.fromhex("07000000 feffffff"), key=KEY)):
        yield


def told(answer):
    """(status, Content-Type, what it says, tensors after it)"""
    size = int(answer.headers.get(LENGTH, len(answer.body)))
    text, tail = answer.body[:size], answer.body[size:]
    if answer.headers["content-type"] in (JSON, BINARY) \
            or text.startswith(b"{"):
        text = json.loads(text) if text else text
    return answer.status, answer.headers["content-type"], text, tail


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_examples(port, camera, name, request):
    real = "real" in request.node.callspec.id
    for example in CONVERSATIONS[name]:
        if real and example.differs:
            example = dataclasses.replace(example,
                                          **DIFFERENCES[example.differs])
        body = example.body
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()

        def ask(e=example, data=body):
            return told(wire.fetch(port, e.method, e.path, data, e.headers))

        expected = (example.status, example.kind, example.answer, example.tail)
        if example.soon:
            process.wait_until(lambda a=ask, e=expected: a() == e, 10 * SLOW)
        assert ask() == expected, (example.method, example.path)


def test_server_metadata(port):
    told = wire.fetch(port, "GET", "/v2").json()
    assert told["name"] == "triton"
    assert set(told["extensions"]) == {
        "classification", "sequence", "model_repository",
        "model_repository(unload_dependents)", "schedule_policy",
        "model_configuration", "system_shared_memory", "cuda_shared_memory",
        "binary_tensor_data", "parameters", "statistics", "trace", "logging"}


def test_bytes_of_answers(port):
    """Beyond JSON's values: order of members, spaces, lengths."""
    answer = wire.fetch(port, "POST", "/v2/models/echo/infer", (
        '{"inputs":[{"name":"WORDS","datatype":"BYTES","shape":[2],"data":'
        '["h\u00e9","a\\u0000b"]}],"parameters":{"binary_data_output":true}}'
    ).encode())
    head = (b'{"model_name":"echo","model_version":"1","outputs":[{"name":'
            b'"WORDS_OUT","datatype":"BYTES","shape":[2],"parameters":'
            b'{"binary_data_size":14}}]}')
    assert answer.headers[LENGTH] == str(len(head)) == "142"
    assert answer.headers["content-length"] == "156"
    assert answer.body == head + bytes.fromhex(
        "03000000 68c3a9 03000000 610062")
    for path in ("/nothing", "/v2/models/ghost", "/v2/models/ghost/infer"):
        answer = wire.fetch(port, "GET", path)
        assert answer.body == json.dumps(
            answer.json(), separators=(",", ":"), ensure_ascii=False).encode()
