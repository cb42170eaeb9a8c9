"""inference-server on ports of its own, and what it must leave behind."""

import os
import signal
import subprocess

from lib import process, wire
from lib.server import (BUILD, NGINX, SANITIZER, SLOW, free_port, nap,
                        sanitizer_runtime)

PROGRAM = BUILD / "inference-server"


def launcher_env(**more):
    env = {**os.environ, "INFERENCE_NGINX": NGINX, **more}
    if SANITIZER == "asan":
        env["LD_PRELOAD"] = sanitizer_runtime("asan")
        env["ASAN_OPTIONS"] = "detect_leaks=0"
    return env


class Launcher:
    def __init__(self, tmp_path, *arguments, env=None, **popen):
        self.port = free_port()
        self.grpc_port = free_port()
        self.metrics_port = free_port()
        self.tmp = tmp_path / "tmp"
        self.tmp.mkdir(exist_ok=True)
        self.log = tmp_path / "launcher.log"
        environment = launcher_env(**{"TMPDIR": str(self.tmp),
                                      **(env or {})})
        self.process = subprocess.Popen(
            [PROGRAM, *arguments, f"--http-port={self.port}",
             f"--grpc-port={self.grpc_port}",
             f"--metrics-port={self.metrics_port}",
             "--http-address", "127.0.0.1"], env=environment,
            stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            **{"stderr": open(self.log, "wb"), **popen})

    def status(self, path):
        try:
            return wire.fetch(self.port, "GET", path).status
        except OSError:
            return 0

    def wait_ready(self):
        assert process.wait_until(
            lambda: self.status("/v2/health/ready") == 200
            or self.process.poll() is not None, 30 * SLOW)
        assert self.process.poll() is None, self.log.read_text()

    def wait_log(self, text):
        """The log, once that text is in it."""
        assert process.wait_until(
            lambda: text in self.log.read_text(errors="replace")
            or self.process.poll() is not None, 30 * SLOW)
        log = self.log.read_text(errors="replace")
        assert text in log, log
        return log

    def ask(self, model="one"):
        return wire.fetch(self.port, "POST", f"/v2/models/{model}/infer",
                          b'{"inputs":[{"name":"IN","datatype":"FP32",'
                          b'"shape":[1],"data":[2.5]}]}')

    def conf(self):
        path, = self.tmp.rglob("nginx.conf")
        return path.read_text()

    def tree(self):
        return [self.process.pid] + process.descendants(self.process.pid)

    def stop(self, name=signal.SIGTERM):
        pids = self.tree()
        self.process.send_signal(name)
        status = self.process.wait(30 * SLOW)
        assert process.wait_until(
            lambda: not [p for p in pids if process.alive(p)], 10 * SLOW), \
            "left running"
        assert list(self.tmp.iterdir()) == [], "left files"
        text = self.log.read_text(errors="replace")
        for word in ("[alert]", "[emerg]", "Sanitizer"):
            assert word not in text, text
        return status


def in_flight(connection, model):
    """Sends an inference that the slow model then executes."""
    connection.send(wire.request_bytes(
        "POST", f"/v2/models/{model}/infer", b'{"inputs":[{"name":"IN",'
        b'"datatype":"FP32","shape":[1],"data":[2.5]}]}'))
    nap(0.3)


def rejected(*arguments):
    """Exit status 1 and the message of a command line that is wrong."""
    done = subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, timeout=30, check=False)
    assert done.returncode == 1, done
    return done.stderr
