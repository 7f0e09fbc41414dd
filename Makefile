# SPDX-License-Identifier: GPL-2.0-or-later
# What one does with a checkout. `make help` lists it.

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests demo test test-all test-build check format bench bench-calibrate campaign-exactness campaign-starts requirements clean

BIN := .venv/bin
# The main job's two kernels; any two kernel specs do, e.g. make demo BASE=image:PATH
BASE ?= deb:linux-image-cloud-amd64
OTHER ?= deb:linux-image-6.12-cloud-amd64
PYTEST_FLAGS ?= -n 2 --dist loadfile

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1|\2/p' Makefile | column -t -s '|'

setup:  ## install what is missing: system packages (apt) and .venv (uv)
	@scripts/setup

setup-tests: setup  ## what the tests need beside that: programs that read kdelta's files, a browser
	@scripts/setup-tests

demo: setup  ## the main job: compare two kernels, call by call
	$(BIN)/kdelta compare $(BASE) $(OTHER)

test: setup-tests  ## all tests but those that compile a kernel
	$(BIN)/pytest -m "not build" $(PYTEST_FLAGS)

# The tests that compile a kernel: a few minutes on an empty cache.
test-build: setup-tests
	$(BIN)/pytest -m build

test-all: test test-build  ## all tests

check: setup  ## ruff, mypy and the import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup  ## lay out the Python sources
	$(BIN)/ruff format

bench: setup  ## measure the figures that the README gives
	$(BIN)/python scripts/bench

bench-calibrate: setup  ## what a calibration of this host is worth, on generated and real programs
	$(BIN)/python scripts/proofs/calibration.py --json docs/calibration/programs.json

# Where records are kept, so that it goes on where it was, and how many runs.
OUT ?= build/exactness
TRIALS ?= 1000

campaign-starts: setup  ## look whether operations cost the same alone, and in any order
	$(BIN)/python scripts/proofs/starts.py $(OTHER) --out build/starts

campaign-exactness: setup  ## repeat traced runs under load and look whether all are equal
	$(BIN)/python scripts/proofs/exactness.py --out $(OUT) --trials $(TRIALS)

requirements:  ## pin the newest versions that pyproject.toml allows
	scripts/pin-requirements

clean:  ## remove what set-up and tests made here; caches under HOME stay
	rm -rf .venv .uv .tools build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis \
	    .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
