"""docs/tutorial.md: its commands one after the other, in one shell; they print
what the page says."""

import os
import re
import signal
import subprocess

import pytest

from lib import process
from lib.server import BUILD, NGINX, ROOT, SANITIZER, free_port

PAGE = (ROOT / "docs/tutorial.md").read_text()
# commands, and what stands right below them as their output
STEP = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?",
                  re.S | re.M)
STEPS = STEP.findall(PAGE)
MARK = "----- step"


def test_every_output_belongs_to_commands():
    assert len(STEPS) > 10
    assert PAGE.count("```") == 2 * (
        len(STEPS) + sum(bool(output) for _, output in STEPS))


@pytest.mark.skipif(SANITIZER != "", reason="nginx preloads no sanitizer here")
def test_the_commands(tmp_path):
    tmp_path.chmod(0o755)
    port = str(free_port())
    script = "set -eu\n" + "".join(
        f"echo '{MARK} {i}'\n{commands}"
        for i, (commands, _) in enumerate(STEPS))
    script = script.replace("8000", port).replace("$PWD/build", str(BUILD))
    pid_file = tmp_path / "tutorial/nginx.pid"
    done = None
    try:
        done = subprocess.run(
            ["bash", "-c", script], cwd=ROOT, stdin=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(tmp_path), "PATH":
                 f"{os.path.dirname(NGINX)}:{os.environ['PATH']}"},
            capture_output=True, text=True, timeout=300, check=False)
    finally:
        if pid_file.exists():               # it has not come to the end
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
        gone = process.wait_until(lambda: not left(tmp_path), 20)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    outputs = re.split(rf"{MARK} \d+\n", done.stdout)[1:]
    assert len(outputs) == len(STEPS), said
    for (commands, output), printed in zip(STEPS, outputs):
        assert printed.replace(port, "8000") == output, commands
    assert gone and list(tmp_path.iterdir()) == []


def left(folder):
    """Living processes of the tutorial's nginx; those that ended are reaped."""
    process.reap_orphans(set())
    return [pid for pid in process.descendants(os.getpid())
            if str(folder) in process.cmdline(pid)]
