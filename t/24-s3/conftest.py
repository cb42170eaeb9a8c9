"""An S3 service for each file of tests, a bucket, a directory for each."""

import re
import shutil
import tempfile

import pytest

from lib.s3 import Service


@pytest.fixture(scope="module")
def service():
    with Service() as s:
        yield s


@pytest.fixture
def bucket(service, request):
    name = "b-" + re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50]
    return service.bucket(name.strip("-") + "-x")


@pytest.fixture
def mount():
    path = tempfile.mkdtemp(prefix="inf-s3-")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def serve(service, mount, make_server):
    """Starts a server on the given addresses, as seen by the gate."""
    def start(*addresses, wait="ready", env=None, **kw):
        lines = "".join(f"    inference_repository {a};\n" for a in addresses)
        return make_server(
            wait=wait, http=lines + kw.pop("http", ""),
            inference_env=service.environment(mount) if env is None else env,
            **kw)
    return start
