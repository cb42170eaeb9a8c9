"""Backend image (PNG files to tensors), backend label (scores to words), and
the example that has both around the digits model."""

import concurrent.futures
import json
import pathlib
import struct
import subprocess
import threading
import zlib

import numpy
import pytest
import tritonclient.http as client

from lib import backends, models
from lib.png import chunk, png
from lib.server import BACKENDS, ROOT, SLOW, Server

pytestmark = pytest.mark.skipif(
    backends.is_absent(BACKENDS / "image/libtriton_image.so"),
    reason="backend image is not built: libpng-dev")

RNG = numpy.random.default_rng(7)


def image(repository, name, dims, batch=0, more="", **parameters):
    models.write_model(repository, name, f'backend: "image"\nmax_batch_size: '
                       f'{batch}\n' + models.io_block("input", [
                           ("PNG", "BYTES", [1])])
                       + models.io_block("output", [("OUT", "FP32", dims)])
                       + models.parameter_block(parameters) + more)


def label(repository, name, labels="a\nb\nc\n", outputs=(), batch=0,
          dims=(3,), **parameters):
    outputs = outputs or [("LABEL", "BYTES", [1]), ("SCORE", "FP32", [1])]
    directory = models.write_model(
        repository, name, f'backend: "label"\nmax_batch_size: {batch}\n'
        + models.io_block("input", [("IN", "FP32", dims)])
        + models.io_block("output", outputs)
        + models.parameter_block(parameters))
    if labels is not None:
        (directory / "labels.txt").write_text(labels, encoding="utf-8",
                                              newline="")


def fill(repository):
    image(repository, "grey", [4, 6])
    image(repository, "same", [5, 7])
    image(repository, "planar", [3, 4, 4], mean="0.5,0.25,0", scale="2,4,1")
    image(repository, "packed", [4, 4, 3])
    image(repository, "one", [1, 2, 2], mean="1", scale="-16")
    image(repository, "rows", [2, 2], batch=8, more="dynamic_batching {"
          " max_queue_delay_microseconds: 20000 }")
    image(repository, "small", [2, 2], max_pixels="64")
    label(repository, "word")
    label(repository, "words", batch=8, labels="a\r\nb b\r\n\r\n")
    label(repository, "alone", outputs=[("LABEL", "BYTES", [1])],
          labels="x\ny\nz")


@pytest.fixture(scope="module")
def server():
    with Server(fill) as s:
        yield s


@pytest.fixture(scope="module")
def connection(server):
    with client.InferenceServerClient(server.url, concurrency=8) as c:
        yield c


def ask(connection, model, *files, shape=None):
    one = client.InferInput("PNG", shape or [len(files)], "BYTES")
    one.set_data_from_numpy(numpy.array(files, numpy.object_).reshape(
        shape or [len(files)]))
    return connection.infer(model, [one]).as_numpy("OUT")


def mean_of_parts(pixels, height, width):
    """numpy's own: pixels times rows and columns of weights."""
    def weights(count, source):
        edges = numpy.arange(count + 1) * source / count
        low = numpy.maximum(edges[:-1, None], numpy.arange(source))
        high = numpy.minimum(edges[1:, None], numpy.arange(source) + 1)
        part = numpy.maximum(high - low, 0)
        return part / part.sum(1, keepdims=True)
    rows = weights(height, pixels.shape[0])
    columns = weights(width, pixels.shape[1])
    return numpy.einsum("yh,xw,hw...->yx...", rows, columns,
                        pixels.astype(numpy.float64)) / 255


@pytest.mark.parametrize("height,width", [
    (4, 6), (8, 12), (40, 60), (5, 7), (7, 5), (1, 1), (2, 3), (1, 400),
    (301, 2)])
def test_a_picture_of_any_size(connection, height, width):
    pixels = RNG.integers(0, 256, (height, width), numpy.uint8)
    got = ask(connection, "grey", png(pixels))
    assert got.dtype == numpy.float32
    assert numpy.allclose(got, mean_of_parts(pixels, 4, 6), atol=1e-6)


def test_a_picture_of_the_same_size_is_not_changed(connection):
    pixels = RNG.integers(0, 256, (5, 7), numpy.uint8)
    got = ask(connection, "same", png(pixels))
    assert (got == pixels.astype(numpy.float32) / 255).all()


def test_colours_mean_and_scale(connection):
    pixels = RNG.integers(0, 256, (9, 10, 3), numpy.uint8)
    parts = mean_of_parts(pixels, 4, 4)
    assert numpy.allclose(ask(connection, "packed", png(pixels)), parts,
                          atol=1e-6)
    planar = (parts - [0.5, 0.25, 0]) * [2, 4, 1]
    assert numpy.allclose(ask(connection, "planar", png(pixels)),
                          planar.transpose(2, 0, 1), atol=1e-5)
    white = numpy.full((3, 3), 255, numpy.uint8)
    assert (ask(connection, "one", png(white)) == 0).all()
    assert (ask(connection, "one", png(white * 0)) == 16).all()


def test_other_forms_of_files(connection):
    """16 bits, transparency (on white), grey for colours and the reverse."""
    deep = numpy.full((4, 4, 3), 0xffff, numpy.uint16)
    assert (ask(connection, "packed", png(deep)) == 1).all()
    clear = numpy.zeros((4, 4, 4), numpy.uint8)
    assert (ask(connection, "packed", png(clear)) == 1).all()
    clear[..., 3] = 255
    assert (ask(connection, "packed", png(clear)) == 0).all()
    grey = numpy.zeros((4, 4, 2), numpy.uint8)
    assert (ask(connection, "packed", png(grey)) == 1).all()
    red = numpy.zeros((4, 4, 3), numpy.uint8)
    red[..., 0] = 255
    assert 0 < ask(connection, "one", png(red))[0, 0, 0] < 16


def test_rows_and_batches(connection):
    files = [png(numpy.full((2, 2), n, numpy.uint8)) for n in range(0, 80, 10)]
    got = ask(connection, "rows", *files, shape=[8, 1])
    assert got.shape == (8, 2, 2)
    assert numpy.allclose(got[:, 0, 0] * 255, range(0, 80, 10))
    assert ask(connection, "rows", files[0], shape=[1, 1]).shape == (1, 2, 2)


def test_a_bad_file_fails_its_own_request(server):
    good = png(numpy.full((2, 2), 255, numpy.uint8))

    local = threading.local()

    def one(n):
        if not hasattr(local, "c"):
            local.c = client.InferenceServerClient(server.url)
        try:
            return ask(local.c, "rows", good if n % 2 else b"no picture",
                       shape=[1, 1])
        except client.InferenceServerException as e:
            return e

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(64)))
    for n, answer in enumerate(answers):
        assert (answer == 1).all() if n % 2 else \
            "cannot be read as a PNG file" in answer.message()


SMALL = numpy.zeros((4, 4), numpy.uint8)
WHOLE = png(SMALL)
BAD = {
    "nothing": (b"", "PNG"),
    "text": (b"GIF89a", "PNG"),
    "signature": (WHOLE[:8], "PNG"),
    "cut": (WHOLE[:-20], "PNG"),
    "sum": (WHOLE[:20] + b"\x01" + WHOLE[21:], "PNG"),
    "few_lines": (png(SMALL, data=zlib.compress(b"\0\0\0")), "PNG"),
    "no_deflate": (png(SMALL, data=b"\xff" * 40), "PNG"),
    "no_size": (png(SMALL, header=struct.pack(">IIBBBBB", 0, 4, 8, 0, 0, 0,
                                              0)), "PNG"),
    "colour_type": (png(SMALL, header=struct.pack(">IIBBBBB", 4, 4, 8, 7, 0,
                                                  0, 0)), "PNG"),
    "wide": (png(SMALL, header=struct.pack(">IIBBBBB", 100000, 100000, 8, 0,
                                           0, 0, 0)), "max_pixels is 64"),
    "large": (png(numpy.zeros((9, 8), numpy.uint8)),
              "8 by 9 pixels; max_pixels is 64"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_files(connection, what):
    file, words = BAD[what]
    with pytest.raises(client.InferenceServerException) as e:
        ask(connection, "small", file)
    assert e.value.status() == "400"
    assert "input 'PNG', element 0: " in e.value.message()
    assert words in e.value.message()
    assert (ask(connection, "small", WHOLE) == 0).all()


def test_bytes_behind_the_end_are_not_read(connection):
    assert (ask(connection, "small", WHOLE + chunk(b"IDAT", b"x")) == 0).all()


# ---- label

def scores(connection, model, values, outputs=None):
    values = numpy.array(values, numpy.float32)
    one = client.InferInput("IN", list(values.shape), "FP32")
    one.set_data_from_numpy(values)
    return connection.infer(model, [one], outputs=outputs)


def test_the_best_class(connection):
    answer = scores(connection, "word", [0.25, 0.5, 0.125])
    assert list(answer.as_numpy("LABEL")) == [b"b"]
    assert list(answer.as_numpy("SCORE")) == [0.5]
    nan, low = float("nan"), -float("inf")
    for values, best in [([1, 1, 1], b"a"), ([nan, 1, 2], b"c"),
                         ([nan, low, nan], b"b"), ([low, low, 0], b"c")]:
        assert list(scores(connection, "word", values).as_numpy(
            "LABEL")) == [best]
    assert list(scores(connection, "alone", [0, 0, 9]).as_numpy(
        "LABEL")) == [b"z"]
    only = [client.InferRequestedOutput("SCORE")]
    assert scores(connection, "word", [0, 3, 0], only).as_numpy(
        "LABEL") is None


def test_a_label_for_each_row(connection):
    answer = scores(connection, "words", [[0, 0, 1], [1, 0, 0], [0, 1, 0],
                                          [0, 2, 9]])
    assert answer.as_numpy("LABEL").tolist() == [[b""], [b"a"], [b"b b"],
                                                 [b""]]
    assert answer.as_numpy("SCORE").tolist() == [[1], [1], [1], [9]]


# ---- loads that fail

FAILS = {
    "two_inputs": (lambda r: models.write_model(
        r, "m", 'backend: "image"\n' + models.io_block("input", [
            ("A", "BYTES", [1]), ("B", "BYTES", [1])])
        + models.io_block("output", [("OUT", "FP32", [2, 2])])),
        "backend image has one input and one output, not 2 and 1"),
    "numbers_in": (lambda r: models.write_model(
        r, "m", 'backend: "image"\n' + models.io_block("input", [
            ("A", "FP32", [1])])
        + models.io_block("output", [("OUT", "FP32", [2, 2])])),
        "input 'A' must be TYPE_STRING with dims [1]"),
    "channels": (lambda r: image(r, "m", [2, 4, 4]),
                 "output 'OUT' must be TYPE_FP32 with dims"),
    "open": (lambda r: image(r, "m", [-1, 4]), "output 'OUT' must be"),
    "wide": (lambda r: image(r, "m", [4, 16385]), "16384 pixels high"),
    "mean": (lambda r: image(r, "m", [4, 4], mean="0,"),
             'parameter "mean" is "0,"; it must be one number, or 1'),
    "means": (lambda r: image(r, "m", [3, 4, 4], mean="1,2"),
              "it must be one number, or 3 with commas"),
    "scale": (lambda r: image(r, "m", [4, 4], scale="inf"),
              'parameter "scale" is "inf"'),
    "most": (lambda r: image(r, "m", [4, 4], max_pixels="0"),
             'parameter "max_pixels" is "0"'),
    "no_labels": (lambda r: label(r, "m", None),
                  "cannot open labels: "),
    "few_labels": (lambda r: label(r, "m", "a\nb\n"),
                   "labels.txt: 2 lines for the 3 classes of input 'IN'"),
    "more_labels": (lambda r: label(r, "m", "a\nb\nc\nd"),
                    "4 lines for the 3 classes"),
    "output": (lambda r: label(r, "m", outputs=[("L", "FP32", [1])]),
               "output 'L': backend label has the outputs TYPE_STRING"),
    "scores": (lambda r: label(r, "m", dims=(-1,)),
               "backend label has one input, TYPE_FP32 with dims [classes]"),
}


@pytest.mark.parametrize("what", FAILS)
def test_loads_that_fail(make_server, what):
    make, words = FAILS[what]
    server = make_server(make, wait="live", parts="health repository")
    assert server.wait_log("failed to load|failed:", 20 * SLOW)
    rows = server.post("/v2/repository/index", b"{}").json()
    reason, = [row["reason"] for row in rows if row["name"] == "m"]
    assert words in reason


def test_labels_lie_in_the_models_directory(make_server):
    def make(repository):
        (pathlib.Path(repository) / "secret").write_text("a\nb\nc\n")
        models.write_model(
            repository, "m", 'backend: "label"\n'
            + models.io_block("input", [("IN", "FP32", [3])])
            + models.io_block("output", [("L", "BYTES", [1])])
            + models.parameter_block({"labels": "../secret"}))

    server = make_server(make, wait="live", parts="health repository")
    assert server.wait_log("failed to load|failed:", 20 * SLOW)
    rows = server.post("/v2/repository/index", b"{}").json()
    reason, = [row["reason"] for row in rows if row["name"] == "m"]
    assert "it must name a file in the model's directory" in reason


# ---- the example

@pytest.fixture(scope="module")
def example():
    with Server(str(ROOT / "examples/models"), workers=1) as s:
        yield s


def test_a_picture_goes_in_and_a_word_comes_out(example):
    """As a user does it, with the file that is there."""
    done = subprocess.run(
        ["curl", "-s", "--data-binary", f"@{ROOT}/examples/digits/seven.png",
         "-H", "Inference-Header-Content-Length: 0",
         f"http://{example.url}/v2/models/read_digit/infer"],
        capture_output=True, check=True)
    header, word = done.stdout.split(b"}\5\0\0\0")
    assert json.loads(header + b"}")["model_name"] == "read_digit"
    assert word == b"seven"


def test_the_file_is_what_its_script_writes(tmp_path):
    subprocess.run(["python3", ROOT / "examples/digits/png.py", "--digit", "7",
                    tmp_path / "seven.png"], check=True)
    assert (tmp_path / "seven.png").read_bytes() \
        == (ROOT / "examples/digits/seven.png").read_bytes()


def test_all_ten_digits_as_pictures(example):
    """The nine is one of those that the model gets wrong: 0018."""
    digits = json.loads((ROOT / "examples/digits/digits.json").read_text())
    files = []
    for digit in digits:
        ink = numpy.array(digit["image"])
        grey = numpy.rint(255 * (16 - ink) / 16).astype(numpy.uint8)
        files.append(png(grey.repeat(8, 0).repeat(8, 1)))
    one = client.InferInput("png", [10, 1], "BYTES")
    one.set_data_from_numpy(numpy.array(files, numpy.object_).reshape(10, 1))
    with client.InferenceServerClient(example.url) as c:
        words = c.infer("read_digit", [one]).as_numpy("label")
    assert [w[0].decode() for w in words][:9] \
        == [d["label"] for d in digits][:9]
