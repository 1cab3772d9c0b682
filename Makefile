# The README's two commands are `make demo` and `make test`; both set everything up in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check bench format clean

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
	$(BIN)/python -m bench.context
	$(BIN)/python -m bench.fuzz --files 100000
	$(BIN)/python -m bench.faults --kills 200
	$(BIN)/python -m bench.exact
	$(BIN)/pip install --quiet --constraint constraints.txt 'transformer-lens==4.3.0'
	$(BIN)/python -m bench.inspect

format: $(READY)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Made again whenever what it installs from changes; marked only once everything is in.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
