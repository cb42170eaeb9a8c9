"""Each call of the driver fails once, in turn, while a model on a GPU is loaded
and asked: an error at most, and the same core serves afterwards."""

import re

import pytest

from lib import repository
from lib.server import ROOT

pytestmark = pytest.mark.fake_gpu         # failures on order

OUT_OF_MEMORY, NOT_SUPPORTED = 2, 801
ROW = re.compile(r"^ {4}ROW\(\w+, (cu\w+),", re.M)
CALLS = sorted(set().union(*(
    ROW.findall((ROOT / name).read_text())
    for name in ("core/tensor/cuda_functions.h",
                 "backends/common/gpu_driver_functions.h"))))
EXPLICIT = "    inference_model_control explicit; inference_load_model *;\n"


@pytest.mark.parametrize("code", [OUT_OF_MEMORY, NOT_SUPPORTED])
def test_each_call_fails_once(gpus, code):
    server = gpus.start(http=EXPLICIT)
    core = server.core()
    failed = {}

    for call in CALLS:
        assert repository.ask(server, "unload", "zero").status == 200
        gpus.order(f"{call}:{code}:1")
        loaded = repository.ask(server, "load", "zero")
        asked = gpus.ask("zero", 5)
        failed[call] = (loaded.status, asked.status)
        gpus.order("\n")
        assert repository.ask(server, "load", "zero").status == 200, call
        assert gpus.serves("zero", "one", "host"), call

        assert server.core() == core, call

    for call in ("cuModuleLoadDataEx", "cuMemAlloc_v2", "cuStreamCreate",
                 "cuDevicePrimaryCtxRetain"):
        assert failed[call][0] != 200, (call, failed)
    for call in ("cuLaunchKernel", "cuStreamSynchronize",
                 "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"):
        assert failed[call] == (200, 500), (call, failed)
