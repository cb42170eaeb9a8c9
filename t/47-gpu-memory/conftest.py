"""A server with the fake driver, whose counters are read when it has ended, or,
for tests without the mark fake_gpu, with the real one."""

import json
import tempfile
import pathlib
import re
import shutil

import pytest

from lib import backends, gpu, process
from lib.server import BACKENDS, SLOW


class Gpus:
    """start() makes servers; the driver writes its counters for them."""

    def __init__(self, make_server):
        self.make_server = make_server
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-gpus-"))
        self.folder.chmod(0o777)
        self.file = self.folder / "counts"

    def start(self, fill, devices=None, http="", env=(), pinned=True, **kw):
        """pinned: with the memory of all its workers."""
        devices = max(2, gpu.devices()) if devices is None else devices
        server = self.make_server(
            fill, backends=backends.build("device_copy"), http=f"""
    inference_backends {BACKENDS};
    inference_backend_config * min-compute-capability=5.0;
    inference_max_body 256m;
{http}""", inference_env=[*self.driver(devices), *env], **kw)
        if pinned:
            self.wait_pinned(server)
        return server

    def driver(self, devices):
        if gpu.REAL:
            return gpu.env()
        return [f"INFERENCE_CUDA_DRIVER={gpu.FAKE_DRIVER}",
                f"FAKE_CUDA_DEVICES={devices}",
                f"FAKE_CUDA_COUNTS={self.file}"]

    @staticmethod
    def wait_pinned(server):
        """Until the memory of all workers is, in the core of now."""
        def done():
            log = server.log_text()
            log = log[log.rfind(f"core {server.core()} starts"):]
            return all(re.search(f"worker {pid}: .* are pinned", log)
                       for pid in server.workers())
        assert process.wait_until(done, 20 * SLOW), server.log_text()[-4000:]

    def counts(self):
        """As of the last wait for a stream, or the one before."""
        counts = json.loads(self.file.read_text())
        for c in counts, *self.interpreters():
            assert c["wrong"] == 0, c
        return counts

    def interpreters(self):
        """Those of the processes of models in Python."""
        return [json.loads(f.read_text())
                for f in self.folder.glob("counts.of.*")]

    def ended(self, server):
        """Those of the whole life of the core."""
        server.stop()
        return self.counts()


@pytest.fixture
def gpus(make_server):
    g = Gpus(make_server)
    yield g
    shutil.rmtree(g.folder)
