"""NVIDIA's prebuilt server program over our library: a second client of the
core, for what our own front end does not speak yet.

    with FrontEnd(fill, backends=prebuilt.folder()) as server:
        server.grpc.infer(...)

The state that it must leave behind is checked at the end, as lib/server.py
does.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import uuid

import numpy
import tritonclient.grpc
import tritonclient.http

from lib import prebuilt, process, wire
from lib.server import BACKENDS, SLOW, free_port, shm_names

ENVIRONMENT = {"PATH": f"{prebuilt.PEER}/python/bin:/usr/bin:/bin"}


class FrontEnd:
    def __init__(self, models, *, backends=BACKENDS, mode="none", load=(),
                 metrics=False, arguments=(), env=None, program=None):
        """models: fills a repository; load: with mode="explicit".

        backends: one directory; prebuilt.folder() for models in Python.

        program: the server with its own library, beside which it lies.
        """
        self.prefix = pathlib.Path(tempfile.mkdtemp(prefix="inf-t-"))
        self.models = self.prefix / "models"
        self.models.mkdir()
        models(self.models)
        self.log = self.prefix / "log"
        self.shm = shm_names()
        self.region = f"inf_t_{uuid.uuid4().hex}"
        self.http_port, self.grpc_port = free_port(), free_port()
        self.metrics_port = free_port() if metrics else 0
        self.command = [
            str(program or prebuilt.front_end()),
            "--model-repository", str(self.models),
            "--backend-directory", str(backends),
            "--backend-config", f"python,shm-region-prefix-name={self.region}",
            "--model-control-mode", mode,
            "--http-address", "127.0.0.1", "--http-port", str(self.http_port),
            "--grpc-address", "127.0.0.1", "--grpc-port", str(self.grpc_port),
            "--allow-metrics", "true" if metrics else "false",
            *(["--metrics-address", "127.0.0.1",
               "--metrics-port", str(self.metrics_port)] if metrics else []),
            *(a for name in load for a in ("--load-model", name)),
            *arguments]
        self.env = dict(os.environ, **ENVIRONMENT, **(env or {}))
        self.process = None

    # ---- life

    def start(self, seconds=60):
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen(
                self.command, env=self.env, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT)
        if not process.wait_until(self._ready_or_gone, seconds * SLOW, 0.1) \
                or self.process.poll() is not None:
            text = self.log_text()[-6000:]
            self.kill()
            raise AssertionError(f"the front end is not ready\n{text}")
        self.grpc = tritonclient.grpc.InferenceServerClient(
            f"127.0.0.1:{self.grpc_port}")
        self.http = tritonclient.http.InferenceServerClient(
            f"127.0.0.1:{self.http_port}", concurrency=4)
        return self

    def _ready_or_gone(self):
        try:
            return self.get("/v2/health/live").status == 200 \
                and self.get("/v2/health/ready").status == 200
        except OSError:
            return self.process.poll() is not None

    def stop(self, seconds=60):
        """Ends it; fails if it did not end well or left something."""
        self.close()
        children = process.descendants(self.process.pid)
        self.process.terminate()
        try:
            status = self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                "the front end did not end:\n" + self.log_text()[-4000:]) \
                from None
        text = self.log_text()
        alive = [p for p in children
                 if process.stat(p) and process.stat(p)[1] not in "ZX"]
        left = {n for n in shm_names() - self.shm if self.region in n}
        self._remove()
        assert status == 0, f"exit status {status}\n{text[-4000:]}"
        assert not alive, f"left processes {alive}\n{text[-4000:]}"
        assert not left, f"left shared memory {left}\n{text[-4000:]}"

    def close(self):
        with contextlib.suppress(Exception):
            self.grpc.stop_stream(cancel_requests=True)
        self.grpc.close()
        self.http.close()

    def kill(self):
        """Ends it and its children at once."""
        children = process.descendants(self.process.pid)
        for pid in [self.process.pid, *children]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._remove()

    def _remove(self):
        for name in shm_names() - self.shm:
            if self.region in name:
                os.unlink(f"/dev/shm/{name}")
        if not os.environ.get("INF_KEEP"):
            shutil.rmtree(self.prefix, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind:
            self.close()
            self.kill()
        else:
            self.stop()

    # ---- looking and asking

    def log_text(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def get(self, path):
        return wire.fetch(self.http_port, "GET", path)

    def post(self, path, body=b""):
        return wire.fetch(self.http_port, "POST", path, body)

    def metrics(self):
        return wire.fetch(self.metrics_port, "GET", "/metrics").body.decode()

    def stream(self):
        return Stream(self.grpc_port)


class Stream:
    """One gRPC stream with a connection of its own; answers in the order in
    which they came."""

    def __init__(self, port):
        self.client = tritonclient.grpc.InferenceServerClient(
            f"127.0.0.1:{port}")
        self.answers = []           # (result or None, error or None)
        self.client.start_stream(lambda result, error:
                                 self.answers.append((result, error)))

    def send(self, model, inputs, id="", **kw):
        self.client.async_stream_infer(model, inputs, request_id=id, **kw)

    def wait(self, count, seconds=30):
        """The first count answers."""
        assert process.wait_until(lambda: len(self.answers) >= count,
                                  seconds * SLOW, 0.01), self.answers
        return self.answers[:count]

    def cancel(self):
        self.client.stop_stream(cancel_requests=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.client.stop_stream(cancel_requests=bool(kind))
        self.client.close()


def tensor(name, values, datatype, shape=None):
    """An input for tritonclient.grpc, one dimension unless told."""
    types = {"INT32": numpy.int32, "UINT32": numpy.uint32,
             "FP32": numpy.float32, "BYTES": object}
    if datatype == "BYTES":
        values = [v.encode() for v in values]
    array = numpy.array(values, dtype=types[datatype])
    if shape is not None:
        array = array.reshape(shape)
    made = tritonclient.grpc.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


def repeat_inputs(numbers, delays=None, wait=0):
    """Inputs of `repeat`; delays in ms, one for all or one each."""
    if not isinstance(delays, (list, tuple)):
        delays = [delays or 0] * len(numbers)
    return [tensor("IN", numbers, "INT32"),
            tensor("DELAY", delays, "UINT32"),
            tensor("WAIT", [wait], "UINT32")]
