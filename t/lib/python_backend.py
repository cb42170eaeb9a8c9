"""Models of the python backend, and a model that runs code which a test sends.

    @pytest.fixture(scope="module")
    def server():
        with python_backend.serve(fill) as s:
            yield s

    ask(server, "result = pb.Tensor('A', np.zeros(3)).shape()")     # [3]

The backend is ours.  INF_PYTHON_BACKEND=prebuilt takes NVIDIA's, which shows
that a test expects what users know; `differs` marks tests of what ours does
otherwise or NVIDIA's 2.51 has not.  INF_PYTHON_INTERPRETER names another
interpreter with numpy than that of the tests.
"""

import json
import os
import pathlib
import sys

import pytest

from lib import models, prebuilt, wire
from lib.server import BACKENDS, Server

PREBUILT = os.environ.get("INF_PYTHON_BACKEND") == "prebuilt"
INTERPRETER = prebuilt.PEER / "python/bin/python" if PREBUILT \
    else pathlib.Path(os.environ.get("INF_PYTHON_INTERPRETER",
                                     sys.executable))

TEXT = (models.io_block("input", [("IN", "BYTES", [-1])])
        + models.io_block("output", [("OUT", "BYTES", [-1])]))
CODE = (models.io_block("input", [("CODE", "BYTES", [1])])
        + models.io_block("output", [("OUT", "BYTES", [1])]))

# an echo of IN, FP32 or BYTES
ECHO = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor(
            "OUT", pb.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests]
"""

# a BYTES output of JSON, for models that tell something
TELL = """\
import json
import numpy as np
import triton_python_backend_utils as pb

def tell(value):
    return pb.InferenceResponse([pb.Tensor("OUT", np.array(
        [json.dumps(value).encode()], dtype=object))])
"""

PROBE = TELL + """
import traceback

class TritonPythonModel:
    def initialize(self, args):
        self.args = args
        self.kept = {}
    def execute(self, requests):
        return [tell(self.run(r)) for r in requests]
    def run(self, request):
        code = pb.get_input_tensor_by_name(request, "CODE").as_numpy()[0]
        names = {"pb": pb, "np": np, "request": request, "model": self,
                 "kept": self.kept}
        try:
            exec(compile(code.decode(), "probe", "exec"), names)
        except BaseException as e:
            return {"raised": type(e).__name__, "text": str(e),
                    "trace": traceback.format_exc()}
        return {"result": names.get("result")}
"""


def differs(why):
    """A test that NVIDIA's backend does not pass, and why."""
    return pytest.mark.skipif(PREBUILT, reason=why)


def model(repository, name, config, source, files=None, backend="python",
          top=None):
    """files: beside model.py; top: in the model's directory."""
    place = pathlib.Path(repository) / name
    for folder, content in [(place / "1", {"model.py": source,
                                           **(files or {})}),
                            (place, top or {})]:
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in content.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data if isinstance(data, bytes)
                             else data.encode())
    (place / "config.pbtxt").write_text(
        f'name: "{name}"\nbackend: "{backend}"\n' + config, encoding="utf-8")


def probe(repository, name="probe"):
    model(repository, name, CODE, PROBE)


def serve(fill, http="", backends=None, env=(), complete=False, **kw):
    """A server of such models, not started; port2 speaks gRPC.

    complete: models may complete their configurations, which takes each a
    process more.
    """
    backends = list(backends or [])
    if PREBUILT:
        path = prebuilt.environment()
        first = prebuilt.folder()       # the one that has python is taken
        backends = [b for b in backends if b != first] + [BACKENDS]
        kw["backends"] = first
    else:
        path = [f'"PATH={INTERPRETER.parent}:/usr/bin:/bin"']
    for folder in backends:
        http += f"    inference_backends {folder};\n"
    if not complete:
        http += "    inference_auto_complete off;\n"
    kw.setdefault("parts", "health metadata config infer generate")
    return Server(fill, http=http, http2=True,
                  inference_env=[*path, *env], **kw)


# ---- asking

def ask(server, code, name="probe"):
    """The value that the code left in `result`."""
    told = _run(server, code, name)
    assert "raised" not in told, told["trace"]
    return told["result"]


def raised(server, code, name="probe"):
    """(name of the exception, its text)"""
    told = _run(server, code, name)
    assert "raised" in told, f"nothing was raised, but: {told}"
    return told["raised"], told["text"]


def _run(server, code, name):
    answer = server.infer(name, {"inputs": [wire.tensor(
        "CODE", "BYTES", [1], [code])]})
    return json.loads(words(answer)[0])


def text(*given, **more):
    """A request of IN, BYTES."""
    return dict({"inputs": [wire.tensor("IN", "BYTES", [len(given)],
                                        list(given))]}, **more)


def words(answer):
    """The elements of the first output."""
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"]


def told(answer):
    """The JSON in OUT."""
    return json.loads(words(answer)[0])
