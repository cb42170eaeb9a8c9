"""Models in Python that have tensors on a GPU (gpu_tensor.py beside them), of
IN and OUT, UINT8."""

import pathlib
import subprocess

from lib import models, python_backend
from lib.server import BACKENDS

PYTHON = [f'"PATH={python_backend.INTERPRETER.parent}:/usr/bin:/bin"']

IO = models.io_block("input", [("IN", "UINT8", [-1])]) \
    + models.io_block("output", [("OUT", "UINT8", [-1])])

_HEAD = """\
import os
import numpy as np
import triton_python_backend_utils as pb
from gpu_tensor import Memory, View, array, bytes_of

GPU = pb.PreferredMemory(pb.TRITONSERVER_MEMORY_GPU, 0)

def ask(name, tensor, **more):
    got = pb.InferenceRequest(model_name=name, inputs=[tensor],
                              requested_output_names=["OUT"], **more).exec()
    if got.has_error():
        raise pb.TritonModelException(got.error().message())
    return pb.get_output_tensor_by_name(got, "OUT")

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([self.answer(
            pb.get_input_tensor_by_name(r, "IN"))]) for r in requests]
    def answer(self, given):
"""


def lacking():
    """Libraries that the backend needs and this machine has not."""
    told = subprocess.run(
        ["ldd", f"{BACKENDS}/python/libtriton_python.so"],
        capture_output=True, text=True, check=False).stdout
    return [line.split()[0] for line in told.splitlines()
            if "not found" in line]


def model(repository, name, code, cpu="no", kind="KIND_GPU gpus: [0]",
          extra="", methods=""):
    """code: what makes the output of `given`; methods: in the place of those of
    the model."""
    lines = "".join(f"        {line}\n" for line in code.strip().split("\n"))
    python_backend.model(
        repository, name, IO + models.parameter_block(
            {"FORCE_CPU_ONLY_INPUT_TENSORS": cpu})
        + f"instance_group {{ kind: {kind} }}\n" + extra,
        _HEAD + lines + methods,
        {"gpu_tensor.py": (pathlib.Path(__file__).parent / "gpu_tensor.py")
         .read_text(encoding="utf-8")})
