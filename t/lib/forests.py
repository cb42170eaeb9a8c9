"""Forests of every kind that the backend reads, trained from the data inside
scikit-learn; each with rows, and what its own library predicts for them."""

import json
import os
import re
import struct

os.environ.setdefault("OMP_NUM_THREADS", "1")   # read when they are loaded

import lightgbm
import numpy
import treelite
import xgboost
from sklearn import datasets, ensemble

ROWS = 1000
IRIS, IRIS_Y = datasets.load_iris(return_X_y=True)
IRIS = IRIS.astype(numpy.float32)
DIABETES, DIABETES_Y = datasets.load_diabetes(return_X_y=True)
DIABETES = DIABETES.astype(numpy.float32)


class Forest:
    """parameters: of the model's configuration; expected: for the rows of
    self.x, by the library that has trained it; tolerance: relative."""

    def __init__(self, filename, content, like, expected, tolerance=2e-6,
                 **parameters):
        self.filename = filename
        self.content = content
        self.x = random_rows(like)
        expected = expected(self.x)
        self.expected = numpy.asarray(expected).reshape(ROWS, -1)
        self.tolerance = tolerance
        self.parameters = parameters


def random_rows(like, missing=0.1):
    """Rows over the range of the training data and beyond, some numbers of
    them missing, some exactly those that were trained on."""
    rng = numpy.random.default_rng(7)
    low, high = like.min(axis=0), like.max(axis=0)
    x = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low),
                    (ROWS, like.shape[1])).astype(numpy.float32)
    x[:100] = like[rng.integers(0, len(like), 100)]
    x[rng.random(x.shape) < missing] = numpy.nan
    return x


# ---- XGBoost

def train_xgboost(x, y, rounds=15, **parameters):
    matrix = xgboost.DMatrix(x, y, **parameters.pop("matrix", {}))
    return xgboost.train({"nthread": 1, "seed": 0, "max_depth": 4,
                          **parameters}, matrix, rounds)


def of_xgboost(booster, like, suffix="json", predict=None, **kw):
    predict = predict or (lambda x: booster.predict(xgboost.DMatrix(x)))
    name = {"json": "xgboost.json", "ubj": "xgboost.ubj"}[suffix]
    return Forest(name, bytes(booster.save_raw(suffix)), like, predict, **kw)


def legacy(booster, objective):
    """The booster in XGBoost's first format, which it writes no more: of one
    group, with numeric tests."""
    learner = json.loads(booster.save_raw("json"))["learner"]
    base = float(learner["learner_model_param"]["base_score"].strip("[]"))
    features = int(learner["learner_model_param"]["num_feature"])
    trees = learner["gradient_booster"]["model"]["trees"]
    out = struct.pack("<fI3i3I", base, features, 0, 0, 0, 1, 5, 0)
    out = out.ljust(136, b"\0")
    for text in (objective, b"gbtree"):
        out += struct.pack("<Q", len(text)) + text
    out += struct.pack("<4iq2i", len(trees), 1, features, 0, 0, 1, 0
                       ).ljust(160, b"\0")
    for tree in trees:
        out += tree_of(tree, features)
    return out + struct.pack(f"<{len(trees)}i", *([0] * len(trees)))


def tree_of(tree, features):
    count = len(tree["left_children"])
    out = struct.pack("<6i", 1, count, 0, 0, features, 0).ljust(148, b"\0")
    for i in range(count):
        default = tree["default_left"][i] << 31
        out += struct.pack("<3iIf", tree["parents"][i],
                           tree["left_children"][i],
                           tree["right_children"][i],
                           tree["split_indices"][i] | default,
                           tree["split_conditions"][i])
    return out + b"".join(
        struct.pack("<3fi", tree["loss_changes"][i], tree["sum_hessian"][i],
                    tree["base_weights"][i], 0) for i in range(count))


def xgb_binary():
    return of_xgboost(
        train_xgboost(IRIS, IRIS_Y == 1, objective="binary:logistic"), IRIS,
        predict_proba="true")


def xgb_ubj():
    return of_xgboost(
        train_xgboost(DIABETES, DIABETES_Y, objective="reg:squarederror"),
        DIABETES, "ubj")


def xgb_legacy():
    b = train_xgboost(DIABETES, DIABETES_Y, objective="reg:squarederror")
    return Forest("xgboost.model", legacy(b, b"reg:squarederror"), DIABETES,
                  lambda x: b.predict(xgboost.DMatrix(x)))


def xgb_multiclass():
    return of_xgboost(
        train_xgboost(IRIS, IRIS_Y, objective="multi:softprob", num_class=3),
        IRIS, "ubj", predict_proba="true")


def xgb_classes():
    """The classes themselves, which is what softmax predicts."""
    return of_xgboost(
        train_xgboost(IRIS, IRIS_Y, objective="multi:softmax", num_class=3),
        IRIS, tolerance=0)


def xgb_poisson():
    return of_xgboost(train_xgboost(DIABETES, DIABETES_Y,
                                    objective="count:poisson"), DIABETES)


def xgb_dart():
    b = train_xgboost(DIABETES, DIABETES_Y, booster="dart", rate_drop=0.3,
                      objective="reg:squarederror")
    return of_xgboost(b, DIABETES)


def xgb_targets():
    y = numpy.c_[DIABETES_Y, -DIABETES_Y / 2, DIABETES_Y ** 0.5]
    return of_xgboost(train_xgboost(DIABETES, y), DIABETES, tolerance=1e-5)


def xgb_vector_leaves():
    y = numpy.c_[DIABETES_Y, -DIABETES_Y / 2]
    return of_xgboost(
        train_xgboost(DIABETES, y, multi_strategy="multi_output_tree"),
        DIABETES, tolerance=1e-5)


def categories():
    rng = numpy.random.default_rng(3)
    x = numpy.c_[rng.integers(0, 40, 2000), rng.normal(size=2000),
                 rng.integers(0, 5, 2000)].astype(numpy.float32)
    y = numpy.sin(x[:, 0]) + x[:, 1] * (x[:, 2] == 2)
    return x, y


def xgb_categories():
    x, y = categories()
    kinds = {"feature_types": ["c", "q", "c"], "enable_categorical": True}
    b = train_xgboost(x, y, matrix=kinds, max_cat_to_onehot=1)
    like = x.copy()
    forest = of_xgboost(b, like, predict=lambda x: b.predict(
        xgboost.DMatrix(whole(x), **kinds)))
    forest.x = whole(forest.x)
    return forest


def whole(x):
    """Numbers that are categories of the data."""
    x = x.copy()
    x[:, 0] = numpy.clip(numpy.floor(x[:, 0]), 0, 39)
    x[:, 2] = numpy.clip(numpy.floor(x[:, 2]), 0, 4)
    return x


# ---- LightGBM

def of_lightgbm(x, y, rounds=15, categorical="auto", **parameters):
    data = lightgbm.Dataset(x, y, categorical_feature=categorical)
    booster = lightgbm.train(
        {"num_threads": 1, "seed": 0, "verbose": -1, "deterministic": True,
         "num_leaves": 15, **parameters}, data, rounds)
    return booster


def text_of(booster, like, **kw):
    return Forest("model.txt", booster.model_to_string().encode(), like,
                  booster.predict, **kw)


def lgb_binary():
    return text_of(of_lightgbm(IRIS, IRIS_Y == 1, objective="binary"), IRIS,
                   predict_proba="true")


def lgb_regression():
    return text_of(of_lightgbm(DIABETES, DIABETES_Y), DIABETES)


def lgb_multiclass():
    return text_of(of_lightgbm(IRIS, IRIS_Y, objective="multiclass",
                               num_class=3), IRIS, predict_proba="true")


def lgb_one_against_all():
    return text_of(of_lightgbm(IRIS, IRIS_Y, objective="multiclassova",
                               num_class=3), IRIS, predict_proba="true")


def lgb_random_forest():
    return text_of(of_lightgbm(DIABETES, DIABETES_Y, boosting="rf",
                               bagging_freq=1, bagging_fraction=0.7),
                   DIABETES)


def lgb_categories():
    x, y = categories()
    booster = of_lightgbm(x, y, categorical=[0, 2], min_data_per_group=5,
                          max_cat_to_onehot=1)
    forest = text_of(booster, x)
    forest.x = whole(forest.x)
    forest.expected = booster.predict(forest.x).reshape(ROWS, -1)
    return forest


# ---- scikit-learn, by way of a checkpoint

def of_sklearn(model, like, predict, missing=False, **kw):
    content = treelite.sklearn.import_model(model).serialize_bytes()
    forest = Forest("checkpoint.tl", content, like,
                    lambda x: numpy.zeros(ROWS), **kw)
    if not missing:
        forest.x = numpy.nan_to_num(forest.x)
    forest.expected = numpy.asarray(predict(forest.x)).reshape(ROWS, -1)
    return forest


def skl_random_forest():
    m = ensemble.RandomForestClassifier(10, random_state=0).fit(IRIS, IRIS_Y)
    return of_sklearn(m, IRIS, m.predict_proba, predict_proba="true")


def skl_two_classes():
    m = ensemble.RandomForestClassifier(9, random_state=0, max_depth=3).fit(
        IRIS[50:], IRIS_Y[50:] == 2)
    return of_sklearn(m, IRIS, m.predict_proba)


def skl_extra_trees():
    y = numpy.c_[DIABETES_Y, -DIABETES_Y]
    m = ensemble.ExtraTreesRegressor(10, random_state=0, max_depth=6).fit(
        DIABETES, y)
    return of_sklearn(m, DIABETES, m.predict)


def skl_gradient_boosting():
    m = ensemble.GradientBoostingClassifier(n_estimators=10).fit(
        IRIS, IRIS_Y == 1)
    return of_sklearn(m, IRIS, lambda x: m.predict_proba(x)[:, 1],
                      predict_proba="true")


def skl_histogram():
    m = ensemble.HistGradientBoostingRegressor(max_iter=10).fit(
        DIABETES, DIABETES_Y)
    return of_sklearn(m, DIABETES, m.predict, missing=True)


def skl_isolation():
    m = ensemble.IsolationForest(n_estimators=10, random_state=0).fit(IRIS)
    return of_sklearn(m, IRIS, lambda x: -m.score_samples(x))


def lgb_zeros():
    """Zeros are missing values, which go where zero goes by the threshold."""
    def towards(lines):
        types = (4 if t.startswith("-") else 6 for t in lines[2].split())
        return lines[1] + " ".join(map(str, types))

    text = of_lightgbm(DIABETES, DIABETES_Y, zero_as_missing=True) \
        .model_to_string()
    return text_of(lightgbm.Booster(model_str=re.sub(
        r"(threshold=(.*)\ndecision_type=).*", towards, text)), DIABETES)


def skl_two_targets():
    """Classes of two targets with three and two classes."""
    y = numpy.c_[IRIS_Y, IRIS_Y > 0]
    m = ensemble.RandomForestClassifier(10, random_state=0).fit(IRIS, y)
    return of_sklearn(m, IRIS, m.predict, tolerance=0)


ALL = [xgb_binary, xgb_ubj, xgb_legacy, xgb_multiclass, xgb_classes,
       xgb_poisson, xgb_dart, xgb_targets, xgb_vector_leaves, xgb_categories,
       lgb_binary, lgb_regression, lgb_multiclass, lgb_one_against_all,
       lgb_random_forest, lgb_categories, lgb_zeros, skl_random_forest,
       skl_extra_trees, skl_gradient_boosting, skl_histogram, skl_isolation,
       skl_two_targets]
NAMES = [f.__name__ for f in ALL]
