"""Models in Python whose tensors stay on a GPU: inputs, outputs, and those of
requests to other models, both ways."""

import random

import pytest

from lib import device_copy, gpu, process, python_gpu
from lib.device_copy import ask, chain, result
from lib.python_gpu import PYTHON, model
from lib.server import SANITIZER, SLOW

BLOCK = 2 << 20             # the least that an interpreter is given

pytestmark = [
    pytest.mark.skipif(
        gpu.REAL and bool(python_gpu.lacking()), reason="backend python needs "
        + ", ".join(python_gpu.lacking())),
    pytest.mark.skipif(
        SANITIZER == "tsan", reason="an interpreter that runs can't load a "
        "driver with ThreadSanitizer")]

SEEN = """
assert not given.is_cpu()
assert given.__dlpack_device__() == (2, {gpu})
for no in {{"dl_device": (1, 0)}}, {{"dl_device": (2, 7)}}, {{"copy": True}}:
    try:
        given.__dlpack__(**no)
    except BufferError as e:
        assert "tensor 'IN' is not copied" in str(e)
    else:
        raise AssertionError(no)
for same in {{"stream": 1}}, {{"stream": -1}}, {{"dl_device": (2, {gpu})}}:
    given.__dlpack__(**same)
try:
    given.as_numpy()
except pb.TritonModelException as e:
    assert str(e) == "Tensor is stored in GPU and cannot be converted to " \\
        "NumPy."
else:
    raise AssertionError("an array")
return pb.Tensor("OUT", array(bytes_of(given)))
"""
SAME = """
assert not given.is_cpu()
view = View(given.to_dlpack())
view.close()
answer = given
answer._name = "OUT"
return answer
"""
MADE = """
mine = Memory(bytes_of(given)[::-1])
made = pb.Tensor.from_dlpack("OUT", mine)
assert not made.is_cpu() and Memory.streams[-1] == 1
assert bytes_of(made) == bytes_of(given)[::-1]
return made
"""
CAPSULE = MADE.replace('"OUT", mine', '"OUT", mine.capsule()').replace(
    " and Memory.streams[-1] == 1", "")
TO_OTHER = """
made = pb.Tensor.from_dlpack("IN", Memory(bytes_of(given)))
got = ask("{other}", made, preferred_memory=GPU)
assert got.is_cpu() == {cpu}, got.is_cpu()
return got
"""
ON_CPU = """
assert given.is_cpu()
return pb.Tensor("OUT", given.as_numpy())
"""
# what it lets go of is freed, and how often it was asked to
LEFT = """
import gc
gc.collect()
return pb.Tensor("OUT", np.array([Memory.live, min(Memory.deleted, 255)],
                                 dtype=np.uint8))
"""


def fill(repository):
    for i in 0, 1:
        device_copy.model(repository, f"on{i}",
                          f"kind: KIND_GPU gpus: [{i}]")
        model(repository, f"seen{i}", SEEN.format(gpu=i))
        chain(repository, f"seen_on{i}", [f"on{i}", f"seen{i}"],
              pathless=[f"seen{i}"])
    device_copy.model(repository, "from0", want="CPU_PINNED")
    device_copy.model(repository, "cpu", "kind: KIND_CPU", want="CPU")
    for name, code in [
            ("same", SAME), ("made", MADE), ("capsule", CAPSULE),
            ("ask_gpu", TO_OTHER.format(other="on0", cpu=False)),
            ("ask_cpu", TO_OTHER.format(other="cpu", cpu=True)),
            ("ask_python", TO_OTHER.format(other="made", cpu=False))]:
        model(repository, name, code)
        chain(repository, f"{name}_to_gpu", ["on0", name, "from0"],
              pathless=[name])
        chain(repository, f"{name}_to_cpu", ["on0", name], pathless=[name])
    model(repository, "made_off", MADE, cpu="yes", kind="KIND_CPU")


def fill_one(repository):
    """Models for a machine with one GPU."""
    device_copy.model(repository, "on0")
    device_copy.model(repository, "from0", want="CPU_PINNED")
    for name, code in [("seen", SEEN.format(gpu=0)), ("same", SAME),
                       ("made", MADE),
                       ("ask", TO_OTHER.format(other="on0", cpu=False))]:
        model(repository, name, code)
        chain(repository, f"chain_{name}", ["on0", name, "from0"],
              pathless=[name])


def behind_a_copy(name, code, **kw):
    """Fills a repository with "chained": a model whose input lies on GPU 0."""
    def few(repository):
        device_copy.model(repository, "on0")
        model(repository, name, code, **kw)
        chain(repository, "chained", ["on0", name], pathless=[name])
    return few


def data_of(size):
    return random.Random(size).randbytes(size)


def check(server, name, size, turned=False):
    data = data_of(size)
    answer = ask(server, name, data, ("OUT",))
    assert answer.status == 200, answer.error
    got = result(answer)["OUT"]
    assert got == (data[::-1] if turned else data), name


@pytest.mark.parametrize("name", ["seen", "same", "made", "ask"])
def test_on_any_driver(gpus, name):
    server = gpus.start(fill_one, env=PYTHON)
    for size in 1, 1000, 100_000, 3_000_000:
        check(server, f"chain_{name}", size, name == "made")
    if not gpu.REAL:
        assert gpus.ended(server)["copies"]["to_host"] == 4


@pytest.mark.fake_gpu
@pytest.mark.parametrize("i", [0, 1])
def test_an_input_stays_on_its_gpu(gpus, i):
    """Also on another than the instance's."""
    server = gpus.start(fill, env=PYTHON)
    sizes = 1, 2048, 2049, 5_000_000
    for size in sizes:
        check(server, f"seen_on{i}", size)
    counts = gpus.ended(server)
    assert counts["bytes"] == {"to_device": sum(sizes),
                               "on_device": sum(sizes),
                               "to_host": 0, "to_peer": 0}


@pytest.mark.fake_gpu
@pytest.mark.parametrize("name,on", [("same", 2), ("made", 2), ("capsule", 2),
                                     ("ask_gpu", 3), ("ask_python", 4)])
def test_nothing_leaves_the_gpu_between_models(gpus, name, on):
    """On it, a copy to the interpreter, one from it and, of another model, its
    own: into its interpreter, too, if it is in Python."""
    server = gpus.start(fill, env=PYTHON)
    for size in 1, 70_000:
        check(server, f"{name}_to_gpu", size,
              name in ("made", "capsule", "ask_python"))
    moved = gpus.ended(server)["bytes"]
    assert moved == {"to_device": 70_001, "on_device": on * 70_001,
                     "to_host": 70_001, "to_peer": 0}


@pytest.mark.fake_gpu
def test_an_output_goes_to_the_client_in_one_copy(gpus):
    server = gpus.start(fill, env=PYTHON)
    check(server, "made_to_cpu", 70_000, True)
    counts = gpus.ended(server)
    assert counts["copies"]["to_host"] == 1
    assert counts["copies"]["on_device"] == 1       # to the interpreter


@pytest.mark.fake_gpu
def test_a_model_for_the_cpu_may_have_tensors_on_a_gpu(gpus):
    server = gpus.start(fill, env=PYTHON)
    check(server, "made_off", 70_000, True)
    assert gpus.ended(server)["bytes"] == {
        "to_device": 0, "on_device": 0, "to_host": 70_000, "to_peer": 0}


@pytest.mark.fake_gpu
def test_an_output_of_a_model_on_the_cpu_comes_there(gpus):
    server = gpus.start(fill, env=PYTHON)
    check(server, "ask_cpu_to_cpu", 70_000)


@pytest.mark.fake_gpu
def test_models_without_it_have_no_driver_in_their_interpreter(gpus):
    server = gpus.start(behind_a_copy("plain", ON_CPU, cpu="yes"), env=PYTHON)
    check(server, "chained", 70_000)
    assert "cuIpcGetMemHandle" not in gpus.ended(server)["calls"]
    assert gpus.interpreters() == []


@pytest.mark.fake_gpu
@pytest.mark.parametrize("function,said", [
    ("cuIpcGetMemHandle", "cannot share memory with another process"),
    ("cuIpcOpenMemHandle_v2", "CUDA_ERROR_NOT_SUPPORTED")])
def test_a_driver_without_shared_memory(gpus, function, said):
    """Inputs are copied to the CPU, outputs by way of it."""
    def few(repository):
        device_copy.model(repository, "on0")
        model(repository, "plain", ON_CPU)
        chain(repository, "chained", ["on0", "plain"], pathless=["plain"])
        model(repository, "made", MADE, cpu="yes")

    rules = ",".join(f"{function}:801:{n}" for n in range(1, 8))
    server = gpus.start(few, env=[*PYTHON, f"FAKE_CUDA_FAIL={rules}"])
    for size in 1, 70_000:
        check(server, "chained", size)
    check(server, "made", 70_000, True)
    server.wait_log(said)
    server.wait_said("inputs that lie on a GPU are copied to the CPU:")
    assert gpus.ended(server)["bytes"]["on_device"] == 0


# of every kind: datatype, DLPack's kind, shape
KINDS = """
for number, kind, shape, size in [
        (1, (6, 8), [2, 3], 6), (2, (1, 8), [1], 1), (8, (0, 32), [0, 3], 0),
        (10, (2, 16), [5], 10), (12, (2, 64), [], 8), (14, (4, 16), [3], 6)]:
    data = bytes(range(size))
    made = pb.Tensor.from_dlpack("X", Memory(data, 0, kind, shape))
    again = pb.Tensor.from_dlpack("X", made)
    for t in made, again:
        assert not t.is_cpu() and t.__dlpack_device__() == (2, 0)
        assert (t.triton_dtype(), t.shape()) == (number, shape)
        view = View(t.__dlpack__(stream=1))
        assert view.kind == (*kind, 1) and view.read() == data
        view.close()
        try:
            t.as_numpy()
        except pb.TritonModelException as e:
            assert str(e) == "Tensor is stored in GPU and cannot be " \\
                "converted to NumPy."
        else:
            raise AssertionError("an array")
return pb.Tensor.from_dlpack("OUT", Memory(b""))
"""


@pytest.mark.fake_gpu
def test_tensors_of_every_kind(gpus):
    """The answer has no bytes."""
    def few(repository):
        model(repository, "kinds", KINDS)

    server = gpus.start(few, env=PYTHON)
    answer = ask(server, "kinds", b"1", ("OUT",))
    assert answer.status == 200, answer.error
    assert result(answer)["OUT"] == b""
    gpus.ended(server)


KEPT = """
self.kept = getattr(self, "kept", [])
for data, view, _ in self.kept:
    assert view.read() == data
view = View(given.to_dlpack())
self.kept.append((view.read(), view, given if len(self.kept) % 2 else None))
return pb.Tensor("OUT", array(bytes_of(given)))
"""


def test_a_tensor_is_there_until_its_last_consumer_lets_go(gpus):
    """Of the tensor, or of its capsule alone, after the request's end."""
    server = gpus.start(behind_a_copy("keeps", KEPT), env=PYTHON)
    for n in range(30):
        check(server, "chained", 1 + n * 9_999)


# copies that are queued when their tensors are let go of
QUEUED = """
import ctypes
from gpu_tensor import Gpu, must
if not hasattr(self, "copies"):
    self.copies, self.stream = [], ctypes.c_void_p()
    with Gpu():
        must("cuStreamCreate", ctypes.byref(self.stream), 1)
if len(self.copies) == 6:
    with Gpu():
        must("cuStreamSynchronize", self.stream)
    for copy, data in self.copies:
        assert copy == data
    self.copies.clear()
view = View(given.to_dlpack())
data = view.read()
copy = bytearray(len(data))
with Gpu():
    must("cuMemcpyDtoHAsync_v2",
         (ctypes.c_char * len(data)).from_buffer(copy),
         ctypes.c_uint64(view.address), ctypes.c_size_t(len(data)),
         self.stream)
view.close()
self.copies.append((copy, data))
return pb.Tensor("OUT", array(data))
"""


def test_memory_is_not_written_again_before_work_there_is_done(gpus):
    server = gpus.start(behind_a_copy("queues", QUEUED), env=PYTHON)
    for n in range(20):
        check(server, "chained", 900_000 + n)


# the answer comes from a thread, when execute has returned
LATE = """
    def execute(self, requests):
        import threading
        for r in requests:
            threading.Thread(target=self.late, args=(
                r.get_response_sender(),
                pb.get_input_tensor_by_name(r, "IN"))).start()
    def late(self, sender, given):
        sender.send(pb.InferenceResponse([self.answer(given)]), 1)
"""
# several requests to another model at once, and a stream of one
TOGETHER = """
    async def execute(self, requests):
        return [pb.InferenceResponse([await self.both(
            pb.get_input_tensor_by_name(r, "IN"))]) for r in requests]
    async def both(self, given):
        import asyncio
        data = bytes_of(given)
        mine = pb.Tensor.from_dlpack("IN", Memory(data))
        asked = [pb.InferenceRequest(
            model_name="on0", inputs=[t], requested_output_names=["OUT"],
            preferred_memory=GPU) for t in [given, mine] * 4]
        got = [r.output_tensors()[0] for r in await asyncio.gather(
            *(a.async_exec() for a in asked))]
        got += [r.output_tensors()[0] for r in asked[0].exec(decoupled=True)
                if r.output_tensors()]
        assert len(got) == 9
        for tensor in got:
            assert not tensor.is_cpu() and bytes_of(tensor) == data
        return got[-1]
"""


@pytest.mark.parametrize("code,methods", [(MADE, LATE), (SAME, LATE),
                                          ("return given", TOGETHER)],
                         ids=["late", "late_same", "together"])
def test_threads_and_coroutines(gpus, code, methods):
    def few(repository):
        device_copy.model(repository, "on0")
        device_copy.model(repository, "from0", want="CPU_PINNED")
        model(repository, "other", code, methods=methods)
        chain(repository, "chained", ["on0", "other", "from0"],
              pathless=["other"])

    server = gpus.start(few, env=PYTHON)
    for n in range(20):
        check(server, "chained", 1 + n * 9_999, code == MADE)


@pytest.mark.fake_gpu
def test_nothing_is_left_after_many_requests(gpus):
    def few(repository):
        fill(repository)
        model(repository, "count", MADE.replace("return made", """
self.n = getattr(self, "n", 0) + 1
import gc
gc.collect()
assert Memory.live < 8, Memory.live
assert self.n - 5 < Memory.deleted <= self.n, (self.n, Memory.deleted)
return made"""))
        chain(repository, "counted", ["on0", "count", "from0"],
              pathless=["count"])

    server = gpus.start(few, env=PYTHON)
    names = ["counted", "same_to_gpu", "ask_gpu_to_gpu"]
    memory = []
    for n in range(200):
        for name in names:
            check(server, name, 1 + n * 977 % 300_000, name == "counted")
        if n in (20, 199):
            memory.append(gpus.counts()["memory"][0])
    assert memory[1] - memory[0] <= 6 * BLOCK, memory
    gpus.ended(server)


@pytest.mark.fake_gpu
def test_large_blocks_are_given_back(gpus):
    """Those without tensors are closed by the interpreter, then freed."""
    server = gpus.start(fill, env=PYTHON)
    check(server, "seen_on0", 1)
    before = gpus.counts()["memory"][0]
    for size in range(20 << 20, 32 << 20, 2 << 20):
        check(server, "seen_on0", size)
    counts = gpus.counts()
    assert counts["calls"]["cuMemFree_v2"] >= 3
    assert counts["memory"][0] - before < 64 + 30 + 6 << 20
    gpus.ended(server)


@pytest.mark.fake_gpu
def test_an_interpreter_that_dies_with_tensors(gpus):
    server = gpus.start(behind_a_copy("dies", """
if bytes_of(given)[0] == 1:
    self.kept = [given, Memory(b"1" * 9)]
    os.kill(os.getpid(), 9)
return pb.Tensor("OUT", array(bytes_of(given)))
"""), env=PYTHON)
    memory = []
    for _ in range(3):
        answer = ask(server, "chained", b"\1" * 5000, ("OUT",))
        assert answer.status != 200 and "not healthy" in answer.error
        assert process.wait_until(lambda: ask(
            server, "chained", b"\2" * 5000, ("OUT",)).status == 200,
            20 * SLOW)
        memory.append(gpus.counts()["memory"])
    assert memory[0] == memory[2]
    gpus.ended(server)


@pytest.mark.fake_gpu
def test_an_interpreter_may_not_ask_for_inputs_there(gpus):
    server = gpus.start(behind_a_copy("asks", """
import _native
from _host_channel import GPU_READY
_native.push(GPU_READY, 0, [None])
""" + ON_CPU, cpu="yes"), env=PYTHON)
    for size in 1, 70_000:
        check(server, "chained", size)
    server.wait_log("copied to the CPU: the interpreter has not said why")
    gpus.ended(server)


@pytest.mark.fake_gpu
def test_wrong_words_of_an_interpreter(gpus):
    """Memory of a GPU that it names is looked up; its request fails, and the
    next one is served."""
    server = gpus.start(behind_a_copy("lies", """
import _native
from _host_channel import GPU_NEW, _GPU_CLOSED, _GPU_FREE
what = bytes_of(given)[0]
if what < 8:
    wrong = [[0, 0], [0, 1 << 62], [77, 10], [-1, 10], [0], [0, -4], [1 << 63,
             1], ["a", "b"]][what]
    error, _ = _native.call(GPU_NEW, 0, wrong)
    raise RuntimeError("refused: " + error[1])
if what == 8:       # a size beyond the memory's
    answer = pb.Tensor.from_dlpack("OUT", Memory(b"x" * 10))
    answer._shape = [11]
    return answer
if what == 9:       # strings
    answer = pb.Tensor.from_dlpack("OUT", Memory(b"\\0" * 4))
    answer._dtype = 13
    answer._shape = [1]
    return answer
every = [i | n << 32 for i in range(8) for n in range(64)]
if what == 10:      # given back, and named again
    for number in every:
        _native.push(_GPU_FREE, number, None)
    given._name = "OUT"
    return given
if what == 11:      # closed, which it is not
    for number in every:
        _native.push(_GPU_CLOSED, number, None)
return pb.Tensor("OUT", array(bytes_of(given)))
"""), env=PYTHON)
    for what in range(11):
        answer = ask(server, "chained", bytes([what]), ("OUT",))
        assert answer.status != 200, what
        if what < 8:
            assert "refused: " in answer.error, answer
        if what == 9:
            assert "has strings in memory of a GPU" in answer.error
        if what == 10:
            assert "memory of a GPU that it does not have" in answer.error
    for what in 11, 12, 11, 12:
        data = bytes([what]) * 100
        assert result(ask(server, "chained", data, ("OUT",)))["OUT"] == data
    gpus.ended(server)
