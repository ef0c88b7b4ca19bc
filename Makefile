# Run `make help` for what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help
STAGE ?= dev
VENV := .venv
BIN := $(VENV)/bin
# Without compiled modules, each test worker and each child process compiles everything again.
unexport PYTHONDONTWRITEBYTECODE
TEMPLATES := $(wildcard infra/deploy/stacks/templates/*.yaml infra/deploy/stacks/templates/*.json)
UV := build/uv/bin/uv

# The newest Python that Lambda has and the suite is run on; `make PYTHON=…` takes another.
ifndef PYTHON
PYTHON := $(or $(shell infra/local/find-python 3.13 3.12 3.11),python3)
endif

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 18

# The stamp records the Python, so that choosing another one recreates the environment.
ifneq ($(PYTHON),$(shell cat $(VENV)/.installed 2>/dev/null))
.PHONY: $(VENV)/.installed
endif
$(VENV)/.installed: requirements.txt requirements-dev.txt constraints.txt | $(UV)
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; this is " + sys.version.split()[0] + ". Run make PYTHON=/path/to/python3") if sys.version_info < (3, 11) else None'
	@test ! -L $(VENV) || { echo '$(VENV) is a link: run make where it leads to, or call $(BIN)/… here.'; exit 1; }
	@echo 'Installing the packages of requirements-dev.txt into $(VENV):'
	$(UV) venv --quiet --clear --python $(PYTHON) $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python 'pip<26.3' -r requirements-dev.txt
	@echo '$(PYTHON)' > $@

.PHONY: dev
dev: $(VENV)/.installed ## Run everything on http://127.0.0.1:8000 with a persistent database
	@exec $(BIN)/python -m infra dev

.PHONY: test
test: $(VENV)/.installed ## Run the quick tests, on moto, without an outside network (ARGS='--clock weekend')
	$(BIN)/python -m pytest -n auto $(ARGS) $(TESTS)

.PHONY: quick
quick: $(VENV)/.installed ## Run the tests that your change reaches, in about a minute (ARGS='--base origin/main')
	@$(BIN)/python -m infra quick $(ARGS)

.PHONY: test-slow
test-slow: $(VENV)/.installed ## Run the tests marked slow, with many random examples
	HYPOTHESIS_PROFILE=ci $(BIN)/python -m pytest -n auto -m 'slow and not package and not dynamodb and not e2e and not deployed' $(ARGS)

.PHONY: coverage
coverage: $(VENV)/.installed ## Show the lines and branches that the quick tests miss (ARGS="-m 'not e2e'")
	@rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/coverage run -m pytest -n auto $(ARGS) $(TESTS)
	@$(BIN)/coverage combine --quiet && $(BIN)/coverage json -q -o build/coverage/data.json && $(BIN)/coverage report

.PHONY: test-all
test-all: $(VENV)/.installed ## Run all tests: quick and slow with many random examples, and every other suite
	HYPOTHESIS_PROFILE=ci $(BIN)/python -m pytest -n auto -m 'not package and not dynamodb and not e2e and not deployed' $(ARGS)
	@$(MAKE) --no-print-directory test-dynamodb e2e test-package test-clients fuzz test-oldest

# The parts whose behaviour a Python can change. The rest is compiled.
ON_OLDEST := tests/core tests/lib tests/engine tests/application

.PHONY: test-oldest
test-oldest: ## Test rules and stores on the oldest supported Python found, unless it is the one in use
	@oldest=$$(infra/local/find-python 3.11 3.12 3.13); ours=$$($(PYTHON) -V); \
	if [ -z "$$oldest" ] || [ "$$($$oldest -V)" = "$$ours" ]; \
	then echo "No supported Python older than $$ours was found: the suite runs once."; \
	else $$oldest -m compileall -q -f -o 0 app.py chalicelib infra tests \
		&& $(MAKE) --no-print-directory test VENV=build/oldest PYTHON="$$oldest" TESTS='$(ON_OLDEST)'; fi

.PHONY: test-dynamodb
test-dynamodb: $(VENV)/.installed ## Run the store, list, race and durability tests on DynamoDB Local
	$(BIN)/python -m pytest -n auto -m 'dynamodb or (store and not slow)' --dynamodb-local $(ARGS)

.PHONY: e2e
e2e: $(VENV)/.installed build/hosts-js/.installed ## Run the browser tests (installs Debian's Chromium if apt can)
	@if [ -n "$$(infra/local/find-chromium)" ]; then $(BIN)/python -m pytest -n auto -m e2e tests/e2e $(ARGS); \
	else echo "No Chromium was found, nor could apt install it: the browser tests do not run."; fi

# The packages of crewai-tools, of fastmcp 4 and of the other frameworks exclude each other.
CLIENTS := clients clients-crewai clients-fastmcp

$(CLIENTS:%=build/%/.installed): build/%/.installed: requirements-%.txt constraints-%.txt | $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/$*
	$(UV) pip install --quiet --python build/$*/bin/python -r requirements-$*.txt
	@touch $@

JS_CLIENTS := $(wildcard tests/clients/js/*)

build/clients-js/.installed: $(JS_CLIENTS)
	@rm -rf build/clients-js && mkdir -p build/clients-js && cp $(JS_CLIENTS) build/clients-js
	@if ! command -v npm >/dev/null; then echo "No npm was found: JavaScript clients are not tested."; \
	else npm ci --prefix build/clients-js --no-audit --no-fund --loglevel=error && touch $@; fi

# Hosts of AI clients, which show our pages beside results of tools.
build/hosts-js/.installed: $(wildcard tests/e2e/hosts/*)
	@rm -rf build/hosts-js && mkdir -p build/hosts-js && cp $^ build/hosts-js
	@if ! command -v npm >/dev/null; then echo "No npm was found: hosts of AI clients are not tested."; \
	else npm ci --prefix build/hosts-js --no-audit --no-fund --loglevel=error \
	&& npm run --silent --prefix build/hosts-js build -- --log-level=error && touch $@; fi

build/sdk/typescript/.installed: sdk/typescript/package.json sdk/typescript/package-lock.json
	@mkdir -p $(@D) && cp $^ $(@D)
	@if ! command -v npm >/dev/null; then echo "No npm was found: the TypeScript package is not made."; \
	else npm ci --prefix $(@D) --no-audit --no-fund --loglevel=error && touch $@; fi

.PHONY: sdk
sdk: $(VENV)/.installed build/sdk/typescript/.installed ## Make the TypeScript and the Python package of the API in build/sdk
	@rm -f build/sdk/*.tgz build/sdk/*.tar.gz build/sdk/*.whl
	@$(BIN)/python -m infra sdk
	@if test -e build/sdk/typescript/.installed; then cd build/sdk/typescript \
		&& npm run --silent build && npm pack --silent --pack-destination ..; fi
	@$(UV) build --quiet --out-dir build/sdk build/sdk/python && ls build/sdk/*.*

# What every framework must do.
ANY_CLIENT := tests/clients/test_frameworks.py tests/clients/test_assistants.py

.PHONY: test-clients
test-clients: $(VENV)/.installed $(CLIENTS:%=build/%/.installed) build/clients-js/.installed sdk ## Use AI frameworks, generated clients, SDKs, checkers of others and LibreOffice; write docs/clients.md
	@$(BIN)/python -m tests.support.with_server --within 800 sh -c \
		'build/clients/bin/python -m pytest tests/clients --ignore=tests/clients/test_fastmcp.py \
		&& build/clients-crewai/bin/python -m pytest $(ANY_CLIENT) \
		&& build/clients-fastmcp/bin/python -m pytest $(ANY_CLIENT) tests/clients/test_fastmcp.py'
	@SOFFICE="$$(infra/local/find-soffice)" $(BIN)/python -m pytest -k libreoffice tests/infra/operator/test_product_spreadsheets.py

.PHONY: fuzz
fuzz: $(VENV)/.installed build/clients/.installed ## Compare every operation's answers with the OpenAPI document
	@$(BIN)/python -m tests.support.with_server --within 1200 sh -c \
		'$(BIN)/python -m tests.fuzz.pages build/pages.json \
		&& build/clients/bin/schemathesis --config-file tests/fuzz/schemathesis.toml run build/pages.json --url $$BASE_URL --checks not_a_server_error \
		&& build/clients/bin/schemathesis --config-file tests/fuzz/schemathesis.toml run $$BASE_URL/api/openapi.json'

.PHONY: package
package: $(VENV)/.installed ## Build the Lambda zip and check it (STAGE=dev)
	$(BIN)/python -m infra package --stage $(STAGE)

.PHONY: test-package
test-package: $(VENV)/.installed ## Build the zip; answer API Gateway events and run every kind of job from it
	$(BIN)/python -m pytest -m package tests/infra/deploy $(ARGS)

build/deployed/.installed: requirements-deployed.txt constraints-deployed.txt | $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/deployed
	$(UV) pip install --quiet --python build/deployed/bin/python -r requirements-deployed.txt
	@touch $@

.PHONY: test-deployed
test-deployed: $(VENV)/.installed build/deployed/.installed ## Deploy to an emulator of AWS, use the stage and destroy it (TESTS='…')
	$(BIN)/python -m pytest -v -s -m deployed $(or $(TESTS),tests/deployed) $(ARGS)

.PHONY: test-deployed-short
test-deployed-short: ## Deploy to the emulator, make a dozen calls and destroy, as CI does
	@$(MAKE) --no-print-directory test-deployed ARGS='--timeout 400 --session-timeout 600' \
		TESTS='tests/deployed/test_calls.py tests/deployed/test_destruction.py'

.PHONY: deploy
deploy: $(VENV)/.installed ## Deploy to AWS (STAGE=dev; ARGS='--yes --domain api.example.com')
	@$(BIN)/python -m infra deploy --stage $(STAGE) $(ARGS)

.PHONY: destroy
destroy: $(VENV)/.installed ## Delete a stage's edge, API and functions from AWS; its data stays
	@$(BIN)/python -m infra destroy --stage $(STAGE) $(ARGS)

.PHONY: smoke
smoke: $(VENV)/.installed ## Look at a running service (ARGS='--url https://…'; default: make dev)
	@$(BIN)/python -m infra smoke $(ARGS)

.PHONY: doctor
doctor: $(VENV)/.installed ## Say what this machine or AWS account lacks for a deployment
	@$(BIN)/python -m infra doctor --stage $(STAGE) $(ARGS)

build/bench/.installed: requirements-bench.txt | $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/bench
	$(UV) pip install --quiet --python build/bench/bin/python -r requirements-bench.txt
	@touch $@

.PHONY: bench
bench: $(VENV)/.installed build/bench/.installed ## Measure beside peers; write docs/benchmarks.md
	@$(BIN)/python -m infra.bench $(ARGS)

.PHONY: check-speed
check-speed: $(VENV)/.installed ## Compare instructions of cold starts and warm calls with the committed ones (ARGS=--update)
	@$(BIN)/python -m infra.bench.ratchet $(ARGS)

.PHONY: proof
proof: $(VENV)/.installed ## Attack every promise for an hour, and print the counts (ARGS='schedules --minutes 5')
	@$(BIN)/python -m infra.proof $(ARGS)

.PHONY: short-proof
short-proof: $(VENV)/.installed ## Attack some promises for a few minutes, as CI does
	@$(BIN)/python -m infra.proof --ci

.PHONY: new-noun
new-noun: $(VENV)/.installed ## Write the skeleton of a noun (NAME=gift_card DOMAIN=catalog PLURAL=…)
	@$(BIN)/python -m infra new-noun "$(NAME)" --domain "$(or $(DOMAIN),catalog)" --plural "$(PLURAL)"

.PHONY: update
update: $(VENV)/.installed ## Record the files that tests compare with; write the reference and tables
	@$(BIN)/python -m pytest -q tests/contract --update-snapshots; recorded=$$?; \
	$(BIN)/python -m infra reference && git status --short docs tests/snapshots && exit $$recorded

.PHONY: format
format: $(VENV)/.installed ## Format the code and fix what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Each of them fails by itself, so that one that fails does not hide what the next would say.
CHECKS := check-format check-lint check-types check-imports check-templates

.PHONY: check $(CHECKS)
check: $(VENV)/.installed ## Check format, lint, types, import rules and templates; show all findings
	@$(MAKE) --no-print-directory --keep-going $(CHECKS)
$(CHECKS): $(VENV)/.installed

check-format:
	$(BIN)/ruff format --check .
check-lint:
	$(BIN)/ruff check .
check-types:
	$(BIN)/mypy
check-imports:
	$(BIN)/lint-imports
check-templates:
	$(if $(TEMPLATES),$(BIN)/cfn-lint $(TEMPLATES))

build/checkov/.installed: Makefile | $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/checkov
	$(UV) pip install --quiet --python build/checkov/bin/python checkov==3.3.30
	@touch $@

build/bandit/.installed: Makefile | $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) build/bandit
	$(UV) pip install --quiet --python build/bandit/bin/python bandit==1.9.4
	@touch $@

.PHONY: scan
scan: build/bandit/.installed build/checkov/.installed package ## Scan the code (bandit) and all generated templates (cfn-lint, checkov)
	build/bandit/bin/bandit --quiet --recursive --severity-level medium app.py chalicelib infra vendor
	rm -rf build/templates
	@$(BIN)/python -m infra templates --out build/templates
	cp build/package/$(STAGE)/sam.json build/templates/
	$(BIN)/cfn-lint build/templates/*
	build/checkov/bin/checkov --config-file .checkov.yaml --directory build/templates

.PHONY: audit
audit: $(VENV)/.installed ## Ask for known vulnerabilities of everything that constraints.txt pins
	@$(BIN)/python -m infra.deploy.audit

$(UV):
	$(PYTHON) -m venv --clear build/uv
	build/uv/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9

.PHONY: lock
lock: $(UV) ## Pin in constraints*.txt what the requirements bring (ARGS=--upgrade: the newest of it)
	grep -hv '^-' requirements.txt requirements-dev.txt | $(UV) pip compile --quiet --universal \
		--python-version 3.11 --annotation-style line --custom-compile-command 'make lock' \
		--output-file constraints.txt $(ARGS) -
	@for part in $(CLIENTS) deployed; do \
		grep -v '^-' requirements-$$part.txt | $(UV) pip compile --quiet --universal \
		--python-version 3.11 --annotation-style line --custom-compile-command 'make lock' \
		--output-file constraints-$$part.txt $(ARGS) - || exit; done

ENVIRONMENTS := $(VENV) $(CLIENTS:%=build/%) build/clients-js build/hosts-js build/sdk/typescript build/deployed build/bandit build/checkov
# In the order in which they begin, two at once. Few of the first use two cores, or wait for the
# network, so they begin beside the longest. The environments are there before, or make would begin
# with what needs none.
IN_PR := test-slow check audit scan test-clients fuzz test-package test-deployed-short check-speed \
	e2e short-proof test-dynamodb test-oldest

.PHONY: pr
pr: ## What CI runs: every check and every test
	@$(MAKE) --no-print-directory -j2 $(ENVIRONMENTS:%=%/.installed)
	@$(MAKE) --no-print-directory -j2 $(IN_PR)
	@$(MAKE) --no-print-directory test ARGS='--clock drawn'

.PHONY: clean
clean: ## Remove the virtual environment and everything built
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
