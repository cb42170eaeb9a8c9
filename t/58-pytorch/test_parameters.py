"""Parameters of a model of backend pytorch, bad packages, loads and unloads."""

import concurrent.futures
import fcntl
import fnmatch
import io
import os
import pathlib
import re
import warnings
import zipfile

import numpy
import pytest
import tritonclient.http as client

from lib import gpu, models, process, pytorch_models
from lib.pytorch_models import DIGITS, FILES
from lib.repository import EXPLICIT, PARTS, ask, rows, settled
from lib.server import BACKENDS, SANITIZER, SLOW
from lib.wire import tensor

pytorch_models.needs_runtime()

CYCLES = int(os.environ.get("INF_PYTORCH_CYCLES", "20"))
X = [("x", "FP32", [-1])]
Y = [("y__0", "FP32", [-1])]
MODES = [("y__0", "INT64", [2])]
NO_BATCH = "max_batch_size: 0\n"


def parameters(**values):
    return NO_BATCH + models.parameter_block(values)


def data(answer):
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"]


def run(server, model, name="x", numbers=(1,)):
    return data(server.infer(model, {"inputs": [
        tensor(name, "FP32", [len(numbers)], list(numbers))]}))


def test_inference_mode(make_server):
    """The default is on; gradients are off in any case."""
    def fill(repository):
        for name, extra in (("default", NO_BATCH),
                            ("on", parameters(INFERENCE_MODE="true")),
                            ("off", parameters(INFERENCE_MODE="false"))):
            pytorch_models.write(repository, name, "modes", X, MODES, extra)

    server = make_server(fill)
    assert run(server, "default") == [0, 1]
    assert run(server, "on") == [0, 1]
    assert run(server, "off") == [0, 0]


def test_an_input_that_a_model_keeps_is_its_own(make_server):
    """Not what the memory of that request has become."""
    def fill(repository):
        for name, extra in (("copied", NO_BATCH),
                            ("in_place", parameters(
                                INFERENCE_WRITABLE_INPUTS="false"))):
            pytorch_models.write(repository, name, "keeper", X, Y, extra)

    server = make_server(fill)
    for name in ("copied", "in_place"):
        expected = [0]
        for n in range(1, 8):
            numbers = [n + 10 * k for k in range(1000)]
            assert run(server, name, numbers=numbers) == expected
            expected = numbers


SWITCHES = ["DISABLE_OPTIMIZED_EXECUTION", "DISABLE_CUDNN",
            "ENABLE_CACHE_CLEANING", "ENABLE_JIT_EXECUTOR",
            "ENABLE_JIT_PROFILING", "ENABLE_TENSOR_FUSER",
            "ENABLE_WEIGHT_SHARING", "INFERENCE_MODE"]


def test_switches_change_no_answer(make_server):
    expected = numpy.load(FILES / "digits.npy")[:8]
    random = numpy.random.default_rng(58)
    images = random.uniform(0, 16, (1000, 8, 8)).astype(numpy.float32)[:8]
    values = [(key, value) for key in SWITCHES for value in ("true", "false")]

    def fill(repository):
        for key, value in values:
            pytorch_models.digits(
                repository, f"{key}_{value}", extra="max_batch_size: 32\n"
                + models.parameter_block({key: value}))

    server = make_server(fill)
    with client.InferenceServerClient(server.url) as c:
        for key, value in values:
            for _ in range(4):          # the first runs are profiled
                image = client.InferInput("image", [8, 8, 8], "FP32")
                image.set_data_from_numpy(images)
                scores = c.infer(f"{key}_{value}", [image]).as_numpy("scores")
                assert numpy.abs(scores - expected).max() < 1e-5
    for key, words in (
            ("DISABLE_OPTIMIZED_EXECUTION", "Optimized execution is disabled"),
            ("ENABLE_CACHE_CLEANING", "Cache Cleaning is enabled"),
            ("INFERENCE_MODE", "Inference Mode is enabled"),
            ("DISABLE_CUDNN", "cuDNN is disabled"),
            ("ENABLE_WEIGHT_SHARING", "Weight sharing is enabled")):
        server.wait_log(f"{words}.* for model instance '{key}_true'")


def test_weights_are_shared_or_not(make_server):
    """A model that counts its runs in its weights tells them apart; two
    sequences are bound to two instances."""
    two = "instance_group { count: 2 kind: KIND_CPU }\n"

    def fill(repository):
        for name, value in (("shared", "true"), ("own", "false")):
            pytorch_models.write(
                repository, name, "counter", X, [("y__0", "INT64", [-1])],
                parameters(ENABLE_WEIGHT_SHARING=value)
                + "sequence_batching { direct { } }\n", instances=two)

    def step(model, sequence, start):
        return data(server.infer(model, {
            "parameters": {"sequence_id": sequence, "sequence_start": start},
            "inputs": [tensor("x", "FP32", [1], [0])]}))[0]

    server = make_server(fill)
    server.wait_said("Reusing TorchScript model for instance 'shared'")
    assert "Reusing TorchScript model for instance 'own'" \
        not in server.log_text()
    for name, expected in (("shared", [1, 2, 3, 4]), ("own", [1, 1, 2, 2])):
        assert [step(name, 1, True), step(name, 2, True),
                step(name, 1, False), step(name, 2, False)] == expected


def test_shared_package(make_server):
    server = make_server(lambda r: pytorch_models.digits(
        r, "digits", "torch_aoti", ("INPUT__0", "OUTPUT__0"),
        "max_batch_size: 32\n"
        + models.parameter_block({"ENABLE_WEIGHT_SHARING": "true"}),
        instances="instance_group { count: 3 kind: KIND_CPU }\n"))
    zeros = {"inputs": [tensor("INPUT__0", "FP32", [2, 8, 8], [0] * 128)]}
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: server.infer("digits", zeros),
                                range(60)))
    assert len({str(data(a)) for a in answers}) == 1


@pytest.mark.parametrize("platform,names", [
    ("pytorch_libtorch", ("image", "scores")),
    ("torch_aoti", ("INPUT__0", "OUTPUT__0"))])
def test_response_cache_warm_up_and_statistics(make_server, platform, names):
    server = make_server(lambda r: pytorch_models.digits(
        r, "digits", platform, names, "max_batch_size: 32\n"
        "response_cache { enable: true }\n"
        'model_warmup { name: "w" batch_size: 2 count: 3 inputs {\n'
        f'  key: "{names[0]}" value {{ data_type: TYPE_FP32 dims: [ 8, 8 ]\n'
        "    random_data: true } } }\n"),
        parts="all", http="    inference_response_cache local size=4m;\n")

    def stats():
        return server.get("/v2/models/digits/stats").json()["model_stats"][0]

    assert server.get("/v2/models/digits/ready").status == 200
    assert stats()["execution_count"] == 3
    zeros = {"inputs": [tensor(names[0], "FP32", [2, 8, 8], [0] * 128)]}
    first, *others = [data(server.infer("digits", zeros)) for _ in range(3)]
    assert others == [first, first]
    row = stats()
    assert row["inference_stats"]["cache_hit"]["count"] == 2
    assert row["inference_stats"]["cache_miss"]["count"] == 1
    assert row["inference_stats"]["compute_infer"]["ns"] > 0
    assert row["execution_count"] == 4


def threads_of(server, instance):
    """Those that an instance's thread has started have its name."""
    tasks = pathlib.Path(f"/proc/{server.core()}/task")
    return sum((t / "comm").read_text().strip() == instance
               for t in tasks.iterdir())


def test_threads_of_each_instance(make_server):
    """A large sum starts as many threads as the instance may have."""
    large = {"inputs": [
        {"name": name, "datatype": "FP32", "shape": [400_000],
         "parameters": {"binary_data_size": 1_600_000}}
        for name in ("lhs", "rhs")],
        "outputs": [{"name": "sum__0", "parameters": {"binary_data": True}}]}
    inputs = [("lhs", "FP32", [-1]), ("rhs", "FP32", [-1])]
    outputs = [("sum__0", "FP32", [-1]), ("difference__1", "FP32", [-1])]

    def fill(repository):
        pytorch_models.write(repository, "one", "pair", inputs, outputs,
                             NO_BATCH)
        pytorch_models.write(repository, "three", "pair", inputs, outputs,
                             parameters(INTRA_OP_THREAD_COUNT="3"))

    server = make_server(fill)
    for _ in range(2):
        for name, threads in (("one", 1), ("three", 3)):
            assert server.infer(name, large, bytes(3_200_000)).status == 200
            assert threads_of(server, f"{name}_0_0") == threads


def test_threads_of_the_process_are_the_first_models(make_server):
    server = make_server(lambda r: pytorch_models.write(
        r, "first", "copy", X, Y, parameters(INTER_OP_THREAD_COUNT="2")),
        http=EXPLICIT + "    inference_load_model first;\n", parts=PARTS)
    assert run(server, "first") == [1]
    pytorch_models.write(server.models, "second", "copy", X, Y,
                         parameters(INTER_OP_THREAD_COUNT="3"))
    assert ask(server, "load", "second").status == 200
    assert run(server, "second") == [1]
    server.wait_said("INTER_OP_THREAD_COUNT of model 'second' is 3, but the "
                     "process has 2 already")


def test_a_wrong_value_fails_the_load(make_server):
    wrong = {"INFERENCE_MODE": "perhaps", "DISABLE_CUDNN": "2",
             "ENABLE_JIT_EXECUTOR": "", "INTRA_OP_THREAD_COUNT": "many",
             "INTER_OP_THREAD_COUNT": "99999"}

    def fill(repository):
        for key, value in wrong.items():
            pytorch_models.write(repository, key, "copy", X, Y,
                                 parameters(**{key: value}))

    found = settled(make_server(fill, parts=PARTS, wait="live"))
    for key, value in wrong.items():
        assert f'parameter "{key}" is "{value}"' in found[key][0]["reason"]


def test_inputs_in_place(make_server):
    """Without the core's copies a tensor lies over the request's bytes."""
    server = make_server(lambda r: [
        pytorch_models.digits(r, "script", extra="max_batch_size: 32\n"
                              + models.parameter_block(
                                  {"INFERENCE_WRITABLE_INPUTS": "false"})),
        pytorch_models.digits(
            r, "package", "torch_aoti", ("INPUT__0", "OUTPUT__0"),
            "max_batch_size: 32\n"
            + models.parameter_block({"INFERENCE_WRITABLE_INPUTS": "false"}))])
    for model, name in (("script", "image"), ("package", "INPUT__0")):
        answer = server.infer(model, {"inputs": [
            tensor(name, "FP32", [2, 8, 8], [0] * 128)]})
        assert len(data(answer)) == 20


# ---- packages that are none

PREFIX = "m/data/aotinductor/model/"


def archive(entries):
    """{name: bytes, or a link's target}"""
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in entries.items():
            info = zipfile.ZipInfo(name)
            if isinstance(content, str):
                info.create_system = 3
                info.external_attr = 0o120777 << 16
                content = content.encode()
            z.writestr(info, content, zipfile.ZIP_DEFLATED)
    return to.getvalue()


def good_entries():
    with zipfile.ZipFile(DIGITS["pt2"]) as z:
        return {name: z.read(name) for name in z.namelist()}


def bad_packages():
    """name: (bytes of model.pt2, what the reason says)"""
    good = good_entries()
    library = next(n for n in good if n.endswith(".so"))
    raw = DIGITS["pt2"].read_bytes()

    def metadata(text):
        return {n: text.encode() if n.endswith(".json") else d
                for n, d in good.items()}

    return {
        "outside": (archive({**good, "m/../../x": b"1"}),
                    'entry "m/../../x" leads out of its directory'),
        "absolute": (archive({"/tmp/inf-x": b"1", **good}),
                     'entry "/tmp/inf-x" leads out of its directory'),
        "link": (archive({PREFIX + "a": "/etc/passwd", **good}),
                 f'entry "{PREFIX}a" is no plain file'),
        "truncated": (raw[:len(raw) // 2],
                      "no zip archive, or only a part of one"),
        "text": (b"not a zip archive", "no zip archive"),
        "nothing": (b"", "no zip archive"),
        "directory": (None, "no plain file"),
        "no_library": (archive({n: d for n, d in good.items()
                                if n != library}),
                       "no data/aotinductor/model/*.so in it"),
        "two_libraries": (archive({**good, PREFIX + "b.so": b"x"}),
                          "package has more than one library"),
        "twice": (twice(), "cannot make"),
        "cut_library": (archive({**good, library: good[library][:5000]}),
                        "the library in it is cut off"),
        "no_library_in_it": (archive({**good, library: b"text"}),
                             "the library in it is no shared library"),
        "another_processor": (
            archive({**good, library: patched(good[library], 18, b"\xb7\0")}),
            "the library in it is for another kind of processor"),
        "another_byte_order": (
            archive({**good, library: patched(good[library], 5, b"\2")}),
            "the library in it is for another kind of processor"),
        "changed": (patched(raw, len(raw) // 3, b"changed"), "ZIP bad CRC"),
        "another_pytorch": (
            archive({**good, library: good[library].replace(
                b"aoti_torch_get_data_ptr", b"aoti_torch_get_data_ptx")}),
            "which needs the version of PyTorch that has compiled it: "
            "* undefined symbol: aoti_torch_get_data_ptx"),
        "another_description": (
            archive({**good, library: good[library].replace(
                b"children_spec", b"children_spac")}),
            "input specification of the package has 0 parts"),
        "another_name": (
            archive({n.replace("aotinductor/model", "aotinductor/encoder"): d
                     for n, d in good.items()}),
            "no data/aotinductor/model/*.so in it: * or its model is not "
            'called "model"'),
        "no_functions": (archive({**good, library: plain_library()}),
                         "the library in it has no function AOTInductor|"
                         "cannot load the library in it"),
        "bomb": (archive({PREFIX + "zeros": bytes(80 << 20)}),
                 "archive is larger unpacked than"),
        "for_cuda": (archive(metadata('{"AOTI_DEVICE_KEY": "cuda"}')),
                     'package was compiled for device "cuda", its instance is '
                     "of KIND_CPU"),
        "metadata": (archive(metadata("{")), "_metadata.json"),
    }


def patched(data, at, other):
    return data[:at] + other + data[at + len(other):]


def plain_library():
    """A library that is no compiled model."""
    return (BACKENDS / "identity/libtriton_identity.so").read_bytes()


def twice():
    """The same entry two times."""
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w") as z, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            z.writestr(PREFIX + "a", b"1")
    return to.getvalue()


def is_reason(reason, file, words):
    """words: one of those between |; * is anything."""
    return file in reason and any(
        fnmatch.fnmatchcase(reason, f"*{w.replace('[', '[[]')}*")
        for w in words.split("|"))


def test_bad_packages(make_server, tmp_path):
    cases = bad_packages()

    def fill(repository):
        for name, (content, _) in cases.items():
            pytorch_models.digits(repository, name, "torch_aoti",
                                  ("INPUT__0", "OUTPUT__0"),
                                  data=content or b"")
        (repository / "directory/1/model.pt2").unlink()
        (repository / "directory/1/model.pt2").mkdir()
        pytorch_models.digits(repository, "good", "torch_aoti",
                              ("INPUT__0", "OUTPUT__0"))

    server = make_server(fill, parts=PARTS, wait="live",
                         http=f"    inference_env TMPDIR={tmp_path};\n")
    found = settled(server)
    wrong = [f"{name}: {found[name][0].get('reason', '')!r}"
             for name, (_, words) in cases.items()
             if not is_reason(found[name][0].get("reason", ""),
                              f"/{name}/1/model.pt2", words)]
    assert wrong == [], "\n".join(wrong)
    assert found["good"][0]["state"] == "READY"
    # the good one's directory alone is left
    assert len(list(tmp_path.glob("torch-aoti-*"))) == 1


def test_a_package_leaves_nothing_behind(make_server, tmp_path):
    server = make_server(
        lambda r: pytorch_models.digits(r, "digits", "torch_aoti",
                                        ("INPUT__0", "OUTPUT__0")),
        http=EXPLICIT + "    inference_load_model digits;\n"
        f"    inference_env TMPDIR={tmp_path};\n", parts=PARTS)
    directory, = tmp_path.glob("torch-aoti-*")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert ask(server, "unload", "digits").status == 200
    assert process.wait_until(lambda: not list(tmp_path.iterdir()),
                              10 * SLOW)


def test_a_killed_core_leaves_nothing_behind(make_server, tmp_path):
    """The next one removes what it finds, if nobody holds it."""
    foreign = tmp_path / "torch-aoti-mine"
    foreign.mkdir()
    held = tmp_path / "torch-aoti-locked"
    held.mkdir()
    lock = os.open(held, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    server = make_server(
        lambda r: pytorch_models.digits(r, "digits", "torch_aoti",
                                        ("INPUT__0", "OUTPUT__0")),
        http=f"    inference_env TMPDIR={tmp_path};\n", parts=PARTS,
        allow_alarms=[r"process \d+ exited on signal 9"])
    kept = {foreign, held}
    first, = set(tmp_path.glob("torch-*")) - kept
    server.end_core()
    assert server.wait_for("/v2/models/digits/ready")
    second, = set(tmp_path.glob("torch-*")) - kept
    assert second != first
    os.close(lock)


def resident_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1])


@pytest.mark.parametrize("platform, names", [
    ("pytorch_libtorch", ("image", "scores")),
    ("torch_aoti", ("INPUT__0", "OUTPUT__0"))])
def test_memory_after_loads_and_unloads(make_server, platform, names, capsys):
    """INF_PYTORCH_CYCLES is how many; resident memory is printed."""
    server = make_server(
        lambda r: pytorch_models.digits(r, "digits", platform, names),
        http=EXPLICIT, parts=PARTS)
    image = {"inputs": [tensor(names[0], "FP32", [1, 8, 8], [0] * 64)]}
    memory = []
    for i in range(CYCLES):
        assert ask(server, "load", "digits").status == 200
        assert len(data(server.infer("digits", image))) == 10
        assert ask(server, "unload", "digits").status == 200
        assert process.wait_until(lambda: rows(server, "digits")[0].get(
            "reason") == "unloaded", 10 * SLOW), rows(server, "digits")
        memory.append(resident_kib(server.core()))
    with capsys.disabled():
        half = memory[len(memory) // 2]
        print(f"\n{platform}: {CYCLES} cycles, resident KiB: first "
              f"{memory[0]}, half way {half}, last {memory[-1]}")
    # 64 KiB a cycle would be the weights and the code that stay; a sanitizer
    # keeps what is freed
    assert SANITIZER or memory[-1] - half \
        < 8192 + 64 * (len(memory) - len(memory) // 2)


@pytest.mark.fake_gpu
def test_beside_a_gpu_that_this_pytorch_cannot_use(make_server):
    """Its models run on the CPU unless their configuration says otherwise."""
    def fill(repository):
        pytorch_models.write(repository, "plain", "copy", X, Y, NO_BATCH,
                             instances="")
        pytorch_models.write(
            repository, "wants", "copy", X, Y, NO_BATCH,
            instances="instance_group { count: 1 kind: KIND_GPU }\n")

    server = make_server(fill, parts=PARTS, wait="live",
                         inference_env=gpu.env())
    found = settled(server)
    assert found["plain"][0]["state"] == "READY", found
    assert run(server, "plain") == [1]
    assert "this PyTorch can use 0 GPUs" in found["wants"][0]["reason"]
