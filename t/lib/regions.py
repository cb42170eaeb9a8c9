"""Clients' shared memory: objects of this process, and inferences whose tensors
lie in them."""

import contextlib
import itertools
import mmap
import os

import numpy
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from lib import models

VALUES = numpy.array([7, -1, 2**31 - 1, 4], numpy.int32)

_numbers = itertools.count()


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "slow", [("IN", "INT32", [-1])],
                    parameters={"execute_delay_ms": "1000"})
    models.identity(repository, "two", [("IN0", "INT32", [-1]),
                                        ("IN1", "BYTES", [-1])])


def rest_of(server):
    return tritonclient.http.InferenceServerClient(server.url, concurrency=4)


def infer_later(pool, server, *arguments, **kw):
    """The future of an answer.  The client's own async_infer goes on sending
    only while somebody waits for its answer."""
    def infer():
        with rest_of(server) as client:
            return client.infer(*arguments, **kw)
    return pool.submit(infer)


def grpc_of(server):
    return tritonclient.grpc.InferenceServerClient(
        f"127.0.0.1:{server.port2}")


class Object:
    """A shared memory object of this process, mapped."""

    def __init__(self, size, content=b"", key=None):
        self.key = key or f"/inf-t-{os.getpid()}-{next(_numbers)}"
        self.path = "/dev/shm" + self.key
        self.size = size
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(fd, size)
        self.memory = mmap.mmap(fd, size)
        os.close(fd)
        self.memory[:len(content)] = content

    def __getitem__(self, where):
        return self.memory[where]

    def __setitem__(self, where, data):
        self.memory[where] = data

    def truncate(self, size):
        os.truncate(self.path, size)

    def close(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        with contextlib.suppress(BufferError):
            self.memory.close()


def error_of(api, function, *arguments, **kw):
    """(REST's word for the status, text) of the call's error."""
    with pytest.raises(InferenceServerException) as caught:
        function(*arguments, **kw)
    return str(caught.value.status()).replace("StatusCode.", ""), \
        caught.value.message()


def text_of(api, function, *arguments, **kw):
    return error_of(api, function, *arguments, **kw)[1].split("] ")[-1]


def ask(api, client, model="id_int32", *, data=None, place=None, shape=(4,),
        datatype="INT32", out=None, **kw):
    """An inference of IN; place, out: region, size and offset."""
    given = api.InferInput("IN", list(shape), datatype)
    if place is not None:
        given.set_shared_memory(*place)
    else:
        given.set_data_from_numpy(data)
    asked = api.InferRequestedOutput("OUT")
    if out is not None:
        asked.set_shared_memory(*out)
    return client.infer(model, [given], outputs=[asked], **kw)
