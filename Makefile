# The commands people type.  The work is done by cmake, nginx's configure and
# the scripts named here; a machine without make uses those scripts.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=

# "make module" and "make build" for another nginx than Debian's: NGINX=PATH, and
# NGINX_SRC=DIR with its sources.  nginx itself reads a variable called NGINX.
NGINX_PROGRAM ?= $(or $(NGINX),$(if $(filter module,$(MAKECMDGOALS)),/usr/sbin/nginx))
export NGINX_PROGRAM NGINX_SRC
unexport NGINX

.PHONY: help deps build module run test bench bench-models bench-pytorch \
	bench-trees asan tsan rooms locks fuzz mutants test-gpu nginx-next \
	test-model-analyzer test-reloads test-chaos test-large reference \
	install deb test-deb \
	test-container clean

help:
	@echo 'make deps        install what building and testing need (Debian, PyPI)'
	@echo 'make build       module, core, backends, launcher into $(BUILD)/'
	@echo 'make module NGINX=/usr/sbin/nginx  the module for that very program (NGINX_SRC=DIR)'
	@echo 'make run         build, serve examples/models on port 8000, ask it a digit'
	@echo 'make test        unit tests, rooms check, black-box tests'
	@echo 'make bench       the C API, then side by side with the original server (QUICK=1: short)'
	@echo 'make bench BASE=DIR  side by side with another checkout'\''s build folder'
	@echo 'make bench-models  models that come and go beside others, and 1,000 of them'
	@echo 'make bench-pytorch  what backend pytorch adds to PyTorch'\''s own call'
	@echo 'make bench-trees   1,000 trees beside treelite'\''s and XGBoost'\''s own predictors'
	@echo 'make asan tsan   the tests under sanitizers'
	@echo 'make rooms       check include directions and READMEs'
	@echo 'make locks       clang'\''s thread-safety analysis of core'
	@echo 'make fuzz        each fuzzer for INF_FUZZ_SECONDS (60)'
	@echo 'make mutants ROOM=proto  which of N=30 random mutants of a room its tests catch'
	@echo 'make test-gpu    what only a machine with an NVIDIA GPU can show, and figures'
	@echo 'make test-gpu PACK=DIR  packs all of it for such a machine without network'
	@echo 'make nginx-next  build for and test with the next Debian'\''s nginx'
	@echo 'make test-model-analyzer  NVIDIA'\''s Model Analyzer, remote and local (150 MB to fetch)'
	@echo 'make test-reloads  a hundred reloads and ten binary upgrades under load'
	@echo 'make test-chaos  five minutes of kills, reloads and upgrades at random'
	@echo 'make test-large  gRPC messages of 2 GiB (6 GiB of memory, a minute)'
	@echo 'make reference   writes the pages of docs that have a .in from the tables'
	@echo 'make install     what is built into PREFIX=$(PREFIX) (DESTDIR is honoured)'
	@echo 'make deb         Debian packages of what is built, into $(BUILD)/deb'
	@echo 'make test-deb    builds, installs and tries them in clean Debian 12 and 13 (root)'
	@echo 'make test-container  the steps of the container recipe in roots of Debian (root)'
	@echo 'make clean       remove what was built; keeps what deps fetched'

deps:
	@sh t/setup.sh

build: deps
	@sh tools/build.sh $(BUILD)

module:
	@sh tools/nginx-module.sh $(BUILD)

run:
	@sh examples/run.sh

test:
	@sh t/run.sh

ifdef BASE
bench: build
	@INF_BUILD=$(BUILD) build/venv/bin/python t/bench/base.py '$(BASE)'
else
bench: build
	@cmake --build $(BUILD) --target bench_abi > $(BUILD)/bench.log 2>&1 \
	    || { cat $(BUILD)/bench.log; exit 1; }
	@$(BUILD)/bench_abi
	@cmake --build $(BUILD) --target bench_openvino > $(BUILD)/bench.log 2>&1 \
	    || { cat $(BUILD)/bench.log; exit 1; }
	@$(BUILD)/bench_openvino
	@build/venv/bin/python t/bench/run.py
	@build/venv/bin/python t/bench/grpc_calls.py
	@build/venv/bin/python t/bench/batching.py
	@INF_BUILD=$(BUILD) build/venv/bin/python t/bench/resubmission.py '64 B'
	@INF_BUILD=$(BUILD) build/venv/bin/python t/bench/peek.py
	@INF_BUILD=$(BUILD) build/venv/bin/python t/bench/cache_hop.py
	@INF_BUILD=$(BUILD) build/venv/bin/python t/bench/balance_hop.py
	@build/venv/bin/python -m pytest -q -s t/90-stress/test_slow_clients.py
endif

bench-models: build
	@build/venv/bin/python t/bench/models.py

bench-pytorch: build
	@cmake --build $(BUILD) --target bench_pytorch > $(BUILD)/bench.log 2>&1 \
	    || { cat $(BUILD)/bench.log; exit 1; }
	@$(BUILD)/bench_pytorch

bench-trees: build
	@cmake --build $(BUILD) --target bench_trees > $(BUILD)/bench.log 2>&1 \
	    || { cat $(BUILD)/bench.log; exit 1; }
	@build/venv/bin/python t/bench/trees.py $(BUILD)

asan:
	@INF_BUILD=build-asan sh t/run.sh

tsan:
	@INF_BUILD=build-tsan sh t/run.sh

rooms:
	@python3 t/check-rooms.py

locks: build
	@python3 t/locks.py $(BUILD)

fuzz:
	@sh t/fuzz.sh

# ROOM: one of core's, backends or ngx_module; N, SEED, ONLY (IDs), PLAIN=1 (not
# under ASan) and UNITS=1 (no black-box tests) at will
mutants: deps build-mutants/venv
	@nice -n 19 build-mutants/venv/bin/python t/mutate.py $(ROOM) \
	    -n $(or $(N),30) --seed $(or $(SEED),14) $(if $(ONLY),--only $(ONLY)) \
	    $(if $(PLAIN),--plain) $(if $(UNITS),--units)

build-mutants/venv: t/requirements-mutants.txt
	@python3 -m venv $@
	@$@/bin/pip install -q -r $<
	@touch $@

ifdef PACK
test-gpu: build
	@INF_BUILD=$(BUILD) sh t/gpu/pack.sh '$(PACK)'
else
test-gpu: build
	@INF_BUILD=$(BUILD) sh t/gpu/run.sh
endif

nginx-next:
	@sh t/nginx-next.sh

test-model-analyzer: build build/model-analyzer/complete
	@INF_BUILD=$(BUILD) build/venv/bin/python -m pytest -q \
	    t/model-analyzer/test_model_analyzer.py

test-reloads: build
	@INF_BUILD=$(BUILD) INF_RELOADS=100 build/venv/bin/python -m pytest -q -s \
	    t/90-stress/test_reloads.py

test-chaos: build
	@INF_BUILD=$(BUILD) INF_CHAOS_SECONDS=300 build/venv/bin/python -m pytest \
	    -q -s t/90-stress/test_chaos.py

test-large: build
	@INF_BUILD=$(BUILD) INF_MESSAGE=2147483647 build/venv/bin/python -m pytest \
	    -q -s t/90-stress/test_large_messages.py

build/model-analyzer/complete: t/requirements-model-analyzer.txt
	@rm -rf build/model-analyzer
	@build/venv/bin/python -m venv build/model-analyzer
	@build/model-analyzer/bin/pip install -q --disable-pip-version-check \
	    --only-binary=:all: -r $<
	@touch $@

reference: build
	@python3 tools/reference/reference.py $(BUILD)

# what is there: "make build" has built it
install:
	@sh tools/install.sh $(BUILD) '$(PREFIX)' '$(DESTDIR)'

deb: build
	@sh tools/deb.sh $(BUILD)

test-deb:
	@sh t/deb.sh

test-container:
	@python3 t/container.py

# build/deps, build/venv and build/peer were fetched, not built.
clean:
	@sh examples/run.sh stop
	@rm -rf build-asan build-tsan build-fuzz build-mutants
	@[ ! -d $(BUILD) ] || find $(BUILD) -mindepth 1 -maxdepth 1 \
	    ! -name deps ! -name venv ! -name peer ! -name '.setup-*' \
	    -exec rm -rf {} +
