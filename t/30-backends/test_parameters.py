"""Parameters of a model that nothing reads are named in the log."""

import re

import pytest

from lib import models
from lib.server import ROOT

# backends that list what they read; models of python may read any
LISTED = ["cuda", "image", "label", "onnxruntime", "openvino", "pytorch",
          "trees"]


def known(backend):
    """Those that the backend's source lists."""
    folder = ROOT / "backends" / backend
    found = [re.search(r"(?:parameters|known)\[\] = \{(.*?)NULL\s*\}",
                       path.read_text(), re.S)
             for path in sorted(folder.glob("*.c"))]
    lists, = [f[1] for f in found if f]
    return set(re.findall(r'"([^"]+)"', lists))


@pytest.mark.parametrize("backend", LISTED)
def test_what_a_backend_reads_is_listed(backend):
    """Whichever way the list or the readers change."""
    read = set()
    for path in (ROOT / "backends" / backend).glob("*.c"):
        read |= set(re.findall(
            r'(?:bk_model_config_parameter(?:_int|_bool)?|numbers_read'
            r'|read_\w+)\(\s*[\w&>-]+,\s*"(\w+)"', path.read_text()))
    assert read, backend
    missing = read - known(backend) - {"INFERENCE_WRITABLE_INPUTS"}
    assert not missing, missing


def test_one_that_nothing_reads_is_named(make_server):
    def fill(repository):
        for name, extra in ("good", {}), ("odd", {"lables": "labels.txt",
                                                  "threads": "2"}):
            folder = models.write_model(
                repository, name, 'backend: "label"\n'
                + models.io_block("input", [("IN", "FP32", [2])])
                + models.io_block("output", [("OUT", "STRING", [1])])
                + models.parameter_block({
                    "labels": "names.txt", "INFERENCE_MAX_QUEUE_SIZE": "9",
                    **extra}))
            (folder / "names.txt").write_text("a\nb\n")

    server = make_server(fill)
    pattern = r'\[warn\] [^\n]*model "(\w+)": neither its backend nor ' \
        r"the server knows these parameters: ([^\n]*)"
    server.wait_log(pattern)
    said = re.findall(pattern, server.log_text())
    assert said == [("odd", "lables, threads")]
