"""Caches out of libraries: one that works, and all kinds that don't."""

import re
import shutil

import pytest

from lib import backends, caches, models
from lib.wire import tensor

CONFIG = ('name: "one"\nbackend: "counting"\n'
          + models.io_block("input", [("IN", "FP32", [-1])])
          + models.io_block("output", [("OUT", "FP32", [-1]),
                                       ("COUNT", "INT64", [1])])
          + "response_cache { enable: true }\n")


def start(make_server, trouble, settings="", folder=None, **more):
    folder = folder or caches.build(trouble)
    return make_server(
        lambda r: models.write_model(r, "one", CONFIG),
        backends=backends.build("counting"),
        http=f"    inference_cache_directory {folder};\n"
             f"    inference_response_cache {trouble} {settings};\n", **more)


def counts(server, *values):
    answers = [server.infer("one", {"inputs": [
        tensor("IN", "FP32", [1], [v])]}) for v in values]
    assert all(a.status == 200 for a in answers), answers
    return [{o["name"]: o["data"] for o in a.json()["outputs"]}["COUNT"][0]
            for a in answers]


def test_a_library_is_used(make_server):
    server = start(make_server, "none", 'size=64k "colour=a \\"b\\""')
    server.wait_log(re.escape(r'trouble: initialize {"size":"65536",'
                              r'"colour":"a \"b\""}'))
    assert counts(server, 1, 1, 2, 1) == [1, 1, 2, 1]


@pytest.mark.parametrize("size", ["100", "many"])
def test_a_size_of_a_library_may_be_any(make_server, size):
    """Of entries, for example."""
    server = start(make_server, "none", f"size={size}")
    server.wait_log(re.escape(f'trouble: initialize {{"size":"{size}"}}'))


@pytest.mark.parametrize("trouble,ended", [
    ("none", True), ("finalize", True), ("initialize", False),
    ("no_cache", False)])
def test_a_cache_is_finalized_if_there_is_one(make_server, tmp_path, trouble,
                                              ended):
    mark = tmp_path / "ended"
    server = start(make_server, trouble, inference_env=[f"TROUBLE_END={mark}"])
    counts(server, 1, 1)
    assert not mark.exists()
    server.stop()
    assert mark.exists() == ended


@pytest.mark.parametrize("trouble,text", [
    ("no_lookup", "unable to find required entrypoint"
     " 'TRITONCACHE_CacheLookup' in shared library .*no_lookup.so"),
    ("initialize", "the cache can't start on purpose"),
    ("no_cache", "its initialize returned success and no cache"),
    ("version", "triton cache API version does not support this cache")])
def test_a_cache_that_cannot_start_is_left_out(make_server, trouble, text):
    server = start(make_server, trouble)
    server.wait_log("models are served without a cache: response cache "
                    f'"{trouble}": {text}')
    assert counts(server, 1, 1) == [1, 2]


@pytest.mark.parametrize("trouble,text", [
    ("lookup", "lookup failed: the cache can't look up on purpose"),
    ("insert", "Failed to insert key: the cache can't insert on purpose"),
    ("throwing", "lookup failed: TRITONCACHE_CacheLookup of 'throwing' threw"
     " an exception, std::runtime_error: thrown on purpose"),
    ("no_copy", "lookup failed: cache \"no_copy\" found a key and did not"
     " copy its response"),
    ("garbage", "lookup failed: a packed response breaks off")])
def test_a_cache_in_trouble_is_done_without(make_server, trouble, text):
    server = start(make_server, trouble)
    assert counts(server, 1, 1, 1) == [1, 2, 3]
    server.wait_log("model=one version=1: response cache: " + text)


def test_a_file_that_is_no_library_is_named(make_server, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "libtritoncache_bad.so").write_text("not ELF")
    server = start(make_server, "bad", folder=tmp_path)
    server.wait_log('response cache "bad": unable to load shared library:'
                    " .*libtritoncache_bad.so")
    assert counts(server, 1, 1) == [1, 2]


def test_a_name_that_no_folder_has_is_named(make_server, tmp_path):
    server = start(make_server, "absent", folder=tmp_path)
    server.wait_log('response cache "absent": there is no'
                    " absent/libtritoncache_absent.so in " + str(tmp_path))
    assert counts(server, 1, 1) == [1, 2]


def test_local_of_the_operator_goes_before_the_built_in_one(make_server,
                                                            tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "local").mkdir()
    shutil.copy(caches.build("none") / "none" / "libtritoncache_none.so",
                tmp_path / "local" / "libtritoncache_local.so")
    server = start(make_server, "local", "size=1m", folder=tmp_path)
    server.wait_log("trouble: initialize")
    assert counts(server, 1, 1) == [1, 1]


@pytest.fixture
def key_of(make_server, tmp_path):
    """The key under which a new server looks for one request."""
    tmp_path.chmod(0o755)

    def ask(secret=None, settings="size=64k", value=1):
        if secret is not None:
            (tmp_path / "secret").write_bytes(secret)
            settings += f" key-secret={tmp_path}/secret"
        server = start(make_server, "none", settings)
        counts(server, value)
        server.wait_log("trouble: lookup ")
        text = server.log_text()
        assert re.findall(r"trouble: initialize (\{.*\})", text) == [
            '{"size":"65536"}']         # the path is not the library's
        key, = re.findall(r"trouble: lookup ([0-9a-f]+)", text)
        assert len(key) == 64
        assert ("its keys are of this process alone" in text) \
            == (secret is None)
        server.stop()
        return key

    return ask


def test_keys_are_equal_where_the_secret_is(key_of):
    secret = b"0123456789abcdef"
    first = key_of(secret)
    assert key_of(secret + b"\n") == first
    assert key_of(secret, value=2) != first
    assert key_of(secret + b"0") != first


def test_without_a_secret_nobody_else_has_the_same_keys(key_of):
    assert key_of() != key_of()


@pytest.mark.parametrize("secret,text", [
    (b"too short", "it holds less than 16 bytes"),
    (b"\0" * 4097, "it holds more than 4096 bytes"),
    (None, "No such file or directory")])
def test_a_secret_that_is_none_is_named(make_server, tmp_path, secret, text):
    """By nginx -t, too."""
    tmp_path.chmod(0o755)
    path = tmp_path / "secret"
    if secret:
        path.write_bytes(secret)
    server = start(make_server, "none", f"key-secret={path}")
    status, output = server.check_config()
    assert status == 0 and re.search(
        f'\\[warn\\] .*response cache "none": .*"{re.escape(str(path))}": '
        f".*{text}", output), output
    server.wait_log("models are served without a cache: "
                    f'key-secret "{re.escape(str(path))}": .*{text}')
    assert counts(server, 1, 1) == [1, 2]


def test_local_takes_a_secret_too(make_server, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "secret").write_bytes(b"x" * 100)
    server = make_server(
        lambda r: models.write_model(r, "one", CONFIG),
        backends=backends.build("counting"), http="    inference_response_cache"
        f" local size=1m key-secret={tmp_path}/secret;\n")
    assert counts(server, 1, 1, 2, 1) == [1, 1, 2, 1]
