"""The example models, answered by their own sources."""

import json
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import tritonclient.http

from lib import cuda, process
from lib.server import ROOT, SLOW, Server

DIGITS = ROOT / "examples/models/digits"
GEMM = ROOT / "examples/cuda/gemm/gemm.c"
TOOLKIT = pathlib.Path("/usr/local/cuda/include")


def copy_examples(repository):
    for model in cuda.EXAMPLES.iterdir():
        shutil.copytree(model, repository / model.name)
    shutil.copytree(DIGITS, repository / "digits")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    options = cuda.options(tmp_path_factory.mktemp("cuda"))
    with Server(copy_examples, **options) as s:
        yield s


def ask(server, model, output, **inputs):
    """Arrays by name; the output as an array."""
    with tritonclient.http.InferenceServerClient(server.url) as client:
        given = []
        for name, data in inputs.items():
            one = tritonclient.http.InferInput(name, data.shape, "FP32")
            one.set_data_from_numpy(data)
            given.append(one)
        return client.infer(model, given).as_numpy(output)


def numbers(*shape):
    return np.random.default_rng(7).normal(0, 3, shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (64, 300), (2, 0)])
def test_vector_add(served, shape):
    a, b = numbers(*shape), numbers(*shape) * 2
    np.testing.assert_array_equal(ask(served, "vector_add", "sum", a=a, b=b),
                                  a + b)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 1000), (2, 0)])
def test_softmax(served, shape):
    x = numbers(*shape)
    got = ask(served, "softmax", "scores", logits=x)
    if x.size:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(got, e / e.sum(axis=1, keepdims=True),
                                   rtol=1e-5, atol=1e-7)
    assert got.shape == shape


def test_digits_are_those_of_the_onnx_model(served):
    samples = json.loads((ROOT / "examples/digits/digits.json").read_text())
    images = np.array([s["image"] for s in samples], np.float32)
    for rows in (1, 4, 10):
        ours = ask(served, "digits_cuda", "scores", image=images[:rows])
        theirs = ask(served, "digits", "scores", image=images[:rows])
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
        assert (ours.argmax(axis=1) == theirs.argmax(axis=1)).all()


@pytest.mark.fake_gpu
def test_every_kernel_compiles_for_every_architecture(make_server, tmp_path):
    """7.0 is before, and 20.0 after all that the compiler knows."""
    known = ["7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"]
    server = make_server(copy_examples, **cuda.options(
        tmp_path, devices=8,
        env=[f"FAKE_CUDA_CAPABILITY={','.join(known)},20.0"]))
    for model in cuda.EXAMPLES.iterdir():
        for capability in known:
            arch = "sm_" + capability.replace(".", "")
            server.wait_log(f"{model.name}/1/model.cu: compiled for {arch} by")
        server.wait_log(f"{model.name}/1/model.cu: compiled for compute_1")


@pytest.mark.fake_gpu
def test_a_device_before_the_compiler_s_first(make_server, tmp_path):
    server = make_server(copy_examples, wait="live", **cuda.options(
        tmp_path, env=["FAKE_CUDA_CAPABILITY=7.0"], http="""
    inference_backend_config * min-compute-capability=6.0;
"""))
    server.wait_log(r"vector_add/1/model\.cu.*NVRTC 13\.\d+ compiles for"
                    r" compute capability 7\.5 and later, the GPU has 7\.0")
    assert process.wait_until(
        lambda: server.status("/v2/models/digits/ready") == 200, 20 * SLOW)


def test_gemm_compiles(tmp_path):
    """Linked to cuBLAS where there is a toolkit; run it is on a GPU only."""
    flags = ["-Wall", "-Wextra", "-Werror", "-I", ROOT / "backends/cuda"]
    if (TOOLKIT / "cublas_v2.h").exists():
        flags += ["-I", TOOLKIT, "-shared", "-fPIC", "-o", tmp_path / "g.so",
                  "-L", TOOLKIT.parent / "lib64", "-lcublas"]
        order = [GEMM, *flags]
    else:
        order = [*flags, "-I", ROOT / "t/44-cuda/cublas", "-fsyntax-only",
                 GEMM]
    subprocess.run(["cc", *order], check=True)
