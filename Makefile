# The README's two commands are `make demo` and `make test`; both set everything up in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WEB := web/node_modules/.package-lock.json

.PHONY: demo test check bench types format clean

demo: $(READY)
	$(BIN)/clearhead demo

test: check
	$(BIN)/pytest -n 2

check: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(READY)
	$(BIN)/python -m bench.stories
	$(BIN)/python -m bench.load
	$(BIN)/python -m bench.serve
	$(BIN)/python -m bench.load_test
	$(BIN)/python -m bench.context
	$(BIN)/python -m bench.fuzz --files 100000
	$(BIN)/python -m bench.faults --kills 200
	$(BIN)/python -m bench.exact
	$(BIN)/pip install --quiet --constraint constraints.txt 'transformer-lens==4.3.0'
	$(BIN)/python -m bench.inspect

# The page's types, from the server's own description of what it takes and gives.
types: $(READY) $(WEB)
	$(BIN)/python -m clearhead.server.document > $(VENV)/openapi.json
	cd web && npm run --silent types

format: $(READY) $(WEB)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	cd web && npm run --silent format

# Made again whenever what it installs from changes; marked only once everything is in.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

# What the page is built and checked with.
$(WEB): web/package.json web/package-lock.json
	cd web && npm ci
	touch $(WEB)

clean:
	rm -rf web/node_modules src/clearhead/views/page $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
