# Two commands for a newcomer: `make demo` and `make test`. Everything else is listed by `make help`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export VIANO_HOME ?= .viano

.PHONY: help setup demo ui test lint bench test-deep test-live-model lock clean

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/'

$(VENV)/.installed: requirements.lock pyproject.toml
	@echo "Setting up $(VENV) (once; needs the Python package index) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Viano needs Python 3.11 or newer; set PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(VENV)/.installed ## create the environment

demo: setup      ## diagnose a bundled case and print the diagnosis
	@$(BIN)/viano demo

ui: setup        ## open the Dagster UI on loopback
	@$(BIN)/viano ui

lint: setup      ## formatting, lint, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: setup      ## run the tests
	$(BIN)/python -m pytest

bench: setup     ## make bench NAME=first|package|tools|batch|calibration|analyst|trust
	@$(BIN)/python -m tests.benchmarks.run $(NAME)

test-deep: setup ## make test-deep NAME=ui|faults|gateway|planning|investigation|diagnosis|index|intake|kills|daemon
	@$(BIN)/python -m tests.deep.run $(NAME)

test-live-model: setup ## a whole case with a real small model (optional, see docs/models.md)
	@$(BIN)/python -m tests.live.run

lock: setup      ## resolve the lock file anew
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --no-strip-extras --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -o requirements.lock

clean:           ## remove the environment (never a case)
	rm -rf $(VENV)
