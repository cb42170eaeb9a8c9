"""Instance groups that change while their model serves."""

import json

import pytest

from lib import backends, models, process
from lib.load import Load
from lib.server import SLOW
from lib.wire import request_bytes, tensor

EXPLICIT = "    inference_model_control explicit;\n" \
    "    inference_load_model m;\n"
POLL = "    inference_model_control poll interval=200ms;\n"
PARTS = "health metadata config infer repository statistics"
BODY = {"inputs": [tensor("IN", "FP32", [1, 4], [1, 2, 3, 4])]}
CPU = {"kind": "KIND_CPU"}


@pytest.fixture
def scaled(make_server, tmp_path):
    """make(http, ...): a server with the recorder model m."""
    path = tmp_path / "record"
    path.touch()
    path.chmod(0o666)
    tmp_path.chmod(0o777)
    made, made_in = {}, {}

    def write(count, rename=False, versions=(1,), **changes):
        made.update(changes)
        options = dict(made)
        parameters = dict(options.pop("parameters", {}), record=path,
                          whole="yes")
        config = models.identity_config(
            "m", [("IN", "FP32", [4])], backend="recorder", instances=count,
            parameters=parameters, **dict({"max_batch": 8}, **options))
        folder = models.write_model(made_in["folder"], "m", None, versions)
        text = folder / "config.pbtxt.new" if rename else \
            folder / "config.pbtxt"
        text.write_text(config)
        if rename:
            text.rename(folder / "config.pbtxt")

    def make(http, count=1, versions=(1,), **changes):
        def fill(folder):
            made_in["folder"] = folder
            write(count, versions=versions, **changes)

        make.server = make_server(
            fill, parts=PARTS, http=http, workers=2,
            backends=backends.build("recorder"))
        return make.server

    def seen(verb):
        """Names of what was done so, in order."""
        return [line.split()[1] for line in path.read_text().splitlines()
                if line.startswith(verb + " ")]

    make.write = write
    make.seen = seen
    make.path = path
    return make


def config_of(server):
    return json.loads(server.get("/v2/models/m/config").body)


def counts(server):
    return [g["count"] for g in config_of(server)["instance_group"]]


def statistics(server):
    body = json.loads(server.get("/v2/models/m/stats").body)
    return body["model_stats"][0]


def load(server, config=None):
    parameters = {} if config is None else {
        "parameters": {"config": json.dumps(config)}}
    return server.post("/v2/repository/models/m/load",
                       json.dumps(parameters).encode())


def load_groups(server, *groups):
    """An override with the model's own configuration and these groups."""
    config = config_of(server)
    config["instance_group"] = [dict(CPU, **g) for g in groups]
    return load(server, config)


def index(server):
    return json.loads(server.post("/v2/repository/index", b"").body)


def error(answer):
    return json.loads(answer.body)["error"]


def once(connection):
    return connection.infer("m", BODY).status


def alive(scaled):
    """The instances that there are, by name."""
    names = scaled.seen("init")
    for name in scaled.seen("fini"):
        names.remove(name)
    return sorted(names)


def there_are(scaled, *names):
    """An instance that goes ends by itself, after its requests."""
    return process.wait_until(lambda: alive(scaled) == list(names),
                              20 * SLOW)


READY = [{"name": "m", "version": "1", "state": "READY"}]


def test_instances_come_and_go_under_load(scaled):
    """1 -> 4 -> 2 -> 1, again and again, by override: no request notices."""
    server = scaled(EXPLICIT, parameters={"lasts": 1})

    with Load(server.port, once) as clients:
        for _ in range(5):
            for count in (4, 2, 1):
                clients.wait_for_more(20, 30 * SLOW)
                answer = load_groups(server, {"count": count})
                assert answer.status == 200, answer
                assert counts(server) == [count]
                assert process.wait_until(
                    lambda: len(alive(scaled)) == count, 20 * SLOW)
        clients.wait_for_more(20, 30 * SLOW)
    assert set(clients.results) == {200}, clients.results

    assert scaled.seen("load") == ["m"]         # one model all the time
    assert scaled.seen("free") == []
    assert len(scaled.seen("init")) == 1 + 5 * 3
    assert len(scaled.seen("fini")) == 5 * 3
    assert there_are(scaled, "m_0_0")
    assert "m_0_0" not in scaled.seen("fini")   # it stayed all along
    assert index(server) == READY
    server.stop()
    assert there_are(scaled)
    assert scaled.seen("free") == ["m"]


def test_a_polled_file_scales_under_load(scaled):
    server = scaled(POLL, parameters={"lasts": 1})

    with Load(server.port, once) as clients:
        for count in (4, 2, 1, 3):
            clients.wait_for_more(20, 30 * SLOW)
            scaled.write(count, rename=True)
            assert process.wait_until(lambda: counts(server) == [count],
                                      30 * SLOW)
            assert process.wait_until(
                lambda: len(alive(scaled)) == count, 30 * SLOW)
        clients.wait_for_more(20, 30 * SLOW)
    assert set(clients.results) == {200}, clients.results
    assert scaled.seen("load") == ["m"]
    assert "m_0_0" not in scaled.seen("fini")


def test_statistics_outlive_the_instances(make_server):
    server = make_server(lambda folder: models.identity(
        folder, "m", [("IN", "FP32", [4])], max_batch=8, instances=3),
        parts=PARTS, http=EXPLICIT)

    for _ in range(30):
        assert server.infer("m", BODY).status == 200
    before = statistics(server)
    assert before["inference_count"] == 30
    assert load_groups(server, {"count": 1}).status == 200
    assert statistics(server) == before
    assert load_groups(server, {"count": 2, "host_policy": "other"}
                       ).status == 200          # none of the first is left
    assert statistics(server) == before
    assert server.infer("m", BODY).status == 200
    assert statistics(server)["inference_count"] == 31


def test_what_alike_instances_are(scaled):
    """Only name and count of a group may differ; names stay with those that
    stay."""
    server = scaled(EXPLICIT, count=2)
    first = sorted(scaled.seen("init"))
    assert first == ["m_0_0", "m_0_1"]

    assert load_groups(server, {"count": 3, "name": "new"}).status == 200
    assert scaled.seen("init")[2:] == ["new_2"]
    assert scaled.seen("fini") == []
    assert [g["name"] for g in config_of(server)["instance_group"]] == ["new"]

    assert load_groups(server, {"count": 1, "name": "new"},
                       {"count": 1, "name": "p", "passive": True}
                       ).status == 200
    assert scaled.seen("init")[3:] == ["p_0"]
    assert there_are(scaled, "m_0_0", "p_0")
    assert sorted(scaled.seen("fini")) == ["m_0_1", "new_2"]
    for _ in range(10):
        assert server.infer("m", BODY).status == 200
    assert set(scaled.seen("exec")) == {"m_0_0"}


def test_nothing_but_instances(scaled):
    """With anything else the model is loaded anew."""
    server = scaled(EXPLICIT)
    scaled.write(3, max_batch=4)
    assert load(server).status == 200
    assert scaled.seen("load") == ["m", "m"]
    assert config_of(server)["max_batch_size"] == 4
    assert counts(server) == [3]

    scaled.write(2)                             # compared with what is now
    assert load(server).status == 200
    assert scaled.seen("load") == ["m", "m"]
    assert counts(server) == [2]
    assert there_are(scaled, "m_0_0", "m_0_1")  # what went has written its
    assert process.wait_until(                  # last line
        lambda: scaled.seen("free") == ["m"], 20 * SLOW)
    lines = scaled.path.read_text()
    assert load(server).status == 200           # nothing to do
    assert scaled.path.read_text() == lines


def test_versions_and_instances_change_together(scaled):
    server = scaled(EXPLICIT, versions=(1, 2))
    assert [r["version"] for r in index(server) if r["state"] == "READY"] \
        == ["2"]
    scaled.write(2, extra="version_policy { all {} }\n")
    assert load(server).status == 200
    assert [r["version"] for r in index(server) if r["state"] == "READY"] \
        == ["1", "2"]
    assert len(scaled.seen("load")) == 2        # version 2 stayed
    assert len(alive(scaled)) == 4
    for version in (1, 2):
        config = json.loads(server.get(
            f"/v2/models/m/versions/{version}/config").body)
        assert config["version_policy"] == {"all": {}}
        assert config["instance_group"][0]["count"] == 2


def test_an_override_is_kept_until_a_file_is_newer(scaled):
    server = scaled(EXPLICIT)
    assert load_groups(server, {"count": 3}).status == 200
    assert load(server).status == 200
    assert counts(server) == [3]
    scaled.write(2)
    assert load(server).status == 200
    assert counts(server) == [2]
    assert there_are(scaled, "m_0_0", "m_0_1")
    assert scaled.seen("load") == ["m"]


def rejected(server, answer, reason):
    """The load fails, the model serves as before and says what was wrong."""
    assert answer.status == 400, answer
    assert error(answer).startswith(
        "load failed for model 'm': version 1 is at READY state: ")
    assert error(answer).endswith(
        "; not reloaded, version 1 goes on serving\n")
    assert reason in error(answer)
    row, = index(server)
    assert row["state"] == "READY"
    assert reason in row["reason"]
    assert server.infer("m", BODY).status == 200
    assert server.get("/v2/models/m/ready").status == 200


def test_an_impossible_gpu(scaled):
    server = scaled(EXPLICIT, count=2)
    config = config_of(server)
    answer = load_groups(server, {"kind": "KIND_GPU", "gpus": [77]})
    rejected(server, answer, "unsupported gpu id 77")
    assert config_of(server) == config
    assert there_are(scaled, "m_0_0", "m_0_1")

    scaled.write(1)                             # what is right heals it
    assert load(server).status == 200
    assert index(server) == READY
    assert there_are(scaled, "m_0_0")
    assert scaled.seen("load") == ["m"]


def test_too_many_instances(scaled):
    server = scaled(EXPLICIT)
    rejected(server, load_groups(server, {"count": 100000}),
            "instance groups of model m ask for 100000 instances, the limit"
            " for a load request is 1024 (config override:"
            " instance_group[0].count)")
    assert scaled.seen("init") == ["m_0_0"]


def test_the_limit_of_requests_is_not_the_repository_s(scaled):
    server = scaled(EXPLICIT)
    rejected(server, load_groups(server, {"count": 1000}, {"count": 25}),
            "instance_group[0].count")
    scaled.write(1025)
    assert load(server).status == 200
    assert len(set(scaled.seen("init"))) == 1025


def test_who_may_bring_code_may_ask_for_more_instances(scaled):
    server = scaled(EXPLICIT + "    inference_code_upload on;\n")
    assert load_groups(server, {"count": 1025}).status == 200
    assert len(set(scaled.seen("init"))) == 1025


def test_an_instance_that_cannot_be_made(scaled):
    """All that were made for the change are finalized again."""
    server = scaled(EXPLICIT, parameters={"fail": "m_0_3"})

    with Load(server.port, once) as clients:
        for _ in range(5):
            answer = load_groups(server, {"count": 5})
            rejected(server, answer, "no room (instance 'm_0_3')")
            assert counts(server) == [1]
            assert there_are(scaled, "m_0_0")
        clients.wait_for_more(20, 30 * SLOW)
    assert set(clients.results) == {200}, clients.results
    assert scaled.seen("load") == ["m"]

    assert load_groups(server, {"count": 3}).status == 200
    assert index(server) == READY
    assert there_are(scaled, "m_0_0", "m_0_1", "m_0_2")


def test_new_instances_warm_up_first(scaled):
    warmup = """model_warmup { name: "w" batch_size: 3 inputs {
        key: "IN" value { data_type: TYPE_FP32 dims: 4 zero_data: true } } }
    """
    server = scaled(EXPLICIT, extra=warmup)
    assert scaled.seen("exec") == ["m_0_0"]
    assert load_groups(server, {"count": 3}).status == 200
    assert sorted(scaled.seen("exec")) == ["m_0_0", "m_0_1", "m_0_2"]


def test_resources_that_cannot_be_had(scaled):
    limits = EXPLICIT + "    inference_rate_limit execution_count;\n" \
        "    inference_rate_limit_resource R1 2;\n"
    server = scaled(limits)

    def needs(count, copies):
        return {"count": count, "rate_limiter": {"resources": [
            {"name": "R1", "count": copies}]}}

    rejected(server, load_groups(server, needs(2, 4)),
            'Resource count for "R1" is limited to 2')
    assert there_are(scaled, "m_0_0")
    assert load_groups(server, needs(2, 2)).status == 200
    assert process.wait_until(lambda: len(alive(scaled)) == 2, 20 * SLOW)
    with Load(server.port, once) as clients:
        for copies in (1, 2) * 3:
            clients.wait_for_more(20, 30 * SLOW)
            assert load_groups(server, needs(2, copies)).status == 200
    assert set(clients.results) == {200}, clients.results


@pytest.mark.parametrize("work", [
    {"lasts": 1500}, {"lasts": 300, "later": 1500},
    {"lasts": 300, "later": 1500, "early": "yes"}],
    ids=["executes", "keeps-the-request", "answers-after-the-request"])
def test_a_removed_instance_ends_its_work_first(scaled, work):
    """Its client has the answer; the load and others didn't wait for it."""
    server = scaled(EXPLICIT, count=2, parameters=work)

    with server.wire(60) as a, server.wire(60) as b, server.wire(60) as c:
        for wire in (a, b):
            wire.send(request_bytes("POST", "/v2/models/m/infer",
                                    json.dumps(BODY).encode(), {}))
        assert process.wait_until(
            lambda: len(scaled.seen("exec")) == 2, 20 * SLOW)
        c.send(request_bytes("POST", "/v2/models/m/infer",
                             json.dumps(BODY).encode(), {}))
        assert load_groups(server, {"count": 1}).status == 200
        assert counts(server) == [1]
        assert "done m_0_1" not in scaled.path.read_text()
        assert load(server).status == 200
        assert [wire.read().status for wire in (a, b, c)] == [200] * 3
    assert there_are(scaled, "m_0_0")
    lines = [" ".join(line.split()[:2])
             for line in scaled.path.read_text().splitlines()]
    assert lines.index("done m_0_1") < lines.index("fini m_0_1")
    assert lines.count("done m_0_1") == lines.count("exec m_0_1")
    assert "exec m_0_1" not in lines[lines.index("fini m_0_1"):]


def test_each_removed_instance_goes_with_its_sequences(scaled):
    server = scaled(EXPLICIT, count=3, max_batch=1,
                    extra="sequence_batching {"
                    " max_sequence_idle_microseconds: 600000000 }\n")

    def step(id, **flags):
        answer = server.infer("m", dict(
            BODY, parameters=dict(flags, sequence_id=id)))
        assert answer.status == 200, answer

    for id in (1, 2, 3):
        step(id, sequence_start=True)
    assert sorted(scaled.seen("exec")) == ["m_0_0", "m_0_1", "m_0_2"]
    home = dict(zip(scaled.seen("exec"), (1, 2, 3)))
    scaled.write(1)
    answer = load(server)
    assert answer.status == 200, answer
    step(home["m_0_1"], sequence_end=True)
    assert process.wait_until(lambda: scaled.seen("fini") == ["m_0_1"],
                              20 * SLOW), scaled.seen("fini")
    step(home["m_0_2"])
    step(home["m_0_2"], sequence_end=True)
    assert process.wait_until(
        lambda: scaled.seen("fini") == ["m_0_1", "m_0_2"], 20 * SLOW)
    step(home["m_0_0"], sequence_end=True)
    assert alive(scaled) == ["m_0_0"]
