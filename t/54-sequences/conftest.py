"""A server with models of the sequences backend, and what holds them."""

import pathlib
import shutil
import tempfile

import pytest

from lib.sequences import Sequences


@pytest.fixture
def sequences(make_server):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-sequences-"))
    folder.chmod(0o777)
    it = Sequences(make_server, folder)
    yield it
    it.open_all()               # a failed test leaves nobody waiting
    shutil.rmtree(folder)
