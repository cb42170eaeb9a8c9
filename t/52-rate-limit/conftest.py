"""A server whose executions are limited, and the files of its models."""

import concurrent.futures
import pathlib
import shutil
import tempfile

import pytest

from lib.limits import Limited


@pytest.fixture
def limited(make_server):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-rate-"))
    folder.chmod(0o777)
    (folder / "record").touch()
    (folder / "record").chmod(0o666)
    with concurrent.futures.ThreadPoolExecutor(48) as pool:
        it = Limited(make_server, folder, pool)
        yield it
        for gate in it.gates.values():      # a failed test leaves nobody
            for file in gate.path.parent.glob("gate.[0-9]*"):
                file.unlink()
    shutil.rmtree(folder)
