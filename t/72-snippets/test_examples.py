"""The examples by the commands that their READMEs name."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from lib import process
from lib.server import BUILD, ROOT, SANITIZER, free_port

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven",
         "eight", "nine"]
EXAMPLES = ROOT / "examples"


def say(*command, **kw):
    """The output of the command; it succeeds."""
    done = subprocess.run(command, capture_output=True, text=True,
                          timeout=600, check=False, **kw)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def stop(env):
    """run.sh stop; nginx has become a child of this process, which has to
    collect it."""
    stopping = subprocess.Popen(["sh", EXAMPLES / "run.sh", "stop"], env=env)

    def ended():
        if stopping.poll() is None:
            process.reap_orphans({stopping.pid})
        return stopping.poll() is not None

    assert process.wait_until(ended, 60)
    assert stopping.returncode == 0


@pytest.mark.skipif(SANITIZER != "", reason="run.sh serves build/ alone")
def test_two_commands(tmp_path):
    """run.sh starts a server and asks it; the others ask it, too."""
    tmp_path.chmod(0o755)
    port = free_port()
    folder = tmp_path / "run"
    env = {**os.environ, "INF_PORT": str(port), "INF_RUN": str(folder)}
    url = f"127.0.0.1:{port}"
    said = say("sh", EXAMPLES / "run.sh", env=env)
    try:
        assert f"http://{url}/v2" in said
        pid = int((folder / "nginx.pid").read_text())
        assert process.alive(pid)

        for digit, name in enumerate(NAMES[:9]):    # the nine is read as 8
            said = say(sys.executable, EXAMPLES / "digits/send.py",
                       "--digit", str(digit), "--url", url)
            assert re.search(rf"says:\s+{name} ", said), said

        rows = say(sys.executable, EXAMPLES / "client.py", url).splitlines()
        assert sorted(row.split()[0] for row in rows) == sorted(NAMES)
        found = [re.fullmatch(r"(\w+) +read as (\d) \(.*%\)", row).groups()
                 for row in rows]
        assert sum(NAMES[int(digit)] == name for name, digit in found) == 9

        said = say("sh", EXAMPLES / "curl.sh", url)
        assert said.count("\n200\n") == 2
        assert '"data":[1.5,2.0,-3.0]' in said.replace(" ", "")
        assert said.count(":") and '"classification":3' in said
    finally:
        stop(env)
    assert not process.alive(pid)
    log = (folder / "error.log").read_text()
    assert not re.search(r"\[(error|crit|alert|emerg)\]", log), log


def test_backend_skeleton(make_server, tmp_path):
    """A copy, built and served as its README says."""
    tmp_path.chmod(0o755)
    copy = tmp_path / "double"
    shutil.copytree(EXAMPLES / "backend-skeleton", copy)
    if (copy / "libtriton_double.so").exists():
        (copy / "libtriton_double.so").unlink()
    say("make", f"SOURCE={ROOT}", cwd=copy)
    place = copy / "models/double"
    (place / "1").mkdir(parents=True)
    shutil.copy(copy / "config.pbtxt", place)
    shutil.copy(copy / "libtriton_double.so", place)
    server = make_server(copy / "models")
    readme = (copy / "README.md").read_text()
    body = re.search(r"-d '(\{.*\})'", readme)[1]
    answer = server.post("/v2/models/double/infer", body.encode())
    assert answer.status == 200
    assert answer.json()["outputs"][0]["data"] == [2, 4, 7]
    assert json.loads(body)["inputs"][0]["data"] == [1, 2, 3.5]
