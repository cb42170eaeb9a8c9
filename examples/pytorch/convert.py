"""Makes the models in examples/pytorch/models from examples/models/digits: the
same network as TorchScript, and compiled by AOTInductor.

Where "import torch" works (version 2.15) and a C++ compiler is there:

    pip install torch onnx onnxruntime
    python3 examples/pytorch/convert.py
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

sys.setdlopenflags(os.RTLD_LAZY)
import torch  # noqa: E402
import torch._inductor  # noqa: E402
import torch._inductor.config as inductor  # noqa: E402

HERE = pathlib.Path(__file__).parent
ONNX = HERE.parent / "models/digits/1/model.onnx"
MODELS = HERE / "models"

# machine code for any x86-64, on one thread
inductor.cpp.march = "x86-64"
inductor.cpp.simdlen = 1
inductor.cpp.threads = 1


class Digits(torch.nn.Module):
    def __init__(self):
        super().__init__()
        weights = {i.name: torch.tensor(numpy_helper.to_array(i).copy())
                   for i in onnx.load(ONNX).graph.initializer}
        self.hidden = torch.nn.Linear(64, 64)
        self.last = torch.nn.Linear(64, 10)
        with torch.no_grad():
            self.hidden.weight.copy_(weights["w1"].T)
            self.hidden.bias.copy_(weights["b1"])
            self.last.weight.copy_(weights["w2"].T)
            self.last.bias.copy_(weights["b2"])

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.hidden(image.flatten(1) / 16.0))
        return torch.softmax(self.last(x), 1)


def program():
    """With any number of images."""
    batch = torch.export.Dim("batch", max=1024)
    return torch.export.export(Digits().eval(), (torch.ones(2, 8, 8),),
                               dynamic_shapes={"image": {0: batch}})


def package(path, exported, compression=zipfile.ZIP_STORED):
    """Compiled, without the sources and the debugger's part."""
    with tempfile.TemporaryDirectory() as directory:
        made = torch._inductor.aoti_compile_and_package(
            exported, package_path=f"{directory}/{path.stem}.pt2")
        with zipfile.ZipFile(made) as old, zipfile.ZipFile(
                path, "w", compression) as new:
            for entry in old.infolist():
                if entry.filename.endswith(".cpp"):
                    continue
                data = old.read(entry)
                if entry.filename.endswith(".so"):
                    library = pathlib.Path(directory, "model.so")
                    library.write_bytes(data)
                    subprocess.run(["strip", library], check=True)
                    data = library.read_bytes()
                new.writestr(zipfile.ZipInfo(entry.filename), data,
                             compression)


def main():
    script = torch.jit.script(Digits().eval())
    torch.jit.save(script, MODELS / "digits/1/model.pt")
    # a single image is as good as several
    with inductor.patch({"aot_inductor.check_lowerbound": False}):
        package(MODELS / "digits_compiled/1/model.pt2", program())

    random = numpy.random.default_rng(0)
    images = random.uniform(0, 16, (100, 8, 8)).astype(numpy.float32)
    expected, = onnxruntime.InferenceSession(ONNX).run(
        None, {"image": images})
    with torch.no_grad():
        got = script(torch.tensor(images)).numpy()
    print(f"largest difference: {abs(got - expected).max():.1e}")


if __name__ == "__main__":
    main()
