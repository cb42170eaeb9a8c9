"""build/inference-server: tritonserver's command line, nginx underneath."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from lib import azure, backends, gs, models, process, python_backend, wire
from lib.launcher import PROGRAM, in_flight, launcher_env, rejected
from lib.s3 import Service, upload
from lib.server import BACKENDS, BUILD, SLOW, free_port, nap
from lib.wire import tensor


def test_serves_and_stops_gracefully(launch):
    launcher = launch()
    answer = launcher.ask()
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [2.5]
    assert launcher.stop() == 0


def test_serves_what_load_generators_ask_for(launch):
    launcher = launch()
    assert launcher.ask().status == 200
    for path in ("/v2/models/one/stats", "/v2/models/one/versions/1/stats"):
        row, = wire.fetch(launcher.port, "GET", path).json()["model_stats"]
        assert row["inference_count"] == 1
    rows = wire.fetch(launcher.port, "GET", "/v2/models/stats").json()
    assert len(rows["model_stats"]) == 2
    answer = wire.fetch(launcher.port, "POST", "/v2/models/one/generate",
                        b'{"IN": 2.5}')
    assert answer.json()["OUT"] == 2.5


def test_clients_may_be_idle(launch):
    """Between requests for an hour, within one for the module's default; a
    request's head, which nobody has reason to write slowly, takes a minute
    at most."""
    conf = launch().conf()
    assert "keepalive_timeout 1h;" in conf
    assert "client_header_timeout 60s;" in conf
    assert "client_body_timeout" not in conf
    assert "send_timeout" not in conf


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_request_in_flight_finishes(launch, name):
    launcher = launch()
    with wire.Wire(launcher.port, 20 * SLOW) as connection:
        in_flight(connection, "slow")
        launcher.process.send_signal(name)
        assert connection.read().status == 200
    assert launcher.process.wait(30 * SLOW) == 0


@pytest.mark.parametrize("seconds", [0, 1])
def test_request_in_flight_has_no_time(launch, repository, seconds):
    models.identity(repository, "slower", [("IN", "FP32", [-1])],
                    parameters={"execute_delay_ms": "10000"})
    launcher = launch(f"--exit-timeout-secs={seconds}")
    with wire.Wire(launcher.port, 20 * SLOW) as connection:
        in_flight(connection, "slower")
        assert launcher.stop() == 1


def test_a_silent_sequence_holds_up_no_end(launch, repository):
    """Its client may not come back, so its slot is for those that wait."""
    models.identity(repository, "steps", [("IN", "FP32", [1])], max_batch=1,
                    extra="sequence_batching {"
                    " max_sequence_idle_microseconds: 600000000 }\n")
    launcher = launch("--exit-timeout-secs=20")

    def begin(connection, sequence):
        body = {"inputs": [tensor("IN", "FP32", [1, 1], [2.5])],
                "parameters": {"sequence_id": sequence,
                               "sequence_start": True}}
        connection.send(wire.request_bytes(
            "POST", "/v2/models/steps/infer", json.dumps(body).encode()))

    with wire.Wire(launcher.port, 90 * SLOW) as silent, \
            wire.Wire(launcher.port, 90 * SLOW) as waits:
        begin(silent, 1)
        assert silent.read().status == 200
        begin(waits, 2)
        nap(0.3)
        launcher.process.send_signal(signal.SIGTERM)
        assert waits.read().status == 200
        assert launcher.process.wait(60 * SLOW) == 0


SAVES = """
import pathlib
import time
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([]) for r in requests]
    def finalize(self):
        time.sleep(1)
        pb.Logger.log_info("the model has saved")
        pathlib.Path(__file__).with_name("saved").touch()
        raise ValueError("after that")
"""


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_models_are_finalized_before_the_end(launch, repository, name):
    """A container ends with the launcher, and kills the processes in it."""
    python_backend.model(repository, "saves", python_backend.TEXT, SAVES)
    launcher = launch(f"--backend-config=python,interpreter={sys.executable}")
    core, = [p for p in launcher.tree()
             if process.stat(p)[0] == "inference-core"]
    launcher.process.send_signal(name)
    assert launcher.process.wait(30 * SLOW) == 0
    assert (repository / "saves/1/saved").exists()
    assert not process.alive(core)
    log = launcher.log.read_text()
    assert "the model has saved" in log
    assert "ValueError: after that" in log


def test_a_finalizer_that_takes_too_long(launch, repository):
    python_backend.model(repository, "saves", python_backend.TEXT,
                         SAVES.replace("sleep(1)", "sleep(20)"))
    launcher = launch("--exit-timeout-secs=1",
                      f"--backend-config=python,interpreter={sys.executable}")
    assert launcher.stop() == 1
    assert not (repository / "saves/1/saved").exists()


def test_both_spellings_of_a_value(launch, repository):
    launcher = launch("--model-store", str(repository), "--log-verbose", "1",
                      "--backend-directory", str(BACKENDS),
                      "--model-control-mode=none", "--log-info=TRUE",
                      "--exit-timeout-secs", "5")
    assert launcher.ask().status == 200


def test_several_repositories_and_relative_paths(launch, repository,
                                                 tmp_path):
    other = tmp_path / "other models"
    other.mkdir()
    models.identity(other, "two", [("IN", "FP32", [-1])])
    relative = os.path.relpath(repository)
    launcher = launch(f"--model-repository={relative}",
                      f"--model-repository={other}")
    assert launcher.ask("one").status == 200
    assert launcher.ask("two").status == 200


def test_backend_config(launch):
    launcher = launch(
        "--backend-config=onnxruntime,default-max-batch-size=8",
        "--backend-config=default-max-batch-size=4")
    assert launcher.ask().status == 200


def test_host_policy(launch):
    core = min(os.sched_getaffinity(0))
    launcher = launch(f"--host-policy=cpu,cpu-cores={core}-{core}",
                      "--host-policy", "gpu_0,numa-node=0")
    pid, = [p for p in launcher.tree()
            if process.stat(p)[0] == "inference-core"]
    seen = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        seen[(task / "comm").read_text().strip()] = \
            os.sched_getaffinity(int(task.name))
    assert seen["one_0_0"] == {core}
    assert seen["loader"] == os.sched_getaffinity(0)


def test_tests_may_hold_the_first_batch(launch, repository):
    """Triton's own tests set this in the server's environment."""
    models.identity(repository, "batched", [("IN", "FP32", [1])],
                    max_batch=8, extra="dynamic_batching { }\n")
    body = (b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1,1],'
            b'"data":[2.5]}]}')
    launcher = launch(env={"TRITONSERVER_DELAY_SCHEDULER": "2"})
    with wire.Wire(launcher.port, 20 * SLOW) as connection:
        connection.send(wire.request_bytes(
            "POST", "/v2/models/batched/infer", body))
        assert not process.wait_until(
            lambda: b'nv_inference_exec_count{model="batched",version="1"} 1'
            in wire.fetch(launcher.metrics_port, "GET", "/metrics").body, 1)
        assert wire.fetch(launcher.port, "POST", "/v2/models/batched/infer",
                          body).status == 200
        assert connection.read().status == 200
    assert launcher.stop() == 0


def test_rate_limit(launch, repository):
    config = repository / "one" / "config.pbtxt"
    text = config.read_text()
    config.write_text(text.replace(
        "kind: KIND_CPU", "kind: KIND_CPU rate_limiter {"
        ' resources { name: "R 1" count: 4 } priority: 2 }'))
    launcher = launch("--rate-limit=execution_count",
                      "--rate-limit-resource", "R 1:4",
                      "--rate-limit-resource=R 1:9:1")
    assert launcher.ask().status == 200


def test_metrics_on_a_port_of_their_own(launch):
    launcher = launch("--metrics-config=summary_latencies=true",
                      "--metrics-config=summary_quantiles=0.5:0.05",
                      "--metrics-config=summary_quantiles=0.75:0.05,1:0",
                      "--allow-cpu-metrics=false", "--metrics-interval-ms=100")
    answer = wire.fetch(launcher.metrics_port, "GET", "/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert b'quantile="0.75"' in answer.body
    assert b'quantile="0.5"' not in answer.body
    assert b"nv_cpu" not in answer.body
    assert launcher.status("/metrics") == 404


def test_strictness(launch, repository):
    """A model without a configuration: nobody may complete it, none minds."""
    models.write_model(repository, "bare", None)
    launcher = launch("--disable-auto-complete-config",
                      "--strict-readiness=false", "--exit-on-error=false")
    assert launcher.status("/v2/models/bare/ready") != 200
    assert "config.pbtxt" in launcher.log.read_text()


def test_metrics_may_be_off(launch):
    launcher = launch("--allow-metrics=false")
    with pytest.raises(OSError):
        wire.fetch(launcher.metrics_port, "GET", "/metrics")


def test_a_cache_that_cannot_start(begin, launch, repository):
    options = ["--cache-config=nowhere,a=b", "--http-address=127.0.0.1",
               f"--model-repository={repository}"]
    why = 'response cache "nowhere": there is no nowhere/libtritoncache_nowhere'
    server = begin(*options)
    assert server.process.wait(30 * SLOW) == 1
    log = server.log.read_text()
    last = log.splitlines()[-1]
    assert last.startswith(f"error: creating server: Internal - {why}")
    assert "Started" not in log
    launcher = launch(*options, "--exit-on-error=false")
    assert launcher.ask().status == 200
    assert why in launcher.wait_log("Started HTTPService")


def test_polls_of_the_start_log_nothing(monkeypatch, tmp_path, begin,
                                        repository):
    """Why there is no core is in the log already, not five times a second."""
    program = tmp_path / "program"
    (program / "backends").mkdir(parents=True)
    for name in (PROGRAM.name, "ngx_http_inference_module.so"):
        shutil.copy(BUILD / name, program)
    (program / "inference-core").write_text("#!/bin/sh\nexit 3\n")
    (program / "inference-core").chmod(0o755)
    monkeypatch.setattr("lib.launcher.PROGRAM", program / PROGRAM.name)
    server = begin(f"--model-repository={repository}")
    server.wait_log("the core is out of reach")
    answer = wire.fetch(server.port, "POST", "/v2/repository/index")
    assert answer.status == 503
    server.wait_log('request: "POST /v2/repository/index')
    nap(2)
    log = server.log.read_text()
    assert log.count("repository index failed") == 1, log
    assert "exited with code 3" in log


@pytest.mark.parametrize("options", [
    ["--cache-config=local,size=1048576"],
    ["--cache-config", "local,size=1048576", "--cache-config=local,x=y",
     "--cache-directory=/nonexistent"],
    ["--response-cache-byte-size=1048576"]])
def test_response_cache(launch, repository, options):
    models.write_model(
        repository, "counting", 'name: "counting"\nbackend: "counting"\n'
        + models.io_block("input", [("IN", "FP32", [-1])])
        + models.io_block("output", [("COUNT", "INT64", [1])])
        + "response_cache { enable: true }\n")
    shutil.copytree(BACKENDS / "identity",
                    backends.build("counting") / "identity",
                    dirs_exist_ok=True)
    launcher = launch("--backend-directory", str(backends.build("counting")),
                      *options)
    counts = [launcher.ask("counting").json()["outputs"][0]["data"]
              for _ in range(3)]
    assert counts == [[1], [1], [1]]


def test_agent_directory(launch, repository):
    """The agents there, and no others: ours go with another one."""
    models.identity(
        repository, "through", [("IN", "FP32", [-1])],
        extra='model_repository_agents { agents { name: "record" } }\n')
    launcher = launch(f"--repoagent-directory={BUILD / 't-agents'}")
    assert launcher.ask("through").status == 200


def test_our_agents_are_found_by_themselves(launch, repository):
    models.identity(
        repository, "through", [("IN", "FP32", [-1])],
        extra='model_repository_agents { agents { name: "checksum" } }\n')
    assert launch().ask("through").status == 200


def test_reload_by_hangup(launch):
    launcher = launch()
    before = set(process.descendants(launcher.process.pid))
    launcher.process.send_signal(signal.SIGHUP)
    assert process.wait_until(
        lambda: set(process.descendants(launcher.process.pid)) - before,
        10 * SLOW)
    assert launcher.ask().status == 200


def test_killed_launcher_takes_nginx_with_it(launch):
    launcher = launch()
    pids = launcher.tree()
    launcher.process.kill()
    launcher.process.wait()
    assert process.wait_until(
        lambda: not [p for p in pids if process.alive(p)], 20 * SLOW)


def test_port_in_use_is_a_failure(launch, tmp_path, repository):
    first = launch()
    done = subprocess.run(
        [PROGRAM, "--model-repository", repository, "--http-port",
         str(first.port), "--http-address=127.0.0.1",
         f"--grpc-port={free_port()}",
         f"--metrics-port={free_port()}"], env=launcher_env(),
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert str(first.port) in done.stderr


def test_explicit_control(begin, repository):
    server = begin(f"--model-repository={repository}",
                   "--model-control-mode=EXPLICIT", "--load-model=one",
                   "--load-model=one", "--strict-readiness=true")
    server.wait_ready()
    assert server.ask().status == 200
    assert server.ask("slow").status == 404
    answer = wire.fetch(server.port, "POST",
                        "/v2/repository/models/slow/load", b"")
    assert answer.status == 200, answer
    assert server.ask("slow").status == 200
    server.stop()


def other_repository(tmp_path, *names):
    path = tmp_path / "other"
    path.mkdir()
    for name in names:
        models.identity(path, name, [("IN", "FP32", [-1])])
    return path


def test_loads_by_request_name_the_option_that_they_need(launch):
    path = "/v2/repository/models/one/load"
    launcher = launch()
    answer = wire.fetch(launcher.port, "POST", path, b"{}")
    words = "explicit model load / unload is not allowed if polling is enabled"
    option = "--model-control-mode=explicit"
    assert answer.status == 503
    assert answer.json()["error"].startswith(words)
    assert option in answer.json()["error"]
    assert launcher.stop() == 0
    launcher = launch(option, "--load-model=one")
    assert wire.fetch(launcher.port, "POST", path, b"{}").status == 200


def test_namespacing(launch, tmp_path, repository):
    other = other_repository(tmp_path, "one", "two")
    server = launch(f"--model-repository={repository}",
                    f"--model-repository={other}", "--model-namespacing=True",
                    "--model-load-thread-count=1", "--exit-on-error=false",
                    "--enable-peer-access", "off")
    assert server.ask("two").status == 200
    answer = server.ask("one")
    assert answer.status == 400
    assert b"There are 2 identifiers of model 'one'" in answer.body
    index = wire.fetch(server.port, "POST", "/v2/repository/index", b"")
    assert [r["name"] for r in index.json() if r["state"] == "READY"].count(
        "one") == 2


def test_named_configuration_and_retries(launch, repository):
    folder = repository / "one" / "configs"
    folder.mkdir()
    (folder / 'w"ide.pbtxt').write_text(models.identity_config(
        "one", [("IN", "FP32", [-1])], max_batch=32))
    server = launch(f"--model-repository={repository}",
                    '--model-config-name=w"ide', "--model-load-retry-count=2")
    config = wire.fetch(server.port, "GET", "/v2/models/one/config")
    assert config.json()["max_batch_size"] == 32


@pytest.fixture
def failing(tmp_path):
    """A directory of backends: identity, and one that fails as it is told."""
    folder = tmp_path / "backends"
    shutil.copytree(BACKENDS / "identity", folder / "identity")
    backends.build("failing", folder)
    return folder


def test_retries(begin, failing, repository):
    path = models.identity(repository, "third", [("IN", "FP32", [-1])],
                           backend="failing",
                           parameters={"fail": "initialize-countdown"})
    (path / "failures").write_text("!!")
    (path / "failures").chmod(0o666)
    path.chmod(0o777)
    server = begin(f"--model-repository={repository}",
                   f"--backend-directory={failing}",
                   "--model-load-retry-count=2")
    server.wait_ready()
    assert server.status("/v2/models/third/ready") == 200
    server.stop()


def test_exit_on_error(begin, repository):
    """A model that can't be loaded ends it, others do not."""
    models.write_model(repository, "homeless", models.identity_config(
        "homeless", [("IN", "FP32", [-1])], backend="nowhere"), (1,))
    for option in ([], ["--exit-on-error=true"]):
        server = begin(f"--model-repository={repository}",
                       *option)
        assert server.process.wait(30 * SLOW) == 1
        text = server.log.read_text()
        cause, last = text.splitlines()[-2:]
        assert cause.startswith("inference-server: failed to load model "
                                "homeless, version 1: ") and "nowhere" in cause
        assert last == "error: creating server: Internal - " \
            "failed to load all models"
        assert list(server.tmp.iterdir()) == []

    server = begin(f"--model-repository={repository}",
                   "--exit-on-error=true", "--load-model=one",
                   "--model-control-mode=explicit")
    server.wait_ready()
    answer = wire.fetch(server.port, "POST",
                        "/v2/repository/models/homeless/load", b"")
    assert answer.status == 400                 # that is not the start
    assert server.ask().status == 200
    server.stop()

    for model in ("homeless", "missing"):
        server = begin(f"--model-repository={repository}",
                       "--exit-on-error=on", f"--load-model={model}",
                       "--model-control-mode=explicit")
        assert server.process.wait(30 * SLOW) == 1, model


def test_the_last_line_names_a_repository_that_is_missing(begin, tmp_path):
    server = begin(f"--model-repository={tmp_path}/nowhere")
    assert server.process.wait(30 * SLOW) == 1
    last = server.log.read_text().splitlines()[-1]
    assert last.startswith("error: creating server: Internal - model "
                           f"repository '{tmp_path}/nowhere' can't be listed: ")


def test_exit_on_error_is_about_the_start_s_own_models(begin, repository):
    """A request's load fails while those of the start go on."""
    models.write_model(repository, "homeless", models.identity_config(
        "homeless", [("IN", "FP32", [-1])], backend="nowhere"), (1,))
    models.write_model(repository, "late", models.identity_config(
        "late", [("IN", "FP32", [-1])], parameters={"execute_delay_ms": "3000"})
        + 'model_warmup { name: "w" batch_size: 1 inputs { key: "IN" value {'
        " data_type: TYPE_FP32 dims: 1 zero_data: true } } }\n", (1,))
    server = begin(f"--model-repository={repository}",
                   "--exit-on-error=true", "--load-model=late",
                   "--model-control-mode=explicit")
    assert process.wait_until(
        lambda: server.status("/v2/health/live") == 200, 30 * SLOW)
    answer = wire.fetch(server.port, "POST",
                        "/v2/repository/models/homeless/load", b"")
    assert answer.status == 400
    assert "READY" not in server.log.read_text()
    log = server.wait_log("MODE_EXPLICIT")
    assert "failed to load all models" not in log
    assert "failed to load model homeless" not in log
    assert server.status("/v2/models/late/ready") == 200
    server.stop()


def test_exit_on_error_is_not_about_what_requests_unload(begin, failing,
                                                         repository):
    """A request unloads a model of the start while another one loads."""
    late = models.identity(repository, "late", [("IN", "FP32", [-1])],
                           backend="failing",
                           parameters={"fail": "initialize-hold"})
    (late / "hold").touch()
    late.chmod(0o777)
    server = begin(f"--model-repository={repository}",
                   f"--backend-directory={failing}",
                   "--model-control-mode=explicit", "--load-model=one",
                   "--load-model=late")
    assert process.wait_until(
        lambda: server.status("/v2/models/one/ready") == 200
        and (late / "held").exists(), 30 * SLOW)
    answer = wire.fetch(server.port, "POST",
                        "/v2/repository/models/one/unload", b"")
    assert answer.status == 200
    assert process.wait_until(
        lambda: b'"unloaded"' in wire.fetch(
            server.port, "POST", "/v2/repository/index", b"").body, 30 * SLOW)
    (late / "hold").unlink()
    log = server.wait_log("MODE_EXPLICIT")
    assert "UNAVAILABLE: unloaded" in log
    server.wait_log("Started Metrics Service")
    assert server.status("/v2/models/late/ready") == 200
    server.stop()


@pytest.mark.parametrize("user", ["root", "4321"])
def test_exit_on_error_below_a_path_too_long_for_a_socket(
        begin, tmp_path, repository, user):
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    folder.chmod(0o777)

    def start():
        return begin(f"--model-repository={repository}",
                     f"--user={user}", env={"TMPDIR": str(folder)})

    server = start()
    server.wait_log("Started Metrics Service")
    server.process.send_signal(signal.SIGHUP)
    server.wait_log("gracefully shutting down")
    assert server.ask().status == 200
    server.stop()

    models.write_model(repository, "homeless", models.identity_config(
        "homeless", [("IN", "FP32", [-1])], backend="nowhere"), (1,))
    server = start()
    assert server.process.wait(30 * SLOW) == 1
    assert "failed to load all models" in server.log.read_text()
    assert list(folder.iterdir()) == []


def test_exit_on_error_waits_for_other_machines(begin, tmp_path, repository):
    """A model that comes late counts, and one that can't be loaded."""
    with Service() as service:
        service.bucket("late")
        env = service.variables(str(tmp_path))
        arguments = (f"--model-repository={repository}",
                     f"--model-repository={service.address('late')}",
                     "--exit-on-error=true")
        upload(service, "late", "", lambda f: models.identity(
            f, "far", [("IN", "FP32", [-1])]))
        service.gate.break_next(kind="slow", times=1, seconds=3)
        server = begin(*arguments, env=env)
        server.wait_ready()
        assert server.ask("far").status == 200
        server.stop()

        upload(service, "late", "", lambda f: models.identity(
            f, "homeless", [("IN", "FP32", [-1])], backend="nowhere"))
        service.gate.break_next(kind="slow", times=1, seconds=3)
        server = begin(*arguments, env=env)
        assert process.wait_until(
            lambda: server.status("/v2/models/one/ready") == 200, 30 * SLOW)
        assert server.process.wait(30 * SLOW) == 1
        assert "failed to load all models" in server.log.read_text()


@pytest.mark.parametrize("cloud", ["gs", "as"])
def test_repositories_of_clouds(begin, tmp_path, repository, cloud):
    with azure.Service() if cloud == "as" else gs.Service(tmp_path) as service:
        for name in ("a", "b"):
            service.bucket(f"in-{name}")
            upload(service, f"in-{name}", "r", lambda f, n=name:
                   models.identity(f, n, [("IN", "FP32", [-1])]))
        env = {k: str(v) for k, v in service.variables(tmp_path).items()}
        server = begin(f"--model-repository={service.address('in-a/r/')}",
                       env={**env,
                            "AIP_STORAGE_URI": service.address("in-b/r")})
        server.wait_ready()
        assert server.ask("a").status == 200
        assert server.status("/v2/models/b/ready") != 200
        server.stop()

        server = begin(f"--model-repository={repository}",
                       f"--model-repository={service.address('in-a/r')}",
                       f"--model-store={service.address('in-b//r/')}"
                       + (f"?{azure.SIGNATURE}" if cloud == "as" else ""),
                       env=env)
        server.wait_ready()
        for name in ("one", "a", "b"):
            assert server.status(f"/v2/models/{name}/ready") == 200
        log = server.wait_log("Started Metrics Service")
        assert "in-b" in log and "sig=" not in log
        server.stop()


def test_repository_from_the_environment(begin, repository):
    server = begin(env={"AIP_STORAGE_URI": str(repository)})
    server.wait_ready()
    assert server.ask().status == 200
    server.stop()


@pytest.mark.parametrize("options, strict, beside", [
    (["--strict-model-config=true"], True, False),
    (["--strict-model-config=false"], False, False),
    (["--disable-auto-complete-config", "--strict-model-config=false"],
     True, True)])
def test_deprecated_strictness(begin, repository, options, strict, beside):
    models.write_model(repository, "y", None)       # no backend, no file
    server = begin(f"--model-repository={repository}", *options,
                   "--strict-readiness=false", "--exit-on-error=false")
    server.wait_ready()
    reason = "failed to open text file" if strict \
        else "Could not determine backend"
    assert process.wait_until(lambda: reason in server.log.read_text(),
                              10 * SLOW)
    log = server.log.read_text()
    assert "'--strict-model-config' has been deprecated! Please use " \
        "'--disable-auto-complete-config' instead." in log
    assert ("does nothing beside" in log) == beside
    server.stop()


def test_poll_control(begin, repository):
    server = begin(f"--model-repository={repository}",
                   "--model-control-mode=poll", "--repository-poll-secs", "1")
    server.wait_ready()
    models.identity(repository, "new", [("IN", "FP32", [-1])])
    assert process.wait_until(
        lambda: server.status("/v2/models/new/ready") == 200, 30 * SLOW)
    assert wire.fetch(server.port, "POST", "/v2/repository/models/one/load",
                      b"").status == 503
    server.stop()


@pytest.mark.parametrize("arguments,words", [
    ([], ["--model-repository"]),
    (["--help"], ["Usage", "--model-repository", "--http-port"]),
    (["--no-such-option=1"], ["--no-such-option"]),
    (["--model-=/x"], ["--model-"]),
    (["--=/x"], ["--"]),
    (["--contro=all"], ["--contro"]),       # ours have no short names
    (["models"], ["models"]),
    (["--model-repository=/x", "--repoagent-directory="],
     ["--repoagent-directory", "empty"]),
    (["--http-port"], ["--http-port", "value"]),
    (["--http-port=x"], ["--http-port", "x"]),
    (["--http-port=0"], ["--http-port", "0"]),
    (["--http-port=70000"], ["70000"]),
    (["--http-port="], ["--http-port"]),
    (["--log-info=perhaps"], ["--log-info", "perhaps"]),
    (["--log-verbose=x"], ["--log-verbose"]),
    (["--model-repository="], ["--model-repository", "empty"]),
    (["--model-repository=/x", "--model-control-mode=explicit",
      "--load-model=*", "--load-model=m"],
     ["Wildcard model name '*' must be the ONLY startup model if"]),
    (["--model-repository=/x", "--strict-readiness=perhaps"],
     ["--strict-readiness", "perhaps"]),
    (["--model-repository=/x", "--repository-poll-secs=x"],
     ["--repository-poll-secs", "x"]),
    (["--model-repository=/x", "--model-control-mode=sometimes"],
     ["sometimes"]),
    (["--model-repository=/x", "--load-model=m"],
     ["--load-model", "--model-control-mode=explicit"]),
    (["--model-repository=/x", "--model-config-name="],
     ["--model-config-name", "empty"]),
    (["--model-repository=/x", "--model-config-name=../a"],
     ["--model-config-name", "../a"]),
    (["--model-repository=/x", "--model-load-thread-count=x"],
     ["--model-load-thread-count", "from 1 to 128"]),
    (["--model-repository=/x", "--model-load-retry-count=x"],
     ["--model-load-retry-count", "from 0 to 1000"]),
    (["--model-repository=/x", "--model-namespacing=maybe"], ["maybe"]),
    (["--model-repository=/x", "--disable-auto-complete-config=true"],
     ["takes no value"]),
    (["--model-repository=/x", "--strict-readiness=maybe"], ["maybe"]),
    *((["--model-repository=/x", f"--backend-config={text}"],
       ["--backend-config option format is", "<setting>=<value>", text])
      for text in ("nothing", "setting=", "x,setting", "x,setting=", "x,=1",
                   ",setting=1")),
    (["--model-repository=/x", "--cache-config=local"],
     ["No cache specified. --cache-config option format is <cache name>,"
      "<setting>=<value>. Got local"]),
    (["--model-repository=/x", "--cache-config=local,=5"],
     ["--cache-config option format is '<cache name>,<setting>=<value>'. Got"
      " local,=5"]),
    (["--model-repository=/x", "--cache-config=,a=5"], [",a=5"]),
    (["--model-repository=/x", "--cache-config=local,size="], ["local,size="]),
    (["--model-repository=/x", "--cache-config=local,size=5000",
      "--cache-config=redis,host=x"],
     ["found multiple cache configurations, but only a single cache is"
      " currently supported", "redis"]),
    (["--model-repository=/x", "--cache-config=local,size=5000",
      "--response-cache-byte-size=5000"],
     ["Error: Incompatible flags --response-cache-byte-size and --cache-config"
      " both provided. Please provide one or the other."]),
    (["--model-repository=/x", "--response-cache-byte-size=-1"], ["-1"]),
    (["--model-repository=/x", "--http-address=a;b"], ["a;b"]),
    (["--model-repository=/x", "--metrics-address=a;b"], ["a;b"]),
    (["--model-repository=/x", "--host-policy=cpu"],
     ["--host-policy option format is '<policy name>,<setting>=<value>'. Got"
      " cpu"]),
    (["--model-repository=/x", "--host-policy=cpu-cores=1"],
     ["--host-policy"]),
    (["--model-repository=/x", "--metrics-port=8000"], ["8000"]),
    (["--model-repository=/x", "--rate-limit=on"], ["--rate-limit", "on"]),
    (["--model-repository=/x", "--rate-limit-resource=R1"],
     ["'<resource_name>:<count>:<device>' or '<resource_name>:<count>'"]),
    (["--model-repository=/x", "--rate-limit-resource=R1:2:"], ["format"]),
    (["--model-repository=/x", "--rate-limit-resource=R1:2:gpu"],
     ["format"]),
    (["--model-repository=/x", "--rate-limit-resource=:2"], ["format"]),
    (["--model-repository=/x\ny"], ["control character"]),
    (["--model-repository=/x", "--http-header-forward-pattern=" + "a" * 4001],
     ["--http-header-forward-pattern", "longer than 4000 bytes"]),
])
def test_wrong_command_line(arguments, words):
    text = rejected(*arguments)
    for word in words:
        assert word in text, text


def test_install_and_run_from_there(tmp_path, repository):
    """make install: the launcher finds its pieces under the prefix."""
    from lib.server import ROOT
    tmp_path.chmod(0o755)
    prefix = tmp_path / "usr"
    subprocess.run(["sh", "tools/install.sh", str(BUILD), str(prefix)],
                   cwd=ROOT, check=True)
    assert (prefix / "include/triton/core/tritonbackend.h").is_file()
    models.identity(
        repository, "checked", [("IN", "FP32", [-1])],
        extra='model_repository_agents { agents { name: "checksum" } }\n')
    port = free_port()
    server = subprocess.Popen(
        [prefix / "bin/inference-server", "--model-repository", repository,
         "--http-address=127.0.0.1", f"--http-port={port}",
         f"--grpc-port={free_port()}", f"--metrics-port={free_port()}"],
        env=launcher_env(), stdin=subprocess.DEVNULL,
        stderr=open(tmp_path / "log", "wb"))
    try:
        def ready():
            try:
                return wire.fetch(port, "GET",
                                  "/v2/health/ready").status == 200
            except OSError:
                return False

        assert process.wait_until(ready, 30 * SLOW), \
            (tmp_path / "log").read_text()
        with wire.Wire(port) as connection:
            for name in ("one", "checked"):
                assert connection.infer(name, {"inputs": [
                    tensor("IN", "FP32", [1], [1])]}).status == 200
    finally:
        server.terminate()
        assert server.wait(30 * SLOW) == 0
    assert pathlib.Path(prefix).is_dir()


@pytest.mark.parametrize("options,scratch", [
    (["--pinned-memory-pool-byte-size=2097152",
      "--cuda-memory-pool-byte-size", "1:1048576"], "CPU CPU_PINNED GPU"),
    (["--pinned-memory-pool-byte-size=0"], "CPU GPU"),
    (["--cuda-memory-pool-byte-size=1:4194304",         # the last one counts
      "--cuda-memory-pool-byte-size=0:1048576",
      "--cuda-memory-pool-byte-size=1:0"], "CPU CPU_PINNED"),
])
def test_memory_options_reach_the_core(launch, tmp_path, options, scratch):
    folder = tmp_path / "kinds"
    models.write_model(
        folder, "m", 'name: "m"\nbackend: "memory_kinds"\n'
        + models.io_block("input", [("IN", "UINT8", [-1])])
        + models.io_block("output", [("DATA", "UINT8", [-1]),
                                     ("REPORT", "BYTES", [1])])
        + "instance_group { kind: KIND_GPU gpus: [1] }\n")
    launcher = launch(
        f"--model-repository={folder}",
        f"--backend-directory={backends.build('memory_kinds')}",
        "--min-supported-compute-capability=5.0",
        "--model-load-gpu-limit=1:0.9", *options,
        env={"INFERENCE_CUDA_DRIVER": str(BUILD / "t-cuda/libfake-cuda.so")})
    launcher.wait_log(" are pinned")        # in the background
    answer = wire.fetch(launcher.port, "POST", "/v2/models/m/infer",
                        b'{"inputs":[{"name":"IN","datatype":"UINT8",'
                        b'"shape":[1],"data":[7]}]}')
    assert answer.status == 200, answer
    got = {o["name"]: o["data"] for o in answer.json()["outputs"]}
    assert got["REPORT"] == [f"on GPU 1; scratch {scratch};"
                             " in CPU_PINNED:0:1;"
                             " out CPU:0;"]
    assert launcher.stop() == 0


@pytest.mark.parametrize("option,word", [
    ("--pinned-memory-pool-byte-size=m", "is a number from 0"),
    ("--cuda-memory-pool-byte-size=67108864", "a GPU's number and a colon"),
    ("--cuda-memory-pool-byte-size=0:", "is gpu:bytes"),
    ("--cuda-memory-pool-byte-size=0:m", "is gpu:bytes"),
    ("--cuda-memory-pool-byte-size=-1:64", "a GPU's number and a colon"),
    ("--min-supported-compute-capability=new", "is a number such as 7.5"),
    ("--min-supported-compute-capability=nan", "is a number such as 7.5"),
    ("--model-load-gpu-limit=0:1.5", "in range [0.0, 1.0]"),
    ("--model-load-gpu-limit=0:-0.4", "in range [0.0, 1.0], got -0.4"),
    ("--model-load-gpu-limit=-1:0.6", "expects device ID >= 0, got -1"),
    ("--model-load-gpu-limit=0", "a GPU's number and a colon"),
])
def test_memory_options_are_checked(option, word):
    assert word in rejected("--model-repository=/tmp", option)


@pytest.mark.parametrize("options,seen", [
    ([], {"logged": True, "verbose": False, "printed": True}),
    (["--log-info=false", "--log-verbose=1"],
     {"logged": False, "verbose": True, "printed": True}),
])
def test_words_of_models_are_seen(launch, repository, options, seen):
    """Of Logger and print, as Triton shows them; but no line of nginx for
    each connection that a client ends."""
    model = repository / "talks"
    (model / "1").mkdir(parents=True)
    (model / "1/model.py").write_text("""\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        pb.Logger.log_info("logged by a model")
        pb.Logger.log_verbose("verbose by a model")
        print("printed by a model", flush=True)

    def execute(self, requests):
        return [pb.InferenceResponse([]) for r in requests]
""")
    (model / "config.pbtxt").write_text(
        'backend: "python"\n'
        'input { name: "IN" data_type: TYPE_FP32 dims: 1 }\n'
        'output { name: "OUT" data_type: TYPE_FP32 dims: 1 }\n')
    launcher = launch(*options, env={
        "PATH": f"{pathlib.Path(sys.executable).parent}:"
                f"{os.environ['PATH']}"})
    assert launcher.ask().status == 200
    assert launcher.stop() == 0
    log = launcher.log.read_text()
    assert {word: f"{word} by a model" in log for word in seen} == seen
    assert ("HTTP request: model=one" in log) == seen["verbose"]
    assert "closed" not in log
