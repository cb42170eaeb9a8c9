"""Files that come with a load request are data, unless the operator says that
they may be code."""

import base64
import json
import os
import re

import onnx
import pytest
from onnx import TensorProto, helper

from lib import process
from lib.server import BACKENDS, ROOT, SLOW
from lib.wire import tensor

EXPLICIT = "    inference_model_control explicit;\n"
PARTS = "health metadata config infer repository"
LIBRARY = (BACKENDS / "identity/libtriton_identity.so").read_bytes()
IN_OUT = {
    "max_batch_size": 0,
    "input": [{"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}]}


def load(server, files, backend="identity", **config):
    body = {"parameters": {"config": json.dumps(
        dict(IN_OUT, name="sent", backend=backend, **config))}}
    for path, data in files.items():
        body["parameters"]["file:" + path] = base64.b64encode(data).decode()
    return server.post("/v2/repository/models/sent/load",
                       json.dumps(body).encode())


def answers(server):
    with server.wire() as connection:
        return connection.infer("sent", {"inputs": [
            tensor("IN", "FP32", [1], [2.5])]}).status == 200


def says_why(answer, *words):
    assert answer.status == 400, answer
    text = answer.json()["error"]
    for word in ("inference_code_upload", *words):
        assert word in text


def outside_weights(location, nested=False):
    """A model that adds what lies at location to its input."""
    w = TensorProto(name="W", data_type=TensorProto.UINT8, dims=[8],
                    data_location=TensorProto.EXTERNAL)
    for key, value in ("location", location), ("offset", "0"), ("length", "8"):
        w.external_data.add(key=key, value=value)

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.UINT8, [8])

    nodes = [helper.make_node("Add", ["X", "W"], ["Y"])]
    if nested:
        nodes.insert(0, helper.make_node("Constant", [], ["W"], value=w))
    graph = helper.make_graph(nodes, "g", [value("X")], [value("Y")],
                              [] if nested else [w])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8).SerializeToString()


def load_onnx(server, files, **config):
    body = {"parameters": {"config": json.dumps(
        dict(config, name="sent", backend="onnxruntime"))}}
    for path, data in files.items():
        body["parameters"]["file:" + path] = base64.b64encode(data).decode()
    return server.post("/v2/repository/models/sent/load",
                       json.dumps(body).encode())


def parameters(**values):
    return {key: {"string_value": value} for key, value in values.items()}


@pytest.fixture
def server(make_server):
    return make_server(lambda folder: None, parts=PARTS, http=EXPLICIT)


@pytest.fixture
def trusting(make_server):
    return make_server(lambda folder: None, parts=PARTS,
                       http=EXPLICIT + "    inference_code_upload on;\n")


@pytest.mark.parametrize("path", [
    "libtriton_mine.so", "1/libtriton_mine.so", "1/x/../libtriton_mine.so"])
def test_a_backend_that_a_client_brings(server, trusting, path):
    """It was opened in the core: a client that may load ran its own code."""
    files = {path: LIBRARY, "1/data": b"x"}
    says_why(load(server, files, "mine"), path, "code by its name")
    assert server.get("/v2/models/sent/ready").status != 200
    answer = load(trusting, files, "mine")
    assert answer.status == 200, answer
    assert answers(trusting)


def test_a_library_under_another_name(server, trusting):
    says_why(load(server, {"1/weights": LIBRARY}), "1/weights", "first bytes")
    assert load(trusting, {"1/weights": LIBRARY}).status == 200


@pytest.mark.parametrize("path,data", [
    ("1/model.py", b"import os"), ("1/MODEL.Py", b""), ("env.tar.gz", b"x"),
    ("1/data", b"\x1f\x8b\x08\0"), ("1/data", b"#!/bin/sh"),
    ("1/model.pt", b"x"), ("1/libx.so.3", b"x")])
def test_code_of_other_kinds(server, path, data):
    says_why(load(server, {path: data, "1/other": b"x"}), path)
    assert load(server, {"1/other": b"x"}).status == 200
    assert answers(server)


MANY = 4 * os.sysconf("SC_NPROCESSORS_ONLN") + 1


@pytest.mark.parametrize("name", ["intra_op_thread_count",
                                  "inter_op_thread_count",
                                  "INFERENCE_NUM_THREADS", "NUM_STREAMS"])
def test_threads_of_a_request_are_limited(server, name):
    answer = load(server, {"1/data": b"x"}, parameters={
        name: {"string_value": str(MANY)}})
    says_why(answer, f"parameters[\"{name}\"]: '{MANY}' is not accepted",
             f"the limit for a load request is {MANY - 1}")
    assert load(server, {"1/data": b"x"}, parameters={
        name: {"string_value": str(MANY - 1)}}).status == 200
    assert answers(server)


def test_a_backend_that_may_run_what_it_reads(server):
    """Which file it reads, and as what, its configuration may say."""
    says_why(load(server, {"1/model.txt": b"import os"}, "python",
                  default_model_filename="model.txt"),
             "1/model.txt", "python")


def test_a_model_of_data(server):
    source = ROOT / "examples/models/digits/1/model.onnx"
    body = {"parameters": {"config": "{}", "file:1/model.onnx":
                           base64.b64encode(source.read_bytes()).decode()}}
    answer = server.post("/v2/repository/models/digits/load",
                         json.dumps(body).encode())
    assert answer.status == 200, answer
    assert server.get("/v2/models/digits/ready").status == 200


def test_a_reload_changes_what_the_next_load_may(trusting):
    files = {"libtriton_mine.so": LIBRARY, "1/data": b"x"}
    assert load(trusting, files, "mine").status == 200
    trusting.write_config(http=EXPLICIT)
    trusting.signal("HUP")
    trusting.wait_log("from now on[^\\n]*inference_code_upload"
                      "|inference_code_upload[^\\n]*loaded from now on")
    assert answers(trusting)                # what is loaded stays
    says_why(load(trusting, dict(files, other=b"x"), "mine"))


@pytest.mark.parametrize("nested", [False, True])
def test_weights_that_lie_elsewhere(server, trusting, tmp_path, nested):
    """The library opened them wherever they were, and inference gave them
    out: files of the server, or the bodies of other clients."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret!!")
    for one in server, trusting:
        for location in (str(secret), "/proc/self/fd/3", "../2/secret",
                         "x/../../secret", "", "*/_ORT_MEM_ADDR_/*"):
            answer = load_onnx(one, {
                "1/model.onnx": outside_weights(location, nested)})
            assert answer.status == 400, (location, answer)
            for word in 'tensor "W"', f'"{location}"', "model.onnx":
                assert word in answer.json()["error"]


def test_weights_beside_their_model(server):
    answer = load_onnx(server, {
        "1/model.onnx": outside_weights("parts/weights"),
        "1/parts/weights": bytes(range(8))})
    assert answer.status == 200, answer
    with server.wire() as connection:
        answer = connection.infer("sent", {"inputs": [
            tensor("X", "UINT8", [8], [1] * 8)]})
    assert answer.json()["outputs"][0]["data"] == list(range(1, 9))


def test_weights_in_a_file_that_looks_like_another(server, tmp_path):
    """It is read as what it was checked as."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret!!")
    model = onnx.ModelProto.FromString(outside_weights(str(secret)))
    model.producer_name = "xxORTM"
    packed = model.SerializeToString()
    # fields may come in any order: the name first
    name = b"\x12\x06xxORTM"
    assert name in packed
    packed = name + packed.replace(name, b"")
    assert packed[4:8] == b"ORTM"
    for config in {}, {"parameters": parameters(
            **{"session.load_model_format": "ONNX"})}:
        answer = load_onnx(server, {"1/model.onnx": packed}, **config)
        assert answer.status == 400, answer


def test_a_folder_for_weights(server):
    """A session option of the library's that moves them."""
    key = "session.model_external_initializers_file_folder_path"
    answer = load_onnx(server, {"1/model.onnx": outside_weights("weights"),
                                "1/weights": bytes(8)},
                       parameters=parameters(**{key: ".."}))
    assert answer.status == 400, answer
    assert key in answer.json()["error"]


@pytest.mark.parametrize("name", [
    "/proc/self/fd/14", "../../../../proc/self/fd/14", "x/../../secret"])
def test_a_model_file_that_lies_elsewhere(server, trusting, name):
    for one in server, trusting:
        answer = load_onnx(one, {"1/model.onnx": b"x"},
                           default_model_filename=name)
        assert answer.status != 200, answer
        one.wait_log(f"file name '{re.escape(name)}'[^\n]*"
                     r"default_model_filename\)")


ACCELERATORS = {"execution_accelerators": {"cpu_execution_accelerator": [
    {"name": "openvino", "parameters": {"cache_dir": "/tmp/x"}}]}}
BRING_PATHS = [
    ({"model_operations": {"op_library_filename": ["/proc/self/fd/14"]}},
     "model_operations.op_library_filename", "/proc/self/fd/14"),
    ({"model_operations": {"op_library_filename": ["libx.so"]}},
     "model_operations.op_library_filename", "libx.so"),
    ({"runtime": "libtriton_other.so"}, "runtime", "libtriton_other.so"),
    ({"model_repository_agents": {"agents": [{"name": "checksum"}]}},
     "model_repository_agents", "checksum"),
    ({"parameters": parameters(EXECUTION_ENV_PATH="/tmp/env")},
     "EXECUTION_ENV_PATH", "/tmp/env"),
    ({"parameters": parameters(TRITON_BATCH_STRATEGY_PATH="1/x")},
     "TRITON_BATCH_STRATEGY_PATH", "1/x"),
    ({"parameters": parameters(EXECUTION_ENV_PATH="env")},
     "EXECUTION_ENV_PATH", "env"),
    ({"optimization": ACCELERATORS}, "cache_dir", "/tmp/x")]


@pytest.mark.parametrize("config,key,value", BRING_PATHS)
def test_a_configuration_that_names_code(server, trusting, config, key,
                                         value):
    """A library of a client's was opened in the core: the file was another
    request's body."""
    says_why(load(server, {"1/data": b"x"}, **config), key, value)
    answer = load(trusting, {"1/data": b"x"}, **config)
    assert "inference_code_upload" not in answer.body.decode()


@pytest.mark.parametrize("name", ["model.py", "weights"])
def test_a_file_that_the_library_writes(make_server, name):
    """ONNX Runtime notes its nodes' memory in a file beside the model: a new
    one, or the repository's weights."""
    key = "session.collect_node_memory_stats_to_file"
    files = {}

    def model(folder):
        files[folder / "sent/1/model.onnx"] = outside_weights("weights")
        files[folder / "sent/1/weights"] = bytes(8)
        (folder / "sent/1").mkdir(parents=True)
        for path, data in files.items():
            path.write_bytes(data)

    server = make_server(model, parts=PARTS, http=EXPLICIT)
    answer = load_onnx(server, {}, parameters=parameters(**{key: name}))
    infer = tensor("X", "UINT8", [8], [1] * 8)
    if answer.status == 200:
        with server.wire() as connection:
            assert connection.infer("sent", {"inputs": [infer]}).status == 200
    server.post("/v2/repository/models/sent/unload", b"{}")
    process.wait_until(lambda: server.get("/v2/models/sent/ready").status
                       != 200, 10 * SLOW)
    for path, data in files.items():
        assert path.read_bytes() == data
        assert sorted(path.parent.iterdir()) == sorted(files)
    says_why(answer, key, name)


def test_what_the_repository_says_may_be_sent_back(make_server):
    """Clients change one key of what they were given."""
    own = ('name: "sent" backend: "identity" max_batch_size: 0\n'
           'input [{ name: "IN" data_type: TYPE_FP32 dims: [-1] }]\n'
           'output [{ name: "OUT" data_type: TYPE_FP32 dims: [-1] }]\n'
           'parameters { key: "place" value { string_value: "/a/b" } }\n'
           'model_operations { op_library_filename: "/lib/ops.so" }\n'
           'runtime: "libtriton_identity.so"\n')

    def model(folder):
        (folder / "sent/1").mkdir(parents=True)
        (folder / "sent/config.pbtxt").write_text(own)

    server = make_server(model, parts=PARTS, http=EXPLICIT)
    same = {"parameters": parameters(place="/a/b"),
            "model_operations": {"op_library_filename": ["/lib/ops.so"]},
            "runtime": "libtriton_identity.so"}
    assert load(server, {}, **same).status == 200
    assert answers(server)
    says_why(load(server, {}, **dict(same, parameters=parameters(
        place="/a/c"))), 'parameters["place"]', "/a/c")
    says_why(load(server, {}, **dict(same, parameters=parameters(
        other="/a/b"))), 'parameters["other"]', "/a/b")
    says_why(load(server, {}, **dict(same, runtime="libtriton_other.so")),
             "runtime", "libtriton_other.so")
    assert answers(server)
