"""A model in C that answers a few bytes with many; it is not decoupled."""

import pathlib
import shutil
import struct

from lib import backends
from lib.grpc_client import numbers

MIB = 1 << 18               # elements


def expand(repository, name="expand", instances=1):
    """t/backends/expand.c: (n, count) gives n count times."""
    place = pathlib.Path(repository) / name
    (place / "1").mkdir(parents=True)
    shutil.copy(backends.build("expand") / "expand/libtriton_expand.so",
                place)
    (place / "config.pbtxt").write_text(
        'backend: "expand"\n'
        f'instance_group {{ kind: KIND_CPU count: {instances} }}\n'
        'input { name: "IN" data_type: TYPE_INT32 dims: [ 2 ] }\n'
        'output { name: "OUT" data_type: TYPE_INT32 dims: [ -1 ] }\n',
        encoding="utf-8")


def wanted(n, count=MIB, name="expand"):
    """A request."""
    return numbers(name, [n, count], id=str(n))


def number(reply, count=MIB):
    """The n of a streamed response that is whole."""
    assert not reply.error_message, reply.error_message
    raw = reply.infer_response.raw_output_contents[0]
    n = struct.unpack_from("<i", raw)[0]
    assert raw == struct.pack("<i", n) * count
    assert reply.infer_response.id == str(n)
    return n
