"""Traces in files: who, when, which tensors, and how many in which file."""

import json
import pathlib

import numpy
import pytest
import tritonclient.grpc
import tritonclient.http
from lib import exposition, models, process
from lib.server import SANITIZER, SLOW
from lib.wire import tensor

HTTP = ["HTTP_RECV_START", "HTTP_RECV_END", "REQUEST_START", "QUEUE_START",
        "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START",
        "COMPUTE_END", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START",
        "HTTP_SEND_END", "REQUEST_END"]
ORDERED = ["RECV_START", "RECV_END", "REQUEST_START", "QUEUE_START",
           "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START",
           "COMPUTE_END", "SEND_START", "SEND_END"]


def fill(repository):
    models.standard_repository(repository)
    models.ensemble(
        repository, "chain", [("IN", "INT32", [-1])],
        [("OUT", "INT32", [-1])],
        models.step("id_int32", {"IN": "IN"}, {"OUT": "m"}),
        models.step("id_int32", {"IN": "m"}, {"OUT": "OUT"}))
    models.identity(repository, "fails", [("IN", "INT32", [-1])],
                    parameters={"fail_execute": "no luck today"})


class Trace:
    """The events of one id in a file."""

    def __init__(self, identity):
        self.who = identity
        self.times = {}
        self.tensors = []


def read(path):
    """The traces of a file by their ids, in the order of their identities."""
    traces = {}
    for e in json.loads(pathlib.Path(path).read_text()):
        if "model_name" in e:
            assert e["id"] not in traces
            traces[e["id"]] = Trace(e)
        elif "timestamps" in e:
            (stamp,) = e["timestamps"]
            times = traces[e["id"]].times
            assert stamp["name"] not in times
            times[stamp["name"]] = stamp["ns"]
        else:
            traces[e["id"]].tensors.append((e["activity"], e["tensor"]))
    return list(traces.values())


@pytest.fixture
def traced(start, tmp_path):
    tmp_path.chmod(0o755)

    def make(options="rate=1", **kw):
        return start(fill, http=f"    inference_trace file={tmp_path}/t "
                     f"{options};", **kw)
    make.path = tmp_path / "t"
    return make


def infer(server, n=1, model="id_int32", request_id=None):
    header = {"inputs": [tensor("IN", "INT32", [3], [1, -2, 3])]}
    if request_id:
        header["id"] = request_id
    for _ in range(n):
        assert server.infer(model, header).status == 200


def wait_for(path, count):
    """The traces of requests once there are so many; a file that was made, or
    is being written, is no JSON yet."""
    def there():
        try:
            traces = read(path)
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        whole = [t for t in traces if "parent_id" not in t.who]
        return whole if len(whole) >= count else None
    found = process.wait_until(there, 60 * SLOW)
    assert found, path.read_text() if path.exists() else "no file"
    assert len(found) == count
    return found


def in_order(times, protocol):
    stamps = [times[f"{protocol}_{n}" if n.startswith(("RECV", "SEND"))
                    else n] for n in ORDERED]
    assert stamps == sorted(stamps)


def test_a_request_over_http(traced):
    server = traced()
    infer(server, request_id="mine")
    (trace,) = wait_for(traced.path, 1)
    assert trace.who == {"id": 1, "model_name": "id_int32",
                         "model_version": 1, "request_id": "mine"}
    assert sorted(trace.times) == sorted(HTTP)
    in_order(trace.times, "HTTP")
    assert trace.tensors == []


def test_a_request_over_grpc(traced):
    server = traced()
    client = tritonclient.grpc.InferenceServerClient(
        f"127.0.0.1:{server.port2}")
    data = tritonclient.grpc.InferInput("IN", [2], "INT32")
    data.set_data_from_numpy(numpy.array([5, 6], numpy.int32))
    client.infer("id_int32", [data])
    client.close()
    (trace,) = wait_for(traced.path, 1)
    assert "request_id" not in trace.who
    times = {n.replace("WAITREAD", "RECV"): ns
             for n, ns in trace.times.items()}
    in_order(times, "GRPC")
    assert "HTTP_RECV_START" not in times


@pytest.mark.parametrize("protocol", ["HTTP", "GRPC"])
def test_the_end_of_an_answer_is_noted_at_once(traced, protocol):
    """Not with the worker's next entry for the core, or after a second without
    one: each request waits until the one before has its trace."""
    server = traced()
    client = tritonclient.grpc.InferenceServerClient(
        f"127.0.0.1:{server.port2}")
    data = tritonclient.grpc.InferInput("IN", [2], "INT32")
    data.set_data_from_numpy(numpy.array([5, 6], numpy.int32))
    took = []
    for n in range(1, 5):
        if protocol == "HTTP":
            infer(server)
        else:
            client.infer("id_int32", [data])
        times = wait_for(traced.path, n)[-1].times
        took.append(times[f"{protocol}_SEND_END"]
                    - times[f"{protocol}_SEND_START"])
    client.close()
    # a busy machine makes one of them late, that second most of them
    assert sorted(took)[1] < 250_000_000 * SLOW, took


def test_an_ensemble_has_traces_of_its_steps(traced):
    server = traced("rate=1 level=timestamps,tensors")
    infer(server, model="chain", request_id="whole")
    (whole,) = wait_for(traced.path, 1)
    first, second = (t for t in read(traced.path) if t.who != whole.who)
    assert whole.who["model_name"] == "chain"
    for t in (first, second):
        assert t.who["model_name"] == "id_int32"
        assert t.who["parent_id"] == whole.who["id"]
        assert t.who["request_id"] == "whole"
        assert {"REQUEST_START", "COMPUTE_START", "COMPUTE_END",
                "REQUEST_END"} <= set(t.times)
        assert "HTTP_RECV_START" not in t.times
        assert {(a, x["name"], x["data"]) for a, x in t.tensors} == {
            ("TENSOR_QUEUE_INPUT", "IN", "1,-2,3"),
            ("TENSOR_BACKEND_OUTPUT", "OUT", "1,-2,3")}
    assert first.times["REQUEST_START"] >= whole.times["REQUEST_START"]
    assert second.times["REQUEST_START"] >= first.times["COMPUTE_END"]
    # a request may be released after its response was sent
    assert second.times["COMPUTE_START"] <= whole.times["HTTP_SEND_END"]


@pytest.mark.parametrize("datatype,values,text", [
    ("BOOL", [True, False], "1,0"), ("UINT8", [0, 255], "0,255"),
    ("INT8", [-128, 127], "-128,127"), ("UINT64", [2**64 - 1], str(2**64 - 1)),
    ("INT64", [-2**63], str(-2**63)), ("FP32", [0.1, -2.5], "0.1,-2.5"),
    ("FP64", [0.1, 1e300], "0.1,1e+300"),
    ("BYTES", ["a", 'q"\\', ""], '"a","q\\"\\\\",""')])
def test_tensors(traced, datatype, values, text):
    server = traced("rate=1 level=tensors")
    assert server.infer("id_" + datatype.lower(), {"inputs": [tensor(
        "IN", datatype, [len(values)], values)]}).status == 200
    (trace,) = wait_for(traced.path, 1)
    assert trace.times == {}
    assert dict((a, x) for a, x in trace.tensors) == {
        activity: {"name": name, "data": text, "shape": str(len(values)),
                   "dtype": datatype}
        for activity, name in [("TENSOR_QUEUE_INPUT", "IN"),
                               ("TENSOR_BACKEND_OUTPUT", "OUT")]}


def test_a_large_trace_leaves_no_memory_behind(traced):
    """Text of control characters is seven times as long in the file.
    (Sanitizers keep memory that was freed.)"""
    server = traced("rate=1 level=tensors")
    infer(server, model="id_int32")
    wait_for(traced.path, 1)
    before = process.pss_bytes(server.core())
    text = b"\1" * (6 << 20)
    data = len(text).to_bytes(4, "little") + text
    assert server.infer("id_bytes", {"inputs": [tensor(
        "IN", "BYTES", [1], binary_data_size=len(data))],
        "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}]},
        data).status == 200
    wait_for(traced.path, 2)
    assert SANITIZER or process.wait_until(
        lambda: process.pss_bytes(server.core()) < before + (40 << 20),
        10 * SLOW), process.pss_bytes(server.core()) - before


def test_rate_and_count(traced):
    server = traced("rate=2")
    infer(server, 10)
    assert len(wait_for(traced.path, 5)) == 5
    client = tritonclient.http.InferenceServerClient(server.url)
    client.update_trace_settings(settings={"trace_rate": "1",
                                           "trace_count": "3"})
    infer(server, 7)
    wait_for(traced.path.with_name("t.0"), 3)
    assert client.get_trace_settings()["trace_count"] == "0"
    assert len(wait_for(traced.path, 5)) == 5
    client.close()


def test_log_frequency(traced):
    server = traced("rate=1 log_frequency=4")
    infer(server, 10)
    for n, count in enumerate([4, 4, 2]):
        wait_for(traced.path.with_name(f"t.{n}"), count)
    client = tritonclient.http.InferenceServerClient(server.url)
    client.update_trace_settings(settings={"log_frequency": "0"})
    client.close()
    infer(server, 2)
    wait_for(traced.path, 2)
    assert not traced.path.with_name("t.3").exists()


def test_a_model_s_own_level(traced):
    server = traced("level=off rate=1")
    client = tritonclient.http.InferenceServerClient(server.url)
    client.update_trace_settings("id_int32", {"trace_level": ["TIMESTAMPS"]})
    assert server.infer("id_uint8", {"inputs": [
        tensor("IN", "UINT8", [1], [1])]}).status == 200
    infer(server, 2)
    found = wait_for(traced.path, 2)
    assert {t.who["model_name"] for t in found} == {"id_int32"}
    client.update_trace_settings("id_int32", {"trace_level": ["OFF"]})
    infer(server, 2)
    client.update_trace_settings("id_int32", {"trace_level": None})
    client.update_trace_settings(settings={"trace_level": ["TIMESTAMPS"]})
    infer(server, 1)
    assert len(wait_for(traced.path, 3)) == 3
    client.close()


def test_an_array_without_levels_changes_nothing(traced):
    server = traced("level=timestamps rate=1")
    for levels, then in (("[\"OFF\"]", ["OFF"]), ("[]", ["OFF"]),
                         ("[\"SOMETIMES\"]", ["OFF"]),
                         ("null", ["TIMESTAMPS"])):
        answer = server.post("/v2/trace/setting",
                             f'{{"trace_level": {levels}}}'.encode())
        assert answer.json()["trace_level"] == then, levels


def test_a_request_that_fails(traced):
    server = traced()
    answer = server.infer("fails", {"inputs": [
        tensor("IN", "INT32", [1], [1])]})
    assert answer.status != 200
    (trace,) = wait_for(traced.path, 1)
    assert {"REQUEST_START", "REQUEST_END", "HTTP_SEND_END"} \
        <= set(trace.times)


def test_what_was_there_before_is_kept(traced):
    traced.path.write_text("[  ]")
    traced.path.with_name("t.0").write_text("[]")
    server = traced()
    infer(server)
    wait_for(traced.path, 1)
    assert traced.path.with_name("t.before").read_text() == "[  ]"
    client = tritonclient.http.InferenceServerClient(server.url)
    client.update_trace_settings(settings={"trace_count": "1"})
    client.close()
    infer(server, 2)
    wait_for(traced.path.with_name("t.1"), 1)
    assert traced.path.with_name("t.0").read_text() == "[]"


def test_a_file_that_is_taken_away_begins_again(traced):
    server = traced()
    infer(server, 3)
    wait_for(traced.path, 3)
    traced.path.unlink()
    infer(server, 2)
    wait_for(traced.path, 2)


def test_a_link_is_not_followed(traced):
    """Others may put one where they guess the file's name."""
    other = traced.path.with_name("other")
    other.write_text("[  ]")
    other.chmod(0o666)
    traced.path.symlink_to(other)
    traced.path.with_name("t.0").symlink_to(traced.path.with_name("absent"))
    server = traced()
    infer(server)
    server.wait_log(r'a trace is lost: cannot open trace file "[^"]*/t", which'
                    r' must be no link')
    assert other.read_text() == "[  ]" and traced.path.is_symlink()
    client = tritonclient.http.InferenceServerClient(server.url)
    client.update_trace_settings(settings={"trace_count": "1"})
    client.close()
    infer(server)
    wait_for(traced.path.with_name("t.1"), 1)
    assert not traced.path.with_name("absent").exists()


def test_a_file_that_cannot_be_written_costs_no_request(start, tmp_path):
    server = start(fill, http=f"    inference_trace "
                   f"file={tmp_path}/absent/t rate=1;")
    infer(server, 50)
    server.wait_log(r"a trace is lost: cannot open trace file .*absent/t")
    server.wait_log(r"\d+ traces were dropped")
    assert process.wait_until(lambda: exposition.scrape(server).value(
        "nginx_inference_traces_dropped_total") == 50, 20 * SLOW)


def test_settings_show_the_file(traced):
    server = traced("rate=7 count=9 log_frequency=2 level=timestamps,tensors")
    assert server.get("/v2/trace/setting").json() == {
        "trace_level": ["TIMESTAMPS", "TENSORS"], "trace_rate": "7",
        "trace_count": "9", "log_frequency": "2",
        "trace_file": str(traced.path), "trace_mode": "triton"}
