"""Forests of every kind on the fake driver: answers are the same bits as those
of the host, and failures cost what they touch."""

import ctypes
import json
import pathlib

import numpy
import pytest
import treelite
import tritonclient.http as client

from tritonclient.utils import InferenceServerException

from lib import cuda, forests, models, process, repository
from lib.server import BUILD, SLOW, Server
from lib.trees import SOURCE, answer, fake_options

pytestmark = pytest.mark.fake_gpu

OUTPUTS = ("output__0", "raw", "leaf_id", "score_per_tree")
POOL = 64 << 20             # bytes on each device that are the core's
NAMES = ["xgb_binary", "xgb_multiclass", "xgb_targets", "xgb_vector_leaves",
         "xgb_categories", "lgb_multiclass", "lgb_random_forest",
         "lgb_categories", "skl_two_targets", "skl_isolation"]


def launches(path):
    """{kernel: how often}, as the fake driver has counted."""
    names = ("trees_walk", "trees_sum_floats", "trees_sum_doubles")
    counts = json.loads(path.read_text()) if path.exists() else {}
    return {n: counts.get("kernels", {}).get(n, 0) for n in names}


def write(directory, name, forest, kind, extra="", **parameters):
    models.write_model(
        directory, name, 'backend: "trees"\nmax_batch_size: 2000\n'
        f"instance_group {{ kind: {kind} }}\n" + extra
        + models.parameter_block({**forest.parameters, **parameters}),
        (1,), {1: {forest.filename: forest.content}})


@pytest.fixture(scope="module")
def trained():
    return {name: getattr(forests, name)() for name in NAMES}


@pytest.fixture(scope="module")
def served(trained, tmp_path_factory):
    """Each forest on the host and on a device."""
    def fill(directory):
        for name, forest in trained.items():
            write(directory, name, forest, "KIND_CPU", listed(forest))
            write(directory, name + "_gpu", forest, "KIND_GPU",
                  listed(forest))

    tmp_path = tmp_path_factory.mktemp("gpu")
    with Server(fill, **fake_options(tmp_path)) as server:
        server.counts_path = tmp_path / "counts"
        yield server


def listed(forest):
    """The outputs that are not the answer, as treelite has their shapes."""
    loads = {
        "xgboost.json": lambda p: treelite.frontend.load_xgboost_model(
            p, format_choice="json"),
        "xgboost.ubj": lambda p: treelite.frontend.load_xgboost_model(
            p, format_choice="ubjson"),
        "model.txt": treelite.frontend.load_lightgbm_model,
        "checkpoint.tl": treelite.Model.deserialize}
    directory = pathlib.Path(BUILD / "t-cuda/trees-models")
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / forest.filename
    path.write_bytes(forest.content)
    model = loads[forest.filename](path)
    x = forest.x[:1].astype(model.input_type)

    def dims(array):
        return [n for n in array.shape[1:] if n != 1] or [1]

    raw = treelite.gtil.predict(model, x, nthread=1, pred_margin=True)
    scores = treelite.gtil.predict_per_tree(model, x, nthread=1)
    width = forest.expected.shape[1:]
    if forest.parameters.get("predict_proba"):
        width = dims(raw)
    return models.io_block("output", [
        ("output__0", "FP32", width), ("raw", "FP32", dims(raw)),
        ("leaf_id", "INT32", [model.num_tree]),
        ("score_per_tree", "FP32", dims(scores))])


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_the_host_s(served, trained, name):
    x = trained[name].x
    for rows in (x, x[:1], x[3:20]):
        expected = answer(served, name, rows, OUTPUTS)
        got = answer(served, name + "_gpu", rows, OUTPUTS)
        for kind, a, b in zip(OUTPUTS, expected, got):
            assert a.shape == b.shape and a.tobytes() == b.tobytes(), kind


def test_requests_that_run_together(served, trained):
    x = trained["xgb_multiclass"].x[:200]
    whole, = answer(served, "xgb_multiclass", x)
    with client.InferenceServerClient(served.url, concurrency=16) as c:
        pending = []
        for row in range(len(x)):
            value = client.InferInput("input__0", [1, 4], "FP32")
            value.set_data_from_numpy(x[row:row + 1])
            pending.append(c.async_infer("xgb_multiclass_gpu", [value]))
        got = numpy.concatenate([
            p.get_result().as_numpy("output__0") for p in pending])
    assert got.tobytes() == whole.tobytes()


def test_the_kernels_have_run(served, trained):
    """And not the host; one walk and one sum for an answer."""
    before = launches(served.counts_path)
    answer(served, "xgb_binary_gpu", trained["xgb_binary"].x)
    after = {"trees_walk": before["trees_walk"] + 1,
             "trees_sum_floats": before["trees_sum_floats"] + 1,
             "trees_sum_doubles": before["trees_sum_doubles"]}
    assert process.wait_until(
        lambda: launches(served.counts_path) == after, 10 * SLOW)


def test_few_rows_stay_on_the_host(make_server, tmp_path, trained):
    forest = trained["xgb_binary"]
    server = make_server(
        lambda r: write(r, "m", forest, "KIND_GPU", transfer_threshold="4"),
        **fake_options(tmp_path))

    path = tmp_path / "counts"
    few, = answer(server, "m", forest.x[:4])
    assert launches(path)["trees_walk"] == 0
    more, = answer(server, "m", forest.x[:5])
    assert process.wait_until(
        lambda: launches(path)["trees_walk"] == 1, 10 * SLOW)
    assert few.tobytes() == more[:4].tobytes()


def test_failures_of_the_device(make_server, tmp_path, trained):
    """Each costs its own load or request, and leaves nothing there.  A run
    that fails is tried once more (backends/common/batch.c), so requests need
    two failures; the first allocation is the core's."""
    fails = ["cuModuleLoadDataEx:2:1", "cuModuleGetFunction:2:1",
             "cuStreamCreate:2:1", "cuMemAlloc_v2:2:2",
             "cuMemcpyHtoDAsync_v2:2:1", "cuLaunchKernel:2:1",
             "cuLaunchKernel:2:1", "cuMemcpyDtoHAsync_v2:2:1",
             "cuMemcpyDtoHAsync_v2:2:1"]
    forest = trained["lgb_categories"]
    o = fake_options(tmp_path, fail=",".join(fails))
    server = make_server(
        lambda r: write(r, "m", forest, "KIND_GPU"), parts=repository.PARTS,
        **{**o, "http": o["http"] + repository.EXPLICIT})

    for _ in range(5):
        said = repository.ask(server, "load", "m")
        assert said.status != 200
        assert b"CUDA_ERROR_OUT_OF_MEMORY" in said.body, said.body
    assert repository.ask(server, "load", "m").status == 200
    for _ in range(2):
        with pytest.raises(InferenceServerException,
                           match="CUDA_ERROR_OUT_OF_MEMORY"):
            answer(server, "m", forest.x)
    answer(server, "m", forest.x)

    assert repository.ask(server, "unload", "m").status == 200
    path = tmp_path / "counts"
    assert process.wait_until(
        lambda: json.loads(path.read_text())["memory"] == [POOL],
        10 * SLOW), path.read_text()
    assert json.loads(path.read_text())["wrong"] == 0


def test_without_the_compiler(make_server, tmp_path, trained):
    o = fake_options(tmp_path)
    server = make_server(
        lambda r: write(r, "m", trained["xgb_binary"], "KIND_GPU"),
        parts=repository.PARTS, **{
            **o, "http": o["http"].replace("nvrtc-library=",
                                           "nvrtc-library=/no")
            + repository.EXPLICIT})
    said = repository.ask(server, "load", "m")
    assert said.status != 200 and b"NVRTC" in said.body, said.body


def test_kernels_compile_for_every_architecture():
    """Of NVRTC's, with no warning."""
    rtc = ctypes.CDLL(str(cuda.nvrtc()))
    count = ctypes.c_int()
    rtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    archs = (ctypes.c_int * count.value)()
    rtc.nvrtcGetSupportedArchs(archs)
    assert len(archs) > 5
    for arch in archs:
        program = ctypes.c_void_p()
        assert rtc.nvrtcCreateProgram(ctypes.byref(program),
                                      SOURCE.read_bytes(), b"kernels.cu", 0,
                                      None, None) == 0
        flags = (ctypes.c_char_p * 1)(
            f"--gpu-architecture=sm_{arch}".encode())
        rc = rtc.nvrtcCompileProgram(program, 1, flags)
        size = ctypes.c_size_t()
        rtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        rtc.nvrtcGetProgramLog(program, log)
        assert rc == 0 and log.value.strip() == b"", (arch, log.value)
        rtc.nvrtcDestroyProgram(ctypes.byref(program))
