"""Every parameter of a model, the files by which a model is found, and the
two names of the backend."""

import json
from concurrent import futures

import numpy
import pytest
import treelite

from lib import forests, models, repository
from lib.trees import answer


def serve(make_server, forest, name="m", backend="trees", config="", file=None,
          **parameters):
    """A server with one model; config: more of its configuration."""
    return make_server(lambda r: models.write_model(
        r, name, f'backend: "{backend}"\nmax_batch_size: 2000\n' + config
        + models.parameter_block(parameters), (1,),
        {1: {file or forest.filename: forest.content}}))


def output(*dims):
    return models.io_block("output", [("output__0", "FP32", dims)])


def ask(server, x, name="m"):
    return answer(server, name, x)[0]


@pytest.fixture(scope="module")
def binary():
    return forests.xgb_binary()


@pytest.fixture(scope="module")
def three():
    return forests.xgb_multiclass()


def test_a_binary_model_answers_its_class(make_server, binary):
    """By default, because the file says that it is a classifier."""
    server = serve(make_server, binary)
    got = ask(server, binary.x)
    assert got.tolist() == (binary.expected > 0.5).astype(float).tolist()
    assert 0 < got.sum() < len(got)


@pytest.mark.parametrize("threshold", ["0.3", "0.9"])
def test_threshold(make_server, binary, threshold):
    server = serve(make_server, binary, output_class="true",
                   threshold=threshold)
    expected = binary.expected > numpy.float32(threshold)
    assert ask(server, binary.x).tolist() == expected.astype(float).tolist()


@pytest.mark.parametrize("threshold", [None, "0.3", "0.9"])
def test_threshold_of_two_classes(make_server, threshold):
    """A binary forest of scikit-learn has a number for each class."""
    forest = forests.skl_two_classes()
    parameters = {} if threshold is None else {"threshold": threshold}
    server = serve(make_server, forest, output_class="true", **parameters)
    second = forest.expected[:, 1].astype("float32")
    got = ask(server, forest.x)[:, 0]
    assert got.tolist() == (
        second > numpy.float32(threshold or "0.5")).astype(float).tolist()
    assert 0 < got.sum() < len(got)


def test_one_column_of_probabilities(make_server, binary):
    server = serve(make_server, binary, config=output(1),
                   output_class="true", predict_proba="true")
    numpy.testing.assert_allclose(ask(server, binary.x), binary.expected,
                                  rtol=1e-5)


def test_two_columns_where_the_configuration_has_two(make_server, binary):
    server = serve(make_server, binary, config=output(2),
                   output_class="true", predict_proba="true")
    got = ask(server, binary.x)
    numpy.testing.assert_allclose(got[:, 1:], binary.expected, rtol=1e-5)
    assert (got[:, 0] == 1 - got[:, 1]).all()


def test_a_classifier_as_a_regressor(make_server, binary):
    """output_class false: the number itself, threshold or not."""
    server = serve(make_server, binary, output_class="false",
                   threshold="0.9")
    numpy.testing.assert_allclose(ask(server, binary.x), binary.expected,
                                  rtol=1e-5)


def test_the_class_of_several(make_server, three):
    server = serve(make_server, three, output_class="true")
    got = ask(server, three.x)
    assert got[:, 0].tolist() == three.expected.argmax(axis=1).tolist()


@pytest.mark.parametrize("name, kind", [
    ("xgb_ubj", "xgboost_ubj"), ("xgb_poisson", "xgboost_json"),
    ("xgb_legacy", "xgboost"), ("lgb_regression", "lightgbm"),
    ("skl_extra_trees", "treelite_checkpoint")])
def test_model_type_and_a_name_of_one_s_own(make_server, name, kind):
    forest = getattr(forests, name)()
    server = serve(make_server, forest, model_type=kind, file="mine.bin",
                   config='default_model_filename: "mine.bin"\n')
    numpy.testing.assert_allclose(
        ask(server, forest.x).reshape(forests.ROWS, -1), forest.expected,
        rtol=1e-5, atol=1e-3)


def test_the_end_of_a_name_says_the_kind(make_server):
    forest = forests.lgb_regression()
    server = serve(make_server, forest, file="trees.txt",
                   config='default_model_filename: "trees.txt"\n')
    numpy.testing.assert_allclose(ask(server, forest.x), forest.expected,
                                  rtol=1e-5)


def test_response_cache_warm_up_and_statistics(make_server, three):
    server = make_server(
        lambda r: models.write_model(
            r, "m", 'backend: "fil"\nmax_batch_size: 2000\n'
            "response_cache { enable: true }\n"
            'model_warmup { name: "w" batch_size: 2 count: 3 inputs {\n'
            '  key: "input__0" value { data_type: TYPE_FP32\n'
            f"    dims: {three.x.shape[1]} random_data: true }} }} }}\n",
            (1,), {1: {three.filename: three.content}}),
        parts="all", http="    inference_response_cache local size=4m;\n")

    def stats():
        return server.get("/v2/models/m/stats").json()["model_stats"][0]

    assert server.get("/v2/models/m/ready").status == 200
    assert stats()["execution_count"] == 3
    first, *others = [ask(server, three.x).tolist() for _ in range(3)]
    assert others == [first, first]
    row = stats()
    assert row["inference_stats"]["cache_hit"]["count"] == 2
    assert row["inference_stats"]["cache_miss"]["count"] == 1
    assert row["inference_stats"]["compute_infer"]["ns"] > 0
    assert row["execution_count"] == 4


def test_both_names_of_the_backend_in_one_server(make_server, binary):
    def fill(repository):
        for backend in ("trees", "fil"):
            models.write_model(repository, backend,
                               f'backend: "{backend}"\nmax_batch_size: 2000',
                               (1,), {1: {binary.filename: binary.content}})

    server = make_server(fill)
    ours, tritons = (ask(server, binary.x, n) for n in ("trees", "fil"))
    assert ours.tobytes() == tritons.tobytes()
    assert (ours.shape, tritons.shape) == ((forests.ROWS, 1),
                                           (forests.ROWS,))


@pytest.mark.parametrize("name, kind, columns", [
    ("xgb_binary", "classes", 1), ("xgb_multiclass", "classes", 1),
    ("lgb_regression", "numbers", 1), ("xgb_binary", "probabilities", 1),
    ("xgb_binary", "probabilities", 2), ("xgb_multiclass", "probabilities", 3)])
def test_fil_has_no_dimension_for_one_number(make_server, name, kind, columns):
    """As Triton's: dims are [1], and the answer's shape is [batch]; also of a
    single row, and where requests run together."""
    forest = getattr(forests, name)()
    server = serve(
        make_server, forest, backend="fil",
        config=output(columns) + "instance_group { count: 1 kind: KIND_CPU }\n"
        "dynamic_batching { preferred_batch_size: 8"
        " max_queue_delay_microseconds: 50000 }\n",
        output_class=str(kind != "numbers").lower(),
        predict_proba=str(kind == "probabilities").lower())
    last = () if columns == 1 else (columns,)
    whole = ask(server, forest.x)
    assert whole.shape == (forests.ROWS, *last)
    assert ask(server, forest.x[:1]).shape == (1, *last)
    with futures.ThreadPoolExecutor(8) as pool:
        parts = list(pool.map(lambda i: ask(server, forest.x[i:i + 1]),
                              range(8)))
    assert numpy.concatenate(parts).tolist() == whole[:8].tolist()
    metadata = server.get("/v2/models/m").json()
    assert metadata["outputs"][0]["shape"] == [-1, columns]


def test_unknown_fields_of_xgboost_s_json(make_server, binary):
    document = json.loads(binary.content)
    document["learner"]["of_later"] = {"a": [1, {"b": None}]}

    class Later:
        filename = binary.filename
        content = json.dumps(document).encode()

    server = serve(make_server, Later, xgboost_allow_unknown_field="true")
    assert ask(server, binary.x).sum() > 0
    server = make_server(lambda r: models.write_model(
        r, "m", 'backend: "fil"', (1,),
        {1: {Later.filename: Later.content}}),
        parts=repository.PARTS, http=repository.EXPLICIT)
    refused = repository.ask(server, "load", "m")
    assert refused.status != 200 and b"of_later" in refused.body, refused


def test_parameters_without_effect_are_logged_once(make_server, binary):
    names = {"use_experimental_optimizations": "true", "storage_type": "AUTO",
             "algo": "ALGO_AUTO", "threads_per_tree": "4",
             "blocks_per_sm": "2", "cpu_nthread": "2"}
    server = serve(make_server, binary, output_class="true", **names,
                   config="instance_group { count: 3 kind: KIND_CPU }\n")
    server.wait_log("without effect")
    lines = [line for line in server.log_text().splitlines()
             if "without effect" in line]
    assert len(lines) == 1, lines
    for name in names:
        assert name in lines[0]


def test_the_configuration_is_completed(make_server, three):
    server = make_server(lambda r: models.write_model(
        r, "m", 'backend: "trees"\n'
        + models.parameter_block({"predict_proba": "true"}), (1,),
        {1: {three.filename: three.content}}))
    config = server.get("/v2/models/m/config").json()
    assert config["max_batch_size"] == 4
    assert config["input"][0]["dims"] == [4]
    assert [(o["name"], o["data_type"], o["dims"])
            for o in config["output"]] == [("output__0", "TYPE_FP32", [3])]
    assert ask(server, three.x[:4]).shape == (4, 3)


def test_an_old_checkpoint(make_server):
    """Of a later minor version too: treelite promises to read them."""
    forest = forests.skl_extra_trees()
    content = bytearray(forest.content)
    assert content[:4] == (4).to_bytes(4, "little")
    content[4:8] = (99).to_bytes(4, "little")

    class Newer:
        filename = forest.filename
    Newer.content = bytes(content)
    server = serve(make_server, Newer)
    numpy.testing.assert_allclose(ask(server, forest.x), forest.expected,
                                  rtol=1e-5)


def operators():
    """A forest with every comparison, missing numbers both ways."""
    builder = treelite.model_builder.ModelBuilder(
        threshold_type="float64", leaf_output_type="float64",
        metadata=treelite.model_builder.Metadata(
            num_feature=2, task_type="kRegressor", average_tree_output=False,
            num_target=1, num_class=[1], leaf_vector_shape=(1, 1)),
        tree_annotation=treelite.model_builder.TreeAnnotation(
            num_tree=50, target_id=[0] * 50, class_id=[0] * 50),
        postprocessor=treelite.model_builder.PostProcessorFunc(
            name="identity"), base_scores=[0.5])
    limits = [0.0, -0.0, 1.1, numpy.float32(0.3), 1e300]
    for i in range(50):
        builder.start_tree()
        builder.start_node(0)
        builder.numerical_test(
            feature_id=i % 2, threshold=float(limits[i // 10]),
            default_left=i // 5 % 2 == 0,
            opname=["<", "<=", "==", ">", ">="][i % 5],
            left_child_key=1, right_child_key=2)
        builder.end_node()
        for key in (1, 2):
            builder.start_node(key)
            builder.leaf(float(key * 2 ** (i % 20)))
            builder.end_node()
        builder.end_tree()
    return builder.commit()


def test_every_operator_at_its_limits(make_server):
    model = operators()
    values = [0.0, -0.0, 1.1, 0.3, 1e-45, -1e-45, 3.4e38, -3.4e38,
              numpy.inf, -numpy.inf, numpy.nan, 1.1000001, 1.0999999]
    x = numpy.array([[a, b] for a in values for b in values], numpy.float32)

    class Built:
        filename = "checkpoint.tl"
        content = model.serialize_bytes()

    server = serve(make_server, Built)
    expected = treelite.gtil.predict(model, x.astype("float64"), nthread=1)
    assert ask(server, x).ravel().tolist() \
        == expected.astype("float32").ravel().tolist()


def test_a_setting_with_a_wrong_value_fails_loads(make_server, binary):
    server = make_server(
        lambda r: models.write_model(r, "m", 'backend: "fil"\n', (1,), {
            1: {binary.filename: binary.content}}), wait="live",
        http="    inference_backend_config fil default-max-batch-size=x;\n")
    server.wait_log('backend setting "default-max-batch-size" is "x"; it must '
                    "be a whole number from ")
