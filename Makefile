# Run `make help` for what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
STAGE ?= dev
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 18

$(VENV)/.installed: requirements.txt requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; this is " + sys.version.split()[0] + ". Run make PYTHON=/path/to/python3") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pip<26.3'
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	@touch $@

.PHONY: dev
dev: $(VENV)/.installed ## Run everything on http://127.0.0.1:8000 with a persistent database
	@exec $(BIN)/python -m infra dev

.PHONY: test
test: $(VENV)/.installed ## Run the test suite (on moto; no outside network)
	$(BIN)/python -m pytest -n auto

.PHONY: test-dynamodb
test-dynamodb: $(VENV)/.installed ## Run the store, list, race and durability tests on DynamoDB Local
	$(BIN)/python -m pytest -m 'dynamodb or store' --dynamodb-local

.PHONY: package
package: $(VENV)/.installed ## Build the Lambda zip and check it (STAGE=dev)
	$(BIN)/python -m infra.package --stage $(STAGE) --out build/package

.PHONY: test-package
test-package: $(VENV)/.installed ## Build the zip and answer API Gateway events from it
	$(BIN)/python -m pytest -m package

build/bench/.installed: requirements-bench.txt
	$(PYTHON) -m venv build/bench
	build/bench/bin/python -m pip install --quiet -r requirements-bench.txt
	@touch $@

.PHONY: bench
bench: $(VENV)/.installed build/bench/.installed ## Measure beside peers; write docs/benchmarks.md
	@$(BIN)/python -m infra.bench $(ARGS)

.PHONY: format
format: $(VENV)/.installed ## Format the code and fix what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: check
check: $(VENV)/.installed ## Format check, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: pr
pr: check test-dynamodb test-package test ## What CI runs

.PHONY: clean
clean: ## Remove the virtual environment and everything built
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
