# Three commands for a newcomer: `make demo`, `make test`, `make ui`. `make help` lists the rest.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test lint ui clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

install: $(STAMP)  ## create .venv and install the exact versions of constraints.txt

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Landoracle needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Say which: make PYTHON=/path/to/python3.11 demo")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,dev]'
	touch $@

demo: $(STAMP)  ## the whole chain on the embedded landscapes (about a quarter of an hour on 2 cores), into runs/demo/
	$(BIN)/landoracle demo

test: $(STAMP)  ## linters, types, import rules and the whole test suite
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 2 --dist loadfile --durations 25

lint: $(STAMP)  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

ui: $(STAMP)  ## the Dagster UI on 127.0.0.1:3000, over the same storage as the demo
	$(BIN)/landoracle ui

clean:  ## remove runs and Dagster's storage (asks nothing)
	rm -rf runs .dagster
