"""Metrics of a model's own: kinds, values, families that are shared, refusals,
the text that a monitoring system reads."""

import pytest

from lib import python_backend
from lib.exposition import Text
from lib.python_backend import ask, differs, raised

METRICS = "        location = /metrics { inference metrics; }"


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(python_backend.probe, server=METRICS) as s:
        yield s


def metrics(server):
    return server.get("/metrics").body.decode()


def family(name, kind="COUNTER"):
    return f"kept['{name}'] = f = pb.MetricFamily(name='{name}', " \
        f"description='of {name}', kind=pb.MetricFamily.{kind})\n"


def test_counter(server):
    assert ask(server, family("t_counter") + """
kept["m"] = m = f.Metric(labels={"a": "one", "b": 'quo"te'})
result = [m.value()]
m.increment(2023.0)
m.increment(0.5)
result.append(m.value())
""") == [0, 2023.5]
    text = metrics(server)
    assert "# HELP t_counter of t_counter\n# TYPE t_counter counter\n" in text
    assert 't_counter{a="one",b="quo\\"te"} 2023.5' in text
    Text(text)


def test_gauge(server):
    assert ask(server, family("t_gauge", "GAUGE") + """
kept["g"] = m = f.Metric(labels={"a": "one"})
m.increment(2023)
m.increment(-23.5)
result = [m.value()]
m.set(999.9)
result.append(m.value())
m.set(-1)
result.append(m.value())
""") == [1999.5, 999.9, -1]
    assert 't_gauge{a="one"} -1' in metrics(server)


def test_histogram(server):
    ask(server, family("t_sizes", "HISTOGRAM") + """
kept["h"] = m = f.Metric(labels={"a": "one"}, buckets=[0.1, 1.0, 2.5, 5, 10])
for x in (0.05, 1.5, 6.0, 100):
    m.observe(x)
""")
    text = metrics(server)
    for limit, count in [("0.1", 1), ("1", 1), ("2.5", 2), ("5", 2),
                         ("10", 3), ("+Inf", 4)]:
        assert f't_sizes_bucket{{a="one",le="{limit}"}} {count}' in text
    assert 't_sizes_count{a="one"} 4' in text
    assert 't_sizes_sum{a="one"} 107.55' in text


def test_values_of_numpy(server):
    assert ask(server, family("t_numpy", "GAUGE") + """
m = f.Metric()
result = []
for x in (np.float32(1.5), np.int64(2), np.array(3), True):
    m.set(x)
    result.append(m.value())
""") == [1.5, 2, 3, 1]
    ask(server, family("t_numpy_sizes", "HISTOGRAM") + """
kept["n"] = m = f.Metric(buckets=[np.float32(0.5), np.int64(2)])
m.observe(np.float16(1))
""")
    assert 't_numpy_sizes_bucket{le="2"} 1' in metrics(server)


@pytest.mark.parametrize("value", ["'1'", "b'1'", "None", "10 ** 400"])
def test_values_that_are_no_numbers(server, value):
    assert raised(server, family("t_counter") + f"f.Metric(labels={{'k': 'v'}})"
                  f".increment({value})")[0] == "TypeError"


def test_without_labels(server):
    assert ask(server, family("t_bare") + """
kept["b"] = m = f.Metric()
m.increment(1)
result = m.value()
""") == 1
    assert "\nt_bare 1" in metrics(server)


def test_the_same_family_twice(server):
    assert ask(server, family("t_twice") + """
g = pb.MetricFamily(name="t_twice", description="taken by then",
                    kind=pb.MetricFamily.COUNTER)
kept["t1"] = f.Metric(labels={"k": "1"})
kept["t2"] = g.Metric(labels={"k": "2"})
kept["g"] = g
same = g.Metric(labels={"k": "1"})
kept["t1"].increment(7.5)
result = same.value()
""") == 7.5
    text = metrics(server)
    assert text.count("# TYPE t_twice counter") == 1
    assert "of t_twice" in text and "taken by then" not in text
    assert 't_twice{k="1"} 7.5' in text and 't_twice{k="2"} 0' in text


def test_metrics_end_with_their_objects(server):
    ask(server, family("t_gone") + """
kept["x"] = f.Metric(labels={"k": "1"})
""")
    assert 't_gone{k="1"}' in metrics(server)
    ask(server, "import gc\ndel kept['x']\ndel kept['t_gone']\ngc.collect()")
    from lib import process
    assert process.wait_until(lambda: "t_gone" not in metrics(server), 5)


@pytest.mark.parametrize("kind,call,words", [
    ("COUNTER", "labels=[1]",
     "Failed to create metric. Labels must be a dictionary."),
    ("COUNTER", "buckets=5",
     "Failed to create metric. Buckets must be a list."),
    ("GAUGE", "buckets=[1, 2]",
     "Failed to create metric. Unexpected buckets found."),
    ("HISTOGRAM", "", "Failed to create metric. Missing required buckets."),
])
def test_wrong_metrics(server, kind, call, words):
    name, said = raised(server, family(f"t_wrong_{kind.lower()}", kind)
                        + f"f.Metric({call})")
    assert name == "TritonModelException"
    assert said.startswith(words)


@differs("a SIGSEGV there")
def test_buckets_that_do_not_rise(server):
    name, said = raised(server, family("t_falling", "HISTOGRAM")
                        + "f.Metric(buckets=[2, 1])")
    assert name == "TritonModelException"
    assert said.startswith("Error when creating Metric: Failed to process the "
                           "request for model 'probe_0', message: ")


@differs("a key that is a number is taken there as its text")
def test_labels_that_are_no_texts(server):
    name, said = raised(server, family("t_wrong") + "f.Metric(labels={1: 2})")
    assert name == "TritonModelException"
    assert said.startswith("Failed to create metric. ")


@pytest.mark.parametrize("kind,call,why", [
    ("COUNTER", "increment(-1)", "Failed to increment metric value: "),
    ("COUNTER", "set(1)", "Failed to set metric value: "),
    ("COUNTER", "observe(1)", "Failed to observe metric value: "),
    ("GAUGE", "observe(1)", "Failed to observe metric value: "),
])
@differs("a SIGSEGV there")
def test_refusals(server, kind, call, why):
    name, said = raised(server, family("t_refuse_" + kind.lower(), kind)
                        + f"f.Metric(labels={{'k': '1'}}).{call}")
    assert name == "TritonModelException"
    assert said.startswith(why + "Failed to process the request for model "
                           "'probe_0', message: ")


@differs("a SIGSEGV there")
def test_another_kind_of_the_same_name(server):
    assert raised(server, family("t_kinds") + "pb.MetricFamily("
                  "name='t_kinds', description='d',"
                  " kind=pb.MetricFamily.GAUGE)")[0] == "TritonModelException"
    assert ask(server, "result = 1") == 1


@differs("a SIGSEGV there")
def test_a_metric_whose_family_has_ended(server):
    name, said = raised(server, family("t_short") + """
m = f.Metric(labels={"k": "1"})
del f, kept["t_short"]
import gc
gc.collect()
m.increment(1)
""")
    assert name == "TritonModelException"
    assert said == (
        "Failed to increment metric value: Invalid metric operation as the "
        "corresponding 'MetricFamily' has been deleted. The 'MetricFamily' "
        "object should be deleted AFTER its corresponding 'Metric' objects "
        "have been deleted.")
