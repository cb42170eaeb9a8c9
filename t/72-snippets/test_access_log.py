"""conf.d/access-log.conf: each line is JSON with all variables."""

import json
import re

import pytest
import tritonclient.grpc

from lib import models, process, snippets
from lib.server import ROOT, SLOW, Server
from lib.wire import tensor

SECONDS = re.compile(r"\d+\.\d{6}")


def fill(folder):
    models.identity(folder, "plain", [("IN", "INT32", [-1])])
    models.identity(folder, "cached", [("IN", "INT32", [-1])],
                    extra="response_cache { enable: true }\n")


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A function: the line of what ask(server) does."""
    file = tmp_path_factory.mktemp("log") / "inference.log"
    text = snippets.read("access-log").replace(
        "/var/log/nginx/inference.log", str(file))
    # the test's nginx has "access_log off" in its http{}
    head, last = text.split("\naccess_log ")
    with Server(fill, http=head
                + "    inference_response_cache local size=4m;\n",
                server=f"access_log {last}", http2=True,
                parts="health metadata infer") as server:
        def line(ask):
            lines = file.read_text().splitlines() if file.exists() else []
            ask(server)

            def added():
                return file.exists() and file.read_text().splitlines()[
                    len(lines):]
            return json.loads(process.wait_until(added, 10 * SLOW)[0])
        # lines of the requests at the start may come after their answers
        infer("plain", id="first")(server)
        assert process.wait_until(
            lambda: file.exists() and '"first"' in file.read_text(), 10 * SLOW)
        yield line


def infer(model, value=1, **more):
    return lambda server: server.infer(model, {"inputs": [
        tensor("IN", "INT32", [1], [value])], **more})


def test_an_inference(logged):
    line = logged(infer("plain", id="x"))
    assert (line["model"], line["version"], line["verb"], line["id"],
            line["inference_status"], line["error"]) \
        == ("plain", "1", "infer", "x", "OK", "")
    assert (line["backend"], line["instance"], line["device"],
            line["batch_size"], line["tries"], line["responses"],
            line["cache"], line["grpc_status"]) \
        == ("identity", "plain_0_0", "cpu", "1", "1", "1", "", "")
    assert line["status"] == 200
    assert line["request_bytes"] > 100 and line["sent_bytes"] > 100
    for name in ("queue", "compute", "compute_input", "compute_output",
                 "first_response"):
        assert SECONDS.fullmatch(line[f"{name}_time"]), (name, line)
    assert float(line["compute_input_time"]) \
        + float(line["compute_output_time"]) <= float(line["compute_time"])
    assert float(line["queue_time"]) + float(line["compute_time"]) \
        <= float(line["first_response_time"])


def test_the_response_cache(logged):
    assert logged(infer("cached"))["cache"] == "MISS"
    line = logged(infer("cached"))
    assert (line["cache"], line["tries"], line["responses"]) \
        == ("HIT", "0", "1")
    assert line["device"] == line["compute_input_time"] == ""
    assert SECONDS.fullmatch(line["first_response_time"])


def test_what_fails(logged):
    line = logged(infer("ghost"))
    assert line["status"] == 404 and "ghost" in line["error"]
    assert line["first_response_time"] == ""
    line = logged(lambda server: server.infer("plain", {"inputs": [
        tensor("IN", "FP32", [1], [1])]}))
    assert line["status"] == 400 and line["responses"] == "0"
    assert "FP32" in line["error"]


def test_a_call_of_grpc(logged):
    def ask(server):
        with tritonclient.grpc.InferenceServerClient(
                f"127.0.0.1:{server.port2}") as client:
            client.get_server_metadata()
    line = logged(ask)
    assert line["grpc_status"] == "0" and line["verb"] == "metadata"


def test_a_line_that_a_client_would_write(logged):
    line = logged(infer("plain", id='","status":999,"x":"\n'))
    assert line["status"] == 200


def test_it_has_all_variables():
    """Those of docs/variables.md that say something of a request."""
    text = (ROOT / "conf.d/access-log.conf").read_text()
    known = re.findall(r"^### \$(inference_\w+)$", (
        ROOT / "docs/variables.md").read_text(), re.M)
    assert set(known) - set(re.findall(r"\$(inference_\w+)", text)) \
        == {"inference_digest"}
