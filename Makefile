# Everything installs itself into .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
# Python compiles what is imported; to compile all that is installed takes long.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
BUILD := cmake nanobind ninja scikit-build-core
# A machine without a C++ compiler takes that of the ziglang package, which is slow the first time: minutes.
ifeq ($(firstword $(foreach name,c++ g++ clang++,$(shell command -v $(name)))),)
ZIG := $(VENV)/zig
BUILD += ziglang
export PATH := $(CURDIR)/$(ZIG):$(PATH)
export CXX := $(CURDIR)/$(ZIG)/c++
endif
# The demo needs the kernels for this processor only; tests need them for all, and functions only for tests.
OWN := $(shell awk '/^flags/ { print (/avx512vl/ && /avx512bw/ && /avx512dq/) ? "v4" : (/avx2/ && /bmi2/) ? "v3" : "v2"; exit }' \
	/proc/cpuinfo 2> /dev/null)
OLDEST := .venv-oldest
NEWEST := .venv-newest
# Tried in this order by test-oldest and test-newest.
PYTHONS ?= python3.14 python3.13 python3.12 python3.11

.PHONY: demo docs test coverage test-oldest test-newest proofs mutations sanitize hostile lint format bench bench-quick clean

# What builds the kernels stays in the environment, so that they are compiled again when a source has changed.
$(RUNS): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) $(BUILD) || { echo "The kernels need GCC 12, Clang 14 or newer, or the package ziglang." >&2; exit 1; }
	$(if $(ZIG),mkdir -p $(ZIG))
	$(foreach tool,$(if $(ZIG),c++ ar ranlib),printf '#!/bin/sh\nexec $(CURDIR)/$(BIN)/python -m ziglang $(tool) "$$@"\n' \
		> $(ZIG)/$(tool) && chmod +x $(ZIG)/$(tool) &&) true
	$(PIP) --no-build-isolation $(if $(OWN),--config-settings=cmake.define.BNMF_LEVELS=$(OWN)) --config-settings=cmake.define.BNMF_TESTING=OFF -e .
	touch $@

# What developers need besides, with the kernels of all levels. Those that are up to date are not compiled again.
$(READY): $(RUNS)
	$(PIP) --no-build-isolation --config-settings=cmake.define.BNMF_LEVELS= --config-settings=cmake.define.BNMF_TESTING=ON -e '.[dev]'
	touch $@

demo: $(RUNS)
	$(BIN)/bnmf demo

# Kernels and sweeps are tested at the next lower level of the processor too: AVX2 where there is AVX-512. Tests run in
# one process for each core, so BLAS and fits take one thread in each.
LOWER = $(BIN)/python -c "from bnmf.kernels.compiled import LEVEL; print({'v4': 'v3', 'v3': 'v2'}.get(LEVEL, ''))"
test: export OPENBLAS_NUM_THREADS = 1
test: export LOKY_MAX_CPU_COUNT = 1
test: $(READY) lint
	$(BIN)/python -m pytest -n auto -m 'not proof' --durations=10
	BNMF_SIMD=$$($(LOWER)) $(BIN)/python -m pytest -n auto -m 'not proof' -q tests/kernels tests/sampler/test_gibbs.py

# Lines of the package that the tests run. Processes that tests start for themselves are not counted.
coverage: export OPENBLAS_NUM_THREADS = 1
coverage: $(READY)
	$(BIN)/python -m pytest -n auto -m 'not proof' --cov=bnmf --cov-report=term:skip-covered

# The site needs a few more packages, which nothing else does. Every page is read again, and warnings are errors.
$(VENV)/.ready-docs: $(READY)
	$(PIP) --no-build-isolation -e '.[docs]'
	touch $@

docs: $(VENV)/.ready-docs
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build/html
	@echo "The documentation is ready. Open docs/_build/html/index.html"

# $(call install,environment,options of pip): install on the first Python that has wheels of all those versions.
define install
	for python in $(PYTHONS); do \
		rm -rf $(1); \
		$$python -m venv $(1) 2> /dev/null && $(1)/bin/python -m tests.oldest > $(1)/oldest.txt && \
		$(1)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: $(2) -e '.[test]' && \
		touch $(1)/.ready && break; \
	done; test -e $(1)/.ready
endef

$(OLDEST)/.ready: pyproject.toml tests/oldest.py
	$(call install,$(OLDEST),-c $(OLDEST)/oldest.txt)

# Old versions warn of deprecations in the newer packages below them, which is nothing that bnmf could change.
test-oldest: $(OLDEST)/.ready
	$(OLDEST)/bin/python -m pytest -n auto -m 'not proof' -W default::DeprecationWarning

test-newest:
	$(call install,$(NEWEST),)
	$(NEWEST)/bin/python -m pytest -n auto -m 'not proof'

proofs: $(READY)
	$(BIN)/python -m pytest -n auto -m proof

mutations: $(READY)
	$(BIN)/python -m tests.mutations

sanitize: $(READY)
	$(BIN)/python -m tests.sanitize

# Random inputs, damaged files, kills, full disks and wrong calls: fifty times as many as in `make test`, with new seeds.
hostile: $(READY)
	BNMF_HOSTILE=50 $(BIN)/python -m pytest -n auto -m 'not proof' tests/hostile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tests.mutations --check

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks

bench-quick: $(READY)
	$(BIN)/python -m benchmarks --quick

clean:
	rm -rf $(VENV) $(OLDEST) $(NEWEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf docs/_build docs/_generated docs/gallery docs/sg_execution_times.rst
	git clean -fdXq src/bnmf/kernels
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
