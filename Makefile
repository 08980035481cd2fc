# Every target makes what it needs: a virtual environment in the checkout, the package in it, then its job.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# A range would take the newest build, which on Linux brings gigabytes of CUDA.
TORCH  ?= 2.13.0
# Processes of the tests: one more than cores, because some of them wait for others. Their threads must not wait by spinning
# (OpenBLAS knows no other way, and has one thread), and what one of them has compiled is kept for the others.
WORKERS ?= $(or $(shell nproc 2>/dev/null | awk '{ print $$1 < 4 ? $$1 + 1 : 4 }'),2)

.PHONY: demo test check bench docs reference clean help

help:
	@echo "make demo    the embedded data set, end to end, in under a minute"
	@echo "make test    the test suite (RELAE_DATA=folder adds the tests on real data sets, NEURAL=1 those that need torch,"
	@echo "             FAULTS=1 those that kill and attack many processes, FULL=1 many more examples of all)"
	@echo "make check   ruff, mypy --strict, import-linter"
	@echo "make bench   the benchmarks of docs/benchmarks.md (an hour or so; BENCH=inverse|peers|large for one of them)"
	@echo "make reference   the pages of the docs about commands and HTTP, made from the program"
	@echo "make docs    the documentation as a web site, in site/"

demo: $(VENV)/.core
	$(BIN)/relae demo

test: $(VENV)/.dev $(if $(NEURAL),$(VENV)/.neural)
	$(if $(FAULTS),RELAE_FAULTS=1) $(if $(FULL),RELAE_FULL=1,OPENBLAS_NUM_THREADS=1) OMP_WAIT_POLICY=passive \
		PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(BENCH)

reference: $(VENV)/.dev
	$(BIN)/python -m tools.reference

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "relae needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.neural: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[neural]' 'torch==$(TORCH)'
	@touch $@ $(VENV)/.core

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) site build dist
