"""The backend answers as the library that has trained the model predicts, and
to the last bit as treelite's own predictor does."""

import pathlib
import sys

import numpy
import pytest
import treelite
import tritonclient.http as client

from lib import forests, models
from lib.server import ROOT, Server
from lib.trees import answer
from lib.wire import tensor

EXAMPLES = ROOT / "examples/trees"
OUTPUTS = ("raw", "leaf_id", "score_per_tree")


def of_treelite(forest, kind):
    """treelite's answer as the backend has it: of a model with double numbers
    in double precision, then rounded once."""
    path = pathlib.Path(forest.directory, "1", forest.filename)
    model = load(path)
    wide = model.input_type == "float64"
    x = forest.x.astype("float64" if wide else "float32")
    if kind == "leaf_id":
        return treelite.gtil.predict_leaf(model, x, nthread=1)
    call = {"raw": lambda: treelite.gtil.predict(
                model, x, nthread=1, pred_margin=True),
            "output__0": lambda: treelite.gtil.predict(model, x, nthread=1),
            "score_per_tree": lambda: treelite.gtil.predict_per_tree(
                model, x, nthread=1)}[kind]
    return call().astype("float32")


def load(path):
    return {
        "xgboost.json": lambda p: treelite.frontend.load_xgboost_model(
            p, format_choice="json"),
        "xgboost.ubj": lambda p: treelite.frontend.load_xgboost_model(
            p, format_choice="ubjson"),
        "xgboost.model": treelite.frontend.load_xgboost_model_legacy_binary,
        "model.txt": treelite.frontend.load_lightgbm_model,
        "checkpoint.tl": treelite.Model.deserialize}[path.name](path)


@pytest.fixture(scope="module")
def trained():
    return {f.__name__: f() for f in forests.ALL}


@pytest.fixture(scope="module")
def served(trained):
    """Each model twice: NAME without a word about its tensors, and NAME_all
    with the outputs that only a configuration brings, under the other name
    of the backend."""
    def fill(repository):
        for name, forest in trained.items():
            parameters = models.parameter_block(forest.parameters)
            forest.directory = models.write_model(
                repository, name, 'backend: "trees"\n'
                "max_batch_size: 2000\n" + parameters, (1,),
                {1: {forest.filename: forest.content}})
            models.write_model(
                repository, name + "_all", 'backend: "fil"\n'
                "max_batch_size: 2000\n" + parameters
                + models.io_block("output", [
                    (o, "INT32" if o == "leaf_id" else "FP32",
                     of_treelite(forest, o).shape[1:] if o == "leaf_id"
                     else dims(of_treelite(forest, o))) for o in OUTPUTS]),
                (1,), {1: {forest.filename: forest.content}})

    with Server(fill) as s:
        yield s


def dims(array):
    """Without the batch, and without dimensions of one element."""
    return [n for n in array.shape[1:] if n != 1] or [1]


@pytest.mark.parametrize("name", forests.NAMES)
def test_a_batch_is_what_the_library_predicts(served, trained, name):
    forest = trained[name]
    got, = answer(served, name, forest.x)
    assert got.dtype == numpy.float32
    numpy.testing.assert_allclose(
        got.reshape(forests.ROWS, -1), forest.expected,
        rtol=forest.tolerance,
        atol=forest.tolerance * numpy.abs(forest.expected).max())


@pytest.mark.parametrize("name", forests.NAMES)
def test_rows_by_themselves_are_the_same(served, trained, name):
    """Also in small numbers, which are walked in another way."""
    forest = trained[name]
    whole, = answer(served, name, forest.x)
    for first, count in ((0, 1), (1, 1), (2, 7), (9, 8), (17, 130)):
        part, = answer(served, name, forest.x[first:first + count])
        assert part.tobytes() == whole[first:first + count].tobytes()


def test_requests_that_run_together_are_the_same(served, trained):
    """1,000 requests of one row, many at a time."""
    forest = trained["xgb_multiclass"]
    whole, = answer(served, "xgb_multiclass", forest.x)
    with client.InferenceServerClient(served.url, concurrency=32) as c:
        pending = []
        for row in range(forests.ROWS):
            value = client.InferInput("input__0", [1, 4], "FP32")
            value.set_data_from_numpy(forest.x[row:row + 1])
            pending.append(c.async_infer("xgb_multiclass", [value]))
        for row, request in enumerate(pending):
            got = request.get_result().as_numpy("output__0")
            assert got.tobytes() == whole[row:row + 1].tobytes(), row


@pytest.mark.parametrize("name", forests.NAMES)
def test_every_output_is_treelite_s_to_the_last_bit(served, trained, name):
    forest = trained[name]
    got = answer(served, name + "_all", forest.x, OUTPUTS)
    for kind, array in zip(OUTPUTS, got):
        expected = of_treelite(forest, kind)
        if kind == "leaf_id":
            assert array.dtype == numpy.int32
            assert array.tolist() == expected.tolist()
        else:
            assert array.tobytes() == expected.tobytes(), kind
    if name not in ("xgb_classes", "skl_two_targets"):
        answered, = answer(served, name, forest.x)
        assert answered.tobytes() == of_treelite(
            forest, "output__0").tobytes()


def test_the_examples_are_as_good_as_their_page_says():
    """Of rows that training has not seen; and equal to the libraries."""
    sys.path.insert(0, str(EXAMPLES))
    import train

    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    with Server(EXAMPLES / "models") as server:
        for name, (make, filename, measure) in train.MODELS.items():
            class Served:
                @staticmethod
                def predict(x):
                    got, = answer(server, name, numpy.ascontiguousarray(x))
                    return got[:, 0] if got.shape[1] == 1 \
                        else got.argmax(axis=1)

            figure = f"{measure(Served):.3f}"
            assert f"| `{name}` | {figure} |" in page, (name, figure)
            path = EXAMPLES / "models" / name / "1" / filename
            own = train.booster(path)
            x, = (train.parts(load)[1] for load in [
                train.datasets.load_digits if "digits" in name
                else train.datasets.load_diabetes])
            got, = answer(server, name, numpy.ascontiguousarray(x))
            expected = numpy.asarray(own(x)).reshape(len(x), -1)
            if got.shape[1] == 1 and expected.shape[1] > 1:
                expected = expected.argmax(axis=1).reshape(-1, 1)
            numpy.testing.assert_allclose(got, expected, rtol=1e-5)


def test_a_model_without_batches(make_server):
    """max_batch_size 0: the batch is a dimension like any other."""
    forest = forests.xgb_ubj()
    server = make_server(lambda r: models.write_model(
        r, "one", 'backend: "trees"\nmax_batch_size: 0\n'
        + models.io_block("input", [("input__0", "FP32", [-1, 10])])
        + models.io_block("output", [("output__0", "FP32", [-1, 1])]), (1,),
        {1: {forest.filename: forest.content}}))
    got, = answer(server, "one", forest.x)
    numpy.testing.assert_allclose(got, forest.expected, rtol=1e-5)
    answered = server.infer("one", {"inputs": [
        tensor("input__0", "FP32", [0, 10], [])]})
    assert answered.json()["outputs"][0]["shape"] == [0, 1], answered
