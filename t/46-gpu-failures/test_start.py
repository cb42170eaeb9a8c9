"""Wrong from the start: a reason in the index, and other models serve."""

import pytest

from lib import repository

NOWHERE = "/nowhere/libcuda.so.1"


def starts(gpus, **kw):
    server = gpus.start(wait="live", **kw)
    repository.settled(server)
    assert gpus.serves("host")
    return server


def test_without_a_driver(gpus):
    starts(gpus, driver=NOWHERE)
    gpus.is_out("zero", "unsupported gpu id 0")


def test_a_driver_without_devices(gpus):
    starts(gpus, devices=0)
    gpus.is_out("zero", "unsupported gpu id 0")


def test_a_gpu_that_is_not_there(gpus):
    starts(gpus, devices=1)
    gpus.is_out("one", "unsupported gpu id 1")
    assert gpus.serves("zero")


def test_a_driver_that_does_not_start(gpus):
    starts(gpus, env=["FAKE_CUDA_FAIL=cuInit:999:1"])
    gpus.is_out("zero", "there are none: ", "cannot start the driver",
                "CUDA_ERROR_UNKNOWN (999)")


@pytest.mark.parametrize("call", [
    "cuDeviceGetAttribute:999:1:1", "cuDeviceGetUuid:999:1:1",
    "cuDevicePrimaryCtxRetain:999:1:1"])
def test_a_gpu_that_does_not_start(gpus, call):
    starts(gpus, env=["FAKE_CUDA_FAIL=" + call])
    gpus.is_out("one", "GPU 1 is left out", "CUDA_ERROR_UNKNOWN (999)")
    assert gpus.serves("zero")


def test_kind_gpu_without_any(gpus):
    def fill(folder):
        gpus.fill(folder)
        gpus.model(folder, "any", "kind: KIND_GPU")

    starts(gpus, fill=fill, env=["FAKE_CUDA_FAIL=cuInit:999:1"])
    gpus.is_out("any", "no GPUs are available", "CUDA_ERROR_UNKNOWN (999)")
