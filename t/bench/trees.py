"""1,000 trees of depth 8 in backend trees, treelite's GTIL and XGBoost's
in-place predict, on one thread: makes the model and runs trees.c.

    build/venv/bin/python t/bench/trees.py [BUILD]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["OMP_NUM_THREADS"] = "1"

import numpy
import treelite
import xgboost

TREES, DEPTH, FEATURES = 1000, 8, 32


def full_tree(rng, template):
    """Every node has two children down to DEPTH; numbers are below 1."""
    count = 2 ** (DEPTH + 1) - 1
    inner = 2 ** DEPTH - 1
    index = numpy.arange(count)
    leaf = index >= inner
    tree = dict(template, categories=[], categories_nodes=[],
                categories_segments=[], categories_sizes=[])
    value = numpy.where(leaf, rng.normal(size=count) / 100,
                        rng.uniform(0.2, 0.8, count))
    tree.update(
        left_children=numpy.where(leaf, -1, 2 * index + 1).tolist(),
        right_children=numpy.where(leaf, -1, 2 * index + 2).tolist(),
        parents=[2 ** 31 - 1] + ((index[1:] - 1) // 2).tolist(),
        split_indices=numpy.where(
            leaf, 0, rng.integers(0, FEATURES, count)).tolist(),
        split_conditions=value.astype("float32").tolist(),
        default_left=rng.integers(0, 2, count).tolist(),
        split_type=[0] * count, base_weights=[0.0] * count,
        loss_changes=[0.0] * count, sum_hessian=[1.0] * count)
    tree["tree_param"] = dict(template["tree_param"], num_nodes=str(count))
    return tree


def model():
    rng = numpy.random.default_rng(0)
    x = rng.random((50, FEATURES), dtype="float32")
    booster = xgboost.train({"max_depth": 1, "nthread": 1},
                            xgboost.DMatrix(x, x[:, 0]), 1)
    document = json.loads(booster.save_raw("json"))
    inner = document["learner"]["gradient_booster"]["model"]
    template = inner["trees"][0]
    inner["trees"] = [dict(full_tree(rng, template), id=i)
                      for i in range(TREES)]
    inner["tree_info"] = [0] * TREES
    inner["gbtree_model_param"]["num_trees"] = str(TREES)
    inner["iteration_indptr"] = list(range(TREES + 1))
    return json.dumps(document)


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    site = pathlib.Path(treelite.__file__).parents[1]
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, "model.json")
        path.write_text(model(), encoding="utf-8")
        print(f"{TREES} trees of depth {DEPTH}, {FEATURES} features,"
              " one thread:", flush=True)
        subprocess.run(
            [build / "bench_trees", path, str(FEATURES),
             site / "treelite/lib/libtreelite.so",
             next(site.glob("xgboost/lib/libxgboost.so")), "1", "8", "64",
             "1024"], check=True)


if __name__ == "__main__":
    main()
