"""Command lines of containers, run with tritonserver and with
inference-server."""

import os
import re
import subprocess

import pytest
import yaml

from lib import migrations, prebuilt, process, wire
from lib.launcher import PROGRAM, launcher_env
from lib.server import SLOW, free_port

MISSING = prebuilt.missing()
FILES = {"compose": "yml", "kserve": "yaml"}
PROGRAMS = {"tritonserver": prebuilt.TRITON / "bin/tritonserver",
            "inference-server": PROGRAM}
PORT = re.compile(r"--(http|grpc|metrics)-port=(\d+)")


def text(name, when):
    return (migrations.EXAMPLES / name / f"{when}.{FILES[name]}").read_text()


def container(name, when):
    content = yaml.safe_load(text(name, when))
    if name == "compose":
        return content["services"]["triton"]
    (found,) = content["spec"]["containers"]
    return found


def command(name, when):
    found = container(name, when)
    return found.get("command") or found["args"]


@pytest.mark.parametrize("name", FILES)
def test_five_lines(name):
    before, after = text(name, "before"), text(name, "after")
    assert 0 < migrations.edited(before, after) <= 5


@pytest.mark.parametrize("name", FILES)
def test_the_options_stay(name):
    assert command(name, "before")[0] == "tritonserver"
    assert command(name, "after")[0] == "inference-server"
    assert command(name, "before")[1:] == command(name, "after")[1:]


class Run:
    """The command line with ports and files of the test."""

    def __init__(self, name, when, folder):
        program, *options = command(name, when)
        self.ports = {}
        for i, option in enumerate(options):
            if found := PORT.fullmatch(option):
                self.ports[found[2]] = free_port()
                options[i] = f"--{found[1]}-port={self.ports[found[2]]}"
            options[i] = re.sub(r"=/(mnt/)?models$", f"={folder}/models",
                                options[i])
        if not any(o.startswith("--metrics-port") for o in options):
            options.append(f"--metrics-port={free_port()}")
        options += ["--http-address=127.0.0.1", "--grpc-address=127.0.0.1"]
        options += [f"--backend-directory={folder}/backends"]
        self.log = folder / f"{when}.log"
        env = launcher_env(TMPDIR=str(folder)) if when == "after" \
            else os.environ
        self.process = subprocess.Popen(
            [PROGRAMS[program], *options], env=env, stdin=subprocess.DEVNULL,
            stdout=open(self.log, "wb"), stderr=subprocess.STDOUT)

    def __enter__(self):
        http = next(p for n, p in self.ports.items() if n in ("8000", "8080"))
        try:
            assert process.wait_until(
                lambda: migrations.is_ready(http)
                or self.process.poll() is not None, 60 * SLOW)
            assert self.process.poll() is None, self.log.read_text()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        return self

    def __exit__(self, kind, *_):
        self.process.terminate()
        try:
            status = self.process.wait(40 * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        assert kind or status == 0, self.log.read_text()


def answers(run, name):
    http, grpc = ("8000", "8001") if name == "compose" else ("8080", "9000")
    return (migrations.rest_answers(run.ports[http]),
            migrations.grpc_answers(run.ports[grpc]))


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "models").mkdir()
    migrations.repository(tmp_path / "models")
    migrations.peer_backends(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_same_answers(name, folder):
    with Run(name, "before", folder) as run:
        before = answers(run, name)
    with Run(name, "after", folder) as run:
        assert answers(run, name) == before
    assert before[0]["infer"][0] == 200


def test_the_health_check_of_the_compose_file(folder):
    words = container("compose", "after")["healthcheck"]["test"]
    assert words[:2] == ["CMD", "curl"]
    with Run("compose", "after", folder) as run:
        (url,) = [w for w in words if w.startswith("http://localhost:")]
        port, path = re.fullmatch(r"http://localhost:(\d+)(/.*)", url).groups()
        assert wire.fetch(run.ports[port], "GET", path).status == 200
        # every published port is listened on
        for published in container("compose", "after")["ports"]:
            wire.Wire(run.ports[published.split(":")[1]]).close()


def test_what_kserve_asks_for(folder):
    annotations = yaml.safe_load(text("kserve", "after"))["spec"]["annotations"]
    with Run("kserve", "after", folder) as run:
        option = next(a for a in run.process.args
                      if str(a).startswith("--metrics-port="))
        assert annotations["prometheus.kserve.io/port"] == "8002"
        port = int(option.split("=")[1])
        answer = wire.fetch(port, "GET",
                            annotations["prometheus.kserve.io/path"])
        assert answer.status == 200 and b"nv_inference_count" in answer.body
