"""Backends that break the rules, and files that are no backends."""

import concurrent.futures
import os
import shutil
import struct

import pytest

from lib import backends, models, process
from lib.server import BACKENDS, SLOW
from lib.wire import tensor

ONE = {"inputs": [tensor("IN", "FP32", [4], [1, 2, 3, 4])]}
HELPER_KILLED = r"exited on signal|exited with code"


@pytest.fixture(scope="session")
def bad_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backends")
    folder.chmod(0o755)
    backends.build_bad(folder)
    return folder


@pytest.fixture
def start(make_server, tmp_path):
    def make(folder, word="", wait="live", setting="", backend="bad", **kw):
        def fill(repository):
            models.identity(repository, "good", [("IN", "FP32", [-1])])
            models.identity(repository, "broken", [("IN", "FP32", [-1])],
                            backend=backend,
                            parameters={"bad": word} if word else None)

        http = f"    inference_backends {folder};"
        if setting:
            http += f"    inference_backend_config bad bad={setting};"
        return make_server(fill, wait=wait, http=http, **kw)
    return make


def good(server):
    answer = server.infer("good", ONE)
    return answer.status == 200 \
        and answer.json()["outputs"][0]["data"] == [1, 2, 3, 4]


def check_not_loaded(server, *words):
    """Each word is in the model's line of the log; the rest serves."""
    for word in words:
        server.wait_log(f"model=broken .*failed to load: .*{word}")
    assert server.wait_for("/v2/models/good/ready")
    core = server.core()
    assert server.get("/v2/models/broken/ready").status in (404, 503)
    assert server.infer("broken", ONE).status in (400, 404, 503)
    assert good(server)
    assert server.core() == core


# ---- the library itself

def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def damaged(kind, whole):
    if kind == "text":
        return b"this is a text, not a library\n" * 100, "it is no ELF file"
    if kind == "empty":
        return b"", "it is empty"
    if kind == "one-byte":
        return whole[:1], "it is no ELF file"
    if kind == "magic-only":
        return whole[:4], "it is cut short"
    if kind == "header-only":
        return whole[:64], "it is cut short"
    if kind == "half":
        return whole[:len(whole) // 4], "it is cut short"
    if kind == "machine":
        return whole[:18] + struct.pack("<H", 40) + whole[20:], \
            "built for another kind of machine"
    if kind == "class":
        return whole[:4] + b"\1" + whole[5:], \
            "built for another kind of machine"
    if kind == "executable":
        return whole[:16] + struct.pack("<H", 2) + whole[18:], \
            "no shared library"
    if kind == "zeros":
        return whole[:768] + bytes(len(whole) - 768), "names no symbols"
    assert kind == "no-segments"
    return whole[:56] + b"\0\0" + whole[58:], "program headers"


@pytest.mark.parametrize("kind", [
    "text", "empty", "one-byte", "magic-only", "header-only", "half",
    "machine", "class", "executable", "no-segments", "zeros"])
def test_damaged_library(start, bad_folder, tmp_path, kind):
    whole = (bad_folder / "bad/libtriton_bad.so").read_bytes()
    data, words = damaged(kind, whole)
    write(tmp_path / "bad/libtriton_bad.so", data)
    tmp_path.chmod(0o755)
    check_not_loaded(start(tmp_path), 'cannot load backend "bad"',
                     "libtriton_bad.so", words)


@pytest.mark.parametrize("kind", ["directory", "dangling", "pipe", "absent"])
def test_no_library_at_all(start, tmp_path, kind):
    path = tmp_path / "bad/libtriton_bad.so"
    path.parent.mkdir()
    if kind == "directory":
        path.mkdir()
    elif kind == "dangling":
        path.symlink_to("/nonexistent/libtriton_bad.so")
    elif kind == "pipe":
        os.mkfifo(path)
    check_not_loaded(start(tmp_path), "unable to find backend library for"
                     " backend 'bad'", "broken", str(tmp_path / "bad"))


def test_link_out_of_the_folder(make_server, bad_folder, tmp_path):
    """A library that the configuration names must not lead out by a link."""
    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        folder = models.identity(repository, "broken", [("IN", "FP32", [-1])],
                                 backend="bad", extra='runtime: "my.so"\n')
        (folder / "1/my.so").symlink_to(
            bad_folder / "bad/libtriton_bad.so")

    server = make_server(fill, wait="live",
                         http=f"    inference_backends {bad_folder};")
    check_not_loaded(server, "my.so", "escapes backend directory")


@pytest.mark.parametrize("runtime", ["../bad.so", "/etc/passwd", "a/../../b"])
def test_runtime_out_of_the_folder(make_server, bad_folder, runtime):
    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        models.identity(repository, "broken", [("IN", "FP32", [-1])],
                        backend="bad", extra=f'runtime: "{runtime}"\n')

    server = make_server(fill, wait="live",
                         http=f"    inference_backends {bad_folder};")
    check_not_loaded(server, "escapes backend directory")


@pytest.mark.parametrize("defines,words", [
    (["BAD_NO_EXECUTE"],
     ["unable to find required entrypoint"
      " 'TRITONBACKEND_ModelInstanceExecute'"]),
    (["BAD_UNDEFINED"], ["undefined symbol: TRITONBACKEND_NoSuchFunction"]),
    (["BAD_MAJOR=2"], ["compiled for version 2.19 of the interface"]),
    (["BAD_MINOR=99"], ["compiled for version 1.99 of the interface, the"
                        " core has 1"])],
    ids=["no-execute", "undefined", "major", "minor"])
def test_library_of_another_kind(start, tmp_path, defines, words):
    backends.build_bad(tmp_path, defines=defines)
    tmp_path.chmod(0o755)
    check_not_loaded(start(tmp_path), 'cannot load backend "bad"', *words)


# ---- while it loads

@pytest.mark.parametrize("word,words", [
    ("initialize-error", ["no licence was found"]),
    ("initialize-throw", ["TRITONBACKEND_Initialize of 'bad' threw an"
                          " exception, std::runtime_error: thrown by"
                          " Initialize"])])
def test_backend_that_fails_to_initialize(start, bad_folder, word, words):
    server = start(bad_folder, setting=word)
    check_not_loaded(server, 'cannot load backend "bad"', *words)


@pytest.mark.parametrize("word,words", [
    ("unknown-kind", "ready after"),
    ("endless-group", "failed to load: .*instances")])
def test_backend_that_prefers_nonsense(make_server, bad_folder, word, words):
    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        models.write_model(
            repository, "broken", 'backend: "bad"\n'
            + models.io_block("input", [("IN", "FP32", [-1])])
            + models.io_block("output", [("OUT", "FP32", [-1])]))

    server = make_server(
        fill, wait="live", http=f"    inference_backends {bad_folder};"
        f"    inference_backend_config bad bad={word};")
    server.wait_log(f"model=broken .*{words}")
    assert server.wait_for("/v2/models/good/ready")
    assert good(server)


@pytest.mark.parametrize("word", ["attribute-throw", "finalize-throw"])
def test_throw_that_does_no_harm(start, bad_folder, word):
    server = start(bad_folder, setting=word, wait="ready")
    assert server.infer("broken", ONE).status == 200
    assert good(server)
    server.stop()
    if word == "finalize-throw":
        assert "threw an exception, std::logic_error: thrown by Finalize" \
            in server.log_text() or not server.log.exists()


@pytest.mark.parametrize("word,words", [
    ("model-throw", ["TRITONBACKEND_ModelInitialize of 'bad' threw an"
                     " exception, std::invalid_argument: thrown by"
                     " ModelInitialize"]),
    ("model-throw-number", ["ModelInitialize of 'bad' threw an exception,"
                            " int"]),
    ("instance-throw", ["instance 'broken_0_0'",
                        "TRITONBACKEND_ModelInstanceInitialize of 'bad'"
                        " threw"]),
    ("malformed-config", ["max_batch_size: expected a value"]),
    ("empty-config", ["that backend 'bad' sets for model 'broken': expected"
                      " an object"]),
    ("unknown-field", ["max_batch_sighs"]),
    ("deep-config", ["that backend 'bad' sets for model 'broken'"]),
    ("absurd-config", ["broken"]),
    ("absurd-memory", ["memory usage of model 'broken': unknown memory type"
                       " 77"])])
def test_model_that_fails_to_load(start, bad_folder, word, words):
    check_not_loaded(start(bad_folder, word), *words)


@pytest.mark.parametrize("word", ["model-finalize-throw",
                                  "instance-finalize-throw"])
def test_throw_of_a_finalizer_ends_nothing(start, bad_folder, word):
    server = start(bad_folder, word, wait="ready")
    assert server.infer("broken", ONE).status == 200
    server.stop()


def test_throw_of_ready_means_no(start, bad_folder):
    server = start(bad_folder, "ready-throw")
    assert server.wait_for("/v2/models/good/ready")
    core = server.core()
    assert server.get("/v2/models/broken/ready").status in (400, 503)
    assert good(server)
    assert server.core() == core


def test_throw_of_a_constructor_counts_as_a_crash(start, tmp_path):
    backends.build_bad(tmp_path, defines=["BAD_CONSTRUCTOR"])
    tmp_path.chmod(0o755)
    server = start(tmp_path, wait="", allow_alarms=[HELPER_KILLED])
    assert server.wait_for("/v2/models/good/ready", 60)
    server.wait_log("died of signal 6 .* while model=broken version=1 was"
                    " loading; it is quarantined now", 30)
    assert process.wait_until(lambda: good(server), 20 * SLOW)
    server.wait_log("model=broken .*failed to load: the core died 2 times")


# ---- while it executes

def served(start, folder, word, **kw):
    server = start(folder, word, wait="ready", **kw)
    return server, server.core()


@pytest.mark.parametrize("word,words", [
    ("execute-throw", "TRITONBACKEND_ModelInstanceExecute of 'bad' threw an"
     " exception, std::runtime_error: thrown by Execute"),
    ("execute-throw-number", "threw an exception, int"),
    ("no-response", "backend 'bad' of model 'broken' released the request"
     " without a final response"),
    ("unknown-output", "unexpected inference output 'NOBODY' for model"
     " 'broken'"),
    ("deep-shape", "output 'OUT' has 100 dimensions"),
    ("no-datatype", "output 'OUT' has unknown datatype 99"),
    ("invalid-datatype", "output 'OUT' that backend 'bad' made for model"
     " 'broken' has no datatype"),
    ("negative-shape", "output 'OUT' that backend 'bad' made for model"
     " 'broken' has a negative dimension: FP32, shape [-1], 16 bytes"),
    ("huge-shape", "output 'OUT' that backend 'bad' made for model"
     " 'broken' has more elements than can be counted"),
    ("short-data", "output 'OUT' that backend 'bad' made for model"
     " 'broken' has less data than its shape says: FP32, shape [4], 4 bytes"),
    ("long-data", "output 'OUT' that backend 'bad' made for model"
     " 'broken' has more data than its shape says"),
    ("no-buffer", "output 'OUT' that backend 'bad' made for model"
     " 'broken' has no buffer"),
    ("huge-data", "OUT"),
    ("large-data", "OUT"),
    ("broken-bytes", "OUT"),
    ("binary-error", 'not ?? a text " \\'),
    ("binary-parameter", "parameter 0 that backend 'bad' gave the response of"
     " model 'broken' is not UTF-8")])
def test_request_fails_with_the_reason(start, bad_folder, word, words):
    server, core = served(start, bad_folder, word)
    for _ in range(3):
        answer = server.infer("broken", ONE)
        assert answer.status in (400, 500, 503), answer
        assert words in answer.error, answer.error
        assert good(server)
    assert server.core() == core


@pytest.mark.parametrize("word,line", [
    ("throw-after-answer", "threw|failed an execution"),
    ("error-after-answer", ""),
    ("throw-after-release", "failed an execution after it had released 1 of"),
    ("error-after-release", "failed an execution after it had released 1 of"),
    ("final-twice", "after the final one; it is dropped"),
    ("after-final", "after the final one; it is dropped"),
    ("send-twice", "a response is sent a second time"),
    ("release-flags", "released once")])
def test_request_is_answered_in_spite_of_it(start, bad_folder, word, line):
    server, core = served(start, bad_folder, word)
    for _ in range(3):
        answer = server.infer("broken", ONE)
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] == [0, 0, 0, 0]
        assert good(server)
    if line and "threw" not in line:
        server.wait_log(line)
    assert server.core() == core


def test_output_twice_is_the_backends_business(start, bad_folder):
    server, core = served(start, bad_folder, "output-twice")
    answer = server.infer("broken", ONE)
    assert answer.status in (200, 500), answer
    assert good(server)
    assert server.core() == core


def test_unreadable_library(make_server):
    """The core runs as the workers' user, who may not read the file."""
    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        folder = models.identity(repository, "broken",
                                 [("IN", "FP32", [-1])], backend="identity")
        library = folder / "1/libtriton_identity.so"
        shutil.copy(BACKENDS / "identity/libtriton_identity.so", library)
        library.chmod(0)

    server = make_server(fill, wait="live", user="nobody nogroup")
    check_not_loaded(server, "broken/1/libtriton_identity.so: cannot open"
                     " shared object file: Permission denied")


def test_throwing_under_load(start, bad_folder):
    server, core = served(start, bad_folder, "execute-throw")

    def one(i):
        if i % 2:
            return good(server)
        return server.infer("broken", ONE).status == 500

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(400)))
    assert server.core() == core


def test_private_copy_is_a_backend_of_its_own(make_server, bad_folder):
    """A bad copy in a model's directory spoils that model alone."""
    def fill(repository):
        models.identity(repository, "good", [("IN", "FP32", [-1])])
        folder = models.identity(repository, "broken",
                                 [("IN", "FP32", [-1])], backend="identity")
        shutil.copy(BACKENDS / "identity/libtriton_identity.so",
                    folder / "1/libtriton_identity.so")
        with open(folder / "1/libtriton_identity.so", "r+b") as f:
            f.truncate(5000)

    server = make_server(fill, wait="live")
    check_not_loaded(server, "broken/1/libtriton_identity.so",
                     "it is cut short")
