"""is_ready of a model: what it returns decides whether the model is ready."""

import threading

import pytest
import tritonclient.grpc as grpcclient

from lib import python_backend
from lib.python_backend import ECHO, TEXT, differs, text, words

pytestmark = differs("2.51 has no is_ready")

READY = {
    "plain": "",
    "true": "    def is_ready(self):\n        return True\n",
    "false": "    def is_ready(self):\n        return False\n",
    "raises": "    def is_ready(self):\n        raise ValueError('no')\n",
    "number": "    def is_ready(self):\n        return 1\n",
    "nothing": "    def is_ready(self):\n        pass\n",
    "awaits": "    async def is_ready(self):\n"
              "        import asyncio\n"
              "        await asyncio.sleep(0.01)\n        return True\n",
    "awaits_false": "    async def is_ready(self):\n        return False\n",
    "slow": "    def is_ready(self):\n"
            "        import time\n        time.sleep(30)\n"
            "        return True\n",
    # how often it has been called
    "counts": "    calls = 0\n    def is_ready(self):\n"
              "        import time\n        time.sleep(0.3)\n"
              "        TritonPythonModel.calls += 1\n        return True\n"
              "    def execute(self, requests):\n"
              "        import numpy\n"
              "        return [pb.InferenceResponse([pb.Tensor('OUT',"
              " numpy.array([str(self.calls).encode()], dtype=object))])"
              " for r in requests]\n",
}
ANSWERS = {"plain": True, "true": True, "false": False, "raises": False,
           "number": False, "nothing": False, "awaits": True,
           "awaits_false": False}


@pytest.fixture(scope="module")
def server():
    def fill(repository):
        for name, source in READY.items():
            python_backend.model(repository, name, TEXT, ECHO + source)
    s = python_backend.serve(fill)
    with s.start("live"):
        for name in ("plain", "true"):
            assert s.wait_for(f"/v2/models/{name}/ready")
        s.wait_log("model=slow version=1 is ready")
        s.wait_log("model=counts version=1 is ready")
        yield s


@pytest.fixture(scope="module")
def grpc(server):
    client = grpcclient.InferenceServerClient(f"127.0.0.1:{server.port2}")
    yield client
    client.close()


def ready(server, name):
    return server.get(f"/v2/models/{name}/ready").status == 200


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(server, grpc, name):
    for _ in range(3):
        assert ready(server, name) is ANSWERS[name]
        assert grpc.is_model_ready(name) is ANSWERS[name]
    assert words(server.infer(name, text("x"))) == ["x"]


def test_the_log_says_why(server):
    assert not ready(server, "raises")
    server.wait_log(r"Model 'raises' version 1 is not ready: .*'raises_0.*"
                    r"ValueError: no")
    assert not ready(server, "number")
    server.wait_log("Model 'number' version 1 is not ready: .*must return a "
                    "bool, not int")


def test_one_that_takes_too_long(server):
    """5 s; others are asked meanwhile."""
    said = []
    thread = threading.Thread(
        target=lambda: said.append(ready(server, "slow")))
    thread.start()
    assert ready(server, "true")
    assert words(server.infer("true", text("x"))) == ["x"]
    thread.join(20)
    assert said == [False]


def test_probes_at_a_time_share_a_call(server):
    said = []
    threads = [threading.Thread(
        target=lambda: said.append(ready(server, "counts")))
        for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert said == [True] * 8
    assert int(words(server.infer("counts", text("x")))[0]) < 8
