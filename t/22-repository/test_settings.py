"""Changes by a reload of nginx (HUP) in a living core, directive by directive:
each is applied, or named in the log."""

import json
import os
import pathlib
import re
import shutil

import pytest
from onnx import TensorProto, helper

from lib import backends, models, process
from lib.load import Load
from lib.server import BACKENDS, BUILD, SLOW, nap
from lib.wire import request_bytes, tensor

PARTS = "health metadata config infer repository metrics"
ONE = {"inputs": [tensor("IN", "FP32", [2], [1, 2])]}
CORE = min(os.sched_getaffinity(0))
WAITS = (r"changed settings wait for the next core, which \"kill -QUIT \d+\""
         " starts: ")
LATER = "models loaded from now on use the changed "
OFF = " inotify=off"
IS_READY = "model={} version=1 is ready"


def control(mode, *names):
    return f"    inference_model_control {mode};\n" + "".join(
        f"    inference_load_model {n};\n" for n in names)


def model(folder, name, extra="", **kw):
    return models.identity(folder, name, [("IN", "FP32", [-1])], extra=extra,
                           **kw)


def abc(folder):
    for name in "abc":
        model(folder, name)


def hup(server, http=None, **fields):
    """With that configuration, until the core has it."""
    generation = server.log_text().count("configuration generation ")
    if http is not None:
        fields["http"] = http
    server.write_config(**fields)
    server.signal("HUP")
    assert process.wait_until(
        lambda: server.log_text().count("configuration generation ")
        > generation, 20 * SLOW), server.log_text()[-3000:]


def ask(server, verb, name):
    return server.post(f"/v2/repository/models/{name}/{verb}", b"").status


def ready(server):
    answer = server.post("/v2/repository/index", b'{"ready":true}')
    assert answer.status == 200, answer
    return "".join(sorted({r["name"] for r in json.loads(answer.body)}))


def wait_ready(server, names):
    assert process.wait_until(lambda: ready(server) == names, 20 * SLOW), \
        (ready(server), server.log_text()[-3000:])


def serve(server, names, others=""):
    """Whether those are served, in any directories, and others not."""
    return all(server.status(f"/v2/models/{n}/ready") == 200 for n in names) \
        and all(server.status(f"/v2/models/{n}/ready") == 404 for n in others)


def kill_core(server):
    assert process.wait_until(      # the last cycle's would start another
        lambda: len(server.supervisors()) == 1, 20 * SLOW)
    server.end_core()


# ---- who loads

def test_modes_follow_each_other_under_load(make_server):
    """No request is lost; what stays is loaded once."""
    server = make_server(abc, parts=PARTS, workers=2,
                         http=control("poll interval=1s"))
    core = server.core()

    def once(connection):
        return connection.infer("a", ONE).status

    with Load(server.port, once, count=4) as load:
        for mode in ("explicit", "none", "explicit", "poll interval=500ms",
                     "none", "poll interval=500ms" + OFF, "explicit", "none",
                     "poll"):
            hup(server, control(mode))
            load.wait_for_more(20, 30 * SLOW)
            assert server.wait_for("/v2/health/ready")
            allowed = ask(server, "load", "b")
            assert allowed == (200 if mode == "explicit" else 503)
            wait_ready(server, "abc")
    assert set(load.results) == {200}, load.results
    assert server.cores() == [core]
    for name in "abc":
        server.wait_said(IS_READY.format(name))


def test_poll_mode_begins_and_ends(make_server):
    server = make_server(lambda f: model(f, "a"), parts=PARTS)
    model(server.models, "b")
    nap(0.3)
    assert ready(server) == "a"             # nobody looks
    hup(server, control("poll interval=1h" + OFF))
    wait_ready(server, "ab")                # as at a start in that mode
    model(server.models, "c")
    hup(server, control("poll interval=100ms" + OFF))
    wait_ready(server, "abc")
    hup(server, control("explicit"))
    model(server.models, "d")
    shutil.rmtree(server.models / "c")
    nap(3)
    assert serve(server, "abc", "d")
    hup(server, control("poll interval=100ms" + OFF))
    wait_ready(server, "abd")
    assert process.wait_until(lambda: serve(server, "abd", "c"), 20 * SLOW)


def test_explicit_control_keeps_what_is_loaded(make_server):
    """Also when the core dies."""
    server = make_server(abc, parts=PARTS,
                         allow_alarms=[r"exited on signal 9"])
    hup(server, control("explicit", "a"))
    assert ask(server, "unload", "b") == 200
    wait_ready(server, "ac")
    kill_core(server)
    assert server.wait_for("/v2/health/ready")
    wait_ready(server, "ac")
    hup(server, control("explicit"))        # a was there for the list alone
    wait_ready(server, "c")
    kill_core(server)
    assert server.wait_for("/v2/health/ready")
    wait_ready(server, "c")
    hup(server, control("none"))
    wait_ready(server, "abc")
    kill_core(server)
    wait_ready(server, "abc")


def test_the_list_of_models_changes(make_server):
    server = make_server(
        abc, parts=PARTS, http=control("explicit", "a", "b"),
        allow_alarms=[r"exited on signal 9",
                      r"not found in any model repository", r'"gone"'])

    def once(connection):
        return connection.infer("a", ONE).status

    with Load(server.port, once, count=2) as load:
        hup(server, control("explicit", "a", "c"))
        wait_ready(server, "ac")
        assert ask(server, "load", "c") == 200
        hup(server, control("explicit", "a"))
        assert ask(server, "load", "b") == 200
        wait_ready(server, "abc")           # c was asked for, too
        hup(server, control("explicit", "a", "gone"))
        assert server.wait_for("/v2/health/ready", status=400)
        assert ask(server, "unload", "b") == 200
        hup(server, control("explicit", "a"))
        assert server.wait_for("/v2/health/ready")
        wait_ready(server, "ac")
    assert set(load.results) == {200}, load.results
    kill_core(server)
    assert server.wait_for("/v2/health/ready")
    wait_ready(server, "ac")
    hup(server, control("explicit", '"*"'))
    wait_ready(server, "abc")
    assert not re.search(WAITS, server.log_text())


# ---- what loads go by

def test_another_folder_of_backends(make_server, tmp_path):
    tmp_path.chmod(0o755)
    server = make_server(
        lambda f: (model(f, "a"), model(f, "b", backend="copied")),
        parts=PARTS, wait="live", allow_alarms=[r"copied"])
    assert server.wait_for("/v2/models/a/ready")
    (tmp_path / "copied").mkdir()
    shutil.copy(pathlib.Path(BACKENDS) / "identity" / "libtriton_identity.so",
                tmp_path / "copied" / "libtriton_copied.so")
    assert server.get("/v2/health/ready").status == 400
    hup(server, f"    inference_backends {tmp_path};\n")
    server.wait_log(LATER + "inference_backends; loaded models")
    wait_ready(server, "ab")                # what had failed is tried again
    assert server.wait_for("/v2/health/ready")
    assert server.infer("b", ONE).status == 200
    server.wait_said(IS_READY.format("a"))


def test_another_folder_of_agents(make_server):
    chain = 'model_repository_agents { agents [ { name: "record" } ] }\n'
    server = make_server(
        lambda f: (model(f, "a"), model(f, "b", chain)), parts=PARTS,
        wait="live", allow_alarms=[r"record"])
    assert server.wait_for("/v2/models/a/ready")
    server.wait_log(r"unable to find 'libtritonrepoagent_record.so'")
    hup(server, f"    inference_agents {BUILD / 't-agents'};\n")
    server.wait_log(LATER + "inference_agents; ")
    wait_ready(server, "ab")
    server.wait_said(IS_READY.format("a"))


def onnx_copy(folder, name):
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 2])
             for n in ("X", "Y")]
    made = helper.make_model(helper.make_graph(
        [helper.make_node("Identity", ["X"], ["Y"])], "g", value[:1],
        value[1:]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    models.write_model(folder, name, None, (1,),
                       {1: {"model.onnx": made.SerializeToString()}})


def test_settings_of_backends(make_server):
    """One that is in use keeps its own, and the log says so."""
    server = make_server(lambda f: model(f, "a"), parts=PARTS,
                         http=control("explicit", '"*"'))
    onnx_copy(server.models, "b")
    onnx_copy(server.models, "c")

    def most(name):
        assert ask(server, "load", name) == 200
        return server.get(f"/v2/models/{name}/config").json()[
            "max_batch_size"]

    setting = "    inference_backend_config onnxruntime " \
        "default-max-batch-size={};\n"
    hup(server, control("explicit", '"*"') + setting.format(7))
    server.wait_log(LATER + "inference_backend_config; ")
    assert "backends that are in use" not in server.log_text()
    assert most("b") == 7
    hup(server, control("explicit", '"*"') + setting.format(9))
    server.wait_log("backends that are in use keep the settings they were"
                    " opened with.*: onnxruntime")
    assert most("c") == 7


def affinity(server, thread):
    """Of a thread that names itself once it runs."""
    def cores():
        for task in pathlib.Path(f"/proc/{server.core()}/task").iterdir():
            if (task / "comm").read_text().strip() == thread:
                return os.sched_getaffinity(int(task.name))
        return None

    return process.wait_until(cores, 10 * SLOW)


def test_host_policies(make_server):
    server = make_server(abc, parts=PARTS, http=control("explicit", "a"),
                         allow_alarms=[r"none of the cores"])
    hup(server, control("explicit", "a", "b")
        + f"    inference_host_policy cpu cpu-cores={CORE};\n")
    server.wait_log(LATER + "inference_host_policy; ")
    wait_ready(server, "ab")
    assert affinity(server, "b_0_0") == {CORE}
    assert affinity(server, "a_0_0") == os.sched_getaffinity(0)
    hup(server, control("explicit", "a", "b"))
    assert ask(server, "load", "c") == 200
    assert affinity(server, "c_0_0") == os.sched_getaffinity(0)
    assert ask(server, "unload", "b") == 200    # whose policy is another's
    wait_ready(server, "ac")


def test_auto_complete(make_server):
    server = make_server(lambda f: onnx_copy(f, "a"), parts=PARTS,
                         http=control("explicit"), allow_alarms=[r'"b"', "b"])
    assert ask(server, "load", "a") == 200
    hup(server, control("explicit") + "    inference_auto_complete off;\n")
    server.wait_log(LATER + "inference_auto_complete; ")
    onnx_copy(server.models, "b")
    assert ask(server, "load", "b") == 500
    assert ready(server) == "a"


# ---- other settings of docs/directives.md

@pytest.mark.parametrize("line,name", [
    ("spin=3us", "inference_core spin="),
    ("inference_response_cache local size=1m;", "inference_response_cache"),
    ("inference_memory 64m pinned=3m;", "inference_memory"),
    ("inference_metrics cpu=off;", "inference_metrics"),
    ("inference_metrics summaries=on;", "inference_metrics"),
    ("inference_rate_limit execution_count;", "inference_rate_limit"),
    ("inference_rate_limit_resource R 3;", "inference_rate_limit_resource"),
    ("inference_backend_config * min-compute-capability=7.5;",
     "inference_backend_config min-compute-capability"),
])
def test_what_waits_for_the_next_core(make_server, line, name):
    """It is named with each reload, until a core has it."""
    server = make_server(lambda f: model(f, "a"), parts=PARTS,
                         allow_alarms=[r"exited on signal 9"])
    core = server.fields["core"]

    def change(on, more=""):
        """How often it was named because of that."""
        before = server.log_text()
        if name.startswith("inference_core"):
            hup(server, more, core=f"{core} {line}" if on else core)
        else:
            hup(server, (f"    {line}\n" if on else "") + more)
        return len(re.findall(WAITS + re.escape(name) + "$",
                              server.log_text()[len(before):], re.M))

    assert change(True) == 1
    assert change(True, control("poll")) == 1
    assert change(False) == 0               # as it was: nothing to name
    assert change(True) == 1
    assert server.infer("a", ONE).status == 200
    kill_core(server)
    assert server.wait_for("/v2/models/a/ready")
    assert change(True, control("poll")) == 0


def test_cache_directories_wait_for_the_next_core(make_server, tmp_path):
    http = "    inference_response_cache local size=1m;\n"
    server = make_server(lambda f: model(f, "a"), http=http)
    hup(server, http + f"    inference_cache_directory {tmp_path};\n")
    server.wait_log(WAITS + "inference_cache_directory\n")


def test_the_environment_waits_for_the_next_core(make_server):
    server = make_server(lambda f: model(f, "a"),
                         allow_alarms=[r"exited on signal 9"])
    server.write_config(environment="    inference_env HUP_TEST=1;\n"
                        + server.fields["environment"])
    server.signal("HUP")
    server.wait_log("the core's environment has changed, which waits for the"
                    r" next core: \"kill -QUIT \d+\" starts it")
    assert "HUP_TEST" not in process.environ(server.core())
    kill_core(server)
    assert server.wait_for("/v2/models/a/ready")
    assert process.environ(server.core())["HUP_TEST"] == "1"


PAGE = """\
load_module {module};
daemon off;
pid {prefix}/nginx.pid;
error_log {prefix}/error.log info;
events {{ }}
http {{
    access_log off;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200; }} }}
}}
"""


def test_nothing_waits_where_a_reload_brings_the_first_core(make_server):
    server = make_server(lambda f: model(f, "a"), config=PAGE)
    assert server.cores() == []
    server.write_config()
    server.signal("HUP")
    assert server.wait_for("/v2/models/a/ready")
    assert "waits for the next core" not in server.log_text()


def test_the_log_changes_at_once(make_server):
    server = make_server(abc, parts=PARTS, http=control("explicit"))
    quiet = control("explicit", "a") + "    inference_log error;\n"
    server.write_config(http=quiet)
    server.signal("HUP")
    wait_ready(server, "a")
    hup(server, quiet.replace("error", "info").replace("model a", "model b"))
    wait_ready(server, "b")
    server.wait_said(IS_READY.format("b"))
    assert IS_READY.format("a") not in server.log_text()


def test_the_drain_time_changes_at_once(make_server):
    """The default would be longer than stop() waits."""
    folder = backends.build("failing")
    http = f"    inference_backends {folder};\n"
    server = make_server(
        lambda f: model(f, "a", backend="failing",
                        parameters={"fail": "execute-hold"}),
        http=http, allow_alarms=[r"still busy", r"without finalizing"])
    (server.models / "a" / "hold").write_text("")
    (server.models / "a").chmod(0o777)
    hup(server, core=f"{server.fields['core']} drain=500ms")
    with server.wire() as c:
        c.send(request_bytes("POST", "/v2/models/a/infer",
                             json.dumps(ONE).encode(), {}))
        assert process.wait_until(
            (server.models / "a" / "held").exists, 20 * SLOW)
    server.stop()


# ---- inotify

def test_a_change_is_seen_long_before_the_interval_has_passed(make_server):
    server = make_server(abc, parts=PARTS,
                         http=control("poll interval=1h"))
    model(server.models, "d")
    wait_ready(server, "abcd")
    shutil.rmtree(server.models / "b")
    assert process.wait_until(lambda: serve(server, "acd", "b"), 20 * SLOW)
    (server.models / "c").rename(server.prefix / "away")
    assert process.wait_until(lambda: serve(server, "ad", "c"), 20 * SLOW)
    (server.prefix / "away").rename(server.models / "c")
    wait_ready(server, "acd")
    model(server.models, "a", max_batch=5)
    assert process.wait_until(lambda: server.get(
        "/v2/models/a/config").json()["max_batch_size"] == 5, 20 * SLOW)


def test_the_interval_counts_with_inotify_off(make_server):
    server = make_server(abc, parts=PARTS,
                         http=control("poll interval=1h" + OFF))
    watches = [os.readlink(f) for f in pathlib.Path(
        f"/proc/{server.core()}/fd").iterdir()]
    assert "anon_inode:inotify" not in watches
    shutil.rmtree(server.models / "b")
    nap(3)
    assert serve(server, "abc")
    hup(server, control("poll interval=300ms" + OFF))
    assert process.wait_until(lambda: serve(server, "ac", "b"), 20 * SLOW)
    model(server.models, "d")
    wait_ready(server, "acd")


def test_a_repository_that_comes_is_watched(make_server):
    http = control("poll interval=1h")
    server = make_server(abc, parts=PARTS, http=http)
    more = server.prefix / "more"
    model(more, "d")
    hup(server, http + f"    inference_repository {more};\n")
    wait_ready(server, "abcd")
    model(server.models, "e")               # the next look watches the new one
    wait_ready(server, "abcde")
    model(more, "f")
    wait_ready(server, "abcdef")


def test_events_without_end_cost_little(make_server):
    """A file that is written all the time: about one look a second."""
    server = make_server(abc, parts=PARTS, http=control("poll interval=1h")
                         + "    inference_log info verbose=1;\n")

    def write(_):
        for _ in range(100):
            (server.models / "a" / "noise").write_text("x")
        return 200

    def cpu():
        return process.cpu_seconds([server.core()])

    before = cpu()
    with Load(server.port, write, count=1, keep=False):
        nap(5)
        model(server.models, "d")
        wait_ready(server, "abcd")
        spent = cpu() - before
    assert spent < 2.5 * SLOW, spent
