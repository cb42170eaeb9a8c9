"""Trains the four models of examples/trees/models from data that ships with
scikit-learn, and prints how good they are on rows they have not seen.

    pip install scikit-learn xgboost-cpu==3.2.0 lightgbm==4.7.0
    python train.py [DIRECTORY]
"""

import pathlib
import sys

import lightgbm
import numpy
import xgboost
from sklearn import datasets, model_selection

HERE = pathlib.Path(__file__).resolve().parent


def parts(load):
    """Train and test rows, always the same ones."""
    x, y = load(return_X_y=True)
    return model_selection.train_test_split(
        x.astype(numpy.float32), y, test_size=0.25, random_state=0)


def accuracy(model):
    _, x, _, y = parts(datasets.load_digits)
    return float((model.predict(x) == y).mean())


def explained(model):
    """R2: 1 is perfect, 0 as good as the mean."""
    _, x, _, y = parts(datasets.load_diabetes)
    error = ((model.predict(x) - y) ** 2).sum()
    return float(1 - error / ((y - y.mean()) ** 2).sum())


def digits_xgboost():
    x, _, y, _ = parts(datasets.load_digits)
    return xgboost.XGBClassifier(
        n_estimators=14, max_depth=3, learning_rate=0.4, random_state=0,
        n_jobs=1).fit(x, y)


def diabetes_xgboost():
    x, _, y, _ = parts(datasets.load_diabetes)
    return xgboost.XGBRegressor(
        n_estimators=40, max_depth=2, learning_rate=0.2, random_state=0,
        n_jobs=1).fit(x, y)


def digits_lightgbm():
    x, _, y, _ = parts(datasets.load_digits)
    return lightgbm.LGBMClassifier(
        n_estimators=15, num_leaves=6, learning_rate=0.3, random_state=0,
        n_jobs=1, deterministic=True, verbose=-1).fit(x, y)


def diabetes_lightgbm():
    x, _, y, _ = parts(datasets.load_diabetes)
    return lightgbm.LGBMRegressor(
        n_estimators=40, num_leaves=4, learning_rate=0.15, random_state=0,
        n_jobs=1, deterministic=True, verbose=-1).fit(x, y)


def booster(path):
    """The predict function of the library, for a file of this program."""
    if path.name == "model.txt":
        return lightgbm.Booster(model_file=path).predict
    model = xgboost.Booster(model_file=path)
    return lambda x: model.predict(xgboost.DMatrix(x))


MODELS = {
    "digits_xgboost": (digits_xgboost, "xgboost.ubj", accuracy),
    "diabetes_xgboost": (diabetes_xgboost, "xgboost.json", explained),
    "digits_lightgbm": (digits_lightgbm, "model.txt", accuracy),
    "diabetes_lightgbm": (diabetes_lightgbm, "model.txt", explained),
}


def main():
    to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "models"
    for name, (train, filename, measure) in MODELS.items():
        model = train()
        path = to / name / "1" / filename
        path.parent.mkdir(parents=True, exist_ok=True)
        if filename == "model.txt":
            model.booster_.save_model(path)
        else:
            model.save_model(path)
        print(f"{name}: {measure.__name__} {measure(model):.3f},"
              f" {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
