#!/usr/bin/env python3
"""Sends a handwritten digit that the model never saw, prints the answer.

    python3 examples/digits/send.py [--url localhost:8000] [--digit 0..9]
                                    [--model digits]

Needs nothing but Python itself. Ends with 1 if the answer is wrong.
"""

import argparse
import json
import pathlib
import sys
import urllib.error
import urllib.request

DIGITS = pathlib.Path(__file__).parent / "digits.json"
INKS = " .:-=+*#%@"


def main():
    args = read_arguments()
    digit = json.loads(DIGITS.read_text())[args.digit]
    body = json.dumps(request_for(digit["image"]), separators=(",", ":"))
    url = f"{args.url}/v2/models/{args.model}/infer"

    print("A digit that was not in the training part:\n")
    print(picture(digit["image"]))

    answer = ask(url, body)
    print(f"The model {answer['model_name']}, version "
          f"{answer['model_version']}, says:\n")
    results = answer["outputs"][0]["data"]
    for result in results:
        score, _, label = result.split(":")
        print(f"    {label:6}{float(score):9.4%}  {bar(float(score))}")

    print(f"\nThe same with curl:\n\n"
          f"curl -s {url} -d '{body}'")

    best = results[0].split(":")[2]
    if best != digit["label"]:
        sys.exit(f"\nwrong: the writer meant {digit['label']}")


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="localhost:8000")
    parser.add_argument("--model", default="digits")
    parser.add_argument("--digit", type=int, choices=range(10), default=4)
    args = parser.parse_args()
    if "://" not in args.url:
        args.url = "http://" + args.url
    args.url = args.url.rstrip("/")
    return args


def request_for(image):
    return {
        "inputs": [{
            "name": "image",
            "datatype": "FP32",
            "shape": [1, 8, 8],
            "data": [ink for row in image for ink in row],
        }],
        # the three best classes with their labels, instead of ten numbers
        "outputs": [{"name": "scores", "parameters": {"classification": 3}}],
    }


def ask(url, body):
    request = urllib.request.Request(
        url, body.encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        sys.exit(f"{url}: {error}: {error.read().decode(errors='replace')}")
    except OSError as error:
        sys.exit(f"{url}: {error}")


def picture(image):
    """Each pixel twice, because letters are higher than wide."""
    lines = ("".join(INKS[min(ink * len(INKS) // 17, len(INKS) - 1)] * 2
                     for ink in row) for row in image)
    return "".join(f"    {line.rstrip()}\n" for line in lines)


def bar(score):
    return "#" * round(score * 30)


if __name__ == "__main__":
    main()
