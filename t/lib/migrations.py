"""The examples of migrations: lines that are edited, and calls of clients whose
answers are compared before and after."""

import base64
import difflib
import json
import shutil
import struct

import numpy
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from lib import models, wire
from lib.server import BACKENDS, ROOT

EXAMPLES = ROOT / "examples/migrations"
VALUES = [1.5, -2, 3]


def edited(before, after):
    """Lines that a person edits: a changed one counts once."""
    opcodes = difflib.SequenceMatcher(
        None, before.splitlines(), after.splitlines(), False).get_opcodes()
    return sum(max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in opcodes
               if tag != "equal")


def repository(folder):
    """Two models that both servers can run."""
    models.identity(folder, "one", [("IN", "FP32", [-1])])
    models.identity(folder, "batched", [("IN", "INT32", [2])], max_batch=4)


def peer_backends(folder):
    """Our identity, for tritonserver: the C interface is the same."""
    shutil.copytree(BACKENDS / "identity", folder / "backends/identity")
    return folder / "backends"


def authorization(user):
    """The header of "name:password"; empty: none."""
    return {"Authorization": "Basic " + base64.b64encode(
        user.encode()).decode()} if user else {}


def is_ready(port, user=""):
    try:
        return wire.fetch(port, "GET", "/v2/health/ready",
                          headers=authorization(user)).status == 200
    except OSError:
        return False


def rest_answers(port, user=""):
    """{call: what is compared}"""
    def ask(method, path, body=b"", **headers):
        return wire.fetch(port, method, f"/v2/{path}", body,
                          {**authorization(user), **headers})

    def told(answer):
        return answer.status, answer.json()

    body = json.dumps({"id": "7", "inputs": [
        wire.tensor("IN", "FP32", [3], VALUES)]}).encode()
    header = json.dumps({"inputs": [
        {"name": "IN", "datatype": "FP32", "shape": [3],
         "parameters": {"binary_data_size": 12}}],
        "parameters": {"binary_data_output": True}}).encode()
    raw = ask("POST", "models/one/infer",
              header + struct.pack("<3f", *VALUES),
              **{"Inference-Header-Content-Length": str(len(header))})
    length = int(raw.headers["inference-header-content-length"])
    return {
        "ready": ask("GET", "health/ready").status,
        "metadata": told(ask("GET", "models/one")),
        "config": told(ask("GET", "models/batched/config")),
        "infer": told(ask("POST", "models/one/infer", body)),
        "binary": (raw.status, json.loads(raw.body[:length]),
                   raw.body[length:]),
        "unknown": told(ask("POST", "models/none/infer", body)),
        "wrong": told(ask("POST", "models/batched/infer", body)),
    }


def grpc_answers(port):
    entry = triton.InferInput("IN", [2, 2], "INT32")
    entry.set_data_from_numpy(numpy.array([[1, 2], [3, 4]], "int32"))
    with triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        try:
            client.infer("none", [entry])
            unknown = None
        except InferenceServerException as e:
            unknown = e.status(), e.message()
        return {
            "live": client.is_server_live(),
            "ready": client.is_model_ready("one"),
            "metadata": str(client.get_model_metadata("batched")),
            "infer": client.infer("batched", [entry]).as_numpy(
                "OUT").tolist(),
            "unknown": unknown,
        }
