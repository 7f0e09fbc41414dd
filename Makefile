# SPDX-License-Identifier: GPL-2.0-or-later
# What one does with a checkout. `make help` lists it.

.DEFAULT_GOAL := help
.PHONY: help setup setup-arm setup-arm64 setup-riscv64 setup-tests demo pin pins kernels test test-fast test-all test-outside test-guests test-builds proofs ci check docs man format bench campaign-exactness campaign-pairs campaign-properties campaign-starts campaign-clock-boots campaign-clock-faults campaign-left-work campaign-cases campaign-configs campaign-roots campaign-against campaign-programs campaign-guests campaign-corruptions campaign-faults campaign-hostile campaign-callers campaign-alone requirements clean

BIN := .venv/bin
# Each start of kdelta would compile all its modules.
unexport PYTHONDONTWRITEBYTECODE
# The main job's two kernels; any two kernel specs do, e.g. make demo BASE=image:PATH
BASE ?= deb:linux-image-cloud-amd64@bookworm
OTHER ?= deb:linux-image-6.12-cloud-amd64@bookworm
PYTEST_FLAGS ?= -n 2 --dist worksteal

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1|\2/p' Makefile | column -t -s '|'

setup:  ## install what is missing: system packages (apt, dnf, pacman) and .venv (uv)
	@scripts/setup

setup-arm setup-arm64 setup-riscv64:  ## besides, the cross compiler that kernels of that architecture are built with
	@scripts/setup $(@:setup-%=%)

setup-tests: setup  ## what `make test-all` needs besides: a browser, readers of exports (Go, Rust, Node.js)
	@scripts/setup-tests

demo: setup  ## the main job: compare two kernels, call by call
	$(BIN)/kdelta compare $(BASE) $(OTHER)
	@scripts/readme-kernels

QUICK := not slow and not outside and not campaign
NO_GUEST := $(QUICK) and not guest and not network and not build
# The kernels that `make test` boots, of one release whatever the host is of.
TEST_KERNELS := deb:linux-image-cloud-amd64@bookworm deb:linux-image-6.12-cloud-amd64@bookworm deb:linux-image-cloud-arm64:arm64@bookworm

# What guests are run by, so that tests that may not use the network have it.
pin: setup
	@$(BIN)/kdelta pin fetch >/dev/null
	@scripts/fetch-binutils

pins: pin
	@$(BIN)/kdelta pin fetch --arch arm --arch arm64 --arch riscv64 >/dev/null

kernels: setup
	@scripts/setup-kernels $(TEST_KERNELS)

test: kernels  ## the tests, with real kernels in QEMU: about 6 minutes on 2 cores
	$(BIN)/pytest -m "$(QUICK)" $(PYTEST_FLAGS)

test-fast: pin  ## most of them that need no guest, no network and no kernel build: 2 minutes
	$(BIN)/pytest --hypothesis-profile=quick -m "$(NO_GUEST) and not long" $(PYTEST_FLAGS)

# Each part goes on where it was ended, as long as no file of the checkout changes.
test-all: test test-outside test-guests test-builds  ## these, and all below that are no campaign

test-outside: setup-tests pins  ## slow tests without guests; readers of exports, a browser, downloads
	$(BIN)/pytest --hypothesis-profile=thorough -m "(slow or outside) and not guest and not campaign" --resume $(PYTEST_FLAGS)

test-guests: setup-tests pins  ## slow tests that boot guests
	$(BIN)/pytest -m "(slow or outside) and guest and not build and not campaign" --resume $(PYTEST_FLAGS)

# A real kernel's build uses all cores, so these tests run one at a time.
test-builds: setup-tests pins  ## tests that build real kernels and boot them
	$(BIN)/pytest -m "build and guest and not campaign" --resume

proofs: setup  ## check what scripts/proofs recorded in docs, as make test does, too
	$(BIN)/pytest tests/recorded

campaign-guests: setup-tests pins  ## tests in guests that take many minutes
	$(BIN)/pytest -m campaign -v $(PYTEST_FLAGS)

# What is checked for its length: all Python, also where a file's name does not say so.
PYTHON = $(shell git ls-files '*.py') $(shell git grep -lE '^\#!/usr/bin/env python3' scripts)

check: setup  ## ruff, mypy, the import rules, lengths, sizes, includes, words, samples, completion
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	@scripts/check-lengths $(PYTHON)
	@scripts/check-includes
	@scripts/check-sizes
	@scripts/check-words
	@scripts/check-docstrings
	@$(BIN)/python scripts/check-samples
	@$(BIN)/python scripts/make_words.py --check

# Warnings are errors: a link or an anchor that does not exist ends it.
docs: setup  ## build the documentation site into build/site, and the man pages
	@scripts/setup-docs
	@$(BIN)/python scripts/man_pages.py
	PYTHONPATH=src NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

man: setup  ## make man pages from the help, in build/man
	@$(BIN)/python scripts/man_pages.py

format: setup  ## lay out the Python sources
	$(BIN)/ruff format

# With what a caller may hand on: signals as ignored, no standard input, an empty home.
ci:  ## run .ci/run in a fresh clone of HEAD: do so before you submit
	@scripts/ci

bench: setup  ## measure the figures of docs/results.md
	$(BIN)/python scripts/bench

# How many trials are made; those that have a record are not made again.
TRIALS ?= 1000
PAIRS ?= 20

campaign-starts: setup  ## look whether operations cost the same alone, and in any order
	$(BIN)/python scripts/proofs/starts.py

campaign-clock-boots: setup  ## boot two kernels 300 times each and judge their times: verdicts are right
	$(BIN)/python scripts/proofs/clock_boots.py

campaign-clock-faults: setup  ## guests that hang, panic or stand still while they are timed, 20 times each
	$(BIN)/python scripts/proofs/clock_faults.py

campaign-left-work: setup  ## planted work of other tasks is all counted, by two ways
	$(BIN)/python scripts/proofs/left_work.py

campaign-cases: setup  ## questions that are asked in public: each command has the right words and code
	$(BIN)/python scripts/proofs/public_cases.py

campaign-configs: setup  ## what public config files are taken for; FILES=folder has OWNER/NAME clones
	$(BIN)/python scripts/proofs/public_configs.py --again --clones $(FILES)

campaign-roots:  ## `make demo` and `make test` in clean roots of Debian 12 and 13: all pass, equal figures (root)
	scripts/proofs/clean_roots build/roots bookworm trixie

campaign-against: setup  ## count the system calls of ls and sqlite3 of two releases, and of a loop, by strace, too
	$(BIN)/python scripts/proofs/against.py

campaign-programs: setup  ## run 20 programs under two kernels: output as on the host, counts repeat
	$(BIN)/python scripts/proofs/programs.py

campaign-callers:  ## run `make test` as other callers do: other users, locales, signals, load, order (root)
	scripts/proofs/callers build/callers

campaign-alone: setup  ## run each file of `make test` alone, with an empty cache
	MARKS="$(QUICK)" scripts/proofs/alone build/alone

campaign-properties: setup  ## try 1,000 new random examples of each property test
	$(BIN)/pytest --hypothesis-profile=random -m "$(NO_GUEST)" $(PYTEST_FLAGS)

campaign-exactness: setup  ## repeat traced runs under load and look whether all are equal
	$(BIN)/python scripts/proofs/exactness.py --traced $(TRIALS)

campaign-pairs: setup  ## repeat runs of all pairs on 2 and 4 CPUs under load: all are equal
	$(BIN)/python scripts/proofs/exactness.py --pairs 40

campaign-corruptions: setup  ## damage files of cache and store: each is named, and gone after a repair
	$(BIN)/python scripts/proofs/corruptions.py

campaign-faults: setup  ## kill, cut the power, fill the disk, do all at once: nothing is lost or left (root)
	$(BIN)/python scripts/proofs/faults.py --trials $(PAIRS)

campaign-hostile: setup  ## hostile files, arguments and programs: refused or read, nothing else touched
	$(BIN)/python scripts/proofs/hostile.py

requirements:  ## pin the newest versions that pyproject.toml allows
	scripts/pin-requirements

clean:  ## remove what set-up and tests made here; caches under HOME stay
	rm -rf .venv .uv .tools build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis \
	    .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
