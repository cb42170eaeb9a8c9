"""A server with models on GPUs of the fake driver, and how to break them."""

import json
import re
import types

import pytest

from lib import backends, models, process, repository
from lib.server import BUILD, SLOW
from lib.wire import tensor

DRIVER = BUILD / "t-cuda/libfake-cuda.so"
ENDED = r"exited with code 1|has failed, and answers every call by" \
        r"|is left out|this core ends"
INT = [("IN", "INT32", [1])]


class Gpus:
    """Models "zero" and "one" are on the GPU of their number, "host" is on no
    GPU; a request of them answers what it is given."""

    def __init__(self, make_server, path):
        self.make_server = make_server
        self.lost = path / "lost"
        self.orders = path / "orders"
        self.gate = path / "gate"
        self.counts = path / "counts"
        path.chmod(0o777)

    def model(self, folder, name, group, **parameters):
        models.write_model(
            folder, name, f'name: "{name}"\nbackend: "gpu_caller"\n'
            + models.io_block("input", INT)
            + models.io_block("output", [("OUT", "INT32", [1])])
            + f"instance_group {{ {group} }}\n"
            + models.parameter_block({"gate": str(self.gate), **parameters}))

    def fill(self, folder):
        models.identity(folder, "host", INT)
        self.model(folder, "zero", "kind: KIND_GPU gpus: [0] count: 2")
        self.model(folder, "one", "kind: KIND_GPU gpus: [1]")

    def start(self, fill=None, *, devices=2, driver=DRIVER, http="", env=(),
              parts="", **kw):
        folder = backends.build("gpu_caller")
        self.server = self.make_server(
            fill or self.fill, allow_alarms=[ENDED],
            parts=f"{repository.PARTS} {parts}", http=f"""
    inference_backends {folder};
    inference_backend_config * min-compute-capability=5.0;
    inference_strict_readiness on;
""" + http, inference_env=[f"INFERENCE_CUDA_DRIVER={driver}",
                           f"FAKE_CUDA_DEVICES={devices}",
                           "FAKE_CUDA_FAULT=fault",
                           f"FAKE_CUDA_LOST={self.lost}",
                           f"FAKE_CUDA_FAIL_FILE={self.orders}",
                           f"FAKE_CUDA_COUNTS={self.counts}",
                           *env], **kw)
        return self.server

    def ask(self, name, number):
        return self.server.infer(
            name, {"inputs": [tensor("IN", "INT32", [1], [number])]})

    def serves(self, *names):
        for name in names:
            answer = self.ask(name, 5)
            assert answer.status == 200, (name, answer)
            assert answer.json()["outputs"][0]["data"] == [5]
        return True

    def settles(self, core, *names):
        """Another core has followed that one, and these models serve."""
        self.server.next_core(core)
        assert process.wait_until(
            lambda: all(self.ask(n, 5).status == 200 for n in names),
            60 * SLOW), repository.index(self.server)
        repository.settled(self.server)
        return self.server.core()

    def ends(self):
        """Cores that have ended because of a GPU."""
        return len(re.findall(r"exited with code 1", self.server.log_text()))

    def is_out(self, name, *reason):
        (row,) = repository.rows(self.server, name)
        repository.is_away(row, *reason)
        answer = self.ask(name, 5)
        assert answer.status in (400, 404, 503), answer
        assert self.server.get(f"/v2/models/{name}/ready").status != 200
        assert self.server.get("/v2/health/ready").status != 200

    def order(self, text):
        """Failures of the driver from now on: the file is there at once."""
        new = self.orders.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o666)
        new.rename(self.orders)

    def waiting(self):
        """Whether a request executes until the gate is gone."""
        return self.gate.with_suffix(".waits").exists()

    def counted(self):
        return types.SimpleNamespace(**json.loads(self.counts.read_text()))


@pytest.fixture
def gpus(make_server, tmp_path):
    yield Gpus(make_server, tmp_path)
    (tmp_path / "gate").unlink(missing_ok=True)
