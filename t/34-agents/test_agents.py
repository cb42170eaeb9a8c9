"""Models that go through repository agents before they are loaded."""

import hashlib
import json
import os
import re
import signal

import pytest
from onnx import TensorProto, helper

from lib import models, process
from lib.server import BUILD, SLOW
from lib.wire import tensor

OURS = BUILD / "agents"
TESTS = BUILD / "t-agents"
HTTP = f"    inference_agents {TESTS};\n    inference_agents {OURS};\n"

ONE = {"inputs": [tensor("IN", "FP32", [2], [1.5, -2])]}
HELPER_KILLED = r"process \d+ exited on signal 9"


def agent(name, **parameters):
    """One agent of a chain; a parameter's name may need more than letters."""
    entries = ", ".join(f'{{ key: "{k}" value: "{v}" }}'
                        for k, v in parameters.items())
    return f'{{ name: "{name}" parameters [ {entries} ] }}'


def chain(*agents):
    return f"model_repository_agents {{ agents [ {', '.join(agents)} ] }}\n"


def checksum(**digests):
    return chain(agent("checksum", **digests))


def model(repository, name, agents="", versions=(1,)):
    return models.identity(repository, name, [("IN", "FP32", [-1])],
                           versions=versions, extra=agents)


def serves(server, name):
    answer = server.infer(name, ONE)
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [1.5, -2]


def is_away(server, name="bad"):
    assert process.wait_until(
        lambda: server.status(f"/v2/models/{name}/ready") in (400, 404),
        10 * SLOW)
    answer = server.infer(name, ONE)
    assert answer.status in (400, 404, 503), answer
    assert name in answer.error


def trace_env(path):
    """path: what record writes."""
    return [f'"INF_T_AGENT_TRACE={path}"']


def md5(data):
    return hashlib.md5(data).hexdigest()


# ---- the checksum agent

def with_file(repository, name, expected, algorithm="MD5"):
    folder = model(repository, name, checksum(
        **{f"{algorithm}:1/weights.bin": expected}))
    (folder / "1/weights.bin").write_bytes(b"weights")
    return folder


@pytest.mark.parametrize("algorithm,name", [
    ("MD5", "md5"), ("md5", "md5"), ("SHA256", "sha256")])
def test_right_checksum_serves(make_server, algorithm, name):
    digest = hashlib.new(name, b"weights").hexdigest()
    server = make_server(
        lambda r: with_file(r, "checked", digest, algorithm), http=HTTP)
    serves(server, "checked")


def test_checksum_agent_is_found_without_a_directive(make_server):
    server = make_server(lambda r: with_file(r, "checked", md5(b"weights")))
    serves(server, "checked")


@pytest.mark.parametrize("size", [0, 55, 56, 63, 64, 65, 1000, 200_001])
def test_checksums_agree_with_pythons(make_server, size):
    data = os.urandom(size)

    def fill(repository):
        folder = model(repository, "checked", checksum(**{
            "MD5:1/a": md5(data),
            "SHA256:1/a": hashlib.sha256(data).hexdigest()}))
        (folder / "1/a").write_bytes(data)

    serves(make_server(fill, http=HTTP), "checked")


def test_wrong_checksum_keeps_one_model_away(make_server):
    def fill(repository):
        model(repository, "good")
        with_file(repository, "checked", md5(b"weights"))
        with_file(repository, "bad", md5(b"others"))

    server = make_server(fill, wait="live", http=HTTP)
    server.wait_log(
        'model "bad" is not loaded: Mismatched MD5 '
        "hash for file 1/weights.bin, expect: " + md5(b"others")
        + ", got: " + md5(b"weights"))
    for name in ("good", "checked"):
        assert server.wait_for(f"/v2/models/{name}/ready")
        serves(server, name)
    is_away(server)
    assert server.status("/v2/health/ready") != 200


@pytest.mark.parametrize("key,words", [
    ("1/weights.bin", "failed to parse key: 1/weights.bin"),
    ("CRC32:1/weights.bin", "Unsupported checksum algorithm: CRC32"),
    ("MD5:1/gone", "failed to open file 1/gone: No such file"),
    ("MD5:../good/config.pbtxt", "is outside the model's directory"),
])
def test_bad_checksum_parameter(make_server, key, words):
    def fill(repository):
        model(repository, "good")
        folder = model(repository, "bad", checksum(**{key: md5(b"weights")}))
        (folder / "1/weights.bin").write_bytes(b"weights")

    server = make_server(fill, wait="live", http=HTTP)
    server.wait_log(words)
    assert server.wait_for("/v2/models/good/ready")
    serves(server, "good")
    is_away(server)


# ---- agents that move the model

def onnx_add(amount):
    """Y = X + amount."""
    shape = ["n"]
    graph = helper.make_graph(
        [helper.make_node("Add", ["IN", "A"], ["OUT"])], "g",
        [helper.make_tensor_value_info("IN", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("OUT", TensorProto.FLOAT, shape)],
        [helper.make_tensor("A", TensorProto.FLOAT, [1], [amount])])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8).SerializeToString()


def onnx_config(name, agents):
    return (f'name: "{name}"\nbackend: "onnxruntime"\nmax_batch_size: 0\n'
            + models.io_block("input", [("IN", "FP32", [-1])])
            + models.io_block("output", [("OUT", "FP32", [-1])])
            + agents)


def encrypted(repository, name="secret", *more, key=90, versions=(1,)):
    """Version v adds v; nothing in the repository is an ONNX file."""
    agents = chain(agent("xor", key=str(key)), *more)
    return models.write_model(
        repository, name, onnx_config(name, agents), versions,
        {v: {"model.onnx.xor": bytes(b ^ key for b in onnx_add(v))}
         for v in versions})


def adds(server, amount, name="secret", version=""):
    answer = server.infer(name, ONE, version=version)
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [1.5 + amount, amount - 2]


def temp_folders(folder):
    return sorted(folder.glob("inference-model-*"))


@pytest.fixture
def temp(tmp_path):
    tmp_path.chmod(0o755)
    path = tmp_path / "temp"
    path.mkdir()
    path.chmod(0o1777)
    return path


def test_decrypted_model_serves_and_goes(make_server, temp):
    server = make_server(encrypted, http=HTTP,
                         inference_env=[f"TMPDIR={temp}"])
    adds(server, 1)
    (folder,) = temp_folders(temp)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "1/model.onnx").is_file()
    server.stop()
    assert temp_folders(temp) == []


def test_every_version_of_a_decrypted_model_serves(make_server):
    def fill(repository):
        folder = encrypted(repository, versions=(2, 5, 9))
        config = folder / "config.pbtxt"
        config.write_text(config.read_text()
                          + "version_policy { all {} }\n")

    server = make_server(fill, http=HTTP)
    for version in (2, 5, 9):
        adds(server, version, version=str(version))
    adds(server, 9)


def test_next_agent_checks_what_the_last_decrypted(make_server):
    good = agent("checksum", **{"MD5:1/model.onnx": md5(onnx_add(1))})
    wrong = agent("checksum", **{"MD5:1/model.onnx": md5(onnx_add(2))})

    def fill(repository):
        encrypted(repository, "secret", good)
        encrypted(repository, "bad", wrong)

    server = make_server(fill, wait="live", http=HTTP)
    server.wait_log("Mismatched MD5 hash for file 1/model.onnx")
    assert server.wait_for("/v2/models/secret/ready")
    adds(server, 1)
    is_away(server)


def test_killed_core_leaves_no_decrypted_model(make_server, temp):
    server = make_server(encrypted, http=HTTP,
                         inference_env=[f"TMPDIR={temp}"],
                         allow_alarms=[HELPER_KILLED])
    (before,) = temp_folders(temp)
    os.kill(server.core(), signal.SIGKILL)
    assert process.wait_until(
        lambda: temp_folders(temp) not in ([], [before])
        and not before.exists(), 20 * SLOW)
    assert server.wait_for("/v2/models/secret/ready")
    adds(server, 1)
    server.stop()
    assert temp_folders(temp) == []


@pytest.mark.parametrize("extra,seen", [("", True), ("max_batch_size: 4\n",
                                                     False)])
def test_configuration_at_the_new_place_is_used(make_server, tmp_path, extra,
                                                seen):
    """Where there is one; else that of the repository stays."""
    tmp_path.chmod(0o755)
    other = tmp_path / "elsewhere"
    models.identity(tmp_path, "elsewhere", [("IN", "FP32", [-1])])
    if seen:
        (other / "config.pbtxt").unlink()
    else:
        text = (other / "config.pbtxt").read_text()
        (other / "config.pbtxt").write_text(
            text.replace('"elsewhere"', '"moved"')
            .replace("max_batch_size: 0\n", extra))

    server = make_server(
        lambda r: model(r, "moved", chain(agent("record", goto=other))),
        http=HTTP)
    config = server.get("/v2/models/moved/config").json()
    assert config["max_batch_size"] == (0 if seen else 4)
    assert ("model_repository_agents" in config) == seen
    if seen:
        serves(server, "moved")


# ---- what agents hear

def heard(path):
    return path.read_text().splitlines() if path.exists() else []


def test_agents_hear_of_a_whole_life(make_server, temp):
    trace = temp / "trace"
    server = make_server(
        lambda r: model(r, "m", chain(agent("record", tag="a"),
                                      agent("record", tag="b", acquire="1"))),
        http=HTTP, inference_env=trace_env(trace) + [f"TMPDIR={temp}"])
    place = server.models / "m"
    (folder,) = temp_folders(temp)
    begin = ["Initialize", "a ModelInitialize", f"a LOAD {place}",
             "b ModelInitialize", f"b LOAD {place}", f"b acquired {folder}",
             f"b LOAD_COMPLETE {place}", f"a LOAD_COMPLETE {place}"]
    assert process.wait_until(lambda: heard(trace) == begin, 10 * SLOW), \
        heard(trace)
    serves(server, "m")
    server.stop()
    assert heard(trace)[len(begin):] == [
        f"a UNLOAD {place}", f"b UNLOAD {place}",
        f"b UNLOAD_COMPLETE {place}", f"a UNLOAD_COMPLETE {place}",
        "b ModelFinalize", "a ModelFinalize", "Finalize"]
    assert temp_folders(temp) == []


def test_agents_hear_that_the_model_failed_to_load(make_server, temp):
    trace = temp / "trace"

    def fill(repository):
        folder = model(repository, "bad", chain(agent("record", tag="a"),
                                                agent("record", tag="b")))
        (folder / "config.pbtxt").write_text(
            (folder / "config.pbtxt").read_text().replace(
                'backend: "identity"', 'backend: "nowhere"'))

    server = make_server(fill, wait="live", http=HTTP,
                         inference_env=trace_env(trace))
    place = server.models / "bad"
    server.wait_log("backend library for backend 'nowhere'")
    assert process.wait_until(
        lambda: heard(trace)[-1:] == ["Finalize"], 10 * SLOW)
    assert heard(trace)[5:] == [
        f"b LOAD_FAIL {place}", f"a LOAD_FAIL {place}", "b ModelFinalize",
        "a ModelFinalize", "Finalize"]
    is_away(server)


def test_second_agent_fails_and_both_hear_it(make_server, temp):
    trace = temp / "trace"
    server = make_server(
        lambda r: model(r, "bad", chain(
            agent("record", tag="a"), agent("record", tag="b", fail="LOAD"),
            agent("record", tag="c"))),
        wait="live", http=HTTP, inference_env=trace_env(trace))
    place = server.models / "bad"
    server.wait_log("failing on purpose")
    assert process.wait_until(
        lambda: heard(trace)[-1:] == ["Finalize"], 10 * SLOW)
    assert heard(trace)[4:] == [
        f"b LOAD {place}", f"b LOAD_FAIL {place}", f"a LOAD_FAIL {place}",
        "b ModelFinalize", "a ModelFinalize", "Finalize"]
    is_away(server)


@pytest.mark.parametrize("call", ["LOAD_COMPLETE", "UNLOAD",
                                  "UNLOAD_COMPLETE", "ModelFinalize"])
def test_later_errors_are_only_logged(make_server, call):
    server = make_server(
        lambda r: model(r, "m", chain(agent("record", fail=call))), http=HTTP)
    serves(server, "m")
    if call == "LOAD_COMPLETE":
        server.wait_log(f"model=m repo agent 'record': {call} goes on after "
                        "an error: failing on purpose")


def test_every_function_answers_as_it_should(make_server):
    server = make_server(
        lambda r: model(r, "m", chain(agent("functions", one="1", two="2"))),
        http=HTTP)
    serves(server, "m")
    texts = []
    check_log = server.check_log

    def read_and_check():
        texts.append(server.log_text())
        check_log()

    server.check_log = read_and_check       # the log goes with the server
    server.stop()
    assert "expected: " not in texts[-1]


# ---- loads and unloads by request

def explicit(make_server, fill, env=()):
    return make_server(
        fill, parts="health metadata config infer repository",
        http=HTTP + "    inference_model_control explicit;\n",
        inference_env=env)


def ask(server, verb, name, body=b"{}"):
    return server.post(f"/v2/repository/models/{name}/{verb}", body)


def index(server, name):
    rows = json.loads(server.post("/v2/repository/index", b"").body)
    return [row for row in rows if row["name"] == name]


def test_load_by_request_is_rejected_until_the_file_is_right(make_server):
    server = explicit(make_server,
                      lambda r: with_file(r, "m", md5(b"weights")))
    file = server.models / "m/1/weights.bin"
    file.write_bytes(b"wrong")
    answer = ask(server, "load", "m")
    assert answer.status == 500, answer
    assert "failed to load 'm', failed to poll from model repository" \
        in answer.error
    (row,) = index(server, "m")
    assert row["state"] == "UNAVAILABLE"
    assert "Mismatched MD5 hash for file 1/weights.bin" in row["reason"]
    is_away(server, "m")

    file.write_bytes(b"weights")
    assert ask(server, "load", "m").status == 200
    serves(server, "m")

    file.write_bytes(b"changed")
    assert ask(server, "load", "m").status == 500
    serves(server, "m")                 # the files it was loaded from
    (row,) = index(server, "m")
    assert row["state"] == "READY" and "Mismatched" in row["reason"]


def test_reload_of_a_decrypted_model(make_server, temp):
    server = explicit(make_server, encrypted, [f"TMPDIR={temp}"])
    assert temp_folders(temp) == []
    assert ask(server, "load", "secret").status == 200
    adds(server, 1)
    (first,) = temp_folders(temp)

    data = bytes(b ^ 90 for b in onnx_add(7))
    (server.models / "secret/1/model.onnx.xor").write_bytes(data)
    assert ask(server, "load", "secret").status == 200
    adds(server, 7)
    assert process.wait_until(
        lambda: first not in temp_folders(temp), 20 * SLOW)
    assert len(temp_folders(temp)) == 1

    assert ask(server, "unload", "secret").status == 200
    assert process.wait_until(lambda: temp_folders(temp) == [], 20 * SLOW)
    is_away(server, "secret")


def test_agents_hear_of_loads_by_request(make_server, temp):
    trace = temp / "trace"
    server = explicit(
        make_server, lambda r: model(r, "m", chain(agent("record"))),
        trace_env(trace))
    place = server.models / "m"
    loaded = ["Initialize", "ModelInitialize", f"LOAD {place}",
              f"LOAD_COMPLETE {place}"]
    gone = [f"UNLOAD {place}", f"UNLOAD_COMPLETE {place}", "ModelFinalize",
            "Finalize"]
    expected = []
    for _ in range(2):
        assert ask(server, "load", "m").status == 200
        assert ask(server, "load", "m").status == 200       # nothing changed
        expected += loaded
        assert process.wait_until(lambda: heard(trace) == expected,
                                  10 * SLOW), heard(trace)
        serves(server, "m")
        assert ask(server, "unload", "m").status == 200
        expected += gone
        assert process.wait_until(lambda: heard(trace) == expected,
                                  10 * SLOW), heard(trace)


# ---- agents that can't be used

BAD = {
    "gone": ([agent("gone")], r"unable to find 'libtritonrepoagent_gone\.so' "
             r"for repo agent 'gone', searched: "),
    "path": ([agent("../agents/checksum")], "not a path"),
    "no action": ([agent("no_action")], "TRITONREPOAGENT_ModelAction"),
    "version": ([agent("newer")], r"needs version 0\.2, the core has 0\.1"),
    "initialize": ([agent("no_initialize")], "not today"),
    "model": ([agent("record", fail="ModelInitialize")],
              "failing on purpose"),
    "load": ([agent("record", fail="LOAD")], "failing on purpose"),
    "exception": ([agent("throws")], "TRITONREPOAGENT_ModelAction[^\\n]* "
                  "std::runtime_error: thrown on purpose"),
    "garbage": ([agent("record", goto="\\001\\377 /no/where")],
                "left the model at"),
    "relative": ([agent("record", goto="no/where")], "left the model at"),
    "file": ([agent("record", goto="/etc/passwd")], "that is not a directory"),
    "remote": ([agent("record", remote="as://account")],
               "left the model at 'as://account'"),
    "empty folder": ([agent("record", goto="/proc/self/net")], "version"),
}


@pytest.mark.parametrize("kind", BAD)
def test_agent_that_cannot_be_used(make_server, kind):
    agents, words = BAD[kind]

    def fill(repository):
        model(repository, "good")
        with_file(repository, "checked", md5(b"weights"))
        model(repository, "bad", chain(*agents))

    server = make_server(fill, wait="live", http=HTTP)
    server.wait_log(r'model "bad" is not loaded: [^\n]*' + words)
    for name in ("good", "checked"):
        assert server.wait_for(f"/v2/models/{name}/ready")
        serves(server, name)
    is_away(server)


def test_a_missing_agent_is_the_reason_of_the_index(make_server):
    server = explicit(make_server,
                      lambda r: model(r, "m", chain(agent("gone"))))
    assert ask(server, "load", "m").status == 500
    (row,) = index(server, "m")
    assert row["state"] == "UNAVAILABLE"
    assert row["reason"].startswith("unable to find "
                                    "'libtritonrepoagent_gone.so' for repo "
                                    "agent 'gone', searched: "), row


def test_library_that_is_rubbish(make_server, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk/libtritonrepoagent_junk.so").write_bytes(b"\x7fELF x")

    def fill(repository):
        model(repository, "good")
        model(repository, "bad", chain(agent("junk")))

    server = make_server(fill, wait="live",
                         http=f"    inference_agents {tmp_path};\n")
    server.wait_log("libtritonrepoagent_junk.so")
    assert server.wait_for("/v2/models/good/ready")
    serves(server, "good")
    is_away(server)


def test_agent_that_crashes_is_tried_twice(make_server, temp):
    trace = temp / "trace"

    def fill(repository):
        model(repository, "good")
        model(repository, "bad", chain(agent("record", crash="LOAD")))

    server = make_server(fill, wait="", http=HTTP,
                         inference_env=trace_env(trace),
                         allow_alarms=["exited on signal"])
    server.wait_log(r'model "bad" is not loaded: [^\n]*the core died 2 times '
                    "while this model was loading", 60)
    assert server.wait_for("/v2/models/good/ready", 60)
    serves(server, "good")
    is_away(server)
    assert heard(trace).count(f"LOAD {server.models / 'bad'}") == 2


# ---- nginx -t

def test_check_leaves_a_model_to_its_agents(make_server):
    """Files that they will bring can't be missed yet; a file that can't be
    read can."""
    server = make_server(encrypted, start=False,
                         http="    inference_check strict;\n" + HTTP)
    status, output = server.check_config()
    assert status == 0, output
    assert "secret" not in output


def test_check_misses_the_library_of_an_agent(make_server):
    def fill(repository):
        model(repository, "bad", chain(agent("checksum"), agent("gone"),
                                       agent("../up")))

    server = make_server(fill, start=False, http=HTTP)
    status, output = server.check_config()
    assert status == 0, output
    line = len((server.models / "bad/config.pbtxt").read_text().splitlines())
    for words in ("unable to find 'libtritonrepoagent_gone.so'",
                  "not a path"):
        assert re.search(
            rf"\[warn\][^\n]*{words}[^\n]*bad/config\.pbtxt:{line}:\d+: "
            r"model_repository_agents\.agents\[\d\]\.name\)", output), output
    assert "checksum" not in output


def test_check_still_reads_the_list_of_agents(make_server):
    server = make_server(
        lambda r: model(r, "bad", chain('{ nmae: "checksum" }')),
        start=False, http="    inference_check strict;\n")
    status, output = server.check_config()
    assert status != 0
    assert "bad/config.pbtxt:" in output and "nmae" in output
