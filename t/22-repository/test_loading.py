"""How models are loaded: named configurations, loaders, retries.  Numbers are
those of the reference's scenarios."""

import pytest
import tritonclient.http as triton

from lib import backends, models, process
from lib.server import SLOW

EXPLICIT = "    inference_model_control explicit;\n"
PARTS = "health metadata config infer repository"


def config(max_batch, **kw):
    return models.identity_config("m", [("IN", "FP32", [-1])],
                                  max_batch=max_batch, **kw)


def fill(folder):
    path = models.write_model(folder, "m", config(1))
    (path / "configs").mkdir()
    return path


def put(server, name, max_batch, **kw):
    (server.models / "m" / "configs" / f"{name}.pbtxt").write_text(
        config(max_batch, **kw))


def max_batch(client):
    return client.get_model_config("m")["max_batch_size"]


def loaded(server, times):
    """So often until now; the log may come late, but is in order."""
    line = "model=m version=1 is ready"
    return process.wait_until(
        lambda: server.log_text().count(line) >= times, 20 * SLOW) \
        and server.log_text().count(line) == times


def test_a_named_configuration(make_server):
    """Number 29: absent, added at run time, changed, gone."""
    server = make_server(
        fill, parts=PARTS, http=EXPLICIT + "    inference_load_model m;\n"
        "    inference_model_config_name wide;\n")
    with triton.InferenceServerClient(server.url) as c:
        assert max_batch(c) == 1
        put(server, "narrow", 2)            # another name is nothing to us
        c.load_model("m")
        assert max_batch(c) == 1
        put(server, "wide", 32)
        c.load_model("m")
        assert max_batch(c) == 32
        assert loaded(server, 3)
        put(server, "wide", 32, extra="version_policy { all {} }\n")
        c.load_model("m")                   # only the policy: not again
        put(server, "narrow", 3)
        c.load_model("m")                   # all of configs/ counts: neither
        (server.models / "m" / "config.pbtxt").write_text(config(5))
        c.load_model("m")                           # unused, but other content
        assert max_batch(c) == 32
        assert loaded(server, 4)
        (server.models / "m" / "configs" / "wide.pbtxt").unlink()
        c.load_model("m")
        assert max_batch(c) == 5


def test_a_configuration_named_config(make_server):
    def both(folder):
        (fill(folder) / "configs" / "config.pbtxt").write_text(config(7))

    server = make_server(both, parts=PARTS,
                         http="    inference_model_config_name config;\n")
    with triton.InferenceServerClient(server.url) as c:
        assert max_batch(c) == 7


def test_unused_configurations_are_other_content(make_server):
    server = make_server(
        fill, parts=PARTS, http=EXPLICIT + "    inference_load_model m;\n")
    with triton.InferenceServerClient(server.url) as c:
        put(server, "wide", 32)
        c.load_model("m")
        assert max_batch(c) == 1
        assert loaded(server, 2)


def test_what_is_wrong_in_a_named_configuration(make_server):
    def broken(folder):
        (fill(folder) / "configs" / "wide.pbtxt").write_text("max_batch: 1 }")

    server = make_server(
        broken, parts=PARTS, wait="live",
        http="    inference_model_config_name wide;\n",
        allow_alarms=[r"configs/wide\.pbtxt"])
    server.wait_log(r'configs/wide\.pbtxt')
    assert server.get("/v2/models/m/ready").status == 404
    status, text = server.check_config()            # it looks at that one, too
    assert status == 0 and "configs/wide.pbtxt:1" in text, text


def test_a_name_is_no_path(make_server):
    server = make_server(fill, start=False)
    for name, why in (("../x", "slash"), ("a/b", "slash"),
                      ('""', "must not be empty"), ("x" * 250, "longer"),
                      ('"a\\nb"', "control")):
        server.write_config(http=f"    inference_model_config_name {name};\n")
        status, text = server.check_config()
        assert status == 1, name
        assert why in text and "nginx.conf:" in text, text
    server.write_config(http="    inference_model_config_name a;\n"
                        "    inference_model_config_name b;\n")
    status, text = server.check_config()
    assert status == 1 and "is duplicate" in text
    server.log.unlink()


@pytest.mark.parametrize("wrong", [
    "threads=0", "threads=129", "threads=x", "threads=", "retries=-1",
    "retries=1001", "tries=1", "threads=1 threads=2", "4"])
def test_wrong_loader_settings(make_server, wrong):
    server = make_server(fill, start=False)
    server.write_config(http=f"    inference_model_load {wrong};\n")
    status, text = server.check_config()
    assert status == 1 and "inference_model_load" in text, text
    assert "threads=, 1 to 128, and retries=, 0 to 1000" in text
    server.log.unlink()


def held(folder, *names):
    for name in names:
        path = models.identity(folder, name, [("IN", "FP32", [-1])],
                               backend="failing",
                               parameters={"fail": "initialize-hold"})
        (path / "hold").write_text("")
        path.chmod(0o777)


@pytest.mark.parametrize("threads", [1, 2])
def test_so_many_models_are_loaded_at_once(make_server, threads):
    """Number 28: two slow models, one after another or side by side."""
    server = make_server(
        lambda folder: held(folder, "a", "b"), parts=PARTS, wait="live",
        http=f"    inference_model_load threads={threads};\n"
        f"    inference_backends {backends.build('failing')};\n")

    def being_loaded():
        return [n for n in "ab" if (server.models / n / "held").exists()]

    try:
        assert process.wait_until(lambda: len(being_loaded()) == threads,
                                  20 * SLOW)
        assert server.get("/v2/health/live").status == 200
        assert len(being_loaded()) == threads   # b waits for a's loader
        (server.models / "a" / "hold").unlink()
        assert process.wait_until(lambda: len(being_loaded()) == 2, 20 * SLOW)
        assert server.wait_for("/v2/models/a/ready")
        assert server.get("/v2/models/b/ready").status != 200
    finally:
        for name in "ab":
            (server.models / name / "hold").unlink(missing_ok=True)
    assert server.wait_for("/v2/health/ready")


def countdown(folder):
    path = models.identity(folder, "m", [("IN", "FP32", [-1])],
                           backend="failing",
                           parameters={"fail": "initialize-countdown"})
    (path / "failures").write_text("!!")
    path.chmod(0o777)
    (path / "failures").chmod(0o666)


@pytest.mark.parametrize("retries", [1, 2])
def test_a_model_that_succeeds_on_the_third_attempt(make_server, retries):
    """Number 28."""
    server = make_server(
        countdown, parts=PARTS, user="root", wait="live",
        http=f"    inference_model_load retries={retries} threads=1;\n"
        f"    inference_backends {backends.build('failing')};\n")
    if retries == 2:
        assert server.wait_for("/v2/health/ready")
        assert server.get("/v2/models/m/ready").status == 200
    else:
        server.wait_log("model=m version=1 failed to load: .*not yet")
        assert server.wait_for("/v2/models/m/ready", status=404)
    left = (server.models / "m" / "failures").stat().st_size
    assert left == 2 - min(retries + 1, 2)


def test_these_settings_wait_for_the_next_core(make_server):
    server = make_server(fill, parts=PARTS)
    server.write_config(http="    inference_model_load threads=2;\n"
                        "    inference_peer_access off;\n"
                        "    inference_model_config_name wide;\n")
    server.signal("HUP")
    server.wait_log("changed settings wait for the next core.*"
                    "inference_model_config_name, inference_model_load, "
                    "inference_peer_access")
