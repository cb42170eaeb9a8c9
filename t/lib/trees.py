"""The backend trees on the driver of lib/gpu.py, and its answers.  Without a
GPU the driver is our own, and the kernels are compiled for the host."""

import shutil
import subprocess

import tritonclient.http as client

from lib import cuda, gpu
from lib.server import BUILD, ROOT

KERNELS = ROOT / "t/49-trees/kernels/trees.cc"
SOURCE = ROOT / "backends/trees/kernels.cu"


def host_kernels():
    """A library for FAKE_CUDA_KERNELS; a real driver needs none."""
    library = BUILD / "t-cuda/trees-kernels.so"
    if not gpu.REAL and (not library.exists() or library.stat().st_mtime
                         < max(p.stat().st_mtime for p in (KERNELS, SOURCE))):
        subprocess.run(
            ["g++", "-std=gnu++17", "-O1", "-g", "-Wall", "-Werror", "-fPIC",
             "-shared", "-I", ROOT, "-o", f"{library}.new", KERNELS],
            check=True)
        shutil.move(f"{library}.new", library)
    return library


def compiler():
    """The line of nginx.conf that says where NVRTC is."""
    return ("    inference_backend_config trees"
            f" nvrtc-library={cuda.nvrtc()};\n")


def fake_options(tmp_path, **fake):
    """Arguments of a server with the fake driver, which counts."""
    return {"inference_env": gpu.env(1, counts=tmp_path / "counts",
                                     kernels=host_kernels(), **fake),
            "http": compiler()}


def answer(server, name, x, outputs=("output__0",)):
    """Arrays, one for each output."""
    with client.InferenceServerClient(server.url) as c:
        value = client.InferInput("input__0", list(x.shape), "FP32")
        value.set_data_from_numpy(x)
        got = c.infer(name, [value], outputs=[
            client.InferRequestedOutput(o) for o in outputs])
        return [got.as_numpy(o) for o in outputs]
