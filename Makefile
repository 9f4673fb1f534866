# SPDX-License-Identifier: Apache-2.0
# Each target first installs what it needs (tools/setup.sh); a second run finds that done. Another Python than
# python3: make PYTHON=python3.12 test

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow bench wheel asan fuzz audit lint format clean
python := .venv/bin/python

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: ## record a trail, learn it, fire through it, compare; writes out/
	@tools/setup.sh
	@.venv/bin/hedgerow demo

lint: ## ruff, pyright and the order of the layers
	@tools/setup.sh lint test
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m pyright
	.venv/bin/lint-imports --no-cache

test: lint ## lint, then the default test suite
	$(python) -m pytest

test-slow: ## the longer studies
	@tools/setup.sh test
	$(python) -m pytest -m slow

bench: ## measure the speed against raw Embree and trimesh
	@tools/setup.sh bench
	$(python) benchmarks/run.py

wheel: ## a self-contained wheel in dist/, tested in an empty environment
	@tools/setup.sh wheel
	@tools/wheel.sh

asan: ## the tests of the native core under AddressSanitizer and UBSan
	@tools/setup.sh test
	@tools/asan.sh

MINUTES ?= 10
fuzz: ## every reader against damaged files, for MINUTES=10; keeps what it finds
	@tools/setup.sh test fuzz
	$(python) tools/fuzz.py --minutes $(MINUTES)

audit: ## look the dependencies up among known vulnerabilities; needs the network
	@tools/setup.sh
	@$(python) -m pip install --quiet pip-audit 2>/dev/null || true
	$(python) tools/audit.py

format: ## rewrite the code in the project's format
	@tools/setup.sh lint
	$(python) -m ruff check --fix .
	$(python) -m ruff format .
	.venv/bin/clang-format -i cpp/*/*.cpp cpp/*/*.hpp

clean: ## remove everything that make made, .venv too
	rm -rf .venv build dist out src/hedgerow/_core.pyi .hypothesis .pytest_cache .ruff_cache
