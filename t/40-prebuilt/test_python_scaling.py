"""Instances of a model in Python come and go while it serves, each with a stub
of its own; nothing of those that went is left."""

import json
import uuid

import pytest

from lib import models, prebuilt, process, wire
from lib.load import Load
from lib.server import SLOW, Server, shm_names

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TEXT = (models.io_block("input", [("IN", "BYTES", [-1])])
        + models.io_block("output", [("OUT", "BYTES", [-1])]))

PID = """\
import os
import time
import numpy
import triton_python_backend_utils as pb

def answer():
    return pb.InferenceResponse([pb.Tensor(
        "OUT", numpy.array([str(os.getpid()).encode()], dtype=object))])

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.002)
        return [answer() for _ in requests]
"""

BODY = {"inputs": [wire.tensor("IN", "BYTES", [1], ["x"])]}
PARTS = "health metadata config infer repository"


@pytest.fixture
def make():
    prefix = f"inf_t_{uuid.uuid4().hex}"

    def start(code):
        return Server(
            lambda folder: prebuilt.model(folder, "m", TEXT, code),
            backends=prebuilt.folder(), parts=PARTS,
            inference_env=prebuilt.environment(),
            http="    inference_model_control explicit;\n"
                 "    inference_load_model m;\n"
                 "    inference_backend_config python "
                 f"shm-region-prefix-name={prefix};")

    yield start
    assert not [n for n in shm_names() if n.startswith(prefix)]


def stubs(server):
    return set(process.named(server.core(), "triton_python_b"))


def scale(server, count):
    config = json.loads(server.get("/v2/models/m/config").body)
    config["instance_group"][0]["count"] = count
    answer = server.post("/v2/repository/models/m/load", json.dumps(
        {"parameters": {"config": json.dumps(config)}}).encode())
    assert answer.status == 200, answer


def test_stubs_come_and_go_under_load(make):
    with make(PID) as server:
        # the stub has put __pycache__ beside the model: this is a new one
        scale(server, 1)
        assert process.wait_until(lambda: len(stubs(server)) == 1, 30 * SLOW)
        first, pids = stubs(server), set()

        def once(connection):
            answer = connection.infer("m", BODY)
            if answer.status == 200:
                pids.add(int(answer.json()["outputs"][0]["data"][0]))
            return answer.status

        with Load(server.port, once) as clients:
            for count in (3, 1, 2, 1):
                clients.wait_for_more(30, 30 * SLOW)
                scale(server, count)
                assert process.wait_until(
                    lambda: len(stubs(server)) == count, 30 * SLOW)
                pids.clear()
                clients.wait_for_more(30, 30 * SLOW)
                assert process.wait_until(lambda: pids == stubs(server),
                                          30 * SLOW)
        assert set(clients.results) == {200}, clients.results
        assert stubs(server) == first
