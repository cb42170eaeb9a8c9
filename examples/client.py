#!/usr/bin/env python3
"""Asks the digits model about ten images at once, with tritonclient.

    pip install 'tritonclient[http]'
    python3 examples/client.py [localhost:8000]
"""

import json
import pathlib
import sys

import numpy as np
import tritonclient.http as http

digits = json.loads(
    (pathlib.Path(__file__).parent / "digits" / "digits.json").read_text())
images = np.array([d["image"] for d in digits], dtype=np.float32)

client = http.InferenceServerClient(
    sys.argv[1] if len(sys.argv) > 1 else "localhost:8000")
image = http.InferInput("image", list(images.shape), "FP32")
image.set_data_from_numpy(images)               # binary, not JSON
scores = http.InferRequestedOutput("scores")

result = client.infer("digits", [image], outputs=[scores])
for digit, row in zip(digits, result.as_numpy("scores")):
    print(f"{digit['label']:6} read as {row.argmax()} ({row.max():.2%})")
