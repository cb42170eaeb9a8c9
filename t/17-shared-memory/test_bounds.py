"""Bytes of regions and of copies of them: both are bounded, and counted until
the memory is free again."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
import tritonclient.grpc
import tritonclient.http

from lib import exposition, models, process
from lib.regions import (VALUES, ask, error_of, fill, grpc_of, infer_later,
                         rest_of)

PAGE = os.sysconf("SC_PAGE_SIZE")
REGIONS = "nginx_inference_shared_memory_region_bytes"
COPIES = "nginx_inference_shared_memory_copy_bytes"
FULL = ("503", "UNAVAILABLE")
WRONG = ("400", "INVALID_ARGUMENT")


def gauge(server, name):
    return exposition.scrape(server).value(name)


def bounds(text):
    return f"    inference_shared_memory {text};\n"


def client_of(api, server):
    return (rest_of if api is tritonclient.http else grpc_of)(server)


def test_regions(start, api, new_object):
    """Of one, and of all together; a reload changes the bound."""
    server = start(http=bounds(f"regions={4 * PAGE}"))
    o = new_object(16 * PAGE)
    with client_of(api, server) as client:
        status, text = error_of(api, client.register_system_shared_memory,
                                "large", o.key, 4 * PAGE + 1)
        assert status in WRONG
        assert text == "failed to register shared memory region 'large' of" \
            f" {5 * PAGE} bytes: regions may have {4 * PAGE} bytes in all" \
            " (inference_shared_memory regions=)"
        assert gauge(server, REGIONS) == 0

        client.register_system_shared_memory("a", o.key, 3 * PAGE)
        assert gauge(server, REGIONS) == 3 * PAGE
        status, text = error_of(api, client.register_system_shared_memory,
                                "b", o.key, PAGE + 1)
        assert status in FULL
        assert text == "failed to register shared memory region 'b' of" \
            f" {2 * PAGE} bytes: registered regions have {3 * PAGE} of at" \
            f" most {4 * PAGE} bytes (inference_shared_memory regions=)"
        client.register_system_shared_memory("b", o.key, 8)
        assert gauge(server, REGIONS) == 4 * PAGE

    server.write_config(http=bounds(f"regions={5 * PAGE}"))
    server.reload()
    body = json.dumps({"key": o.key, "byte_size": 8}).encode()
    assert process.wait_until(lambda: server.post(
        "/v2/systemsharedmemory/region/c/register", body).status == 200, 20)
    with client_of(api, server) as client:
        assert gauge(server, REGIONS) == 5 * PAGE
        client.unregister_system_shared_memory("a")
        assert gauge(server, REGIONS) == 2 * PAGE
        client.unregister_system_shared_memory()
        assert gauge(server, REGIONS) == 0


def words(repository):
    fill(repository)
    for name, instances, delay in (("words", 1, 0), ("held", 2, 2000)):
        models.identity(repository, name, [("IN", "BYTES", [-1])],
                        instances=instances,
                        parameters={"execute_delay_ms": str(delay)})
    models.identity(repository, "writable", [("IN", "INT32", [-1])],
                    parameters={"INFERENCE_WRITABLE_INPUTS": "true"})


def region(client, new_object):
    """Empty strings."""
    o = new_object(4 * PAGE)
    client.register_system_shared_memory("r", o.key, o.size)


def empty(api, client, model, n):
    return ask(api, client, model, shape=(n,), datatype="BYTES",
               place=("r", 4 * n))


def test_copies_that_never_fit(start, api, new_object):
    server = start(words, http=bounds("copies=4k"))
    with client_of(api, server) as client:
        region(client, new_object)
        empty(api, client, "words", 1024)
        status, text = error_of(api, empty, api, client, "words", 1025)
        assert status in WRONG
        assert "the inputs in shared memory that must be copied have 4100" \
            " bytes, and copies may have 4096 bytes in all" \
            " (inference_shared_memory copies=)" in text
        status, text = error_of(api, ask, api, client, "writable",
                                shape=(1025,), place=("r", 4100))
        assert status in WRONG and "4100" in text
        # read in place, or held by the request itself: no matter
        ask(api, client, shape=(1025,), place=("r", 4100))
        ask(api, client, "writable", shape=(1025,),
            data=VALUES.repeat(257)[:1025])
        ask(api, client, "writable", shape=(1025,),
            data=VALUES.repeat(257)[:1025], out=("r", 4100))
        ask(api, client, "writable", shape=(1024,), place=("r", 4096))
        assert process.wait_until(lambda: gauge(server, COPIES) == 0, 10)


def test_copies_of_requests_at_a_time(start, api, new_object):
    """One is rejected while the copies of another are held, and only then."""
    server = start(words, http=bounds("copies=4k"))
    given = tritonclient.http.InferInput("IN", [600], "BYTES")
    given.set_shared_memory("r", 2400)
    with client_of(api, server) as client, ThreadPoolExecutor() as pool:
        region(client, new_object)
        first = infer_later(pool, server, "held", [given])
        assert process.wait_until(lambda: gauge(server, COPIES) == 2400, 10)
        status, text = error_of(api, empty, api, client, "words", 600)
        assert status in FULL
        assert "no room to copy the 2400 bytes of inputs in shared memory:" \
            " requests hold 2400 of at most 4096 bytes of copies" \
            " (inference_shared_memory copies=)" in text
        empty(api, client, "words", 424)
        first.result()
        assert process.wait_until(lambda: gauge(server, COPIES) == 0, 10)
        empty(api, client, "words", 1024)


def test_copies_of_an_ensemble(start, new_object):
    """Each step that copies is counted."""
    def chain(repository):
        words(repository)
        models.write_model(
            repository, "chain", 'name: "chain"\nplatform: "ensemble"\n'
            + models.io_block("input", [("IN", "BYTES", [-1])])
            + models.io_block("output", [("OUT", "BYTES", [-1])])
            + 'ensemble_scheduling { step { model_name: "words"'
            ' model_version: -1 input_map { key: "IN" value: "IN" }'
            ' output_map { key: "OUT" value: "OUT" } } }\n')

    server = start(chain, http=bounds("copies=4k"))
    api = tritonclient.http
    with rest_of(server) as client:
        region(client, new_object)
        for _ in range(3):
            empty(api, client, "chain", 1024)
        status, text = error_of(api, empty, api, client, "chain", 1025)
        assert status == "400" and "copies may have 4096 bytes" in text
        assert process.wait_until(lambda: gauge(server, COPIES) == 0, 10)


def test_what_is_told_first(api, client, new_object):
    """As in Triton: regions before anything that the model decides, inputs
    before outputs, and no word about the request."""
    o = new_object(content=VALUES.tobytes())
    client.register_system_shared_memory("r", o.key, o.size)
    nobody = "Unable to find shared memory region: '{}'"
    for kw, name in (
            ({"place": ("in", 16), "out": ("out", 16)}, "in"),
            ({"place": ("r", 16), "out": ("out", 16)}, "out"),
            ({"place": ("in", 16), "shape": (5, 5, 5)}, "in")):
        status, text = error_of(api, ask, api, client, request_id="x", **kw)
        assert status in ("404", "NOT_FOUND")
        assert text == nobody.format(name)
    status, text = error_of(api, ask, api, client, place=("r", 16, 8192))
    assert status in WRONG
    assert text == "Invalid offset for shared memory region: 'r'"
