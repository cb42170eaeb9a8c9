"""Models of backend pytorch, from the files in t/58-pytorch/models."""

import pytest

from lib import models
from lib.server import BACKENDS, ROOT

FILES = ROOT / "t/58-pytorch/models"
DIGITS = {"pt": ROOT / "examples/pytorch/models/digits/1/model.pt",
          "pt2": ROOT / "examples/pytorch/models/digits_compiled/1/model.pt2"}
EXTENSION = {"pytorch_libtorch": "pt", "torch_aoti": "pt2"}

CPU = "instance_group { count: 1 kind: KIND_CPU }\n"


def needs_runtime():
    """Skips the file that calls it where PyTorch's libraries are missing."""
    if not (BACKENDS / "pytorch/libtorch_cpu.so").exists():
        pytest.skip("no PyTorch beside the backend: make deps",
                    allow_module_level=True)


def config(inputs, outputs, platform="pytorch_libtorch", extra="",
           instances=CPU):
    return f'backend: "pytorch"\nplatform: "{platform}"\n' \
        + models.io_block("input", inputs) \
        + models.io_block("output", outputs) + instances + extra


def write(repository, name, file, inputs, outputs, extra="",
          platform="pytorch_libtorch", data=None, **more):
    """file: "digits", or the stem of one in FILES; data: in its place."""
    end = EXTENSION[platform]
    if data is None:
        path = DIGITS[end] if file == "digits" else FILES / f"{file}.{end}"
        data = path.read_bytes()
    return models.write_model(
        repository, name, config(inputs, outputs, platform, extra, **more),
        (1,), {1: {f"model.{end}": data}})


def digits(repository, name="digits", platform="pytorch_libtorch",
           names=("image", "scores"), extra="max_batch_size: 32\n", **more):
    return write(repository, name, "digits",
                 [(names[0], "FP32", [8, 8])], [(names[1], "FP32", [10])],
                 extra, platform, **more)
