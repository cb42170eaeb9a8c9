"""Memory kinds behind nginx: a fake CUDA driver with two GPUs, and none."""

import pytest

from lib import backends, models, wire
from lib.server import BUILD
from lib.wire import tensor

DRIVER = BUILD / "t-cuda/libfake-cuda.so"
NVML = BUILD / "t-cuda/libfake-nvml.so"
NOWHERE = "/nowhere/libcuda.so.1"

CPU, PINNED, GPU = 0, 1, 2


def fill(kind):
    def repository(folder):
        models.write_model(
            folder, "m", 'name: "m"\nbackend: "memory_kinds"\n'
            + models.io_block("input", [("IN", "UINT8", [-1])])
            + models.io_block("output", [("DATA", "UINT8", [-1]),
                                         ("REPORT", "BYTES", [1])])
            + f"instance_group {{ {kind} }}\n")
    return repository


def start(make_server, kind, *, http="", driver=DRIVER, **kw):
    folder = backends.build("memory_kinds")
    return make_server(fill(kind), backends=folder, http=http,
                       inference_env=[f"INFERENCE_CUDA_DRIVER={driver}",
                                      f"INFERENCE_NVML={NVML}"],
                       parts="health infer metrics",
                       **kw)


def report(server, want=CPU, want_id=0):
    """REPORT, and DATA against what was sent."""
    answer = server.infer("m", {
        "inputs": [tensor("IN", "UINT8", [3], [1, 2, 3])],
        "parameters": {"want": want, "want_id": want_id}})
    assert answer.status == 200, answer
    got = {o["name"]: o["data"] for o in answer.json()["outputs"]}
    assert got["DATA"] == [1, 2, 3]
    return got["REPORT"][0]


@pytest.mark.parametrize("want,out", [
    (CPU, "CPU"), (PINNED, "CPU_PINNED"), (GPU, "CPU_PINNED")])
def test_outputs_for_nginx_lie_on_the_host(make_server, want, out):
    server = start(make_server, "kind: KIND_GPU")
    server.wait_log("are pinned")           # in the background
    assert report(server, want) == ("on GPU 0; scratch CPU CPU_PINNED GPU;"
                                    f" in CPU_PINNED:0:3; out {out}:0;")


def test_outputs_beyond_the_pinned_stretch_are_pageable(make_server):
    size = 17 << 20                 # more than is pinned of a worker's arena
    server = start(make_server, "kind: KIND_GPU",
                   http="    inference_max_body 64m;\n")
    data = bytes(size)
    answer = server.infer("m", {
        "inputs": [tensor("IN", "UINT8", [size], binary_data_size=size)],
        "outputs": [{"name": "REPORT"},
                    {"name": "DATA", "parameters": {"binary_data": True}}],
        "parameters": {"want": GPU}}, data)
    assert answer.status == 200, answer
    head, tail = answer.split()
    assert tail == data
    assert head["outputs"][1]["data"][0].endswith("out CPU:0;")


def test_pools_are_sized_by_the_directive(make_server):
    server = start(make_server, "kind: KIND_GPU gpus: [1]", http="""
    inference_memory 64m pinned=0 pinned_arenas=0 cuda=0:8m cuda=1:0;
    inference_backend_config * min-compute-capability=5.0;
""")
    server.wait_log(r"GPU 0: Fake GPU 0, compute capability 8\.0, memory pool"
                    r" of 8388608 bytes")
    server.wait_log(r"GPU 1: Fake GPU 1, compute capability 5\.2, memory pool"
                    r" of 0 bytes")
    assert report(server, GPU).startswith("on GPU 1; scratch CPU;")
    assert report(server, GPU).endswith("in CPU:0:3; out CPU:0;")


def test_an_old_gpu_is_left_out(make_server):
    server = start(make_server, "kind: KIND_GPU gpus: [0, 1]", wait="live")
    server.wait_log(r"GPU 1 \(Fake GPU 1\) is left out: its compute"
                    r" capability is 5\.2, the least is 7\.5")
    server.wait_log(r"specifies invalid or unsupported gpu id 1")
    assert server.status("/v2/health/ready") != 200


def test_a_full_gpu_takes_no_model(make_server):
    server = start(make_server, "kind: KIND_GPU", wait="live", http="""
    inference_backend_config * model-load-gpu-limit-device-0=0.01;
""")
    server.wait_log(r"memory limit set for GPU 0 has exceeded, model loading"
                    r" is rejected")


@pytest.mark.parametrize("driver", [NOWHERE, ""])
def test_without_a_driver_there_is_the_cpu(make_server, driver):
    server = start(make_server, "", driver=driver)
    assert report(server, GPU) == "on CPU 0; scratch CPU; in CPU:0:3;" \
        " out CPU:0;"
    assert server.wait_log(r"CPU only: no CUDA driver \(")


def test_without_a_driver_no_model_is_on_a_gpu(make_server):
    server = start(make_server, "kind: KIND_GPU", driver=NOWHERE, wait="live")
    server.wait_log("has kind KIND_GPU but no GPUs are available")


def test_a_capability_that_is_no_number_stops_the_core(make_server):
    server = start(make_server, "", wait="", http="""
    inference_backend_config * min-compute-capability=new;
""")
    server.wait_log(r'min-compute-capability: "new" is no compute capability')
    server.kill()


def test_changed_pools_wait_for_the_next_core(make_server):
    server = start(make_server, "kind: KIND_GPU", http="""
    inference_memory 64m pinned=2m;
""")
    server.write_config(http="    inference_memory 64m pinned=4m;\n")
    server.signal("HUP")
    server.wait_log(r"changed settings wait for the next core,.* starts:"
                    r" inference_memory")
    assert report(server).startswith("on GPU 0; scratch CPU CPU_PINNED GPU;")


def metrics(server):
    answer = wire.fetch(server.port, "GET", "/metrics")
    assert answer.status == 200, answer
    return answer.body.decode()


def test_metrics_show_pinned_memory_and_gpus(make_server):
    server = start(make_server, "kind: KIND_GPU",
                   http="    inference_memory 64m pinned=4m;\n")
    text = metrics(server)
    uuid = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0"
    for line in ("nv_pinned_memory_pool_total_bytes 4194304",
                 "nv_pinned_memory_pool_used_bytes 0",
                 f'nv_gpu_utilization{{gpu_uuid="{uuid}"}} 0.37',
                 f'nv_gpu_memory_total_bytes{{gpu_uuid="{uuid}"}} 1073741824',
                 f'nv_gpu_power_limit{{gpu_uuid="{uuid}"}} 250',
                 "# TYPE nv_energy_consumption counter"):
        assert line + "\n" in text, text
    assert "GPU-a1" not in text             # too old


@pytest.mark.parametrize("driver,http", [
    (NOWHERE, ""), (DRIVER, "    inference_metrics gpu=off;\n")])
def test_metrics_of_gpus_may_be_absent(make_server, driver, http):
    text = metrics(start(make_server, "", driver=driver, http=http))
    assert "nv_gpu" not in text
    assert "nv_pinned_memory_pool_used_bytes 0\n" in text
