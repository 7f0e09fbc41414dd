# SPDX-License-Identifier: GPL-2.0-or-later
# What one does with a checkout. `make help` lists it.

.DEFAULT_GOAL := help
.PHONY: help setup setup-tests demo test test-fast test-all check docs format bench bench-calibrate campaign-alike campaign-exactness campaign-properties campaign-starts campaign-round-trips requirements clean

BIN := .venv/bin
# The main job's two kernels; any two kernel specs do, e.g. make demo BASE=image:PATH
BASE ?= deb:linux-image-cloud-amd64
OTHER ?= deb:linux-image-6.12-cloud-amd64
PYTEST_FLAGS ?= -n 2 --dist loadfile

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1|\2/p' Makefile | column -t -s '|'

setup:  ## install what is missing: system packages (apt) and .venv (uv)
	@scripts/setup

setup-tests: setup  ## what `make test-all` needs besides: a browser, readers of exports (Go, Rust, Node.js)
	@scripts/setup-tests

demo: setup  ## the main job: compare two kernels, call by call
	$(BIN)/kdelta compare $(BASE) $(OTHER)

QUICK := not slow and not outside

test: setup  ## the tests, with real kernels in QEMU: 10 minutes on 2 cores
	$(BIN)/pytest -m "$(QUICK)" $(PYTEST_FLAGS)

test-fast: setup  ## those of them that need no guest, no network and no kernel build: 2 minutes
	$(BIN)/pytest --hypothesis-profile=quick -m "$(QUICK) and not guest and not network and not build" $(PYTEST_FLAGS)

# A real kernel's build uses all cores, so these tests run one at a time.
test-all: setup-tests  ## every test: with outside programs, many guests and builds of kernels
	$(BIN)/pytest --hypothesis-profile=thorough -m "not (build and guest)" $(PYTEST_FLAGS)
	$(BIN)/pytest -m "build and guest"

# What is checked for its length: all Python, also where a file's name does not say so.
PYTHON = $(shell git ls-files '*.py') $(shell git grep -lE '^\#!/usr/bin/env python3' scripts)

check: setup  ## ruff, mypy, the import rules, lengths, words
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	@scripts/check-lengths $(PYTHON)
	@scripts/check-words

# Warnings are errors: a link or an anchor that does not exist ends it.
docs: setup  ## build the documentation site into build/site
	@scripts/setup-docs
	PYTHONPATH=src NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

format: setup  ## lay out the Python sources
	$(BIN)/ruff format

bench: setup  ## measure the figures of docs/results.md
	$(BIN)/python scripts/bench

bench-calibrate: setup  ## what a calibration of this host is worth, on generated and real programs
	$(BIN)/python scripts/proofs/calibration.py --json docs/calibration/programs.json

# Where records are kept, so that it goes on where it was, and how many runs.
OUT ?= build/exactness
TRIALS ?= 1000
# How many pairs are compared.
PAIRS ?= 20

campaign-starts: setup  ## look whether operations cost the same alone, and in any order
	$(BIN)/python scripts/proofs/starts.py $(OTHER) --out build/starts

campaign-round-trips: setup  ## measure the round trips in three independent ways
	$(BIN)/python scripts/proofs/round_trips.py

campaign-alike: setup  ## compare kernels with themselves, changed without effect: no firm word
	$(BIN)/python scripts/proofs/alike.py --pairs $(PAIRS)

campaign-properties: setup  ## try 1,000 new random examples of each property test
	$(BIN)/pytest --hypothesis-profile=random -m "$(QUICK) and not guest and not network and not build" $(PYTEST_FLAGS)

campaign-exactness: setup  ## repeat traced runs under load and look whether all are equal
	$(BIN)/python scripts/proofs/exactness.py --out $(OUT) --trials $(TRIALS)

requirements:  ## pin the newest versions that pyproject.toml allows
	scripts/pin-requirements

clean:  ## remove what set-up and tests made here; caches under HOME stay
	rm -rf .venv .uv .tools build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis \
	    .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
