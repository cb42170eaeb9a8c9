"""Models of the python backend whose process dies in a load: the model has
failed with its reason, the others serve, and the core goes on."""

import pytest

from lib import models, prebuilt, process
from lib.exposition import figure
from lib.repository import EXPLICIT, ask, is_away, rows
from lib.server import SLOW
from lib.wire import tensor

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

TEXT = (models.io_block("input", [("IN", "BYTES", [-1])])
        + models.io_block("output", [("OUT", "BYTES", [-1])]))
ONE = {"inputs": [tensor("IN", "BYTES", [1], ["x"])]}
PARTS = "health metadata config infer repository metrics"

ECHO = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor(
            "OUT", pb.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests]
"""
DEATHS = {
    "exit": "import os; os._exit(3)",
    "kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "crash": "import ctypes; ctypes.string_at(0)",
}
NOT_HEALTHY = "Stub process 'bad_0' is not healthy"
LEFT = {"exit": "exited with status 3",
        "kill": r"was killed by signal 9 \(Killed\)",
        "crash": r"was killed by signal 11 \(Segmentation fault\)"}


def dies_at_import(how):
    return DEATHS[how] + "\n" + ECHO


def dies_in_initialize(how):
    return ECHO + "    def initialize(self, args):\n        " + DEATHS[how] \
        + "\n"


def fill(bad):
    def write(repository):
        prebuilt.model(repository, "good", TEXT, ECHO)
        prebuilt.model(repository, "bad", TEXT, bad)
    return write


@pytest.fixture
def serve(make_server):
    def start(bad, http=""):
        return make_server(fill(bad), backends=prebuilt.folder(), wait="live",
                           parts=PARTS, inference_env=prebuilt.environment(),
                           http=http)
    return start


def good(server):
    answer = server.infer("good", ONE)
    assert answer.status == 200, answer


def others_serve(server, core):
    assert server.wait_for("/v2/models/good/ready", 60)
    good(server)
    assert server.cores() == [core]
    assert server.get("/v2/health/ready").status == 400


def wait_failed(server):
    assert process.wait_until(
        lambda: any(r.get("state") == "UNAVAILABLE"
                    for r in rows(server, "bad")), 90 * SLOW, 0.2), \
        server.log_text()[-4000:]


def mend(server):
    path = server.models / "bad" / "1" / "model.py"
    path.write_text(ECHO, encoding="utf-8")


@pytest.mark.parametrize("complete", ["on", "off"])
@pytest.mark.parametrize("how", DEATHS)
def test_in_initialize(serve, how, complete):
    server = serve(dies_in_initialize(how),
                   f"    inference_auto_complete {complete};\n")
    core = server.core()
    wait_failed(server)
    is_away(rows(server, "bad")[0], NOT_HEALTHY)
    others_serve(server, core)


@pytest.mark.parametrize("how", DEATHS)
def test_at_import_without_completion(serve, how):
    server = serve(dies_at_import(how), "    inference_auto_complete off;\n")
    core = server.core()
    wait_failed(server)
    is_away(rows(server, "bad")[0], NOT_HEALTHY)
    others_serve(server, core)


@pytest.mark.parametrize("how", DEATHS)
def test_at_import_the_load_never_returns(serve, how):
    """The backend waits for ever for a stub that dies while it completes the
    configuration.  The model is mended, and serves without another core."""
    server = serve(dies_at_import(how), EXPLICIT
                   + "    inference_load_model good;\n"
                     "    inference_load_model bad;\n")
    core = server.core()
    wait_failed(server)
    server.wait_log(r"model=bad version=1 failed to load: process \d+ "
                    rf"\(triton_python_b\) {LEFT[how]}, and its load has not "
                    "returned for 10 s since")
    is_away(rows(server, "bad")[0], "and its load has not returned")
    others_serve(server, core)
    assert figure(server, "stuck_loads") == 1
    mend(server)
    assert ask(server, "load", "bad").status == 200
    assert server.infer("bad", ONE).status == 200
    assert server.get("/v2/health/ready").status == 200
    assert server.cores() == [core]


def test_an_import_that_never_ends(serve):
    """Its process is killed."""
    server = serve("while True:\n    pass\n",
                   "    inference_model_load timeout=5s;\n")
    core = server.core()
    wait_failed(server)
    is_away(rows(server, "bad")[0], "its load has not returned for 5 s")
    server.wait_log("1 processes that it had started are killed")
    others_serve(server, core)
    assert process.wait_until(
        lambda: len(process.named(core, "triton_python_b")) == 1, 20 * SLOW)
