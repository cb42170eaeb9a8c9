"""Makes the files in models: TorchScript, AOTInductor packages, and what
PyTorch itself answers to 1,000 random images.

Where "import torch" works (version 2.15) and a C++ compiler is there:

    pip install torch onnx
    python3 t/58-pytorch/make_models.py

The digits are those of examples/pytorch.
"""

import pathlib
import sys
import zipfile
from typing import Dict, List, Optional, Tuple

import numpy

HERE = pathlib.Path(__file__).parent / "models"
sys.path.insert(0, str(HERE.parents[2] / "examples/pytorch"))
import convert  # noqa: E402
import torch  # noqa: E402
from torch import Tensor  # noqa: E402

SEED = 58
IMAGES = 1000


class Pair(torch.nn.Module):
    def forward(self, lhs: Tensor, rhs: Tensor) -> Tuple[Tensor, Tensor]:
        return lhs + rhs, lhs - rhs


class Copy(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.clone()


class Dict_(torch.nn.Module):
    def forward(self, tensors: Dict[str, Tensor]) -> Tensor:
        y = tensors["b"] - tensors["a"]
        if "c" in tensors:
            y = y * tensors["c"]
        return y


class Texts(torch.nn.Module):
    def forward(self, words: List[str]) -> Tuple[List[str], Tensor]:
        upper: List[str] = []
        lengths: List[int] = []
        for word in words:
            upper.append(word.upper())
            lengths.append(len(word))
        return upper, torch.tensor(lengths, dtype=torch.int64)


class Optional_(torch.nn.Module):
    def forward(self, x: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        if bias is not None:
            return x + bias
        return x


class Counter(torch.nn.Module):
    """How many runs this copy of the weights has seen."""

    def __init__(self):
        super().__init__()
        self.register_buffer("runs", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.runs += 1
        return self.runs.expand(x.shape[0]).clone()


class Modes(torch.nn.Module):
    """Whether gradients and inference mode are on."""

    def forward(self, x: Tensor) -> Tensor:
        y = x + 1
        flags = [int(torch.is_grad_enabled()), int(y.is_inference())]
        return torch.tensor(flags, dtype=torch.int64)


class Positive(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool((x < 0).any()):
            raise ValueError("a negative number")
        return x


class InPlace(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        x.add_(1)
        return x


class Turned(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2)


class Sums(torch.nn.Module):
    """The sum of each request's ragged values, by where they end."""

    def forward(self, values: Tensor, ends: Tensor) -> Tensor:
        total = torch.cumsum(values, 0)[ends.to(torch.int64) - 1]
        return torch.diff(total, prepend=torch.zeros(1)).unsqueeze(1)


class Running(torch.nn.Module):
    """A sequence's running sum, kept as its state."""

    def forward(self, x: Tensor, start: Tensor, state: Tensor) \
            -> Tuple[Tensor, Tensor]:
        total = torch.where(start > 0, torch.zeros_like(state), state) + x
        return total, total


class Number(torch.nn.Module):
    def forward(self, x: Tensor) -> int:
        return x.numel()


class Tensors(torch.nn.Module):
    def forward(self, x: Tensor) -> List[Tensor]:
        return [x, x]


class Scaled(torch.nn.Module):
    def forward(self, x: Tensor, factor: float) -> Tensor:
        return x * factor


class Keeper(torch.nn.Module):
    """The input of the run before."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        last = self.last.clone()
        self.last = x
        return last


SCRIPTS = {"pair": Pair, "copy": Copy, "dict": Dict_,
           "texts": Texts, "optional": Optional_, "counter": Counter,
           "modes": Modes, "positive": Positive, "in_place": InPlace,
           "turned": Turned, "sums": Sums, "running": Running,
           "number": Number, "tensors": Tensors, "scaled": Scaled,
           "keeper": Keeper}


class Named(torch.nn.Module):
    """A positional and a named argument; a dict of results."""

    def forward(self, lhs, *, rhs):
        return {"sum": lhs + rhs, "difference": lhs - rhs}


class Types(torch.nn.Module):
    """One input of each type, turned around."""

    def forward(self, tensors):
        return [torch.flip(t, [0]) for t in tensors]


TYPES = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32,
         torch.int64, torch.float16, torch.bfloat16, torch.float32,
         torch.float64]


def export(model, arguments, named=None, shapes=None):
    return torch.export.export(model, arguments, named or {},
                               dynamic_shapes=shapes)


def images():
    random = numpy.random.default_rng(SEED)
    return random.uniform(0, 16, (IMAGES, 8, 8)).astype(numpy.float32)


def main():
    HERE.mkdir(exist_ok=True)
    for name, kind in SCRIPTS.items():
        torch.jit.save(torch.jit.script(kind().eval()), HERE / f"{name}.pt")

    with torch.no_grad():
        numpy.save(HERE / "digits.npy",
                   convert.Digits().eval()(torch.tensor(images())))

    batch = torch.export.Dim("batch", max=1024)
    convert.package(HERE / "checked.pt2", convert.program(),
                    zipfile.ZIP_DEFLATED)
    convert.package(HERE / "named.pt2",
                    export(Named(), (torch.ones(2, 4),),
                           {"rhs": torch.ones(2, 4)},
                           {"lhs": {0: batch}, "rhs": {0: batch}}),
                    zipfile.ZIP_DEFLATED)
    convert.package(HERE / "types.pt2", export(
        Types(), ([torch.ones(3).to(t) for t in TYPES],)),
        zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()
