"""A server whose executions wait at a gate, for what happens meanwhile."""

import concurrent.futures
import pathlib
import shutil
import tempfile

import pytest

from lib import process
from lib.limits import Limited
from lib.server import SLOW


@pytest.fixture
def limited(make_server):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-status-"))
    folder.chmod(0o777)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        it = Limited(make_server, folder, pool)
        yield it
        for gate in it.gates.values():      # a failed test leaves nobody
            for file in gate.path.parent.glob("gate.[0-9]*"):
                file.unlink()
    shutil.rmtree(folder)


@pytest.fixture
def coreless(make_server, tmp_path):
    """A function: a server whose core, another's, is not there."""
    def start():
        server = make_server(
            start=False, server="location = /status { inference status; }")
        server.write_config(core_options=f" external={tmp_path}/core")
        server.start(wait="")
        assert process.wait_until(
            lambda: server.status("/status") == 503, 20 * SLOW)
        return server
    return start
