#!/usr/bin/env python3
"""Sends the sunspots of each year, one at a time, and prints the forecasts.

    python3 examples/sunspots/ask.py [--url localhost:8000] [--from 1980]

Needs nothing but Python itself. The years before --from are sent, too: the
server remembers the last nine of the sequence.
"""

import argparse
import csv
import http.client
import json
import os
import pathlib
import sys
import urllib.parse

NUMBERS = pathlib.Path(__file__).parent / "sunspots.csv"
YEARS_BEFORE = 30


def main():
    args = read_arguments()
    with NUMBERS.open() as file:
        rows = [(int(row["year"]), float(row["number"]))
                for row in csv.DictReader(file)]
    rows = [row for row in rows if row[0] >= args.first - YEARS_BEFORE]
    sequence = os.getpid()          # one that nobody else is likely to use
    connection = http.client.HTTPConnection(args.host, timeout=60)
    errors = []
    forecast = None

    print("year  sunspots  forecast the year before")
    for i, (year, number) in enumerate(rows):
        if year >= args.first and forecast is not None:
            errors.append(abs(forecast - number))
            print(f"{year}  {number:8.1f}  {forecast:8.1f}  "
                  f"{'#' * round(number / 4)}")
        forecast = ask(connection, number, {
            "sequence_id": sequence, "sequence_start": i == 0,
            "sequence_end": i == len(rows) - 1})

    print(f"{rows[-1][0] + 1}            {forecast:8.1f}")
    print(f"mean error of {len(errors)} years: "
          f"{sum(errors) / len(errors):.1f}")


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", default="localhost:8000")
    parser.add_argument("--from", dest="first", type=int, default=1980)
    args = parser.parse_args()
    if not 1701 <= args.first <= 2008:
        sys.exit("--from is a year from 1701 to 2008")
    args.host = urllib.parse.urlsplit(
        args.url if "://" in args.url else "http://" + args.url).netloc
    return args


def ask(connection, number, parameters):
    body = json.dumps({
        "parameters": parameters,
        "inputs": [{"name": "number", "datatype": "FP32", "shape": [1, 1],
                    "data": [number]}]})
    try:
        connection.request("POST", "/v2/models/sunspots/infer", body,
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.load(response)
    except OSError as error:
        sys.exit(f"{connection.host}: {error}")
    if response.status != 200:
        sys.exit(f"{connection.host}: {answer}")
    return answer["outputs"][0]["data"][0]


if __name__ == "__main__":
    main()
