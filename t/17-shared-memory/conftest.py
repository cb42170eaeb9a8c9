"""One server for a file, both protocols of it, and regions of this process."""

import pytest
import tritonclient.grpc
import tritonclient.http

from lib.regions import Object, fill, grpc_of, rest_of
from lib.server import Server

PARTS = "health metadata config infer repository metrics shared_memory"
ONLY = "        location /only/ { inference all; }\n"


@pytest.fixture(scope="module")
def server():
    with Server(fill, workers=2, http2=True, parts=PARTS,
                server="        add_header X-Worker $pid;\n" + ONLY) as s:
        yield s


@pytest.fixture
def start(make_server):
    """A server of the test's own, with both protocols."""
    def make(fill_=fill, **kw):
        return make_server(fill_, http2=True,
                           **{"parts": PARTS, "server": ONLY, **kw})
    return make


@pytest.fixture(params=["http", "grpc"])
def api(request):
    return {"http": tritonclient.http, "grpc": tritonclient.grpc}[
        request.param]


@pytest.fixture
def client(server, api):
    """A client of either protocol; nothing is registered afterwards."""
    with (rest_of if api is tritonclient.http else grpc_of)(server) as c:
        yield c
        c.unregister_system_shared_memory()
        c.unregister_cuda_shared_memory()


@pytest.fixture
def rest(server):
    with rest_of(server) as c:
        yield c
        c.unregister_system_shared_memory()
        c.unregister_cuda_shared_memory()


@pytest.fixture
def new_object():
    """Makes objects, which are gone after the test."""
    objects = []

    def make(size=8192, content=b"", key=None):
        objects.append(Object(size, content, key))
        return objects[-1]

    yield make
    for o in objects:
        o.close()
