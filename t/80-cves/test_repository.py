"""Loads by request: names, paths and configurations Triton fell over."""

import base64
import json
import os
import re
import shutil
import threading
import urllib.parse

import pytest

from lib import models
from lib.server import ROOT, SLOW, Server
from lib.unharmed import unharmed
from lib.wire import chunked

CONFIG = {
    "backend": "identity", "max_batch_size": 0,
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1]}]}


def fill(repository):
    models.standard_repository(repository)
    shutil.copytree(ROOT / "examples/models/digits", repository / "digits")
    # what nothing in a request may ever read
    (repository.parent / "outside").mkdir()
    (repository.parent / "outside" / "labels.txt").write_text(
        "TOPSECRET0\nTOPSECRET1\nTOPSECRET2\nTOPSECRET3\n")
    shutil.copy(repository / "digits/1/model.onnx",
                repository.parent / "outside")


@pytest.fixture(scope="module")
def server():
    with Server(fill, parts="all repository",
                http="    inference_model_control explicit;\n"
                "    inference_load_model *;\n") as s:
        yield s


def ask(server, verb, model, **parameters):
    return server.post(f"/v2/repository/models/{model}/{verb}",
                       json.dumps({"parameters": parameters}).encode())


def load(server, model, config=None, **files):
    parameters = {} if config is None else {
        "config": config if isinstance(config, str) else json.dumps(config)}
    parameters.update({name: base64.b64encode(data).decode()
                       for name, data in files.items()})
    return ask(server, "load", model, **parameters)


def index(server):
    return {row["name"]: row for row in json.loads(
        server.post("/v2/repository/index", b"{}").body)}


def tree(folder):
    return sorted(os.path.join(d, f) for d, _, names in os.walk(folder)
                  for f in names)


@pytest.mark.parametrize("path", [
    "../x", "../../x", "1/../../x", "/../x", "1/../../../x", "../sent/../x",
    "./../x", "..", "1/..", "../id_int32/1/x", "..//x", "a/b/../../../x"])
def test_cve_2023_31036(server, path):
    """A file of a load was written outside the model's directory."""
    before = tree(server.prefix / "models"), tree(server.prefix / "outside")
    there = os.path.exists("/tmp/x")
    with unharmed(server):
        answer = load(server, "sent", dict(CONFIG, name="sent"), **{
            "file:1/data": b"x", "file:" + path: b"PLANTED"})
        assert answer.status == 500, answer
        server.wait_log("must stay within model directory")
    assert (tree(server.prefix / "models"),
            tree(server.prefix / "outside")) == before
    assert os.path.exists("/tmp/x") == there


@pytest.mark.parametrize("path", [
    "/etc/cron.d/inference-test", "//etc/cron.d/inference-test",
    "/tmp/inference-test-planted", "/dev/shm/inference-test-planted"])
def test_cve_2026_47606(server, path):
    """The same by an absolute path.  It counts from the model's directory."""
    with unharmed(server):
        answer = load(server, "sent", dict(CONFIG, name="sent"), **{
            "file:1/data": b"x", "file:" + path: b"PLANTED"})
        assert answer.status in (200, 500), answer
        ask(server, "unload", "sent")
    assert not os.path.exists(path)


@pytest.mark.parametrize("name", [
    "m;touch${IFS}planted", "m$(touch${IFS}planted)", "m`touch${IFS}planted`",
    "m|touch${IFS}planted", "m&touch${IFS}planted", "m\\planted",
    "m'planted'", 'm"planted"', "m>planted", "m*", "m~", "m("])
def test_cve_2025_23316(server, name):
    """Code ran by the name of a model: the Python backend put it into a
    command.  A name that comes with a request has no character that a shell
    knows; what a repository has a directory of is the operator's word."""
    with unharmed(server):
        answer = load(server, name, dict(CONFIG, name=name),
                      **{"file:1/data": b"x"})
        assert answer.status == 400, answer
        assert "Invalid stub name: contains invalid characters: its name " \
            f"has the character '{name[1]}': " in answer.error
        row = index(server).get(name, {"state": "UNAVAILABLE"})
        assert row["state"] == "UNAVAILABLE"
        # with an escape it is no model's name at all
        answer = load(server, urllib.parse.quote(name, safe=""),
                      dict(CONFIG, name=name), **{"file:1/data": b"x"})
        assert answer.status in (400, 404), answer
    assert not (server.prefix / "planted").exists()


OUTSIDE = ["../../outside/labels.txt", "../outside/labels.txt",
           "/etc/passwd", "../../../../../../../../etc/passwd",
           "/proc/self/environ", "1/../../../outside/labels.txt"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_cve_2026_24147(server, path):
    """A configuration that came with a load disclosed a file: a label file
    can be any, and its lines are the labels in answers."""
    config = {
        "backend": "identity", "max_batch_size": 0, "input": [
            {"name": "IN", "data_type": "TYPE_FP32", "dims": [4]}],
        "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [4],
                    "label_filename": path}]}
    with unharmed(server):
        for model, files in (("vision", {}), ("told", {"file:1/x": b"x"})):
            answer = load(server, model, dict(config, name=model), **files)
            # an absolute one counts from the model's directory
            assert answer.status in (400, 500), answer
            assert b"TOPSECRET" not in answer.body
            assert b"root:" not in answer.body
            assert b"TOPSECRET" not in server.post(
                "/v2/repository/index", b"{}").body
    assert ask(server, "load", "vision").status == 200


@pytest.mark.parametrize("backend", [
    "../../outside", "/tmp/x", "../identity", "identity/../identity", "..",
    ".", "/", "identity/", "x/../../y", "id\u0000entity", "\\..\\x"])
def test_cve_2026_47627(server, backend):
    """A path where a name belongs led out of its directory.

    A configuration names its backend, and that a library to open."""
    with unharmed(server):
        answer = load(server, "named", dict(CONFIG, backend=backend),
                      **{"file:1/x": b"x"})
        assert answer.status in (400, 500), answer
        assert answer.error
    assert server.get("/v2/models/named/ready").status in (400, 404)


@pytest.mark.parametrize("name", [
    "../../../outside/model.onnx", "../../digits/1/../../../outside/model.onnx",
    "/OUTSIDE/model.onnx", "../../../outside", "..", "/", "/proc/self/exe"])
def test_cve_2026_47630(server, name):
    """An absolute path in a configuration ran code.

    The file of a model's weights is one of its version's directory."""
    name = name.replace("/OUTSIDE", str(server.prefix / "outside"))
    config = {"backend": "onnxruntime", "default_model_filename": name}
    with unharmed(server):
        answer = load(server, "digits", config)
        assert answer.status == 500, answer
        server.wait_log(re.escape(f"file name '{name}' must stay within the "
                                  "version directory"))
        assert server.get("/v2/models/digits/ready").status == 200


@pytest.mark.parametrize("size", [0, 1, 3, 1 << 20, 20 << 20])
def test_cve_2024_53880(server, size):
    """The size of a file in a load overflowed an integer of Triton's."""
    with unharmed(server):
        # a length that is only announced
        for told in (2**31, 2**32, 2**32 + 1, 2**63 - 1):
            with server.wire() as connection:
                connection.send(
                    b"POST /v2/repository/models/heavy/load HTTP/1.1\r\n"
                    b"Host: localhost\r\nContent-Length: %d\r\n\r\n{" % told)
                assert connection.read().status in (400, 413)
        # base64 of any length, padded wrongly, broken off
        good = base64.b64encode(bytes(size))
        for data in (good, good + b"=", good[:-1], good + b"!"):
            body = json.dumps({"parameters": {
                "config": json.dumps(CONFIG),
                "file:1/w": data.decode()}}).encode()
            for pack in (False, True):
                answer = server.post(
                    "/v2/repository/models/heavy/load",
                    chunked(body, 1 << 16) if pack else body,
                    {"Transfer-Encoding": "chunked"} if pack else None)
                # padding is not insisted on
                assert answer.status in (
                    (200,) if data == good else (200, 400, 500)), answer
        ask(server, "unload", "heavy")


@pytest.mark.parametrize("change", [
    {"max_batch_size": -1}, {"max_batch_size": 2**31},
    {"instance_group": [{"count": -1}]}, {"instance_group": [{"count": 2**31}]},
    {"instance_group": [{"count": 1, "kind": "KIND_GPU", "gpus": [2**31]}]},
    {"input": []}, {"output": []}, {"input": CONFIG["input"] * 2},
    {"input": [{"name": "", "data_type": "TYPE_INT32", "dims": [-1]}]},
    {"input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": []}]},
    {"input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [0]}]},
    {"input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [-2]}]},
    {"input": [{"name": "IN", "data_type": "TYPE_INT32",
                "dims": [2**62, 2**62]}]},
    {"input": [{"name": "IN", "data_type": 99, "dims": [1]}]},
    {"input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [4],
                "reshape": {"shape": [5]}}]},
    {"dynamic_batching": {"preferred_batch_size": [-1]}},
    {"dynamic_batching": {"max_queue_delay_microseconds": 2**63}},
    {"sequence_batching": {"max_sequence_idle_microseconds": 2**63}},
    {"sequence_batching": {"oldest": {"max_candidate_sequences": -1}}},
    {"ensemble_scheduling": {"step": []}},
    {"ensemble_scheduling": {"step": [{"model_name": "bad",
                                       "model_version": -1}]}},
    {"version_policy": {"specific": {"versions": [-1]}}},
    {"version_policy": {"latest": {"num_versions": 2**31}}},
    {"model_warmup": [{"name": "w", "batch_size": 2**31}]},
    {"parameters": {"execute_delay_ms": {"string_value": "9" * 99}}},
    {"response_cache": {"enable": 7}}, {"optimization": {"priority": 77}}])
def test_cve_2025_23336(server, change):
    """Loading a misconfigured model ended Triton."""
    with unharmed(server):
        answer = load(server, "bad", dict(CONFIG, **change),
                      **{"file:1/x": b"x"})
        assert answer.status in (200, 400, 500), answer
        assert answer.status == 200 or answer.error
        assert ask(server, "unload", "bad").status in (200, 400)


def test_cve_2025_33254(server):
    """Calls that met corrupted Triton's inner state.

    Models come and go, from several clients at once, while requests and calls
    for the same models are made."""
    going, failures = True, []

    def change(i):
        config = dict(CONFIG, max_batch_size=0, instance_group=[
            {"count": i + 1, "kind": "KIND_CPU"}])
        for n in range(15):
            for answer in (load(server, "id_uint8") if n % 2 else
                           load(server, "shared", config,
                                **{"file:1/x": b"%d" % n}),
                           ask(server, "unload",
                               "id_uint8" if n % 2 else "shared")):
                if answer.status not in (200, 400, 500, 503):
                    failures.append(answer)

    def look():
        while going:
            for path in ("/v2/models/shared/ready", "/v2/models/shared",
                         "/v2/models/id_uint8/config", "/v2/models/stats"):
                if server.status(path) not in (200, 400, 404, 503):
                    failures.append(path)
            index(server)

    with unharmed(server):
        lookers = [threading.Thread(target=look) for _ in range(2)]
        changers = [threading.Thread(target=change, args=(i,))
                    for i in range(3)]
        for t in lookers + changers:
            t.start()
        for t in changers:
            t.join(120 * SLOW)
        going = False
        for t in lookers:
            t.join()
    assert not failures, failures[:3]


FORGED = "2026/01/01 00:00:00 [warn] 1#1: FORGED"


@pytest.mark.parametrize("end", [
    "\n", "\r\n", "\r", "\x0b", "\x85", "\x1b[", "\x9b1m"])
def test_cve_2024_0095(server, end):
    """A client's text was logged as it stood, line breaks included."""
    text = "x" + end + FORGED
    spelled = "".join(f"%{b:02x}" for b in text.encode())
    escaped = json.dumps(text)[1:-1]
    with unharmed(server):
        for name in (spelled, "id_int32"):
            load(server, name, dict(CONFIG, name=text),
                 **{"file:1/" + text: b"x"})
            load(server, name, escaped)
            server.get(f"/v2/models/{name}/versions/{spelled}/ready")
            server.infer(name, {"id": text, "inputs": [
                {"name": text, "datatype": text, "shape": [1],
                 "data": [text]}], "outputs": [{"name": text}],
                "parameters": {text: text, "sequence_id": text}})
        assert load(server, "id_int32").status == 200
    begins = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[\w+\] ")
    lines = server.log.read_bytes().decode("utf-8", "replace")
    for line in re.split("[\n\r\x0b]", lines):
        assert not line.startswith(FORGED), line
        assert line == "" or begins.match(line), repr(line)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", lines)
