"""config.pbtxt: what is wrong is named, and hurts one model only."""

import re

import pytest

from lib import backends, models
from lib.server import BACKENDS
from lib.wire import tensor

HEAD = 'name: "bad"\nbackend: "identity"\n'
IO = ('input [ { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'
      'output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]\n')

# name: (text, line:column of the mistake or None, words of the message)
SYNTAX = {
    "unknown field": (HEAD + "colour: 5\n" + IO, "3:1", ["colour"]),
    "unknown field inside": (
        HEAD + "input [ {\n  name: \"IN\"\n  kind: 3\n} ]\n", "5:3",
        ["kind"]),
    "unknown enum value": (
        HEAD + 'input [ { name: "IN" data_type: TYPE_FP31 dims: [1] } ]\n',
        "3:33", ["data_type", "TYPE_FP31"]),
    "text for a number": (HEAD + 'max_batch_size: "8"\n' + IO, "3:17",
                          ["max_batch_size"]),
    "number for a text": ("name: 5\n" + IO, "1:7", ["name"]),
    "too large for 32 bit": (
        HEAD + "max_batch_size: 99999999999\n" + IO, "3:17",
        ["max_batch_size"]),
    "no value": (HEAD + "max_batch_size:\n", None, ["max_batch_size"]),
    "missing bracket": (HEAD + "input [ { name: \"IN\" }\n", None, []),
    "missing quote": ('name: "bad\n', r"1:\d+", []),
    "colon missing": (HEAD + "max_batch_size 8\n" + IO, None, []),
    "rubbish": ("%%%\n", "1:1", []),
    "field twice": (HEAD + 'name: "bad"\n' + IO, "3:1", ["name"]),
    "binary": (b"\0\1\2\xff", "1:1", []),
}

# what is missing has the place of what it is missing from; the end of a key
SEMANTICS = {
    "no backend": ('name: "bad"\n' + IO, "1:1", "backend", ["bad"]),
    "wrong name": ('\n name: "good"\nbackend: "identity"\n' + IO, "2:2",
                   "name", ["good"]),
    "negative batch": (HEAD + "max_batch_size: -1\n" + IO, "3:1",
                       "max_batch_size", ["-1"]),
    "input without a name": (
        HEAD + IO.replace('name: "IN"', ""), "3:9", r"input\[0\].name", []),
    "input without a type": (
        HEAD + IO.replace("data_type: TYPE_FP32", "", 1), "3:9",
        r"input\[0\].data_type", ["IN"]),
    "input without dims": (
        HEAD + IO.replace("dims: [ -1 ]", "", 1), "3:9",
        r"input\[0\].dims", ["IN"]),
    "dim of zero": (HEAD + IO.replace("-1", "0"), "3:51",
                    r"input\[0\].dims", ["0"]),
    "second output's dim below minus one": (
        HEAD + IO + 'input { name: "2ND" data_type: TYPE_INT8 dims: 1 }\n'
        'output {\n  name: "TWO" data_type: TYPE_INT8\n'
        "  dims: [ 1,\n          -2 ]\n}\n", "8:11",
        r"output\[1\].dims", ["TWO"]),
    "instances on the CPU with a GPU": (
        HEAD + IO + "instance_group { kind: KIND_CPU gpus: [ 0 ] }\n",
        r"5:\d+", r"instance_group\[0\].gpus", []),
}

# the backend's own name is no place in a file that is wrong in itself
BACKENDS_AWAY = {
    "backend that is not there": (
        'name: "bad"\nbackend: "nowhere"\n' + IO, ["nowhere"]),
    "backend with a slash": (
        'name: "bad"\nbackend: "../identity"\n' + IO, ["../identity"]),
}


def both(text):
    """A repository with a good model and the bad one."""
    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        folder = models.write_model(repository, "bad", None)
        data = text if isinstance(text, bytes) else text.encode()
        (folder / "config.pbtxt").write_bytes(data)
    return fill


def good_model_works(server, model="good"):
    assert server.wait_for(f"/v2/models/{model}/ready")
    answer = server.infer(model, {"inputs": [
        tensor("IN", "FP32", [2], [1, 2.5])]})
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [1, 2.5]


def bad_model_is_away(server, model="bad"):
    for path in ("", "/ready", "/config"):
        assert server.get(f"/v2/models/{model}{path}").status in (404, 503)
    answer = server.infer(model, {"inputs": []})
    assert answer.status in (404, 503), answer
    assert model in answer.error
    assert server.get("/v2/health/live").status == 200
    assert server.get("/v2/health/ready").status == 400


@pytest.mark.parametrize("name", SYNTAX)
def test_syntax_error_names_file_line_column_and_key(make_server, name):
    text, place, words = SYNTAX[name]
    server = make_server(both(text), wait="live")
    place = place or r"\d+:\d+"
    line = server.wait_log(rf"bad/config\.pbtxt:{place}:[^\n]*").group()
    for word in words:
        assert word in line
    good_model_works(server)
    bad_model_is_away(server)


@pytest.mark.parametrize("name", SEMANTICS)
def test_broken_rule_names_file_line_column_and_key(make_server, name):
    text, place, key, words = SEMANTICS[name]
    server = make_server(both(text), wait="live")
    line = server.wait_log(
        rf"\[error\][^\n]* \([^\n]*bad/config\.pbtxt:{place}: {key}[^\n]*"
    ).group()
    for word in words:
        assert word in line
    good_model_works(server)
    bad_model_is_away(server)


@pytest.mark.parametrize("name", BACKENDS_AWAY)
def test_missing_backend_names_model_and_backend(make_server, name):
    text, words = BACKENDS_AWAY[name]
    server = make_server(both(text), wait="live")
    line = server.wait_log(
        r"\[error\][^\n]*bad[^\n]*(failed to load|is not loaded)[^\n]*"
    ).group()
    for word in words:
        assert word in line
    good_model_works(server)
    bad_model_is_away(server)


def test_input_twice_is_a_warning(make_server):
    """As Triton: the first one counts."""
    twice = IO.replace("input [", 'input [ { name: "IN" data_type: '
                       "TYPE_FP32 dims: [ -1 ] },")
    server = make_server(both(HEAD + twice))
    server.wait_log(r"\[warn\][^\n]*'bad'[^\n]*'IN'[^\n]*more than once")
    good_model_works(server, "bad")


GOOD = {
    "commas and semicolons": (
        'name: "bad", backend: "identity"; max_batch_size: 0,\n' + IO),
    "braces without a colon, with one": (
        'name: "bad"\nbackend: "identity"\n'
        'input { name: "IN" data_type: TYPE_FP32 dims: -1 }\n'
        'output: < name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] >\n'),
    "comments and odd spaces": (
        "# a comment\n\tname :\"bad\"   # more\nbackend\n:\n'identity'\n"
        + IO + "# end"),
    "joined and escaped strings": (
        'name: "b" \'a\' "d"\nbackend: "ident\\x69ty"\n' + IO),
    "numbers in other bases": (
        'name: "bad" backend: "identity" max_batch_size: 0x0\n' + IO),
    "enum by number": (
        'name: "bad" backend: "identity"\n'
        'input [ { name: "IN" data_type: 11 dims: [ -1 ] } ]\n'
        'output [ { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]\n'),
    "a name that is left out": 'backend: "identity"\n' + IO,
    "boolean spellings": (
        'name: "bad" backend: "identity"\n' + IO
        + "optimization { input_pinned_memory { enable: True } "
          "output_pinned_memory { enable: f } }\n"),
    "windows line ends": (HEAD + IO).replace("\n", "\r\n"),
}


@pytest.mark.parametrize("name", GOOD)
def test_text_format_is_complete(make_server, name):
    """The model is called bad all the same: it must load."""
    server = make_server(both(GOOD[name]))
    good_model_works(server, "bad")


# ---- directories

def test_versions_and_odd_folders(make_server):
    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])],
                        versions=(1, 2, 10))
        for odd in ("007", "abc", "1x", "-3", ".hidden"):
            (repository / "good" / odd).mkdir()
        (repository / "not-a-model.txt").write_text("x")

    server = make_server(fill)
    assert server.get("/v2/models/good").json()["versions"] == ["10"]
    good_model_works(server)


@pytest.mark.parametrize("policy,versions", [
    ("latest { num_versions: 2 }", ["2", "10"]), ("all { }", ["1", "2", "10"]),
    ("specific { versions: [ 1 ] }", ["1"])])
def test_version_policy(make_server, policy, versions):
    server = make_server(lambda r: models.identity(
        r, "good", [("IN", "FP32", [-1])], versions=(1, 2, 10),
        extra=f"version_policy {{ {policy} }}\n"))
    assert server.get("/v2/models/good").json()["versions"] == versions


def test_model_without_a_version_folder(make_server):
    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        models.identity(repository, "bad", [("IN", "FP32", [-1])],
                        versions=("configs",))

    server = make_server(fill, wait="live")
    good_model_works(server)
    bad_model_is_away(server)


def test_same_model_in_two_repositories_is_not_served(make_server, tmp_path):
    tmp_path.chmod(0o755)
    other = tmp_path / "other"
    other.mkdir()
    for name in ("twice", "elsewhere"):
        models.identity(other, name, [("IN", "FP32", [-1])])

    def fill(repository):
        for name in ("twice", "good"):
            models.identity(repository, name, [("IN", "FP32", [-1])])

    server = make_server(fill, wait="live",
                         http=f"    inference_repository {other};")
    good_model_works(server)
    good_model_works(server, "elsewhere")
    bad_model_is_away(server, "twice")


# ---- backends that go wrong

def with_failing(word, count=1):
    folder = backends.build("failing")

    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        models.identity(repository, "bad", [("IN", "FP32", [-1])],
                        backend="failing", parameters={"fail": word})

    return fill, f"    inference_backends {folder};"


@pytest.mark.parametrize("word", ["initialize-error", "instance-error"])
def test_backend_that_rejects_its_model(make_server, word):
    fill, http = with_failing(word)
    server = make_server(fill, wait="live", http=http)
    server.wait_log("failing on purpose: see parameters")
    good_model_works(server)
    bad_model_is_away(server)


def test_backend_error_in_execute(make_server):
    fill, http = with_failing("execute-error")
    server = make_server(fill, http=http)
    one = {"inputs": [tensor("IN", "FP32", [1], [1])]}
    for _ in range(3):
        answer = server.infer("bad", one)
        assert answer.status == 500, answer
        assert "failing on purpose" in answer.error
    good_model_works(server)


def test_backend_that_answers_nothing(make_server):
    """It releases the request without a response: the deadline answers."""
    fill, http = with_failing("execute-silent")
    server = make_server(
        fill, http=http + " inference_timeout 500ms;")
    one = {"inputs": [tensor("IN", "FP32", [1], [1])]}
    for _ in range(3):
        answer = server.infer("bad", one)
        assert answer.status in (500, 503, 504), answer
        assert answer.error
    good_model_works(server)


def test_error_code_of_a_backend_becomes_a_status(make_server):
    fill, http = with_failing("nothing")
    server = make_server(fill, http=http)
    answer = server.infer("bad", {"inputs": [
        tensor("IN", "FP32", [1], [1])]})
    assert answer.status == 503, answer
    assert "closed for today" in answer.error


def test_library_that_cannot_be_loaded(make_server, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "rubbish").mkdir()
    (tmp_path / "rubbish/libtriton_rubbish.so").write_bytes(b"\x7fELF junk")

    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        models.identity(repository, "bad", [("IN", "FP32", [-1])],
                        backend="rubbish")

    server = make_server(fill, wait="live",
                         http=f"    inference_backends {tmp_path};")
    server.wait_log("libtriton_rubbish.so")
    good_model_works(server)
    bad_model_is_away(server)


def test_library_that_is_no_backend(make_server, tmp_path):
    """A shared library without the entry points."""
    tmp_path.chmod(0o755)
    import subprocess
    (tmp_path / "plain").mkdir()
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o",
                    tmp_path / "plain/libtriton_plain.so"], input=b"int x;",
                   check=True)

    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        models.identity(repository, "bad", [("IN", "FP32", [-1])],
                        backend="plain")

    server = make_server(fill, wait="live",
                         http=f"    inference_backends {tmp_path};")
    server.wait_log("TRITONBACKEND_ModelInstanceExecute")
    good_model_works(server)
    bad_model_is_away(server)


@pytest.mark.parametrize("where", ["global", "model", "version"])
def test_backend_library_search_order(make_server, where):
    """Version directory, then model directory, then the global one."""
    def fill(repository):
        folder = models.identity(repository, "own", [("IN", "FP32", [-1])],
                                 backend="mine")
        if where == "version":
            backends.copy_identity(folder / "1", "mine")
        elif where == "model":
            backends.copy_identity(folder, "mine")

    http = ""
    if where == "global":
        from lib.server import BUILD
        backends.copy_identity(BUILD / "t-backends/mine", "mine")
        http = f"    inference_backends {BUILD / 't-backends'};"
    server = make_server(fill, http=http)
    good_model_works(server, "own")


def test_two_backend_folders_first_hit_wins(make_server, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "identity").mkdir()
    (tmp_path / "identity/libtriton_identity.so").write_bytes(b"not this")
    server = make_server(
        lambda r: models.identity(r, "good", [("IN", "FP32", [-1])]),
        http=f"    inference_backends {tmp_path};")
    assert BACKENDS.is_dir()
    good_model_works(server)


def test_many_models_load(make_server):
    def fill(repository):
        for i in range(60):
            models.identity(repository, f"m{i:02}", [("IN", "FP32", [-1])],
                            instances=1 + i % 3)

    server = make_server(fill)
    for i in (0, 30, 59):
        good_model_works(server, f"m{i:02}")


def test_server_log_does_not_hold_alarms(make_server):
    server = make_server(both("rubbish {"), wait="live")
    server.wait_log("config.pbtxt")
    assert not re.search(r"\[(alert|emerg|crit)\]", server.log_text())
