"""Numbers and structures in requests that Triton fell over."""

import json
import struct

import pytest

from lib import models
from lib.server import SANITIZER, Server
from lib.unharmed import good, memory, rejected, unharmed
from lib.wire import tensor

EDGES = [-2**63 - 1, -2**63, -2**31, -2, -1, 2**31 - 1, 2**31, 2**32 - 1,
         2**32, 2**32 + 1, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64,
         2**64 + 1, 2**70]


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "id_fixed_zero", [("IN", "FP32", [-1, 4])])
    models.identity(repository, "id_reshaped", [
        ("IN", "FP32", [1], "reshape { shape: [ ] }")],
        outputs=[("OUT", "FP32", [1], "reshape { shape: [ ] }")],
        max_batch=8)
    models.identity(repository, "id_sixteen", [
        (f"IN{i}", "INT32", [-1]) for i in range(16)])


@pytest.fixture(scope="module")
def server():
    with Server(fill, parts="all") as s:
        yield s


def ask(server, model, *inputs, tail=b"", **top):
    """One request with these inputs, on a connection of its own."""
    return server.infer(model, {"inputs": list(inputs), **top}, tail)


def edges_of(shape, place):
    """The shape with each edge of integers at that place."""
    return [[*shape[:place], edge, *shape[place + 1:]] for edge in EDGES]


@pytest.mark.parametrize("model,datatype,shape", [
    ("id_int32", "INT32", [0]), ("id_any", "FP32", [0, 5]),
    ("id_any", "FP32", [5, 0]), ("id_any", "FP32", [0, 0]),
    ("id_bytes", "BYTES", [0]), ("id_fixed_zero", "FP32", [0, 4]),
    ("id_fixed_zero", "FP32", [4, 0]), ("id_batch", "FP32", [0, 4]),
    ("id_batch", "FP32", [1, 0]), ("vision", "FP32", [0, 4]),
    ("id_reshaped", "FP32", [0, 1]), ("id_reshaped", "FP32", [1, 0])])
@pytest.mark.parametrize("how", ["json", "binary", "raw", "classes"])
def test_cve_2025_23321(server, model, datatype, shape, how):
    """An invalid request had Triton divide by zero.

    So every size that something could be divided by is zero: a dimension, a
    batch, a binary tensor's bytes, the elements of a row that is classified.
    """
    name = {"vision": "PIX"}.get(model, "IN")
    with unharmed(server), server.wire() as connection:
        if how == "raw":
            answer = connection.post(
                f"/v2/models/{model}/infer", b"",
                {"Inference-Header-Content-Length": "0"})
        else:
            entry = tensor(name, datatype, shape, [])
            header = {"inputs": [entry]}
            if how == "binary":
                del entry["data"]
                entry["parameters"] = {"binary_data_size": 0}
            if how == "classes":
                header["outputs"] = [{
                    "name": {"vision": "SCORES"}.get(model, "OUT"),
                    "parameters": {"classification": 3}}]
            answer = connection.infer(model, header)
        assert answer.status in (200, 400), answer
        if answer.status == 200 and how != "raw":
            output = answer.json()["outputs"][0]
            assert 0 in output["shape"]
            assert output["data"] == []


@pytest.mark.parametrize("place", [0, 1])
def test_cve_2025_23323(server, place):
    """An integer of an invalid request wrapped around and a segment that was
    not there was read."""
    with unharmed(server):
        for shape in edges_of([1, 1], place):
            rejected(ask(server, "id_any", tensor("IN", "FP32", shape, [1.0])))
            rejected(ask(server, "id_any", tensor(
                "IN", "FP32", shape, binary_data_size=4), tail=b"1234"))


@pytest.mark.parametrize("datatype,size", [("UINT8", 1), ("FP32", 4),
                                           ("INT64", 8), ("BYTES", 4)])
def test_cve_2025_23324(server, datatype, size):
    """Another wrap-around of an integer, with the same end."""
    with unharmed(server):
        for edge in EDGES:
            if edge == size:
                continue
            entry = tensor("IN", datatype, [1], binary_data_size=edge)
            rejected(ask(server, f"id_{datatype.lower()}", entry,
                         tail=bytes(size)), 400, 413, 503)


@pytest.mark.parametrize("opened,closed", [
    (b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]"), (b"[[],", b"]")])
@pytest.mark.parametrize("where", ["data", "shape", "inputs", "parameters",
                                   "unknown", "outputs"])
def test_cve_2025_23325(server, where, opened, closed):
    """Triton read nested JSON by functions that called themselves, without a
    limit of depth."""
    with unharmed(server):
        for depth in (127, 1000, 100_000, 1_000_000):
            deep = opened * depth + b"1" + closed * depth
            if where == "data":
                body = b'{"inputs":[{"name":"IN","datatype":"INT32",' \
                    b'"shape":[1],"data":%s}]}' % deep
            elif where == "shape":
                body = b'{"inputs":[{"name":"IN","datatype":"INT32",' \
                    b'"shape":%s,"data":[1]}]}' % deep
            else:
                body = b'{"inputs":[{"name":"IN","datatype":"INT32",' \
                    b'"shape":[1],"data":[1]}],"%s":%s}' % (
                        where.encode(), deep)
            answer = server.infer("id_int32", body)
            if where == "unknown" or where == "data" and opened == b"[" \
                    and depth == 127:
                assert answer.status in (200, 400), (depth, answer)
            else:
                rejected(answer)
            # cut off before anything is closed
            rejected(server.infer("id_int32", body[:len(body) // 2]))


@pytest.mark.parametrize("datatype,size", [
    ("BOOL", 1), ("UINT16", 2), ("FP32", 4), ("INT64", 8), ("FP64", 8)])
def test_cve_2025_23326(server, datatype, size):
    """A product of sizes wrapped around to a small number, for which a buffer
    was made that was too small."""
    model = f"id_{datatype.lower()}"
    value = [True] if datatype == "BOOL" else [1]
    with unharmed(server):
        # elements times bytes is 2^64 plus a little, or just that
        for count in {2**64 // size, 2**64 // size + 1, 2**63 // size,
                      2**32 // size, 2**32 // size + 1, 2**31 // size}:
            rejected(ask(server, model,
                         tensor("IN", datatype, [count], value)), 400, 413)
            rejected(ask(server, model, tensor(
                "IN", datatype, [count], binary_data_size=size),
                tail=bytes(size)))
        # and so is the product of two dimensions
        for shape in ([2**32, 2**32], [2**32, 2**32 + 1], [2**33, 2**31],
                      [2**16, 2**48], [3, 0x5555555555555556],
                      [2**31, 2**31]):
            rejected(ask(server, "id_any",
                         tensor("IN", "FP32", shape, [1.0])))
            rejected(ask(server, "id_any", tensor(
                "IN", "FP32", shape, binary_data_size=4), tail=bytes(4)))


def test_cve_2025_23327(server):
    """An integer overflow let a client with few rights change others' data.

    Here each size is in range, and only their sum wraps around."""
    with unharmed(server):
        for sizes in ([2**63, 2**63], [2**62] * 4, [2**62] * 3 + [2**62 + 4],
                      [2**64 - 4, 8], [4, 2**64 - 4], [2**60] * 16,
                      [2**63 - 1, 2**63 - 1, 6], [4] * 15 + [2**64 - 56]):
            inputs = [tensor(f"IN{i}", "INT32", [1], binary_data_size=n)
                      for i, n in enumerate(sizes)]
            rejected(ask(server, "id_sixteen", *inputs, tail=bytes(64)),
                     400, 413, 503)
        # the whole is as long as told, the parts aren't
        inputs = [tensor(f"IN{i}", "INT32", [1], binary_data_size=4)
                  for i in range(16)]
        inputs[0]["parameters"]["binary_data_size"] = 8
        inputs[1]["parameters"]["binary_data_size"] = 0
        rejected(ask(server, "id_sixteen", *inputs, tail=bytes(64)))


@pytest.mark.parametrize("length", [1, 4, 5, 2**16, 2**31 - 1, 2**31,
                                    2**32 - 5, 2**32 - 4, 2**32 - 1])
def test_cve_2025_23328(server, length):
    """A crafted input had Triton write beyond the end of a buffer.

    A string tensor is its strings' lengths and bytes; here the lengths point
    beyond it, by a little, by much, and so that their sum wraps around."""
    bad = struct.pack("<I", length)
    with unharmed(server):
        for count, data in (
                (1, bad), (1, bad + b"x" * (length - 1 if length < 10 else 8)),
                (2, struct.pack("<I", 0) + bad), (2, bad + bad),
                (2, struct.pack("<I", 3) + b"abc" + bad + b"d" * 3),
                (3, bad * 3), (1, bad[:3]), (1, bad[:1])):
            if length == 1 and len(data) == 4 + 1:
                continue
            rejected(ask(server, "id_bytes", tensor(
                "IN", "BYTES", [count], binary_data_size=len(data)),
                tail=data))


@pytest.mark.parametrize("quantity", ["classes", "priority", "timeout",
                                      "sequence", "version", "dimensions"])
def test_cve_2025_33211(server, quantity):
    """A quantity that a client names was taken as it stood."""
    one = tensor("IN", "INT32", [1], [1])
    with unharmed(server):
        for edge in EDGES:
            if quantity == "version":
                answer = server.infer("id_int32", {"inputs": [one]},
                                      version=str(edge))
                rejected(answer, 400, 404)
                continue
            if quantity == "dimensions":
                count = min(abs(edge), 100_000)
                rejected(ask(server, "id_int32",
                             tensor("IN", "INT32", [1] * count, [1]))) \
                    if count > 1 else None
                continue
            header = {"inputs": [one]}
            if quantity == "classes":
                header["outputs"] = [{"name": "OUT", "parameters": {
                    "classification": edge}}]
            else:
                name = {"sequence": "sequence_id"}.get(quantity, quantity)
                header["parameters"] = {name: edge}
            answer = server.infer("id_int32", header)
            assert answer.status in (200, 400), (edge, answer)
            if edge < 0 or edge >= 2**64:
                rejected(answer)
            elif answer.status == 200 and quantity == "classes":
                assert answer.json()["outputs"][0]["shape"] == [1]


@pytest.mark.parametrize("named", ["known", "unknown", "both", "empty"])
def test_cve_2026_24146(server, named):
    """A request for very many outputs ended Triton."""
    before = memory(server)
    with unharmed(server):
        for count in (2, 1000, 16_384, 65_536, 1_000_000):
            outputs = [{"name": {"known": "OUT", "empty": ""}.get(
                named, f"O{count - i:07}")} for i in range(count)]
            if named == "both":
                outputs[0]["name"] = "OUT"
            rejected(ask(server, "id_int32", tensor("IN", "INT32", [1], [1]),
                         outputs=outputs))
    assert memory(server) - before < 64 << 20


@pytest.mark.parametrize("edge", EDGES)
def test_cve_2026_24173(server, edge):
    """An integer of a malformed request overflowed and ended Triton; which
    one was not published, so it is each one in turn."""
    with unharmed(server):
        for place in ("shape", "binary_data_size", "data", "id_length",
                      "timeout", "classification", "shared_memory_byte_size",
                      "shared_memory_offset"):
            entry = tensor("IN", "INT32", [1], [1])
            header, tail = {"inputs": [entry]}, b""
            if place == "shape":
                entry["shape"] = [edge]
            elif place == "data":
                entry["data"] = [edge]
            elif place == "binary_data_size":
                del entry["data"]
                entry["parameters"] = {place: edge}
                tail = b"1234"
            elif place.startswith("shared_memory"):
                del entry["data"]
                entry["parameters"] = {"shared_memory_region": "r",
                                       "shared_memory_byte_size": 4,
                                       place: edge}
            elif place == "classification":
                header["outputs"] = [{"name": "OUT",
                                      "parameters": {place: edge}}]
            else:
                header["parameters"] = {place: edge}
            answer = server.infer("id_int32", header, tail)
            assert answer.status in (200, 400, 404, 413, 501, 503), \
                (place, answer)
            if place in ("shape", "binary_data_size") \
                    or place == "data" and not -2**31 <= edge < 2**31:
                assert answer.status != 200, (place, answer)


@pytest.mark.parametrize("text", [
    "1.5", "-1.5", "1e0", "1e2", "1e30", "1e400", "-0", "-0.0", "1E+2",
    "0.9999999999999999999", "9007199254740993.0", "18446744073709551616",
    "1e-400", "4294967297.0", "true", "null", '"1"', "NaN", "Infinity"])
def test_cve_2026_24174(server, text):
    """A number of a malformed request was converted to another type without
    a look at its value."""
    whole = text == "-0"
    with unharmed(server):
        for rest in (
                '"shape":[%s],"data":[1]', '"shape":[1],"data":[%s',
                '"shape":[1],"parameters":{"binary_data_size":%s',
                '"shape":[1],"data":[1]}],"parameters":{"timeout":%s',
                '"shape":[1],"data":[1]}],"outputs":[{"name":"OUT",'
                '"parameters":{"classification":%s'):
            body = closed_up('{"inputs":[{"name":"IN","datatype":"INT32",'
                             + rest % text)
            answer = server.infer("id_int32", body.encode())
            if whole:
                assert answer.status in (200, 400), (body, answer)
            else:
                rejected(answer)


def closed_up(body):
    """Closes what is open."""
    closing, inside = [], False
    for c in body:
        if c == '"':
            inside = not inside
        elif not inside and c in "{[":
            closing.append({"{": "}", "[": "]"}[c])
        elif not inside and c in "}]" and closing:
            closing.pop()
    return body + "".join(reversed(closing))


@pytest.mark.parametrize("times", [2, 16, 256, 65_536])
def test_cve_2026_24210(server, times):
    """An integer overflow in a request ended Triton; which was not published.

    A batch's rows times a row's bytes, for batches around the limits."""
    with unharmed(server):
        for rows in (9, times, 2**32 // times, 2**32 // times + 1,
                     2**60, 2**62 // times, 2**64 // (4 * times) + 1):
            if rows <= 8:
                continue
            rejected(ask(server, "id_batch", tensor(
                "IN", "FP32", [rows, 4], binary_data_size=16),
                tail=bytes(16)))
            rejected(ask(server, "id_batch", tensor(
                "IN", "FP32", [rows, 4], [0] * 4)))


@pytest.mark.parametrize("what", ["outputs", "names", "strings", "numbers",
                                  "parameters", "white space"])
def test_cve_2026_16497(server, what):
    """A request had Triton go round a loop far too often."""
    one = tensor("IN", "INT32", [1], [1])
    if what == "outputs":           # the worst order for a sorted list
        header = {"inputs": [one], "outputs": [
            {"name": f"O{i:06}"} for i in range(16_384, 0, -1)]}
    elif what == "names":
        header = {"inputs": [dict(one, name=f"N{i:06}")
                             for i in range(16_384, 0, -1)]}
    elif what == "strings":
        header = {"inputs": [tensor("IN", "BYTES", [10**6], [""] * 10**6)]}
    elif what == "numbers":
        header = {"inputs": [tensor("IN", "INT32", [1], [1] * 10**6)]}
    elif what == "parameters":
        header = {"inputs": [dict(one, parameters={
            f"P{i:06}": 1 for i in range(20_000, 0, -1)})]}
    else:
        header = b'{"inputs"' + b" " * (16 << 20) + b":[]}"
    model = "id_bytes" if what == "strings" else "id_int32"
    with unharmed(server):
        for _ in range(3):
            answer = server.infer(model, header)
            assert answer.status == (200 if what == "strings" else 400), answer


def test_cve_2026_47476(server):
    """Requests consumed resources without bound; how was not published.

    Each of a thousand broken requests gives back all that it took."""
    broken(server)
    grown(server, lambda: broken(server))


def test_cve_2026_47482(server):
    """Memory was not released after its last use.

    The same for requests that are answered."""
    def answered():
        with server.wire() as connection:
            for i in range(1000):
                assert connection.infer("id_bytes", {"inputs": [tensor(
                    "IN", "BYTES", [50], ["x" * i] * 50)]}).status == 200

    answered()
    grown(server, answered)


def broken(server):
    bodies = [b"{", b"[" * 1000, b'{"inputs":[{"name":"' + b"x" * 9000,
              json.dumps({"inputs": [tensor("IN", "INT32", [9], [1])] * 9})
              .encode(), json.dumps({"inputs": [tensor(
                  "IN", "BYTES", [10], ["y" * 500] * 9)]}).encode()]
    with server.wire() as connection:
        for i in range(1000):
            connection.next()
            rejected(connection.infer("id_bytes", bodies[i % len(bodies)]))


# AddressSanitizer keeps so much of what each process has freed.
KEPT = 3 * (256 << 20) if SANITIZER == "asan" else 0


def grown(server, again):
    """Four times as much again adds next to nothing."""
    with unharmed(server):
        before = memory(server)
        for _ in range(4):
            again()
        assert memory(server) - before < (8 << 20) + KEPT


@pytest.mark.parametrize("value", [
    {"inputs": [{}]}, {"inputs": [[]]}, {"inputs": {"0": {}}}, [], 0, "",
    None, True, {"inputs": True}, {"inputs": [None]}, {"outputs": [{}]},
    {"inputs": [{"name": {}}]}, {"inputs": [{"name": "IN", "shape": {}}]},
    {"inputs": [], "id": {}}, {"inputs": [], "parameters": 1},
    {"inputs": [], "parameters": {"": ""}}, {"inputs": [], "outputs": 1}])
def test_cve_2026_47480(server, value):
    """Something in a request threw an exception that nobody caught.

    So each member has each type that it must not have."""
    with unharmed(server):
        rejected(server.infer("id_int32", json.dumps(value).encode()))


@pytest.mark.parametrize("text", [
    b"\0", b"IN\0", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80",
    b"\\ud800", b"\\u0000", b"\\x41", b"%s%n", b"../../etc/passwd",
    b"${jndi:ldap://localhost/a}", b"'; rm -rf /", b"\xe2\x80\xae"])
def test_cve_2026_47629(server, text):
    """A client's values were used without having been checked."""
    with unharmed(server):
        for body in (
                b'{"inputs":[{"name":"%s","datatype":"INT32","shape":[1],'
                b'"data":[1]}]}',
                b'{"inputs":[{"name":"IN","datatype":"%s","shape":[1],'
                b'"data":[1]}]}',
                b'{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],'
                b'"data":[1]}],"outputs":[{"name":"%s"}]}'):
            rejected(server.infer("id_int32", body.replace(b"%s", text, 1)))
        assert good(server.wire()) == 200
