"""Models loaded and unloaded while the core runs, and what else is asked of
it beside inference, through the prebuilt front end by tritonclient (HTTP and
gRPC), and from within models in Python."""

import base64
import json

import pytest
from tritonclient.utils import InferenceServerException

from lib import backends, decoupled, models, prebuilt, process, wire
from lib.front_end import FrontEnd, repeat_inputs, tensor

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TEXT = (models.io_block("input", [("IN", "BYTES", [-1])])
        + models.io_block("output", [("OUT", "BYTES", [-1])]))

SAYS = """\
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor(
            "OUT", numpy.array([b"{word}"], dtype=object))])
            for r in requests]
"""

CONTROLLER = """\
import json
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            told = []
            words = pb.get_input_tensor_by_name(request, "IN").as_numpy()
            for word in words:
                verb, name = word.decode().split()
                told.append(str(getattr(self, verb)(name)))
            answers.append(pb.InferenceResponse([pb.Tensor(
                "OUT", numpy.array([t.encode() for t in told],
                                   dtype=object))]))
        return answers
    def load(self, name):
        return pb.load_model(model_name=name)
    def unload(self, name):
        return pb.unload_model(model_name=name)
    def ready(self, name):
        return pb.is_model_ready(model_name=name)
"""

RAISER = """\
class TritonPythonModel:
    def initialize(self, args):
        raise RuntimeError("not today")
"""


def says(word):
    return SAYS.replace("{word}", word)


def fill(repository):
    models.identity(repository, "copy", [("IN", "FP32", [-1])],
                    versions=(1, 2), extra="version_policy { all {} }\n")
    models.identity(repository, "late", [("IN", "FP32", [-1])])
    for name in ("copy", "late"):       # identity is not there
        backends.copy_identity(repository / name)
    decoupled.repeat(repository)
    for name, source in [("says", says("one")), ("raiser", RAISER),
                         ("controller", CONTROLLER),
                         ("bls", says("called"))]:
        prebuilt.model(repository, name, TEXT, source)


@pytest.fixture(scope="module")
def server():
    with FrontEnd(fill, backends=prebuilt.folder(), mode="explicit",
                  load=("controller",), metrics=True) as s:
        yield s


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    """tritonclient, one protocol or the other."""
    made = getattr(server, request.param)
    made.is_grpc = request.param == "grpc"
    yield made
    for model in ("copy", "late", "says", "raiser", "bls", "repeat"):
        made.unload_model(model)
    assert process.wait_until(lambda: states(made) == {
        ("controller", "1"): "READY"}, 30)


def rows(client):
    if client.is_grpc:
        return client.get_model_repository_index(as_json=True).get(
            "models", [])
    return client.get_model_repository_index()


def states(client):
    """Of what serves, or is on its way."""
    return {(r["name"], r["version"]): r["state"] for r in rows(client)
            if r.get("version") and r["state"] != "UNAVAILABLE"}


def said(server):
    answer = server.grpc.infer("says", [tensor("IN", ["x"], "BYTES")])
    return answer.as_numpy("OUT")[0].decode()


def test_the_index_lists_what_lies_there(client):
    names = {r["name"] for r in rows(client)}
    assert names == {"copy", "late", "says", "raiser", "controller", "bls",
                     "repeat"}
    assert states(client) == {("controller", "1"): "READY"}


def test_load_and_unload(server, client):
    assert not client.is_model_ready("copy")
    client.load_model("copy")
    assert client.is_model_ready("copy")
    assert client.is_model_ready("copy", "1")
    assert client.is_model_ready("copy", "2")
    assert states(client)[("copy", "2")] == "READY"
    client.unload_model("copy")
    assert process.wait_until(lambda: not client.is_model_ready("copy"), 20)
    with pytest.raises(InferenceServerException,
                       match="'copy' .*(not at ready|no available|unknown)"):
        server.grpc.infer("copy", [tensor("IN", [1.0], "FP32")])
    client.load_model("copy")
    answer = server.grpc.infer("copy", [tensor("IN", [1.0], "FP32")])
    assert answer.as_numpy("OUT")[0] == 1.0


def test_a_load_that_changes_nothing(server, client):
    def counted():
        return server.http.get_inference_statistics(
            "copy", "2")["model_stats"][0]["inference_count"]

    client.load_model("copy")
    server.grpc.infer("copy", [tensor("IN", [1.0], "FP32")])
    assert counted() == 1
    client.load_model("copy")
    assert counted() == 1


def test_a_changed_model_is_loaded_anew(server, client):
    source = server.models / "says" / "1" / "model.py"
    try:
        client.load_model("says")
        assert said(server) == "one"
        source.write_text(says("two and more"))
        client.load_model("says")
        assert said(server) == "two and more"
    finally:
        source.write_text(says("one"))


def test_a_broken_change_leaves_the_old_one(server, client):
    source = server.models / "says" / "1" / "model.py"
    try:
        client.load_model("says")
        source.write_text(RAISER)
        with pytest.raises(InferenceServerException, match="not today"):
            client.load_model("says")
        assert said(server) == "one"
    finally:
        source.write_text(says("one"))


def test_a_model_that_cannot_load(client):
    with pytest.raises(InferenceServerException, match="not today"):
        client.load_model("raiser")
    assert not client.is_model_ready("raiser")
    row = [r for r in rows(client) if r["name"] == "raiser"][0]
    assert row["state"] == "UNAVAILABLE" and "not today" in row["reason"]


def test_an_absent_model(client):
    with pytest.raises(InferenceServerException,
                       match="failed to load 'absent'"):
        client.load_model("absent")
    client.unload_model("absent")           # as Triton: no error


def test_a_configuration_with_the_load(client):
    config = {"backend": "identity", "max_batch_size": 4,
              "input": [{"name": "IN", "data_type": "TYPE_INT32",
                         "dims": [3]}],
              "output": [{"name": "OUT", "data_type": "TYPE_INT32",
                          "dims": [3]}]}
    client.load_model("late", config=json.dumps(config))
    got = client.get_model_config("late", as_json=True)["config"] \
        if client.is_grpc else client.get_model_config("late")
    assert got["max_batch_size"] == 4
    metadata = client.get_model_metadata("late", as_json=True) \
        if client.is_grpc else client.get_model_metadata("late")
    assert metadata["inputs"][0]["datatype"] == "INT32"
    assert [int(d) for d in metadata["inputs"][0]["shape"]] == [-1, 3]


def test_files_with_the_load(server, client):
    config = json.dumps({"backend": "python", "input": [
        {"name": "IN", "data_type": "TYPE_STRING", "dims": [-1]}],
        "output": [{"name": "OUT", "data_type": "TYPE_STRING",
                    "dims": [-1]}]})
    client.load_model("says", config=config, files={
        "file:1/model.py": says("from the client").encode()})
    assert said(server) == "from the client"
    client.load_model("says")
    assert said(server) == "one"


def ask(server, *words):
    answer = server.grpc.infer("controller", [tensor("IN", words, "BYTES")])
    return [t.decode() for t in answer.as_numpy("OUT")]


def test_a_model_loads_another(server, client):
    assert ask(server, "load bls", "ready bls") == ["None", "True"]
    answer = server.grpc.infer("bls", [tensor("IN", ["x"], "BYTES")])
    assert answer.as_numpy("OUT")[0] == b"called"
    assert ask(server, "unload bls")[0] in ("None", "True")
    assert process.wait_until(lambda: not client.is_model_ready("bls"), 20)


def test_unload_while_it_streams(server, client):
    """scheduling.md 1.7

    Accepted requests are answered; then the model goes."""
    client.load_model("repeat")
    with server.stream() as stream:
        stream.send("repeat", repeat_inputs([1, 2, 3, 4, 5], 100))
        stream.wait(1)
        client.unload_model("repeat")
        assert not client.is_model_ready("repeat")
        answers = stream.wait(5)
        assert [int(r.as_numpy("OUT")[0]) for r, e in answers] == [
            1, 2, 3, 4, 5]


# ---- what else a client asks

def test_statistics(client, server):
    client.load_model("copy")
    for _ in range(3):
        server.grpc.infer("copy", [tensor("IN", [1.0], "FP32")],
                          model_version="2")
    got = client.get_inference_statistics("copy", "2", as_json=True) \
        if client.is_grpc else client.get_inference_statistics("copy", "2")
    row, = got["model_stats"]
    assert row["name"] == "copy" and row["version"] == "2"
    assert int(row["inference_count"]) == 3
    assert int(row["execution_count"]) == 3
    assert int(row["inference_stats"]["success"]["count"]) == 3
    assert int(row["last_inference"]) > 1_600_000_000_000
    with pytest.raises(InferenceServerException, match="absent"):
        client.get_inference_statistics("absent")


def test_model_metrics(client, server):
    client.load_model("copy")
    server.grpc.infer("copy", [tensor("IN", [1.0], "FP32")])
    text = server.metrics()
    assert 'nv_inference_request_success{model="copy",version="2"} 1' in text
    client.unload_model("copy")
    assert process.wait_until(
        lambda: 'model="copy"' not in server.metrics(), 20)


def test_server_metadata(client):
    got = client.get_server_metadata(as_json=True) if client.is_grpc \
        else client.get_server_metadata()
    assert got["name"] == "triton" and got["version"]
    assert "statistics" in got["extensions"] or got["extensions"]


def test_trace_settings(client):
    got = client.get_trace_settings(as_json=True) if client.is_grpc \
        else client.get_trace_settings()
    assert got


def test_log_settings(client):
    got = client.update_log_settings({"log_verbose_level": 0})
    assert got is not None


def test_traces_are_written(tmp_path):
    """The front end makes traces of ours and writes what we report."""
    def copy(repository):
        models.identity(repository, "copy", [("IN", "FP32", [-1])])

    file = tmp_path / "trace.json"
    with FrontEnd(copy, arguments=[
            "--trace-config", "mode=triton",
            "--trace-config", f"triton,file={file}",
            "--trace-config", "triton,log-frequency=1",
            "--trace-config", "rate=1",
            "--trace-config", "level=TIMESTAMPS"]) as server:
        body = json.dumps({"inputs": [wire.tensor("IN", "FP32", [1], [1])]})
        assert server.post("/v2/models/copy/infer",
                           body.encode()).status == 200

    written = sorted(tmp_path.iterdir())
    assert written, "no trace"
    entries = [e for f in written for e in json.loads(f.read_text())]
    names = {t["name"] for e in entries for t in e.get("timestamps", [])}
    assert {"REQUEST_START", "QUEUE_START", "COMPUTE_START",
            "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END",
            "REQUEST_END"} <= names
    assert any(e.get("model_name") == "copy" for e in entries)


def test_base64_files_over_http(server):
    """The same as `files`, by hand."""
    body = {"parameters": {
        "config": json.dumps({"backend": "python", "input": [
            {"name": "IN", "data_type": "TYPE_STRING", "dims": [-1]}],
            "output": [{"name": "OUT", "data_type": "TYPE_STRING",
                        "dims": [-1]}]}),
        "file:1/model.py": base64.b64encode(
            says("by hand").encode()).decode()}}
    answer = server.post("/v2/repository/models/says/load",
                         json.dumps(body).encode())
    assert answer.status == 200, answer
    assert said(server) == "by hand"
    assert server.post("/v2/repository/models/says/unload").status == 200
