"""A repository of two models, and launchers that are stopped at the end."""

import contextlib
import os

import pytest

from lib import models
from lib.launcher import Launcher


@pytest.fixture
def repository(tmp_path):
    tmp_path.chmod(0o755)
    path = tmp_path / "models"
    path.mkdir()
    models.identity(path, "one", [("IN", "FP32", [-1])])
    models.identity(path, "slow", [("IN", "FP32", [-1])],
                    parameters={"execute_delay_ms": "1000"})
    return path


@pytest.fixture
def begin(tmp_path):
    """Starts a launcher; does not wait for it, and gives it no repository."""
    def end(launcher):
        if launcher.process.poll() is None:
            launcher.stop()

    with contextlib.ExitStack() as stack:
        def start(*arguments, **kw):
            launcher = Launcher(tmp_path, *arguments, **kw)
            stack.callback(end, launcher)
            return launcher

        yield start


@pytest.fixture
def launch(begin, repository):
    def start(*arguments, **kw):
        if not any(str(a).startswith(("--model-repository", "--model-store"))
                   for a in arguments):
            arguments = (f"--model-repository={repository}", *arguments)
        launcher = begin(*arguments, **kw)
        launcher.wait_ready()
        return launcher

    return start


@pytest.fixture
def owned(repository):
    """A function that gives the repository to a user."""
    def give(uid):
        for path in [repository, *repository.rglob("*")]:
            os.chown(path, uid, uid)
    return give
