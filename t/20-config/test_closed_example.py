"""examples/closed: the configuration runs and keeps out whom it says, the unit
is one that systemd takes."""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import pytest

from lib import certificate, models, process, wire
from lib.server import (CORE, MODULE, ROOT, SANITIZER, SLOW, Server,
                        free_port)
from lib.wire import Response, Wire, infer_path, request_bytes, tensor

EXAMPLE = ROOT / "examples/closed"
UNIT = EXAMPLE / "nginx-inference.service"

# Set by the unit: NoNewPrivileges, MemoryDenyWriteExecute (Linux 6.3), all
# capabilities but those named.
RESTRICT = """\
import ctypes, os, sys
prctl = ctypes.CDLL(None).prctl
for number in set(range(41)) - set(map(int, sys.argv[1].split())):
    if prctl(24, number, 0, 0, 0) != 0:
        sys.exit("prctl: capability")
for option in (38, 65):
    if prctl(option, 1, 0, 0, 0) != 0 and option == 38:
        sys.exit("prctl")
os.execv(sys.argv[2], sys.argv[2:])
"""
CAPABILITIES = {"CAP_CHOWN": 0, "CAP_KILL": 5, "CAP_SETGID": 6,
                "CAP_SETUID": 7, "CAP_NET_BIND_SERVICE": 10}


def capabilities():
    """The numbers of those that the unit leaves."""
    names, = re.findall(r"^CapabilityBoundingSet=(.*)$", UNIT.read_text(),
                        re.M)
    return " ".join(str(CAPABILITIES[name]) for name in names.split())


class Closed(Server):
    """The example, with this machine's paths and ports."""

    def __init__(self, fill):
        self.metrics_port = free_port()
        text = (EXAMPLE / "nginx.conf").read_text()
        text = text.replace("{", "{{").replace("}", "}}")
        for old, new in [
                ("/usr/lib/nginx-inference/inference-core", CORE),
                ("/usr/lib/nginx-inference/ngx_http_inference_module.so",
                 MODULE), ("/srv/models", "{models}"),
                ("/run/nginx-inference", "{prefix}"),
                ("/var/log/nginx-inference", "{prefix}"),
                ("/var/lib/nginx-inference", "{prefix}/temp"),
                ("/etc/nginx-inference", "{prefix}/etc"),
                ("127.0.0.1:8002", f"127.0.0.1:{self.metrics_port}"),
                ("listen      443", "listen 127.0.0.1:{port}"),
                ("user inference;", "user nobody nogroup;")]:
            assert old in text
            text = text.replace(old, str(new))
        super().__init__(fill, config="daemon off;\n" + text)
        etc = self.prefix / "etc"
        etc.mkdir()
        made, key = certificate.make(etc)
        for name in ("server.crt", "clients.crt"):
            shutil.copy(made, etc / name)
        shutil.copy(key, etc / "server.key")
        self.client = certificate.client_context()
        self.client.load_cert_chain(made, key)

    def command(self, *arguments):
        if SANITIZER:           # whose runtime has ways of its own
            return super().command(*arguments)
        return [sys.executable, "-c", RESTRICT, capabilities(),
                *super().command(*arguments)]

    def control(self, method, path):
        """An answer through the socket for operators."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20 * SLOW)
            s.connect(str(self.prefix / "control.sock"))
            s.sendall(request_bytes(method, path, b"",
                                    {"Connection": "close"}))
            with s.makefile("rb") as answer:
                status = int(answer.readline().split()[1])
                while answer.readline().strip():
                    pass
                return Response(status, {}, answer.read())

    def ready(self):
        try:
            return self.control("GET", "/v2/health/ready").status == 200
        except OSError:
            return False


def fill(folder):
    models.identity(folder, "copy", [("IN", "FP32", [-1])])
    shutil.copytree(ROOT / "examples/models/digits", folder / "digits")


@pytest.fixture
def closed():
    server = Closed(fill)
    server.start(wait="")
    assert process.wait_until(server.ready, 30 * SLOW), server.log_text()
    yield server
    server.stop()


def ask(closed, method, path, body=None):
    with Wire(closed.port, tls=closed.client) as connection:
        return connection.request(method, path, body)


def infer(closed, model, *tensors):
    return ask(closed, "POST", infer_path(model, ""),
               json.dumps({"inputs": list(tensors)}).encode())


def test_who_runs_as_whom(closed):
    """The master is root, with what the unit leaves; nobody else may do
    anything."""
    left = sum(1 << int(number) for number in capabilities().split())
    for pid in closed.processes():
        status = dict(line.split(":\t", 1) for line in pathlib.Path(
            f"/proc/{pid}/status").read_text().splitlines())
        uid = int(status["Uid"].split()[1])
        master = pid == closed.process.pid
        assert (uid == 0) == master, process.cmdline(pid)
        if not SANITIZER:       # those are not restricted
            assert int(status["CapEff"], 16) == (left if master else 0)
            assert int(status["NoNewPrivs"]) == 1


def test_clients_with_a_certificate_get_inference_alone(closed):
    config = closed.control("GET", "/v2/models/digits/config").json()
    shape = [1] + config["input"][0]["dims"]
    assert infer(closed, "copy", tensor("IN", "FP32", [1], [2.5])).json()[
        "outputs"][0]["data"] == [2.5]
    answer = infer(closed, "digits", tensor(
        config["input"][0]["name"], "FP32", shape, [0.5] * 64))
    assert answer.status == 200, answer
    for path in ("/v2/models/copy/config", "/v2/models/copy/stats",
                 "/metrics", "/v2/logging"):
        assert ask(closed, "GET", path).status in (404, 501), path
    for path in ("/v2/repository/index", "/v2/repository/models/copy/unload"):
        assert ask(closed, "POST", path, b"").status == 404
    assert infer(closed, "copy",
                 tensor("IN", "FP32", [1], [2.5])).status == 200
    written = [json.loads(line) for line in
               (closed.prefix / "access.log").read_text().splitlines()]
    assert {w["model"] for w in written} >= {"copy", "digits"}
    assert {w["who"] for w in written} == {"CN=localhost"}


def test_clients_without_a_certificate_get_nothing(closed):
    with Wire(closed.port, tls=certificate.client_context()) as connection:
        answer = connection.get("/v2/health/live")
    assert answer.status == 400 and b"certificate" in answer.body
    assert wire.fetch(closed.port, "GET", "/v2/health/live").status == 400


def test_operators_have_a_socket_and_metrics(closed):
    assert closed.control("POST", "/v2/repository/index").status == 200
    assert closed.control(
        "POST", "/v2/repository/models/copy/unload").status == 200
    assert infer(closed, "copy",
                 tensor("IN", "FP32", [1], [2.5])).status == 404
    port = closed.metrics_port
    assert b"nv_inference_count" in wire.fetch(port, "GET", "/metrics").body
    for path in ("/v2/models/digits", "/v2/health/live", "/"):
        assert wire.fetch(port, "GET", path).status == 404


def test_a_reload_as_the_unit_does_it(closed):
    """nginx -t beside the running server, then SIGHUP."""
    core, workers = closed.core(), set(closed.workers())
    status, output = closed.check_config()
    assert status == 0, output
    closed.signal("HUP")
    assert process.wait_until(
        lambda: closed.workers() and not workers & set(closed.workers()),
        20 * SLOW)
    assert process.wait_until(closed.ready, 20 * SLOW)
    assert closed.core() == core
    assert infer(closed, "copy",
                 tensor("IN", "FP32", [1], [2.5])).status == 200


def test_a_body_has_a_bound(closed):
    body = b'{"inputs":[]}' + b" " * (65 << 20)
    assert ask(closed, "POST", infer_path("copy", ""), body).status == 413


def test_the_unit_is_one():
    section, seen = None, set()
    for line in UNIT.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if header := re.fullmatch(r"\[(Unit|Service|Install)\]", line):
            section = header[1]
            continue
        assert re.fullmatch(r"[A-Z][A-Za-z]+=.*\S", line), line
        seen.add((section, line.split("=")[0]))
    for name in ("NoNewPrivileges", "ProtectSystem",
                 "CapabilityBoundingSet", "MemoryDenyWriteExecute"):
        assert ("Service", name) in seen

    if not shutil.which("systemd-analyze"):
        return
    for command in (["verify"], ["security", "--offline=yes",
                                 "--threshold=30"]):
        done = subprocess.run(
            ["systemd-analyze", *command, UNIT], capture_output=True,
            text=True, timeout=60 * SLOW, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert UNIT.name not in done.stderr, done.stderr
