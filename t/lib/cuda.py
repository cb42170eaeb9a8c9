"""The backend cuda on the driver of lib/gpu.py.  Without a GPU: our own driver,
the real compiler, and the kernels of the examples compiled for the host in the
place of a device."""

import json
import os
import pathlib
import re
import subprocess

from lib import gpu, models, process
from lib.server import BACKENDS, BUILD, ROOT, SLOW

EXAMPLES = ROOT / "examples/cuda/models"
HOST = ROOT / "t/44-cuda/kernels"
HOST_SHARED = 12288             # floats: what 48 KiB hold

ADD = {
    "kernel_1": "vector_add<<<ceildiv(elements(sum), 32), 32>>>"
                "(a, b, sum, int(elements(sum)))",
    "shape_sum": "like a"}
ADD_SOURCE = (EXAMPLES / "vector_add/1/model.cu").read_text()


def nvrtc():
    """The compiler's library that t/setup.sh has installed, or t/gpu/run.sh
    has found."""
    packages = ROOT / "build/venv/lib"
    found = sorted(packages.glob(
        "python3*/site-packages/nvidia/*/lib/libnvrtc.so.1?"))
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        found += sorted(pathlib.Path(folder or "/nowhere").glob(
            "libnvrtc.so.1?"))
    assert found, "t/setup.sh installs nvidia-cuda-nvrtc"
    return found[0]


def host_kernels():
    """A library for FAKE_CUDA_KERNELS, from the sources of the examples."""
    library = BUILD / "t-cuda/host-kernels.so"
    made = BUILD / "t-cuda/host"
    sources = sorted(HOST.glob("*"))
    inputs = [*sources, *EXAMPLES.glob("*/1/*")]
    if library.exists() and library.stat().st_mtime > max(
            s.stat().st_mtime for s in inputs):
        return library
    objects = []
    for wrapper in HOST.glob("*.cc"):
        directory = EXAMPLES / wrapper.stem / "1"
        source = made / f"{wrapper.stem}.cu"
        made.mkdir(parents=True, exist_ok=True)
        source.write_text(re.sub(
            r"extern __shared__ (.*)\[\];", rf"static \1[{HOST_SHARED}];",
            (directory / "model.cu").read_text()))
        objects.append(made / f"{wrapper.stem}.o")
        subprocess.run(
            ["g++", "-std=gnu++17", "-O1", "-g", "-Wall", "-Werror", "-fPIC",
             "-pthread", "-c", "-I", ROOT, "-I", directory,
             f'-DSOURCE="{source}"', "-o", objects[-1], wrapper], check=True)
    subprocess.run(["g++", "-shared", "-pthread", "-o", f"{library}.new",
                    *objects], check=True)
    library.with_name(library.name + ".new").replace(library)
    return library


def add_config(name, parameters=None, *, batch=8, dims=-1, extra="",
               kind="KIND_GPU"):
    tensors = [("a", "FP32", [dims]), ("b", "FP32", [dims])]
    return (f'name: "{name}"\nbackend: "cuda"\nmax_batch_size: {batch}\n'
            + models.io_block("input", tensors)
            + models.io_block("output", [("sum", "FP32", [dims])])
            + models.parameter_block({**ADD, **(parameters or {})})
            + (f"instance_group {{ kind: {kind} }}\n" if kind else "")
            + extra)


def add_model(repository, name="add", parameters=None, *, source=ADD_SOURCE,
              file="model.cu", files=None, **kw):
    """A model that adds two tensors, from any file."""
    content = source if isinstance(source, bytes) else source.encode()
    return models.write_model(
        repository, name, add_config(name, parameters, **kw),
        files={1: {file: content, **(files or {})}})


def environment(tmp_path, devices, env, driver):
    """inference_env; with the real driver without counters and failures, so
    that tests of these are marked fake_gpu."""
    if gpu.REAL:
        assert devices is None and driver is None \
            and not any("CUDA_" in e for e in env), env
        return [*gpu.env(), *env]
    own = {e.split("=")[0].removeprefix("FAKE_CUDA_").lower(): e.split("=")[1]
           for e in env if e.startswith("FAKE_CUDA_CAPABILITY=")}
    made = [*gpu.env(1 if devices is None else devices, **own,
                     kernels=host_kernels(), counts=tmp_path / "counts"),
            *(e for e in env if not e.startswith("FAKE_CUDA_CAPABILITY="))]
    return made if driver is None \
        else [f"INFERENCE_CUDA_DRIVER={driver}", *made[1:]]


def options(tmp_path, *, devices=None, http="", env=(), cache=None,
            compiler=None, driver=None, parts="all repository", **kw):
    """All that a server needs for the backend, as arguments of make_server."""
    cache = cache or tmp_path / "cache"
    return {
        "backends": BACKENDS, "parts": parts, **kw,
        "http": f"    inference_backend_config cuda cache-directory={cache};\n"
                "    inference_backend_config cuda"
                f" nvrtc-library={compiler or nvrtc()};\n{http}",
        "inference_env": environment(tmp_path, devices, env, driver)}


def counts(tmp_path, ran=0):
    """The driver's counters, which it writes now and then: once that many
    kernels have run."""
    path = tmp_path / "counts"

    def read():
        return json.loads(path.read_text()) if path.exists() else None

    def has_run():
        got = read()
        return got is not None and sum(got["kernels"].values()) >= ran
    assert process.wait_until(has_run, 10 * SLOW)
    return read()
