"""Models with `runtime: "model.py"`: backend python runs the backend's
model.py.  PyTorch for Python is too large for these tests: a package of that
name, written here over numpy, has what the file calls."""

import concurrent.futures
import os
import sys

import pytest

from lib import models, pytorch_models
from lib.repository import PARTS, settled
from lib.server import BACKENDS
from lib.wire import tensor

pytorch_models.needs_runtime()
if not (BACKENDS / "python/_host_main.py").exists():
    pytest.skip("no backend python", allow_module_level=True)

TORCH = '''
import contextlib, json, pathlib, sys, types
import numpy

class Tensor(numpy.ndarray):
    def to(self, device):
        return self
    detach = cpu = contiguous = lambda self: self.copy()

class Capsule:
    def __init__(self, x):
        self.x = x
    def __dlpack__(self, **more):
        return self.x
    def __dlpack_device__(self):
        return 1, 0

def from_dlpack(x):
    return numpy.from_dlpack(Capsule(x)).copy().view(Tensor)

def cat(list):
    return numpy.concatenate(list).view(Tensor)

def split(x, rows):
    return numpy.split(x, numpy.cumsum(rows)[:-1])

class Module:
    def to(self, device):
        self.device = device
        return self
    def eval(self):
        return self
    def load_state_dict(self, state):
        self.__dict__.update(state)
    def parameters(self):
        return iter(())
    def __call__(self, *args):
        return self.forward(*args)

threads = {}
def set_num_threads(n):
    threads["intra"] = n
def set_num_interop_threads(n):
    threads["inter"] = n
def compile(model, **options):
    model.options = options
    return model
def load(path, map_location):
    return json.loads(pathlib.Path(path).read_text())
jit = types.SimpleNamespace(load=load)
inference_mode = contextlib.nullcontext
device = str
nn = types.SimpleNamespace(Module=Module)
'''

MODEL = '''
import json
import torch

class Scaled(torch.nn.Module):
    def forward(self, x, y):
        print(json.dumps([torch.threads, self.options, self.device]))
        return x * self.factor + y, y, x
'''

IO = models.io_block("input", [("x", "FP32", [2]), ("y", "FP32", [2])]) \
    + models.io_block("output", [("a", "FP32", [2]), ("b", "FP32", [2])])


@pytest.fixture
def with_torch(make_server, tmp_path):
    """A server whose interpreter has the package."""
    (tmp_path / "torch.py").write_text(TORCH)
    interpreter = tmp_path / "python"
    interpreter.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="{tmp_path}:$PYTHONPATH"\n'
        f'exec {sys.executable} "$@"\n')
    os.chmod(interpreter, 0o755)
    os.chmod(tmp_path, 0o755)

    def make(fill, **more):
        return make_server(
            fill, http="    inference_log info verbose=1;\n"
            "    inference_backend_config python "
            f"interpreter={interpreter};\n", parts="all repository", **more)

    return make


def write(repository, name, files, extra="", io=IO):
    models.write_model(
        repository, name, 'backend: "pytorch"\nruntime: "model.py"\n' + io
        + pytorch_models.CPU + extra, (1,), {1: files})


FILES = {"model.py": MODEL.encode(), "model.pt": b'{"factor": 10}'}


def ask(server, model, x, y):
    answer = server.infer(model, {"inputs": [
        tensor("x", "FP32", [len(x) // 2, 2], x),
        tensor("y", "FP32", [len(y) // 2, 2], y)]})
    assert answer.status == 200, answer
    return [o["data"] for o in answer.json()["outputs"]]


def test_requests_are_a_batch_and_get_their_own_rows(with_torch):
    server = with_torch(lambda r: write(
        r, "net", FILES, "max_batch_size: 8\ndynamic_batching { "
        "max_queue_delay_microseconds: 200000 }\n"))
    rows = [[float(i), i + 0.5] * n for i, n in ((1, 1), (2, 3), (3, 2))]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        got = list(pool.map(lambda x: ask(server, "net", x, x), rows))
    assert got == [[[v * 11 for v in x], x] for x in rows]
    row = server.get("/v2/models/net/stats").json()["model_stats"][0]
    assert int(row["execution_count"]) < int(row["inference_count"])


@pytest.mark.parametrize("source", [
    "from networks import Scaled\n",
    "from networks import Another\nimport networks\n\n"
    "class Of(networks.Scaled):\n    pass\n"])
def test_a_class_that_the_file_imports(with_torch, tmp_path, source):
    (tmp_path / "networks.py").write_text(
        MODEL + "\nclass Another(torch.nn.Module):\n    pass\n")
    server = with_torch(lambda r: write(
        r, "net", {**FILES, "model.py": source.encode()},
        "max_batch_size: 8\n"))
    assert ask(server, "net", [1, 2], [3, 4]) == [[13, 24], [3, 4]]


def test_threads_and_options(with_torch):
    server = with_torch(lambda r: write(
        r, "net", FILES, models.parameter_block(
            {"NUM_THREADS": "3", "TORCH_COMPILE_OPTIONAL_PARAMETERS":
             "{\\\"dynamic\\\": true}"}),
        IO.replace("[ 2 ]", "[ -1, 2 ]")))
    assert ask(server, "net", [1, 2], [3, 4]) == [[13, 24], [3, 4]]
    server.wait_log(r'\{"intra": 3, "inter": 1\}, \{"dynamic": true\}, "cpu"')
    text = server.log_text()
    assert "Torch parallelism settings for 'net': NUM_THREADS = 3;" \
        " NUM_INTEROP_THREADS = 1;" in text
    assert "'torch.compile' optional parameter(s) for 'net':" \
        " {'dynamic': True}" in text


def test_an_interpreter_without_torch(make_server):
    server = make_server(
        lambda r: write(r, "net", FILES), parts=PARTS, wait="live",
        http="    inference_backend_config python "
        f"interpreter={sys.executable};\n")
    assert "No module named 'torch': install the package torch from PyPI" \
        in settled(server)["net"][0]["reason"]


def bad_loads():
    """name: (files, more of the configuration, tensors, what the reason
    says)"""
    def module(text):
        return {"model.py": ("import torch\n\n" + text).encode()}

    def set_to(**values):
        return FILES, models.parameter_block(values), IO

    more = "class Net(torch.nn.Module):\n    def __init__(self"
    return {
        "no_class": (module("x = 1\n"), "", IO, [
            "no subclass of torch.nn.Module in", "/no_class/1/model.py"]),
        "no_file": ({"other": b""}, "", IO, [
            "none of model.py, model.pt is in", "/no_file/1"]),
        "syntax": (module("class\n"), "", IO, [
            "SyntaxError", "/syntax/1/model.py", "line 3"]),
        "package": (module("import no_such_package\n"), "", IO, [
            "No module named 'no_such_package'", "/package/1/model.py(3)"]),
        "raises": (module(more + "):\n        1 / 0\n"), "", IO, [
            "ZeroDivisionError", "/raises/1/model.py(5): __init__"]),
        "arguments": (module(more + ", n):\n        pass\n"), "", IO, [
            "Net.__init__() missing 1 required positional argument: 'n'"]),
        "weights": ({**FILES, "model.pt": b"none"}, "", IO, [
            "/weights/1/model.pt: JSONDecodeError"]),
        "other_weights": ({**FILES, "model.pt": b"[1]"}, "", IO, [
            "/other_weights/1/model.pt: TypeError"]),
        "script": ({"model.pt": b"none"}, "", IO, [
            "/script/1/model.pt: JSONDecodeError"]),
        "threads": (*set_to(NUM_THREADS="many"), [
            'parameter "NUM_THREADS" is "many"']),
        "no_threads": (*set_to(NUM_INTEROP_THREADS="0"), [
            'parameter "NUM_INTEROP_THREADS" is "0": it must be at least 1']),
        "options": (*set_to(TORCH_COMPILE_OPTIONAL_PARAMETERS="{"), [
            'parameter "TORCH_COMPILE_OPTIONAL_PARAMETERS" is "{": ',
            "line 1 column 2"]),
        "no_options": (*set_to(TORCH_COMPILE_OPTIONAL_PARAMETERS="[]"), [
            'is "[]": it must be a JSON object']),
        "no_inputs": (FILES, "", IO[IO.index("output"):], [
            "model configuration must contain at least one input"]),
        "no_outputs": (FILES, "", IO[:IO.index("output")], [
            "model configuration must contain at least one output"]),
        "texts": (FILES, "", IO.replace("TYPE_FP32", "TYPE_STRING", 1), [
            "input 'x' is configured as TYPE_STRING"]),
    }


def test_loads_that_fail(with_torch):
    cases = bad_loads()

    def fill(repository):
        write(repository, "good", FILES, "max_batch_size: 8\n")
        for name, (files, extra, io, _) in cases.items():
            write(repository, name, files, extra, io)

    server = with_torch(fill, wait="live")
    found = settled(server)
    wrong = [f"{name}: {found[name][0]}"
             for name, (*_, words) in cases.items()
             if not all(w in found[name][0].get("reason", "") for w in words)]
    assert wrong == [], "\n".join(wrong)
    assert ask(server, "good", [1, 2], [3, 4]) == [[13, 24], [3, 4]]


@pytest.mark.parametrize("result,words", [
    ("x", "forward() gave 1 values, the configuration has 2 outputs"),
    ("x, 5", "forward() gave a int for output 'b', not a tensor"),
    ("{'a': x, 'b': y}", "forward() gave 1 values"),
    ("1 / 0", "model.py(5): forward"),
])
def test_what_forward_gives_that_is_wrong(with_torch, result, words):
    server = with_torch(lambda r: write(r, "net", {"model.py": (
        "import torch\n\nclass Net(torch.nn.Module):\n"
        f"    def forward(self, x, y):\n        return {result}\n").encode()}))
    answer = server.infer("net", {"inputs": [
        tensor("x", "FP32", [2], [1, 2]), tensor("y", "FP32", [2], [3, 4])]})
    assert answer.status == 500
    assert words in answer.error
