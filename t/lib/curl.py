"""Requests by the curl program."""

import subprocess

from lib.server import SLOW


def curl(*arguments, data=None):
    """(status, body); arguments in any order; data: what @- reads."""
    done = subprocess.run(
        ["curl", "-sS", "--max-time", str(60 * SLOW), "-w", r"\n%{http_code}",
         *arguments], input=data, capture_output=True, check=True)
    body, status = done.stdout.rsplit(b"\n", 1)
    return int(status), body


def curl_http2(*arguments, data=None):
    return curl("--http2-prior-knowledge", "-H", "Expect:", *arguments,
                data=data)
