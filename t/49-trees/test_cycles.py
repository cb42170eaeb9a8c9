"""Loads and unloads give all memory back.  INF_CYCLES=1000 for a figure."""

import os

from lib import forests, models, process, repository
from lib.server import SANITIZER

CYCLES = int(os.environ.get("INF_CYCLES", "40"))


def resident(server):
    with open(f"/proc/{server.core()}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise AssertionError("no VmRSS")


def test_memory_is_flat(make_server):
    made = {"xgb": forests.xgb_categories(), "lgb": forests.lgb_multiclass(),
            "skl": forests.skl_extra_trees()}

    def fill(directory):
        for name, forest in made.items():
            models.write_model(directory, name, 'backend: "trees"', (1,),
                               {1: {forest.filename: forest.content}})

    server = make_server(fill, parts=repository.PARTS,
                         http=repository.EXPLICIT)

    def cycle():
        for name in made:
            assert repository.ask(server, "load", name).status == 200
            assert repository.ask(server, "unload", name).status == 200
            assert process.wait_until(lambda: all(
                r.get("state") == "UNAVAILABLE"
                for r in repository.rows(server, name)), 20)

    for _ in range(10):
        cycle()
    before = resident(server)
    for _ in range(CYCLES):
        cycle()
    grown = resident(server) - before
    print(f"\n{CYCLES * len(made)} loads and unloads:"
          f" {before} KiB, then {grown:+d} KiB")
    # an allocator may keep some; a model has about 300 KiB here.  A sanitizer
    # keeps much more, and looks for leaks itself
    assert SANITIZER or grown < 4096, grown
