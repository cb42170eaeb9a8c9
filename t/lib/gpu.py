"""The GPUs of a test's server: those of the fake driver, or real ones.

INF_GPU_DRIVER   fake (default) or real
INF_GPU_DEVICES  how many GPUs the fake driver has (2); a test may say another
                 number for its own servers

Tests of GPUs take their server's environment from env().  A test marked `gpu`
needs real arithmetic or a real process's memory; one marked `fake_gpu` injects
failures, counts, or wants GPUs as only the fake driver has them.  conftest.py
leaves out those that the driver at hand cannot run, and says how many.
"""

import ctypes
import functools
import os

from lib.server import BUILD

REAL = os.environ.get("INF_GPU_DRIVER", "fake") == "real"
FAKE_DRIVER = BUILD / "t-cuda/libfake-cuda.so"
FAKE_NVML = BUILD / "t-cuda/libfake-nvml.so"
REAL_DRIVER = "libcuda.so.1"

KERNELS = "kernels"         # the one setting of the fake that a real one needs
                            # not: a GPU has arithmetic of its own

if os.environ.get("INF_GPU_DRIVER", "fake") not in ("fake", "real"):
    raise RuntimeError("INF_GPU_DRIVER is neither fake nor real")


@functools.cache
def found():
    """How many GPUs the real driver has; 0 where there is none."""
    try:
        driver = ctypes.CDLL(REAL_DRIVER)
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def devices():
    """How many GPUs servers have, all of them new enough for models."""
    return found() if REAL else int(os.environ.get("INF_GPU_DEVICES", "2"))


def env(count=None, **fake):
    """NAME=VALUE for Server's inference_env.

    count: so many GPUs of the fake driver.  fake: its other settings, each as
    FAKE_CUDA_<NAME>: capability="8.0,5.2", kernels=PATH, fail="cuInit:100",
    hang=NAME, lost=PATH, counts=PATH.  With the real driver all but kernels
    are for tests that are marked fake_gpu, and fail any other.
    """
    if REAL:
        wrong = set(fake) - {KERNELS}
        assert count is None and not wrong, \
            f"a test with {wrong or 'a number of GPUs'} is to be marked" \
            " fake_gpu"
        return [f"INFERENCE_CUDA_DRIVER={REAL_DRIVER}"]
    count = devices() if count is None else count
    fake.setdefault("capability",
                    ",".join((["8.0"] + ["9.0"] * 7)[:max(count, 1)]))
    return [f"INFERENCE_CUDA_DRIVER={FAKE_DRIVER}",
            f"INFERENCE_NVML={FAKE_NVML}", f"FAKE_CUDA_DEVICES={count}",
            *(f"FAKE_CUDA_{name.upper()}={value}"
              for name, value in fake.items())]


def why_not(item):
    """Why a test cannot run on the driver at hand; None if it can."""
    mark = item.get_closest_marker("gpu")
    if mark and not REAL:
        return "need a real GPU (INF_GPU_DRIVER=real)"
    if mark and found() < mark.kwargs.get("devices", 1):
        return f"need {mark.kwargs.get('devices', 1)} real GPUs"
    if item.get_closest_marker("fake_gpu") and REAL:
        return "need the fake driver (INF_GPU_DRIVER=fake)"
    return None
