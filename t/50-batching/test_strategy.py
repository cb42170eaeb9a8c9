"""Batch strategy libraries: who joins is their word."""

import pytest

from lib import backends, models
from lib.batches import executions, sizes

VOLUME = {"MAX_BATCH_VOLUME_BYTES": "24"}       # six INT32


def volume(folder, library="batchstrategy.so"):
    backends.strategy("volume", folder, library)


def test_a_limit_by_volume(batching):
    """scheduling.md 3.18"""
    batching.start("", hold=7, parameters=VOLUME, also=volume,
                   inputs=[("IN", "INT32", [-1])])
    assert sizes(batching.ask_all(range(7), width=2)) == [3, 3, 1]


def test_the_limit_counts_late_joins_too(batching):
    """They come while the batch waits: one record for all of them."""
    batching.start("preferred_batch_size: 8"
                   " max_queue_delay_microseconds: 1500000",
                   parameters=VOLUME, also=volume)
    first = batching.ask_all(range(4))
    futures = first + batching.ask_all(range(4, 12))
    got = executions(futures)
    assert max(map(len, got.values())) <= 6
    assert sum(map(len, got.values())) == 12


def test_one_request_beyond_the_limit_runs_alone(batching):
    """section 10: Triton asks for ever"""
    batching.start("", hold=2, parameters=VOLUME, also=volume,
                   inputs=[("IN", "INT32", [-1])])
    assert sizes([batching.ask(1, width=50), batching.ask(2, width=60)]) \
        == [1, 1]


@pytest.mark.parametrize("place", ["1/batchstrategy.so", "batchstrategy.so",
                                   "lib/mine.so"])
def test_places(batching, place):
    parameters = dict(VOLUME)
    if "mine" in place:
        parameters["TRITON_BATCH_STRATEGY_PATH"] = place
    server = batching.start(
        "", hold=7, parameters=parameters,
        also=lambda folder: backends.strategy("volume", folder, place))
    assert sizes(batching.ask_all(range(7))) == [6, 1]
    server.wait_log("Loading custom batching strategy library .*"
                    + place.split("/")[-1] + " for model m")


@pytest.mark.parametrize("source,parameters,reason", [
    ("partial", {}, "only 2 of the five functions"),
    ("volume", {}, "MAX_BATCH_VOLUME_BYTES is missing"),
    ("failing", {"x": "batcher-error"}, "the strategy fails on purpose"),
    ("volume", {"TRITON_BATCH_STRATEGY_PATH": "missing.so"},
     "Batching library path not found: "),
    ("volume", {"TRITON_BATCH_STRATEGY_PATH": "../m/../x.so"},
     "is outside of the model's directory"),
    ("volume", {"TRITON_BATCH_STRATEGY_PATH": "/usr/lib/x.so"},
     "is outside of the model's directory"),
    ("volume", {"TRITON_BATCH_STRATEGY_PATH": "link.so"},
     "is outside of the model's directory"),
    ("throwing", {"x": "batcher-throws"}, "threw an exception.*not today"),
    ("text", {}, "batchstrategy.so")])
def test_a_bad_one_keeps_the_model_away(batching, source, parameters, reason):
    def also(folder):
        (folder / "link.so").symlink_to("/lib/x86_64-linux-gnu/libc.so.6")
        if source == "text":
            (folder / "batchstrategy.so").write_text("not ELF")
        else:
            backends.strategy(source, folder)

    server = batching.start("", parameters=parameters, also=also, wait="live")
    server.wait_log(reason)
    assert server.get("/v2/models/m/ready").status in (400, 404, 503)


@pytest.mark.parametrize("word,expected", [
    ("nothing", [4]), ("include-error", [1] * 4), ("batch-error", [1] * 4)])
def test_an_error_means_no_and_is_logged(batching, word, expected):
    server = batching.start(
        "", hold=4, parameters={"x": word},
        also=lambda folder: backends.strategy("failing", folder))
    assert sizes(batching.ask_all(range(4))) == expected
    if word != "nothing":
        server.wait_log("the strategy fails on purpose")


def test_what_it_throws_means_no_and_is_logged(batching):
    server = batching.start(
        "", hold=3, also=lambda folder: backends.strategy("throwing", folder))
    assert sizes(batching.ask_all(range(3))) == [1, 1, 1]
    server.wait_log("IncludeRequest of .*batchstrategy.so' threw an"
                    " exception, std::runtime_error: cannot judge")
    server.wait_log("BatchFinalize of .* threw an exception, .*never ends")


def test_without_dynamic_batching_it_is_not_asked(batching, make_server):
    """28a: used only when dynamic_batching is configured"""
    folder = backends.build("batches")

    def fill(repository):
        models.identity(repository, "m", [("IN", "INT32", [1])],
                        outputs=[("OUT", "INT32", [-1])], max_batch=8,
                        backend="batches", parameters=VOLUME)
        volume(repository / "m")

    batching.server = make_server(
        fill, http=f"    inference_backends {folder};")
    assert sizes(batching.ask_all(range(3))) == [1, 1, 1]
