# `make demo` installs Clearhead alone into .venv; `make test` adds the developer dependencies.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
WEB_BUILD := web/node_modules/.package-lock.json
WEB := web/node_modules/.ready
PAGE := src/clearhead/page/site/index.html
PAGE_SOURCES := $(shell find web -type f -not -path 'web/node_modules/*' -not -path 'web/tests/*')
NPM := $(shell command -v npm)
PYTEST := $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --durations=10 $(PYTEST_OPTIONS)

export PYTHONDONTWRITEBYTECODE = # keep bytecode: tests start many processes

.PHONY: demo test test-all check bench types docs format clean
.NOTPARALLEL: # installing also builds the page

demo: $(INSTALLED) $(PAGE)
	$(BIN)/clearhead demo

# Everything that guards correctness; takes minutes.
test: check $(PAGE)
	@# The page's unit tests run alongside, in the time that the workers spend waiting.
	$(if $(NPM),(cd web && npm test --silent) & page=$$!;) $(PYTEST) -m "not slow and not clock" $(if $(NPM),; tests=$$?; wait $$page && exit $$tests)

# The rest as well: every view in a real browser, executed notebooks and docs, wheels, long labs, and speed.
test-all: test
	$(PYTEST) -m "slow and not clock"
	$(BIN)/pytest $(PYTEST_OPTIONS) -m clock

check: $(READY) $(if $(NPM),$(WEB))
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache
	$(if $(NPM),,@echo "npm is not installed: the page is not checked")
	@# mypy runs alongside the page's checks: each uses one core.
	$(BIN)/mypy & mypy=$$!; page=0; $(if $(NPM),(cd web && npm run --silent check) || page=1;) wait $$mypy && exit $$page

bench: $(READY)
	$(BIN)/python -m bench.stories
	$(BIN)/python -m bench.load
	$(BIN)/python -m bench.serve
	$(BIN)/python -m bench.load_test
	$(BIN)/python -m bench.context
	$(BIN)/python -m bench.explorer
	$(BIN)/python -m bench.saved_page smollm2
	$(BIN)/python -m bench.fuzz --files 100000
	$(BIN)/python -m bench.faults --kills 200
	$(BIN)/python -m bench.exact
	$(BIN)/python -m bench.labs
	$(BIN)/python -m bench.classroom
	$(BIN)/pip install --quiet --constraint constraints-dev.txt 'transformer-lens==4.3.0'
	$(BIN)/python -m bench.inspect

# The page's types, generated from the server's OpenAPI document.
types: $(READY) $(WEB)
	$(BIN)/python -m clearhead.server.openapi > $(VENV)/openapi.json
	cd web && npm run --silent types

# The docs site, into build/site; a warning, such as one about a dead link, is an error.
docs: $(READY) $(PAGE)
	$(BIN)/python -m tools.reference docs/reference
	$(BIN)/clearhead publish docs/live.html --one-file --numbers float16
	$(BIN)/zensical build --strict

format: $(READY) $(WEB)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	cd web && npm run --silent format

# Clearhead without extras. Python compiles each module when it is first imported, which is faster than compiling all of them.
$(INSTALLED): pyproject.toml constraints.txt hatch_build.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable .
	touch $(INSTALLED)

# Clearhead with every extra and the developer tools, in the same environment.
$(READY): pyproject.toml constraints.txt constraints-dev.txt hatch_build.py | $(if $(NPM),$(WEB))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints-dev.txt --editable '.[dev]'
	touch $(INSTALLED) $(READY)

# The page, when its sources have changed. Without npm, pip fetches Node.js for the build.
$(PAGE): $(PAGE_SOURCES) | $(if $(NPM),$(WEB_BUILD))
	$(if $(NPM),cd web && npm run --silent build,$(BIN)/pip install --quiet --no-deps --editable .)

# The npm packages that build the page.
$(WEB_BUILD): web/package.json web/package-lock.json
	cd web && npm ci --omit=dev --ignore-scripts --no-audit --no-fund
	touch $(WEB_BUILD)

# The npm packages that check and test the page, too.
$(WEB): web/package.json web/package-lock.json
	cd web && npm ci --ignore-scripts --no-audit --no-fund
	touch $(WEB_BUILD) $(WEB)

clean:
	rm -rf web/node_modules src/clearhead/page/site src/clearhead/page/bundles docs/reference docs/live.html .cache $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
