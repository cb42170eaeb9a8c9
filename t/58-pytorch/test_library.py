"""The backend gives what PyTorch itself gives."""

import numpy
import pytest

from lib import models, parity, pytorch_models
from lib.pytorch_models import FILES
from lib.server import Server

pytorch_models.needs_runtime()

ROWS = 6
BATCH = f"max_batch_size: {4 * ROWS}\n" \
    "dynamic_batching { max_queue_delay_microseconds: 2000 }\n"
SINGLE = "max_batch_size: 0\n"
TYPES = ["BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16",
         "FP32", "FP64"]


def fill(repository):
    for extra, suffix, ends in ((BATCH, "batched", []),
                                (SINGLE, "single", [-1])):
        for datatype in models.ALL_DATATYPES:
            name = f"{datatype.lower()}_{suffix}"
            if datatype == "BYTES":
                continue
            pytorch_models.write(
                repository, f"copy_{name}", "copy",
                [("x", datatype, [-1, 3])], [("y__0", datatype, [-1, 3])],
                extra)
            pytorch_models.write(
                repository, f"turned_{name}", "turned",
                [("x", datatype, [*ends, -1, -1])],
                [("y__0", datatype, [*ends, -1, -1])], extra)
        pytorch_models.write(
            repository, f"pair_{suffix}", "pair",
            [("lhs", "FP32", [4] if extra == BATCH else [2, 4]),
             ("rhs", "FP32", [4] if extra == BATCH else [2, 4])],
            [("sum__0", "FP32", [4] if extra == BATCH else [2, 4]),
             ("difference__1", "FP32", [4] if extra == BATCH else [2, 4])],
            extra)
    # the list of strings has the one dimension that Triton allows
    pytorch_models.write(repository, "texts_single", "texts",
                         [("words", "BYTES", [-1])],
                         [("upper__0", "BYTES", [-1]),
                          ("lengths__1", "INT64", [-1])], SINGLE)
    pytorch_models.write(
        repository, "texts_batched", "texts",
        [("words", "BYTES", [1], "reshape { shape: [ ] }")],
        [("upper__0", "BYTES", [1], "reshape { shape: [ ] }"),
         ("lengths__1", "INT64", [1], "reshape { shape: [ ] }")], BATCH)
    pytorch_models.write(
        repository, "named", "named",
        [("ARGS[0]", "FP32", [4]), ("KWARGS[rhs]", "FP32", [4])],
        [("RESULT[sum]", "FP32", [4]), ("RESULT[difference]", "FP32", [4])],
        BATCH, "torch_aoti")
    pytorch_models.write(
        repository, "types", "types",
        [(f"INPUT__{i}", t, [3]) for i, t in enumerate(TYPES)],
        [(f"RESULT[{i}]", t, [3]) for i, t in enumerate(TYPES)],
        SINGLE, "torch_aoti")


@pytest.fixture(scope="module")
def library_server():
    with Server(fill, parts="all") as s:
        yield s


@pytest.mark.parametrize("batched", [False, True])
def test_tensors_of_every_datatype(library_server, batched):
    suffix, rows = ("batched", ROWS) if batched else ("single", 0)
    for seed, datatype in enumerate(models.ALL_DATATYPES):
        if datatype == "BYTES":
            continue
        name = f"{datatype.lower()}_{suffix}"
        parity.check(
            library_server, parity.Model(
                f"copy_{name}", {"x": (datatype, ["h", 3])}, ["y__0"], rows),
            lambda a: {"y__0": a["x"]}, parity.COUNT, seed)
        dims = ["h", "w"] if batched else [2, "h", "w"]
        parity.check(
            library_server, parity.Model(
                f"turned_{name}", {"x": (datatype, dims)}, ["y__0"], rows),
            lambda a: {"y__0": a["x"].transpose(0, 2, 1)}, parity.COUNT, seed)


@pytest.mark.parametrize("batched", [False, True])
def test_two_outputs(library_server, batched):
    suffix, rows = ("batched", ROWS) if batched else ("single", 0)
    dims = [4] if batched else [2, 4]
    model = parity.Model(f"pair_{suffix}", {"lhs": ("FP32", dims),
                                            "rhs": ("FP32", dims)},
                         ["sum__0", "difference__1"], rows)
    parity.check(library_server, model,
                 lambda a: {"sum__0": a["lhs"] + a["rhs"],
                            "difference__1": a["lhs"] - a["rhs"]},
                 parity.COUNT)
    assert not batched or parity.joined(library_server, model.name) > 0


def ascii_words(rng, count):
    return [bytes(rng.integers(32, 127, int(n), numpy.uint8)).decode()
            for n in rng.integers(0, 20, count)]


@pytest.mark.parametrize("batched", [False, True])
def test_lists_of_strings(library_server, batched):
    rng = numpy.random.default_rng(batched)
    for _ in range(parity.COUNT):
        count = int(rng.integers(1, ROWS))
        words = ascii_words(rng, count)
        shape = [count, 1] if batched else [count]
        answer = library_server.infer(
            "texts_batched" if batched else "texts_single",
            {"inputs": [{"name": "words", "datatype": "BYTES",
                         "shape": shape, "data": words}]})
        assert answer.status == 200, answer
        outputs = {o["name"]: o for o in answer.json()["outputs"]}
        assert outputs["upper__0"]["shape"] == shape
        assert outputs["upper__0"]["data"] == [w.upper() for w in words]
        assert outputs["lengths__1"]["data"] == [len(w) for w in words]


def test_a_package_with_named_tensors(library_server):
    model = parity.Model("named", {"ARGS[0]": ("FP32", [4]),
                                   "KWARGS[rhs]": ("FP32", [4])},
                         ["RESULT[sum]", "RESULT[difference]"], ROWS)

    def predict(a):
        lhs, rhs = a["ARGS[0]"], a["KWARGS[rhs]"]
        return {"RESULT[sum]": lhs + rhs, "RESULT[difference]": lhs - rhs}

    parity.check(library_server, model, predict, parity.COUNT)
    assert parity.joined(library_server, "named") > 0


def test_a_package_with_every_datatype(library_server):
    model = parity.Model(
        "types", {f"INPUT__{i}": (t, [3]) for i, t in enumerate(TYPES)},
        [f"RESULT[{i}]" for i in range(len(TYPES))])
    parity.check(library_server, model, lambda a: {
        f"RESULT[{i}]": a[f"INPUT__{i}"][::-1] for i in range(len(TYPES))},
        parity.COUNT)


# ---- the digits

def images(count):
    """As make_models.py has them."""
    random = numpy.random.default_rng(58)
    return random.uniform(0, 16, (1000, 8, 8)).astype(numpy.float32)[:count]


@pytest.fixture(scope="module")
def digits_server():
    def all_digits(repository):
        pytorch_models.digits(repository, "script", extra=BATCH)
        pytorch_models.digits(repository, "package", "torch_aoti",
                              ("INPUT__0", "OUTPUT__0"), extra=BATCH)
        models.write_model(
            repository, "onnx", 'backend: "onnxruntime"\n' + BATCH, (1,),
            {1: {"model.onnx": (FILES.parents[2]
                 / "examples/models/digits/1/model.onnx").read_bytes()}})
        models.ensemble(
            repository, "all",
            [("IMAGE", "FP32", [8, 8])],
            [("A", "FP32", [10]), ("B", "FP32", [10]), ("C", "FP32", [10])],
            models.step("onnx", {"image": "IMAGE"}, {"scores": "A"}),
            models.step("script", {"image": "IMAGE"}, {"scores": "B"}),
            models.step("package", {"INPUT__0": "IMAGE"},
                        {"OUTPUT__0": "C"}),
            extra=f"max_batch_size: {4 * ROWS}\n")

    with Server(all_digits, parts="all") as s:
        yield s


def test_digits_are_the_same_in_every_runtime(digits_server):
    """PyTorch's own answers, ONNX Runtime's, TorchScript's and a package's, in
    one process and one ensemble."""
    expected = numpy.load(FILES / "digits.npy")
    data = images(len(expected))
    model = parity.Model("all", {"IMAGE": ("FP32", [8, 8])}, ["A", "B", "C"])
    with parity.client.InferenceServerClient(digits_server.url) as c:
        for at in range(0, len(data), 20):
            got = parity.infer(c, model, {"IMAGE": data[at:at + 20]},
                               model.outputs)
            for name in model.outputs:
                assert numpy.abs(got[name] - expected[at:at + 20]).max() \
                    < 1e-5, name


def test_a_package_that_takes_two_rows_at_least(make_server):
    """As most do, unless they are compiled otherwise."""
    expected = numpy.load(FILES / "digits.npy")
    server = make_server(lambda r: pytorch_models.write(
        r, "checked", "checked", [("INPUT__0", "FP32", [8, 8])],
        [("OUTPUT__0", "FP32", [10])], "max_batch_size: 8\n", "torch_aoti"))
    model = parity.Model("checked", {"INPUT__0": ("FP32", [8, 8])},
                         ["OUTPUT__0"])
    data = images(20)
    with parity.client.InferenceServerClient(server.url) as c:
        for first, last in ((0, 1), (1, 2), (2, 5), (5, 6)):
            got = parity.infer(c, model, {"INPUT__0": data[first:last]},
                               model.outputs)["OUTPUT__0"]
            assert got.shape == (last - first, 10)
            assert numpy.abs(got - expected[first:last]).max() < 1e-5
    server.wait_said("a single row runs as two")
