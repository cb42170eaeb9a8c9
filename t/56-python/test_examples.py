"""The models of examples/text: languages of real texts that they were not
trained with, one by one, in batches and by the router."""

import json
import shutil

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

from lib import python_backend
from lib.server import ROOT

TEXT = ROOT / "examples/text"
MEASURED = json.loads((TEXT / "measured.json").read_text())
TEXTS = [line.split("\t") for line in
         (TEXT / "held_out.tsv").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def server():
    def fill(repository):
        shutil.copytree(TEXT / "models", repository, dirs_exist_ok=True)
    with python_backend.serve(fill, complete=True) as s:
        yield s


def ask(client, model, texts):
    module = httpclient if isinstance(
        client, httpclient.InferenceServerClient) else grpcclient
    given = np.array([[t.encode()] for t in texts], dtype=object)
    tensor = module.InferInput("TEXT", given.shape, "BYTES")
    tensor.set_data_from_numpy(given)
    result = client.infer(model, [tensor])
    names = [w.decode() for w in result.as_numpy("LANGUAGE").ravel()]
    routes = result.as_numpy("MODEL")
    return names, result.as_numpy("SCORE").ravel(), \
        [] if routes is None else [w.decode() for w in routes.ravel()]


@pytest.fixture(params=[httpclient, grpcclient], ids=["http", "grpc"])
def client(server, request):
    address = server.url if request.param is httpclient \
        else f"127.0.0.1:{server.port2}"
    with request.param.InferenceServerClient(address) as c:
        yield c


def answers(client, model, size):
    names, routes = [], []
    for at in range(0, len(TEXTS), size):
        got = ask(client, model, [t for _, t in TEXTS[at:at + size]])
        names += got[0]
        routes += got[2]
    right = sum(n == wanted for n, (wanted, _) in zip(names, TEXTS))
    return names, right / len(TEXTS), routes


@pytest.mark.parametrize("model", ["language", "language_small"])
def test_accuracy_is_the_measured_one(client, model):
    names, accuracy, _ = answers(client, model, 60)
    assert abs(accuracy - MEASURED[f"{model}_shown"]) < 0.004
    alone = [ask(client, model, [t])[0][0] for _, t in TEXTS[::15]]
    assert alone == names[::15]


def test_router(client):
    """As good as the large model, nearly, and mostly answered by the small."""
    _, accuracy, routes = answers(client, "language_router", 60)
    assert accuracy >= MEASURED["language_shown"] - 0.02
    assert accuracy > MEASURED["language_small_shown"]
    small = routes.count("language_small") / len(routes)
    assert 0.7 < small < 1
    assert set(routes) == {"language_small", "language"}


def test_scores(client):
    _, scores, _ = ask(client, "language", ["The server is not ready yet.",
                                            "", "12345 !?"])
    assert scores[0] > 0.5
    assert np.isfinite(scores).all() and (scores <= 1).all()


def test_generate(server):
    answer = server.post("/v2/models/language_router/generate",
                         '{"TEXT": "Wo ist die nächste Haltestelle?"}'
                         .encode())
    assert answer.status == 200
    assert answer.json()["LANGUAGE"] == "de"


def test_the_models_are_those_of_the_script():
    for name in ("language", "language_small"):
        with np.load(TEXT / f"models/{name}/1/weights.npz") as file:
            assert sorted(file["languages"]) == sorted(
                {language for language, _ in TEXTS})
