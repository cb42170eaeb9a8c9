"""A model on each GPU of this machine, behind nginx."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import backends, gpu, models, process  # noqa: E402
from lib.server import Server  # noqa: E402
from lib.wire import tensor  # noqa: E402


def fill(folder):
    models.write_model(
        folder, "m", 'name: "m"\nbackend: "memory_kinds"\n'
        + models.io_block("input", [("IN", "UINT8", [-1])])
        + models.io_block("output", [("DATA", "UINT8", [-1]),
                                     ("REPORT", "BYTES", [1])])
        + "instance_group { kind: KIND_GPU }\n")


def main():
    process.become_subreaper()
    with Server(fill, backends=backends.build("memory_kinds"),
                inference_env=gpu.env()) as server:
        for want in 0, 1, 2:
            answer = server.infer("m", {
                "inputs": [tensor("IN", "UINT8", [3], [1, 2, 3])],
                "parameters": {"want": want}})
            assert answer.status == 200, answer
            got = {o["name"]: o["data"] for o in answer.json()["outputs"]}
            assert got["DATA"] == [1, 2, 3], got
            report = got["REPORT"][0]
            assert report.startswith("on GPU "), report
            assert "scratch CPU CPU_PINNED GPU" in report, report
            print(report)


main()
