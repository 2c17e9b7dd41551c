# Everything a person or CI runs. Needs python3 (>= 3.11), git and a network; the rest is set up here.
.DEFAULT_GOAL := help
.PHONY: help setup demo test check chaos storm load dashboards model bench capacity recall format lock image-check clean

PYTHON ?= python3
# A file at a time, three on two cores: most of the suite waits for processes. Files in the order of their names, in
# which those that take longest come first.
JOBS ?= 3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SYNC = VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv pip sync --quiet --require-hashes requirements/bootstrap.txt requirements/dev.txt

help:  ## Say what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

setup: $(READY)  ## Create .venv with every locked dependency

# uv is installed by pip with hashes; uv then installs the rest with hashes, in seconds.
$(READY): requirements/bootstrap.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "foreword needs Python 3.11 or newer, this is %s; set PYTHON=" % sys.version.split()[0])'
	@echo "setting up $(VENV) (once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@$(SYNC) 2>/dev/null || $(SYNC) --system-certs  # behind a proxy with a certificate of its own
	@touch $@

demo: $(READY)  ## Run the whole thing on sample data and show the result (DATA=dir for another dataset)
	@$(BIN)/python -m worker demo $(if $(DATA),--data "$(DATA)")

test: $(READY)  ## Run the whole suite
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(READY)  ## Lint, format, types, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

chaos: $(READY)  ## Torture the real thing with random faults (ARGS="--seed 1 --runs 5 --seconds 120")
	@$(BIN)/python tests/chaos/run.py $(ARGS)

storm: $(READY)  ## Have everybody's brief due at once while processes die (ARGS="--subscriptions 20000 --seconds 180")
	@$(BIN)/python tests/storm/run.py $(ARGS)

load: $(READY)  ## Run an account like production's against the real system (ARGS="--seconds 1800 --projects 3000")
	@$(BIN)/python -m benchmarks.load $(ARGS)

dashboards: $(READY)  ## Ask a real Prometheus (one on PATH) every query of dashboards and alerts, while all they are about happens
	@$(BIN)/python -m pytest -q tests/acceptance/dashboards.py $(ARGS)

model: $(READY)  ## Search the protocol's model, kill its mutants, print the shortest traces
	@$(BIN)/python tests/protocol.py $(ARGS)

bench: $(READY)  ## Print ratios, side by side in one run
	@$(BIN)/python -m benchmarks $(ARGS)

capacity: $(READY)  ## Say what an account needs (ARGS="--projects 50000 --edits 20", or "--measure --save FILE")
	@$(BIN)/python -m benchmarks.capacity $(ARGS)

recall: $(READY)  ## Measure what a bundle is worth (ARGS="--data DIR --plot recall.svg")
	@$(BIN)/python -m benchmarks.recall $(ARGS)

format: $(READY)  ## Let ruff format and fix what it can
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

# UV_CUSTOM_COMPILE_COMMAND keeps local paths and options out of the files' headers.
lock: $(READY)  ## Compile requirements/*.txt from pyproject.toml, with hashes
	@for group in bootstrap app embedded model flower traces dev; do \
	  UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --no-emit-find-links $(UPGRADE) \
	    --group $$group -o requirements/$$group.txt || exit 1; \
	done

image-check:  ## Run the image's install in a clean directory, without an engine (EXTRAS="flower model traces")
	@deploy/check.sh $(or $(EXTRAS),flower)

clean:  ## Remove what was made here (environment, caches, demo data)
	@rm -rf $(VENV) .foreword .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
