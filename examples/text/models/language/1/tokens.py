"""From text to numbers: words, the short runs of letters in them, and a place
in a table for each run."""

import re
import zlib

import numpy as np

WORD = re.compile(r"[^\W\d_]+")


def grams(text, longest):
    """The runs of 1 to longest letters of each word; < and > are its ends."""
    for word in WORD.findall(text.lower()):
        word = f"<{word}>"
        for size in range(1, longest + 1):
            for at in range(len(word) - size + 1):
                yield word[at:at + size]


def vector(text, places, longest):
    """How often each place was hit; of length 1, and zeros without words."""
    counts = np.zeros(places, np.float32)
    for gram in grams(text, longest):
        counts[zlib.crc32(gram.encode()) % places] += 1
    np.log1p(counts, out=counts)
    length = np.sqrt(counts @ counts)
    return counts / length if length else counts
