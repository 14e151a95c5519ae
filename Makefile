# Each target sets up what it needs in .venv by itself; a stamp file there says that it is done.
# Another interpreter: make PYTHON=python3.12 test. From scratch: make clean.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -qq
SETUP  := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-full test-portable coverage bench lint clean

help:
	@echo "make demo       watch agents that forget and agents that do not, in half a minute"
	@echo "make test       lint, then the quick tests"
	@echo "make test-full  lint, then the tests with many more examples and the slow ones"
	@echo "make coverage   what the tests of crashlab's modules reach"
	@echo "make test-portable  the tests that need neither Linux nor root nor strace"
	@echo "make bench      how fast the lab is on this machine, as ratios"
	@echo "make lint       ruff and mypy"
	@echo "make clean      remove .venv and everything else that was made"

demo: $(VENV)/.core
	@$(BIN)/crashlab demo

# Being measured makes Python three times slower. So only the tests of the modules say what is covered, in a target of
# their own: not the tests of whole checks, of real disks and of other programs.
WHOLE := tests/quality tests/casebook tests/use_cases tests/longrun tests/crashcourse tests/exercises tests/packaging \
         tests/versions tests/benchmarks \
         $(wildcard tests/test_*.py) \
         tests/crashlab/test_real_disk.py tests/crashlab/disk/test_validation.py

test: lint
	@$(BIN)/python -m pytest -n 2

coverage: $(VENV)/.dev
	@$(BIN)/python -m pytest -n 2 --cov --cov-report=term $(WHOLE:%=--ignore=%)

test-full: lint
	@CRASHLAB_TEST_PROFILE=full $(BIN)/python -m pytest -n 2

test-portable: $(VENV)/.dev
	@$(BIN)/python -m pytest -n 2 -m portable

bench: $(VENV)/.core
	@$(BIN)/python -m benchmarks

lint: $(VENV)/.dev
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check --quiet || { echo "next: $(BIN)/ruff format" >&2; exit 1; }
	@$(BIN)/mypy

clean:
	rm -rf $(VENV) .crashlab .hypothesis .mypy_cache .pytest_cache .ruff_cache .coverage .coverage.* build dist
	find lab tests lessons exercises -name __pycache__ -prune -exec rm -rf {} +

# Nothing is installed twice for the same pyproject.toml and constraints.txt.

$(VENV)/.core: $(SETUP) | $(VENV)/.python
	@echo "setting up $(VENV): crashlab" >&2
	@$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: $(SETUP) | $(VENV)/.python
	@echo "setting up $(VENV): crashlab, its tests, ruff and mypy" >&2
	@$(PIP) install --constraint constraints.txt --editable '.[test,lint,agents]'
	@touch $@ $(VENV)/.core

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "no '$(PYTHON)' here: install Python 3.11 or newer, or say which one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "crashlab needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1)." >&2; \
	  echo "next: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make a virtual environment: its venv module is missing." >&2; \
	  echo "next: on Debian or Ubuntu, apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@
