"""Instances: how they are made, prepared, asked and ended."""

import concurrent.futures
import os

import pytest

from lib import backends, models, process
from lib.server import SLOW

CORE = min(os.sched_getaffinity(0))

WARMUP = """model_warmup {{ name: "{name}" batch_size: {rows} count: {runs}
    inputs {{ key: "IN" value {{ data_type: TYPE_FP32 dims: {dims} {data} }} }}
}}
"""


def warmup(name="cold start", rows=1, runs=1, dims=4, data="zero_data: true"):
    return WARMUP.format(name=name, rows=rows, runs=runs, dims=dims, data=data)


@pytest.fixture
def recorded(make_server, tmp_path):
    """A server with recorder models; what they wrote down is read anew."""
    path = tmp_path / "record"
    path.touch()
    path.chmod(0o666)
    tmp_path.chmod(0o777)

    def add(folder, name, instances=1, extra="", files=None, **parameters):
        config = models.identity_config(
            name, [("IN", "FP32", [4])], backend="recorder", max_batch=8,
            instances=instances, extra=extra,
            parameters=dict(parameters, record=path))
        model = models.write_model(folder, name, config)
        for file, data in (files or {}).items():
            (model / file).parent.mkdir(exist_ok=True)
            (model / file).write_bytes(data)

    def make(fill, **kw):
        return make_server(lambda folder: fill(folder, add),
                           backends=backends.build("recorder"), **kw)

    make.lines = lambda: path.read_text().splitlines()
    return make


def ends(server, model):
    assert process.wait_until(
        lambda: f"model={model} version=1 failed" in server.log_text(),
        20 * SLOW)


def test_instances_are_made_one_after_another(recorded):
    recorded(lambda folder, add: add(folder, "m", instances=3))
    assert [line.split()[1] for line in recorded.lines()] \
        == ["m_0_0", "m_0_1", "m_0_2"]


def test_the_environment_asks_for_all_at_once(recorded):
    """Each initialiser waits until all are inside: alone none would end."""
    recorded(lambda folder, add: add(folder, "m", instances=3, together=3),
             inference_env=["TRITON_PARALLEL_INSTANCE_LOADING=1"])
    assert sorted(line.split()[1] for line in recorded.lines()) \
        == ["m_0_0", "m_0_1", "m_0_2"]


def test_a_failing_instance_ends_alone_then_all_do(recorded):
    server = recorded(lambda folder, add: add(folder, "m", instances=3,
                                              fail="m_0_1"), wait="live")
    ends(server, "m")
    server.wait_said("no room (instance 'm_0_1')")
    assert [" ".join(line.split()[:2]) for line in recorded.lines()] == [
        "init m_0_0", "init m_0_1", "fini m_0_1", "init m_0_2", "fini m_0_0",
        "fini m_0_2"]


def test_policy_is_seen_and_in_force_from_the_initialiser_on(recorded):
    recorded(lambda folder, add: (
        add(folder, "m", extra=warmup()), ), http=f"""
        inference_host_policy cpu cpu-cores={CORE} numa-node=0;
        inference_host_policy other cpu-cores=0;""")
    assert recorded.lines() == [
        f'init m_0_0 1 {{"cpu":{{"cpu-cores":"{CORE}","numa-node":"0"}}}}',
        "exec m_0_0 1 1"]


def test_without_a_policy_the_message_is_empty(recorded):
    recorded(lambda folder, add: add(folder, "m"))
    count = len(os.sched_getaffinity(0))
    assert recorded.lines() == [f'init m_0_0 {count} {{"cpu":{{}}}}']


def test_every_instance_warms_up_before_the_model_is_ready(recorded):
    server = recorded(lambda folder, add: add(
        folder, "m", instances=2, extra=warmup(rows=3, runs=2)
        + warmup("file", data='input_data_file: "four"')
        + warmup("skipped", rows=0), files={"warmup/four": bytes(16)}))
    assert [" ".join(line.split()[::3]) for line in recorded.lines()
            if line.startswith("exec m_0_0")] == ["exec 3", "exec 3", "exec 1"]
    assert len([line for line in recorded.lines()
                if line.startswith("exec m_0_1")]) == 3
    assert server.get("/v2/models/m/ready").status == 200


def test_a_failing_warmup_fails_the_load(recorded):
    server = recorded(lambda folder, add: (
        add(folder, "answer", extra=warmup(), fail="exec"),
        add(folder, "short", extra=warmup(data='input_data_file: "three"'),
            files={"warmup/three": b"abc"}),
        add(folder, "good")), wait="live")
    for model in ("answer", "short"):
        ends(server, model)
        assert server.get(f"/v2/models/{model}/ready").status != 200
    server.wait_log("failed to run warmup sample 'cold start': too cold")
    server.wait_log("expects 16 bytes, but the data provided from")
    assert server.wait_for("/v2/models/good/ready")


def test_passive_instances_are_made_and_left_alone(recorded):
    server = recorded(lambda folder, add: add(
        folder, "m", extra=warmup() + 'instance_group { name: "spare" kind:'
        ' KIND_CPU passive: true secondary_devices { device_id: 3 } }'))
    for _ in range(3):
        assert server.post("/v2/models/m/infer", b'{"inputs":[{"name":"IN",'
                           b'"datatype":"FP32","shape":[1,4],'
                           b'"data":[1,2,3,4]}]}').status == 200
    words = [line.split() for line in recorded.lines()]
    assert [w[1] for w in words if w[0] == "init"] == ["m_0_0", "spare_0"]
    assert [w[1] for w in words if w[0] == "exec"] == ["m_0_0"] * 4
    assert ["side", "spare_0", "KIND_NVDLA", "3"] in words
    (server.models / "m" / "unready").touch()
    assert server.get("/v2/models/m/ready").status == 400
    server.stop()
    assert recorded.lines()[-2:] == ["fini m_0_0", "fini spare_0"]


def test_readiness_asks_every_instance(recorded):
    server = recorded(lambda folder, add: (
        add(folder, "m", instances=2), add(folder, "other")))
    assert server.get("/v2/health/ready").status == 200
    (server.models / "m" / "unready").touch()
    assert server.get("/v2/models/m/ready").status == 400
    assert server.get("/v2/models/other/ready").status == 200
    assert server.get("/v2/health/ready").status == 400
    assert server.get("/v2/health/live").status == 200
    (server.models / "m" / "unready").unlink()
    assert server.get("/v2/health/ready").status == 200
    assert server.get("/v2/models/m/ready").status == 200


def test_one_that_hangs_is_not_ready_and_nobody_else_waits(recorded):
    server = recorded(
        lambda folder, add: (add(folder, "m"), add(folder, "n"),
                             add(folder, "other")),
        parts="health metadata config infer statistics",
        server="location = /scrape { inference metrics; }\n")
    for model in "mn":
        (server.models / model / "hangs").touch()
    hung = [f"/v2/models/{model}/ready" for model in "mmnn"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(server.get, path)
                 for path in [*hung, "/v2/health/ready"]]
        for path in ("/v2", "/v2/models/m", "/v2/models/m/config", "/scrape",
                     "/v2/models/m/stats", "/v2/models/other/ready"):
            assert server.get(path).status == 200, path
        assert server.post("/v2/models/m/infer", b'{"inputs":[{"name":"IN",'
                           b'"datatype":"FP32","shape":[1,4],'
                           b'"data":[1,2,3,4]}]}').status == 200
        assert {f.result().status for f in asked} == {400}

    for path in [*hung, "/v2/health/ready"]:        # it is known now
        assert server.get(path).status == 400
    assert server.get("/v2/models/other/ready").status == 200
    server.wait_said("has not said within 5000 ms", 2)
    for model in "mn":
        (server.models / model / "hangs").unlink()
    for path in [*hung, "/v2/health/ready"]:
        assert server.wait_for(path), path
