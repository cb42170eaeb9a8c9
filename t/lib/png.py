"""PNG files from numpy arrays: 8 or 16 bits, grey, colours, with or without
transparency; parts that can be broken."""

import struct
import zlib

import numpy

COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}     # by channels


def png(pixels, **broken):
    """pixels: uint8 or uint16, [height, width] or [height, width, channels].
    broken: other bytes for the parts header, data, end."""
    pixels = numpy.asarray(pixels)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    height, width, channels = pixels.shape
    rows = pixels.astype(pixels.dtype.newbyteorder(">")).tobytes()
    each = len(rows) // height
    lines = b"".join(b"\0" + rows[i * each:(i + 1) * each]
                     for i in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8 * pixels.itemsize,
                         COLOUR_TYPES[channels], 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", broken.get("header", header))
            + chunk(b"IDAT", broken.get("data", zlib.compress(lines)))
            + broken.get("end", chunk(b"IEND", b"")))


def chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data
            + struct.pack(">I", zlib.crc32(kind + data)))
