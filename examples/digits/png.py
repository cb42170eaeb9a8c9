#!/usr/bin/env python3
"""Writes a handwritten digit of digits.json as a PNG file.

    python3 examples/digits/png.py --digit 7 examples/digits/seven.png

8 by 8 pixels become 64 by 64, black ink on white paper. Needs nothing but
Python itself.
"""

import argparse
import json
import pathlib
import struct
import zlib

DIGITS = pathlib.Path(__file__).parent / "digits.json"
TIMES = 8       # pixels of the file for one of the scan, each way


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--digit", type=int, choices=range(10), default=7)
    parser.add_argument("file", type=pathlib.Path)
    args = parser.parse_args()
    image = json.loads(DIGITS.read_text())[args.digit]["image"]
    args.file.write_bytes(png(image))


def png(image):
    """Ink from 0 to 16 as grey from white to black."""
    rows = []
    for inks in image:
        line = bytes(round(255 * (16 - ink) / 16)
                     for ink in inks for _ in range(TIMES))
        rows += [b"\0" + line] * TIMES          # no filter
    size = len(image) * TIMES
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0,
                                         0))
            + chunk(b"IDAT", zlib.compress(b"".join(rows), 9))
            + chunk(b"IEND", b""))


def chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data
            + struct.pack(">I", zlib.crc32(kind + data)))


if __name__ == "__main__":
    main()
