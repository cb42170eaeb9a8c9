"""The page in a browser."""

import re
import shutil
import struct
import subprocess
import zlib

from lib import models, process
from lib.server import SLOW
from lib.wire import tensor

BROWSER = "chromium-headless-shell"

HOSTILE = "<img src=x onerror=alert(1)>"


def browse(folder, url, *options):
    """Output and messages of the browser, which ends by itself."""
    assert shutil.which(BROWSER), "t/setup.sh installs it"
    it = subprocess.run(
        [BROWSER, "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         f"--user-data-dir={folder}/profile", "--enable-logging=stderr",
         "--window-size=1400,700", "--virtual-time-budget=3000",
         *options, url],
        capture_output=True, text=True, timeout=120 * SLOW, check=True)
    return it.stdout, it.stderr


def pixels(file):
    """The colours of a PNG of 8 bits, as rows of bytes."""
    data = file.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and kind in (2, 6)
    each = {2: 3, 6: 4}[kind]
    packed = b"".join(re.findall(rb"IDAT(.*?)(?=.{8}I(?:DAT|END))", data,
                                 re.S))
    raw, rows = zlib.decompress(packed), []
    stride = width * each
    above = bytes(stride)
    for y in range(height):
        start = y * (stride + 1)
        above = unfilter(raw[start], raw[start + 1:start + 1 + stride], above,
                         each)
        rows.append(above)
    return width, height, {row[i:i + 3] for row in rows
                           for i in range(0, stride, each)}


def unfilter(kind, line, above, each):
    out = bytearray(line)
    for i, value in enumerate(line):
        left = out[i - each] if i >= each else 0
        corner = above[i - each] if i >= each else 0
        up = above[i]
        if kind == 1:
            value += left
        elif kind == 2:
            value += up
        elif kind == 3:
            value += (left + up) // 2
        elif kind == 4:
            guess = left + up - corner
            value += min((left, up, corner), key=lambda p: abs(guess - p))
        out[i] = value & 255
    return bytes(out)


def fill(folder):
    models.identity(folder, "digits", [("IN", "INT32", [1])])
    models.identity(folder, HOSTILE, [("IN", "INT32", [1])])
    models.write_model(folder, "broken", models.identity_config(
        "broken", [("IN", "INT32", [1])],
        backend="<script>alert(2)</script>"))


def test_the_page(make_server, tmp_path):
    server = make_server(fill, wait="live", server=(
        "location = /look { inference status; }"))
    ask = {"inputs": [tensor("IN", "INT32", [1], [7])]}
    assert process.wait_until(
        lambda: server.infer("digits", ask).status == 200, 20 * SLOW)
    url = f"http://{server.url}/look"

    document, messages = browse(tmp_path, url, "--dump-dom")
    assert not re.search(r"Refused|Content Security|Uncaught|:CONSOLE",
                         messages), messages
    body = document[document.index("<body>"):document.index("<script>")]
    row = re.search(r"<tr><td[^>]*>digits</td>.*?</tr>", body)
    assert row, body
    assert ">READY<" in row[0] and "<svg" in row[0] and "<rect" in row[0]
    assert "0 of 1" in row[0] and "1: 1" in row[0]

    assert "<img" not in body and "alert(2)</script>" not in body
    assert "&lt;img src=x onerror=alert(1)&gt;" in body
    assert "&lt;script&gt;alert(2)&lt;/script&gt;" in body
    assert ">UNAVAILABLE<" in body
    assert "restarts of the core: 0" in body and ">not ready<" in body

    picture = tmp_path / "status.png"
    browse(tmp_path, url, f"--screenshot={picture}")
    width, height, colours = pixels(picture)
    assert (width, height) == (1400, 700)
    assert bytes.fromhex("35699f") in colours       # a bar of the histogram
    assert len(colours) > 20                        # letters


def test_the_page_without_a_core(coreless, tmp_path):
    document, _ = browse(tmp_path, f"http://{coreless().url}/status",
                         "--dump-dom")
    error = re.search(r'<p id="error"[^>]*>([^<]+)</p>', document)
    assert error and "core" in error[1], document
