"""A backend beside its library, called directly: equal outputs.

Model says which inputs a model has; check sends random ones to a server and
gives the same arrays to a function that calls the library in Python.  Several
clients send at once, so that requests of a batching model run together, and
some ask for one output only.
"""

import concurrent.futures
import dataclasses
import os
import threading

import ml_dtypes
import numpy
import tritonclient.http as client

from lib.server import SANITIZER

# random inputs of each model; in a sanitizer's build fewer, as it is slow
COUNT = int(os.environ.get("INF_PARITY", "27" if SANITIZER else "1000"))

DTYPES = {"BOOL": numpy.bool_, "UINT8": numpy.uint8, "UINT16": numpy.uint16,
          "UINT32": numpy.uint32, "UINT64": numpy.uint64, "INT8": numpy.int8,
          "INT16": numpy.int16, "INT32": numpy.int32, "INT64": numpy.int64,
          "FP16": numpy.float16, "BF16": ml_dtypes.bfloat16,
          "FP32": numpy.float32, "FP64": numpy.float64}

CLIENTS = 8
# of all checks: the client's library keeps descriptors of each thread
POOL = concurrent.futures.ThreadPoolExecutor(CLIENTS)
LARGEST = 6         # an open dimension


@dataclasses.dataclass
class Model:
    """inputs: {name: (datatype, dims)} without the batch dimension; a dim is
    a number, or a letter for one that is open and the same in all inputs."""
    name: str
    inputs: dict
    outputs: list
    rows: int = 0                   # at most so many; 0: it does not batch
    whole: bool = False             # floats are whole and small: sums are exact


def random_array(rng, datatype, shape, whole=False):
    count = int(numpy.prod(shape))
    if datatype == "BYTES":
        texts = [rng.bytes(int(n)) for n in rng.integers(0, 20, count)]
        array = numpy.empty(count, numpy.object_)
        array[:] = texts
        return array.reshape(shape)
    if datatype == "BOOL":
        return rng.integers(0, 2, shape).astype(numpy.bool_)
    dtype = DTYPES[datatype]
    if datatype in ("FP16", "BF16", "FP32", "FP64"):
        data = rng.integers(-8, 9, shape) if whole \
            else rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)
        return numpy.asarray(data).astype(dtype)
    most = numpy.iinfo(dtype)
    low, high = (0, 9) if whole else (most.min, most.max)
    return rng.integers(low, high, shape, dtype, endpoint=True)


def random_inputs(rng, model):
    sizes = {}
    rows = [int(rng.integers(1, model.rows + 1))] if model.rows else []
    arrays = {}
    for name, (datatype, dims) in model.inputs.items():
        shape = rows + [
            sizes.setdefault(d, int(rng.integers(1, LARGEST + 1)))
            if isinstance(d, str) else d for d in dims]
        arrays[name] = random_array(rng, datatype, shape, model.whole)
    return arrays


def infer(connection, model, arrays, outputs):
    inputs = []
    for name, array in arrays.items():
        one = client.InferInput(name, list(array.shape),
                                model.inputs[name][0])
        one.set_data_from_numpy(array)
        inputs.append(one)
    answer = connection.infer(
        model.name, inputs,
        outputs=[client.InferRequestedOutput(name) for name in outputs])
    return {name: answer.as_numpy(name) for name in outputs}


def differences(got, expected, close):
    """Words on the first output that differs, or None."""
    for name, array in got.items():
        other = expected[name]
        if array.shape != other.shape:
            return f"{name}: shape {array.shape}, the library {other.shape}"
        if array.dtype == numpy.object_ or other.dtype == numpy.object_:
            equal = [text(a) for a in array.flat] \
                == [text(b) for b in other.flat]
        elif close is not None and array.dtype.kind == "f":
            equal = numpy.allclose(array, other, rtol=close, atol=close)
        else:
            equal = array.dtype == other.dtype \
                and array.tobytes() == other.tobytes()
        if not equal:
            return f"{name}: {array}, the library {other}"
    return None


def text(value):
    return value.encode() if isinstance(value, str) else bytes(value)


def check(server, model, predict, count, seed=0, close=None):
    """predict takes and gives {name: array} and is called by one thread at a
    time.  Floats may differ by close (relative and absolute), or not at all.
    """
    lock = threading.Lock()
    local = threading.local()
    opened = []

    def one(number):
        rng = numpy.random.default_rng([seed, number])
        arrays = random_inputs(rng, model)
        outputs = model.outputs
        if len(outputs) > 1 and number % 4 == 0:
            outputs = [outputs[int(rng.integers(len(outputs)))]]
        if not hasattr(local, "connection"):
            local.connection = client.InferenceServerClient(server.url)
            opened.append(local.connection)
        got = infer(local.connection, model, arrays, outputs)
        with lock:
            expected = predict(arrays)
        return differences(got, expected, close)

    try:
        found = [f"{model.name}, input {i}: {words}" for i, words
                 in enumerate(POOL.map(one, range(count)))
                 if words is not None]
    finally:
        for connection in opened:
            connection.close()
    assert found == [], "\n".join(found[:5])


def joined(server, name):
    """How many requests of the model ran in company, at least."""
    row = server.get(f"/v2/models/{name}/stats").json()["model_stats"][0]
    return int(row["inference_count"]) - int(row["execution_count"])
