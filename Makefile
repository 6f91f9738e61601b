# Everything installs itself into .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test proofs mutations lint format bench bench-quick clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/python examples/digits.py

test: $(READY) lint
	$(BIN)/python -m pytest -n auto -m 'not proof'

proofs: $(READY)
	$(BIN)/python -m pytest -n auto tests/statistical

mutations: $(READY)
	$(BIN)/python -m tests.mutations

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python -m benchmarks

bench-quick: $(READY)
	$(BIN)/python -m benchmarks --quick

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
