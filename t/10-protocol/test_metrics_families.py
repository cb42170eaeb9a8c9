"""Each family of the metrics, against what the test's own traffic makes."""

import concurrent.futures
import math
import pathlib
import tempfile

import pytest
from prometheus_client import parser

from lib import backends, decoupled, models, process
from lib.batches import Gate
from lib.exposition import scrape
from lib.server import BUILD, SLOW, Server
from lib.wire import infer_path, request_bytes, tensor

EVERYTHING = """
    inference_metrics histograms=on summaries=on
                      quantiles=0:0.01,0.5:0.01,1:0.01;
    inference_response_cache local size=1m;
"""

LATENCIES = ("request", "queue", "compute_input", "compute_infer",
             "compute_output")
REASONS = ("REJECTED", "CANCELED", "BACKEND", "OTHER")
BOUNDS = [x / 1e6 for x in (
    10, 25, 50, 100, 250, 500, 1e3, 2500, 5e3, 1e4, 25e3, 5e4, 1e5, 25e4, 5e5,
    1e6, 25e5, 5e6, 1e7, 3e7, 6e7)] + [math.inf]
FIRST = "nv_inference_first_response_histogram_ms"


def fill(gates):
    def repository(folder):
        one = [("IN", "INT32", [1])]
        many = [("OUT", "INT32", [-1])]
        batch = dict(outputs=many, max_batch=8, backend="batches")
        models.identity(folder, "plain", [("IN", "INT32", [-1])],
                        parameters={"execute_delay_ms": "3"},
                        extra='metric_tags { key: "b-b" value: "x\\\\y\\"z" }\n'
                              'metric_tags { key: "a" value: "one\\ntwo" }\n'
                              'metric_tags { key: "b.b" value: "last" }\n')
        models.identity(folder, "kept", [("IN", "INT32", [-1])],
                        extra="response_cache { enable: true }\n")
        for name, extra in (
                ("batch", "dynamic_batching { }\n"),
                ("short", "dynamic_batching { default_queue_policy {"
                 " default_timeout_microseconds: 30000 } }\n"),
                ("full", "dynamic_batching { default_queue_policy {"
                 " max_queue_size: 1 } }\n"),
                ("waits", "response_cache { enable: true }\n")):
            models.identity(folder, name, one, extra=extra,
                            parameters={"gate": gates[name].path}, **batch)
        models.identity(folder, "error", one, max_batch=4, backend="failing",
                        parameters={"fail": "execute-error"})
        models.identity(folder, "unused", one, extra="""
model_metrics { metric_control {
    metric_identifier { family: "nv_inference_first_response_histogram_ms" }
    histogram_options { buckets: [ 7, 30 ] } } }
""")
        decoupled.square(folder)
    return repository


@pytest.fixture(scope="module")
def world():
    with tempfile.TemporaryDirectory(prefix="inf-gate-") as folder, \
            concurrent.futures.ThreadPoolExecutor(16) as pool:
        gates = {}
        for name in ("batch", "short", "full", "waits"):
            path = pathlib.Path(folder) / name
            path.mkdir()
            gates[name] = Gate(path)
        libraries = backends.build("batches")
        for name in ("failing", "square"):
            backends.build(name, libraries)
        with Server(fill(gates), parts="all", http=EVERYTHING
                    + f"    inference_backends {libraries};\n", server="""
            location = /metrics { inference metrics; }
            location /soon/ { inference infer; inference_timeout 100ms; }
        """) as server:
            server.gates, server.pool = gates, pool
            yield server
            for gate in gates.values():
                gate.open_all()


def body(value=1, rows=0):
    shape = [rows, 1] if rows else [1]
    return {"inputs": [tensor("IN", "INT32", shape, [value] * (rows or 1))]}


def ask(server, model, value=1, rows=0, status=200):
    answer = server.infer(model, body(value, rows))
    assert answer.status == status, answer
    return answer


def stats(server, model):
    answer = server.get(f"/v2/models/{model}/stats")
    assert answer.status == 200, answer
    return answer.json()["model_stats"][0]


def settled(server, model, executions):
    """Its statistics, once the backend has reported so many executions."""
    return process.wait_until(
        lambda: (s := stats(server, model))["execution_count"] == executions
        and s["inference_stats"]["success"]["count"]
        + s["inference_stats"]["fail"]["count"] >= executions and s,
        20 * SLOW)


def one_by_one(server, model, count):
    """Asks so often; what each request took, by the statistics' parts."""
    took = []
    before = stats(server, model)
    for i in range(count):
        ask(server, model, value=i)
        after = settled(server, model, before["execution_count"] + 1)
        assert after
        took.append({k: after["inference_stats"][k]["ns"]
                     - before["inference_stats"][k]["ns"]
                     for k in after["inference_stats"]})
        before = after
    return took


def counted(values):
    """[(bound, number)] of values in seconds."""
    found = dict.fromkeys(BOUNDS, 0)
    for value in values:
        found[next(b for b in BOUNDS if value <= b)] += 1
    return list(found.items())


def test_every_family_is_there_and_nothing_else(world):
    text = scrape(world)
    kinds = {name: f.kind for name, f in text.families.items()}
    wanted = {f"nv_inference_{x}": "counter" for x in (
        "request_success", "request_failure", "count", "exec_count")}
    wanted |= {f"nv_inference_{x}_duration_us": "counter" for x in LATENCIES}
    wanted |= {f"nv_inference_{x}_summary_us": "summary" for x in LATENCIES}
    wanted |= {f"nv_cache_{x}_per_model": "counter" for x in (
        "num_hits", "num_misses", "hit_duration", "miss_duration")}
    wanted |= {f"nv_cache_{x}_summary_per_model": "summary"
               for x in ("hit", "miss")}
    wanted |= {f"nv_cache_{x}": "gauge" for x in (
        "util", "num_entries", "num_hits", "num_misses", "num_lookups",
        "num_evictions", "lookup_duration", "insertion_duration")}
    wanted |= {"nv_inference_pending_request_count": "gauge",
               "nv_model_load_duration_secs": "gauge", FIRST: "histogram",
               "nv_pinned_memory_pool_total_bytes": "gauge",
               "nv_pinned_memory_pool_used_bytes": "gauge",
               "nv_cpu_memory_total_bytes": "gauge",
               "nv_cpu_memory_used_bytes": "gauge",
               "nv_cpu_utilization": "gauge",
               "nginx_inference_executing_requests": "gauge",
               "nginx_inference_stuck_instances": "gauge",
               "nginx_inference_stuck_loads": "gauge",
               "nginx_inference_shared_memory_region_bytes": "gauge",
               "nginx_inference_shared_memory_copy_bytes": "gauge",
               "nginx_inference_longest_turn_us": "gauge",
               "nginx_inference_request_arena_used_bytes": "gauge",
               "nginx_inference_request_arena_reserved_bytes": "gauge",
               "nginx_inference_slots_taken": "gauge",
               "nginx_inference_response_arena_used_bytes": "gauge",
               "nginx_inference_response_arena_bound_bytes": "gauge"}
    wanted |= {f"nginx_inference_{x}_duration_seconds": "histogram"
               for x in ("request", "queue", "compute")}
    wanted |= {f"nginx_inference_{x}_total": "counter" for x in (
        "requests", "failed", "cancelled", "retried", "arena_full", "ring_full",
        "core_starts", "core_deaths", "core_hangs", "suspects",
        "out_of_tries", "log_dropped", "slices", "traces_dropped")}
    wanted["nv_cpu_utilization"] = kinds.setdefault(
        "nv_cpu_utilization", "gauge")      # from the second reading on
    assert kinds == wanted


def test_a_real_parser_reads_it(world):
    text = scrape(world)
    body_ = world.get("/metrics").body.decode()
    found = {f.name: f for f in
             parser.text_string_to_metric_families(body_)}
    for name, family in text.families.items():
        # it takes _total off a counter's name
        other = found.pop(name.removesuffix("_total")
                          if family.kind == "counter" else name)
        assert other.type == family.kind
        assert len(other.samples) == len(family.samples)
        ours = [dict(ls) for _, ls, _ in family.samples]
        assert [s.labels for s in other.samples] == ours
    assert not found


def test_labels(world):
    """Tags in byte order and escaped; two of one name are one."""
    text = scrape(world)
    (labels,) = [ls for _, ls, _ in
                 text.families["nv_inference_count"].samples
                 if ls["model"] == "plain"]
    assert list(labels.items()) == [
        ("_a", "one\ntwo"), ("_b_b", "last"), ("model", "plain"),
        ("version", "1")]


def test_counters_and_durations_are_the_statistics(world):
    took = one_by_one(world, "plain", 5)
    text, s = scrape(world), stats(world, "plain")
    m = {"model": "plain"}
    assert text.value("nv_inference_request_success", **m) == 5
    assert text.value("nv_inference_count", **m) == 5
    assert text.value("nv_inference_exec_count", **m) == 5
    for part in LATENCIES:
        ns = s["inference_stats"][
            "success" if part == "request" else part]["ns"]
        assert text.value(f"nv_inference_{part}_duration_us", **m) \
            == ns // 1000
    assert all(t["compute_infer"] >= 3e6 for t in took)
    for t in took:
        parts = sum(t[p] for p in LATENCIES[1:])
        assert 0 < parts <= t["success"]


def test_histograms_and_summaries_are_of_each_request(world):
    text = scrape(world)
    m = {"model": "plain"}
    before = text.value("nv_inference_request_success", **m)
    assert before == 5              # of the test before this one
    took = one_by_one(world, "plain", 4)
    after = scrape(world)
    s = stats(world, "plain")["inference_stats"]

    for name, ns in (
            ("request", lambda t: t["success"]), ("queue",
                                                  lambda t: t["queue"]),
            ("compute", lambda t: t["compute_input"] + t["compute_infer"]
             + t["compute_output"])):
        family = f"nginx_inference_{name}_duration_seconds"
        old, new = (dict(x.buckets(family, **m)) for x in (text, after))
        assert [(b, new[b] - old[b]) for b in BOUNDS] \
            == counted(ns(t) / 1e9 for t in took)
        whole = s["success"]["ns"] if name == "request" \
            else s["queue"]["ns"] if name == "queue" \
            else sum(s[f"compute_{x}"]["ns"]
                     for x in ("input", "infer", "output"))
        assert after.value(family + "_sum", **m) \
            == pytest.approx(whole / 1e9, rel=1e-9)

    for part in LATENCIES:
        family = f"nv_inference_{part}_summary_us"
        key = "success" if part == "request" else part
        assert after.value(family + "_count", **m) == 9
        assert after.value(family + "_sum", **m) == s[key]["ns"] // 1000
        most = max(t[key] for t in took) // 1000
        assert after.value(family, quantile="1", **m) >= most * 63 / 64
        assert after.value(family, quantile="0", **m) \
            <= min(t[key] for t in took) // 1000 * 65 / 64
        low, middle, high = (after.value(family, quantile=q, **m)
                             for q in ("0", "0.5", "1"))
        assert low <= middle <= high


def test_first_responses(world):
    """Whole ms; a model's own buckets."""
    text = scrape(world)
    assert [b for b, _ in text.buckets(FIRST, model="plain")] \
        == [100, 500, 2000, 5000, math.inf]
    assert [b for b, _ in text.buckets(FIRST, model="unused")] \
        == [7, 30, math.inf]
    assert text.value(FIRST + "_count", model="unused") == 0
    before = text.value(FIRST + "_count", model="error")
    ask(world, "error", rows=1, status=500)
    assert scrape(world).value(FIRST + "_count", model="error") == before


def test_the_rows_of_an_unused_model(world):
    text = scrape(world)
    m = {"model": "unused"}
    for family in text.families.values():
        for name, labels, value in family.samples:
            if labels.get("model") != "unused" \
                    or family.name == "nv_model_load_duration_secs":
                continue
            if "quantile" in labels:
                assert math.isnan(value)
            else:
                assert value == 0, name
    assert text.value("nv_model_load_duration_secs", **m) > 0
    assert not [ls for _, ls, _ in
                text.families["nv_cache_num_hits_per_model"].samples
                if ls["model"] == "unused"]
    assert {ls["reason"] for _, ls, _ in
            text.families["nv_inference_request_failure"].samples
            if ls["model"] == "unused"} == set(REASONS)


def failures(text, model):
    return {r: text.value("nv_inference_request_failure", model=model,
                          reason=r) for r in REASONS}


def test_batches_and_gauges(world):
    """The reference's scenario: pending rises, and falls by a batch."""
    gate = world.gates["batch"]
    gate.close()
    first = world.pool.submit(ask, world, "batch", 1, 2)
    gate.wait_entered()

    def gauges():
        text = scrape(world)
        return (text.value("nv_inference_pending_request_count",
                           model="batch"),
                text.value("nginx_inference_executing_requests",
                           model="batch"))

    assert gauges() == (0, 1)
    more = [world.pool.submit(ask, world, "batch", i, 1) for i in range(3)]
    assert process.wait_until(lambda: gauges() == (3, 1), 20 * SLOW)
    gate.open()
    for future in [first, *more]:
        future.result(20 * SLOW)
    s = settled(world, "batch", 2)
    assert process.wait_until(lambda: gauges() == (0, 0), 20 * SLOW)
    assert [(b["batch_size"], b["compute_infer"]["count"])
            for b in s["batch_stats"]] == [(2, 1), (3, 1)]
    text = scrape(world)
    assert text.value("nv_inference_count", model="batch") == 5
    assert text.value("nv_inference_request_success", model="batch") == 4
    assert text.value("nv_inference_exec_count", model="batch") == 2
    # time of computing is the batch's once in batch_stats, each request's in
    # inference_stats
    infer = s["inference_stats"]["compute_infer"]["ns"]
    assert infer == sum(b["compute_infer"]["ns"] * n for b, n in zip(
        s["batch_stats"], (1, 3)))


def test_failures_by_reason(world):
    for name in ("batch", "short", "full", "error"):
        assert sum(failures(scrape(world), name).values()) \
            == (name == "error") * failures(scrape(world), name)["BACKEND"]

    ask(world, "error", rows=1, status=500)
    assert failures(scrape(world), "error")["BACKEND"] >= 1
    assert stats(world, "error")["inference_stats"]["fail"]["count"] \
        == failures(scrape(world), "error")["BACKEND"]
    assert stats(world, "error")["inference_stats"]["success"]["count"] == 0

    gate = world.gates["short"]
    gate.close()
    first = world.pool.submit(ask, world, "short", 1, 1)
    gate.wait_entered()
    for i in range(2):
        ask(world, "short", i, 1, status=503)
    gate.open()
    first.result(20 * SLOW)
    text = scrape(world)
    assert failures(text, "short") == {
        "REJECTED": 2, "CANCELED": 0, "BACKEND": 0, "OTHER": 0}
    s = stats(world, "short")["inference_stats"]
    assert (s["fail"]["count"], s["success"]["count"]) == (2, 1)
    assert s["fail"]["ns"] >= 2 * 30e6
    assert s["queue"]["count"] == 1         # what failed has no parts


def test_what_is_rejected_at_once_is_no_failure(world):
    gate = world.gates["full"]
    gate.close()
    first = world.pool.submit(ask, world, "full", 1, 1)
    gate.wait_entered()
    second = world.pool.submit(ask, world, "full", 2, 1)
    assert process.wait_until(
        lambda: scrape(world).value("nv_inference_pending_request_count",
                                    model="full") == 1, 20 * SLOW)
    ask(world, "full", 3, 1, status=503)            # the queue is full
    ask(world, "full", 3, 9, status=400)            # too many rows
    assert sum(failures(scrape(world), "full").values()) == 0

    # of those that are given up only the queued one was not executed
    before = scrape(world).value("nginx_inference_cancelled_total")
    gate.open()
    first.result(20 * SLOW)
    second.result(20 * SLOW)
    gate.close(2)
    third = world.pool.submit(ask, world, "full", 4, 1)
    gate.wait_entered(2)
    with world.wire() as connection:
        connection.send(request_bytes(
            "POST", infer_path("full"), str(body(5, 1)).replace(
                "'", '"').encode()))
        assert process.wait_until(
            lambda: scrape(world).value(
                "nv_inference_pending_request_count", model="full") == 1,
            20 * SLOW)
    assert process.wait_until(
        lambda: failures(scrape(world), "full")["CANCELED"] == 1, 20 * SLOW)
    gate.open(2)
    third.result(20 * SLOW)
    text = scrape(world)
    assert sum(failures(text, "full").values()) == 1
    assert text.value("nginx_inference_cancelled_total") == before + 1
    assert stats(world, "full")["inference_stats"]["fail"]["count"] == 1


def test_the_cache(world):
    for value in (1, 1, 2, 1):
        ask(world, "kept", value)
    assert settled(world, "kept", 2)
    text, s = scrape(world), stats(world, "kept")
    stat, m = s["inference_stats"], {"model": "kept"}
    assert text.value("nv_cache_num_hits_per_model", **m) == 2
    assert text.value("nv_cache_num_misses_per_model", **m) == 2
    for kind in ("hit", "miss"):
        ns = stat[f"cache_{kind}"]["ns"]
        assert ns > 0
        assert text.value(f"nv_cache_{kind}_duration_per_model", **m) \
            == ns // 1000
        family = f"nv_cache_{kind}_summary_per_model"
        assert text.value(family + "_count", **m) == 2
        assert text.value(family + "_sum", **m) == ns // 1000
        assert text.value(family, quantile="1", **m) <= ns // 1000 * 65 / 64

    # hits are requests and were queued, but nothing was computed
    assert text.value("nv_inference_request_success", **m) == 4
    assert text.value("nv_inference_count", **m) == 2
    assert text.value("nv_inference_exec_count", **m) == 2
    assert stat["queue"]["count"] == stat["success"]["count"] == 4
    assert stat["compute_infer"]["count"] == 2
    assert text.value("nv_inference_queue_summary_us_count", **m) == 4
    assert text.value("nv_inference_compute_infer_summary_us_count", **m) == 2
    for name, count in (("request", 4), ("queue", 4), ("compute", 2)):
        assert text.value(
            f"nginx_inference_{name}_duration_seconds_count", **m) == count
    assert text.value(FIRST + "_count", **m) == 4

    # as in Triton: hits would blur it
    assert not [ls for _, ls, _ in
                text.families["nv_inference_request_summary_us"].samples
                if ls["model"] == "kept"]

    # of the cache as a whole; others are kept there, too
    hits = text.total("nv_cache_num_hits_per_model")
    assert text.value("nv_cache_num_hits") == hits
    assert text.value("nv_cache_num_lookups") \
        == hits + text.value("nv_cache_num_misses")
    assert text.value("nv_cache_num_entries") == 2
    assert 0 < text.value("nv_cache_util") < 1
    assert text.value("nv_cache_num_evictions") == 0


def test_who_waits_for_another_s_answer_is_pending(world):
    """Two identical requests share an execution; one of them waits."""
    gate = world.gates["waits"]
    gate.close()
    first = world.pool.submit(ask, world, "waits", 1, 1)
    gate.wait_entered()
    second = world.pool.submit(ask, world, "waits", 1, 1)

    def pending():
        return scrape(world).value("nv_inference_pending_request_count",
                                   model="waits")

    assert process.wait_until(lambda: pending() == 1, 20 * SLOW)
    gate.open()
    first.result(20 * SLOW)
    second.result(20 * SLOW)
    assert pending() == 0
    with world.wire() as connection:        # one that leaves
        gate.close(1)
        third = world.pool.submit(ask, world, "waits", 2, 1)
        gate.wait_entered(1)
        connection.send(request_bytes(
            "POST", infer_path("waits"), str(body(2, 1)).replace(
                "'", '"').encode()))
        assert process.wait_until(lambda: pending() == 1, 20 * SLOW)
    assert process.wait_until(lambda: pending() == 0, 20 * SLOW)
    gate.open(1)
    third.result(20 * SLOW)
    assert failures(scrape(world), "waits")["CANCELED"] == 1


def test_counters_of_the_workers(world):
    before = scrape(world)
    ask(world, "plain")
    ask(world, "ghost", status=404)
    assert world.post(infer_path("plain"), b"{").status == 400
    after = scrape(world)

    def added(name):
        name = f"nginx_inference_{name}_total"
        return after.value(name) - before.value(name)

    assert added("requests") == 2           # the ghost was asked for, too
    assert added("failed") == 2
    assert added("cancelled") == added("arena_full") == 0
    assert after.value("nginx_inference_core_starts_total") == 1
    assert after.value("nginx_inference_core_deaths_total") == 0


def test_machine_and_pinned_memory(world):
    text = scrape(world)
    total = text.value("nv_cpu_memory_total_bytes")
    with open("/proc/meminfo", encoding="ascii") as file:
        kib = int(file.readline().split()[1])
    assert total == kib * 1024
    assert 0 < text.value("nv_cpu_memory_used_bytes") < total
    assert 0 <= text.value("nv_pinned_memory_pool_used_bytes") \
        <= text.value("nv_pinned_memory_pool_total_bytes")


def test_gpus(make_server):
    folder = backends.build("memory_kinds")

    def repository(models_folder):
        models.write_model(
            models_folder, "m", 'name: "m"\nbackend: "memory_kinds"\n'
            + models.io_block("input", [("IN", "UINT8", [-1])])
            + models.io_block("output", [("DATA", "UINT8", [-1]),
                                         ("REPORT", "BYTES", [1])])
            + "instance_group { kind: KIND_GPU gpus: [ 0 ] }\n")

    server = make_server(
        repository, backends=folder, parts="all metrics", inference_env=[
            f"INFERENCE_CUDA_DRIVER={BUILD}/t-cuda/libfake-cuda.so",
            f"INFERENCE_NVML={BUILD}/t-cuda/libfake-nvml.so"])
    answer = server.infer("m", {"inputs": [
        tensor("IN", "UINT8", [3], [1, 2, 3])]})
    assert answer.status == 200, answer
    text = scrape(server)
    gpu = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"
    for name, kind in (("gpu_utilization", "gauge"),
                       ("gpu_memory_total_bytes", "gauge"),
                       ("gpu_memory_used_bytes", "gauge"),
                       ("gpu_power_usage", "gauge"),
                       ("gpu_power_limit", "gauge"),
                       ("energy_consumption", "counter")):
        assert text.kind(f"nv_{name}") == kind
        assert text.value(f"nv_{name}", gpu_uuid=gpu) >= 0
    assert 0 <= text.value("nv_gpu_utilization", gpu_uuid=gpu) <= 1
    assert text.value("nv_gpu_memory_used_bytes", gpu_uuid=gpu) \
        <= text.value("nv_gpu_memory_total_bytes", gpu_uuid=gpu)

    rows = {ls.get("gpu_uuid"): v for _, ls, v in
            text.families["nv_inference_request_success"].samples}
    assert rows == {None: 0, gpu: 1}
