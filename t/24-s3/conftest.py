"""A service for each file of tests, a bucket, a directory for each."""

import os
import re
import shutil
import tempfile

import pytest

from lib import azure, gs, s3


def services(directory):
    return {"s3": s3.Service, "as": azure.Service,
            "gs": lambda: gs.Service(directory.mktemp("gs"))}


@pytest.fixture(scope="module", params=["s3", "gs", "as"])
def service(request, tmp_path_factory):
    """Tests that concern one alone name it: ONLY_S3 of test_s3.py."""
    with services(tmp_path_factory)[request.param]() as s:
        yield s


@pytest.fixture
def bucket(service, request):
    name = "b-" + re.sub(r"[^a-z0-9]+", "-", request.node.name.lower())[:50]
    return service.bucket(name.strip("-") + "-" + os.urandom(4).hex())


@pytest.fixture
def mount():
    path = tempfile.mkdtemp(prefix="inf-objects-")
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
