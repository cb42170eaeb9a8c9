"""The scenarios of run.py, one test each."""

import importlib.util
import pathlib
import types

import pytest

from lib.server import MODULE, NGINX, SANITIZER

SPEC = importlib.util.spec_from_file_location(
    "ngx_fake_run", pathlib.Path(__file__).with_name("run.py"))
RUN = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(RUN)


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fake-core")
    return types.SimpleNamespace(
        module=MODULE, nginx=NGINX, core=RUN.build_core(folder), quiet=True)


# a sanitized module runs with the real core, in t/60-crash
SCENARIOS = [] if SANITIZER else RUN.SCENARIOS

if SCENARIOS:
    @pytest.mark.parametrize("scenario", SCENARIOS,
                             ids=[s.__name__ for s in SCENARIOS])
    def test_process_side(scenario, options):
        assert RUN.run(scenario, options)
