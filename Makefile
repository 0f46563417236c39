# Every target builds the virtual environment that it needs, under .venvs/, and reuses it.
PYTHON ?= python3
ENV = $(PYTHON) tools/env.py
DEV = .venvs/dev/bin
PYTEST = bin/python -m pytest --timeout=1200
# The release that every change is tested with, those on which make test-full runs each server, and
# those on which it runs the servers of make test.
RELEASE = 0.5.19
OTHER_RELEASES = 0.5.17 0.5.23
BETWEEN = 0.5.18 0.5.20 0.5.21 0.5.22

# One thread per process: on few cores, torch's own threads only get in each other's way.
export OMP_NUM_THREADS = 1
export HF_HUB_OFFLINE = 1

.PHONY: help demo test test-full lint docs format clean

help:
	@echo "make demo       the main job, start to end: validate, render, serve, compare (about 5 minutes)"
	@echo "make test       all tests on SGLang $(RELEASE) (under 25 minutes)"
	@echo "make test-full  the same, and the server tests on SGLang $(OTHER_RELEASES) $(BETWEEN)"
	@echo "make lint       ruff and mypy --strict"
	@echo "make docs       build the documentation into site/ and fail on any warning"
	@echo "make format     let ruff format and mend what it can"
	@echo "make clean      remove environments, builds and caches"

demo:
	$(ENV) demo
	.venvs/demo/bin/python tools/demo.py

test:
	$(ENV) sglang-$(RELEASE)
	KUNLUN_ADAPT_TEST_SGLANG=$(RELEASE) .venvs/sglang-$(RELEASE)/$(PYTEST) \
		--require torch,server,upstream -m "not full" $(ARGS)

# One release after the other: two servers at a time would starve each other on two cores. The soak
# of half an hour is run on the first.
test-full:
	$(ENV) sglang-$(RELEASE)
	KUNLUN_ADAPT_TEST_SGLANG=$(RELEASE) .venvs/sglang-$(RELEASE)/$(PYTEST) \
		--require torch,server,upstream $(ARGS)
	set -e; for release in $(OTHER_RELEASES); do \
		$(ENV) sglang-$$release; \
		KUNLUN_ADAPT_SOAK_MINUTES=0 KUNLUN_ADAPT_TEST_SGLANG=$$release \
			.venvs/sglang-$$release/$(PYTEST) --require torch,server -m "server or torch" $(ARGS); \
	done
	set -e; for release in $(BETWEEN); do \
		$(ENV) sglang-$$release; \
		KUNLUN_ADAPT_TEST_SGLANG=$$release .venvs/sglang-$$release/$(PYTEST) \
			--require torch,server -m "(server or torch) and not full" $(ARGS); \
	done

lint:
	$(ENV) dev
	$(DEV)/ruff check .
	$(DEV)/ruff format --check .
	$(DEV)/mypy --strict kunlun_adapt

docs:
	$(ENV) docs
	NO_MKDOCS_2_WARNING=1 .venvs/docs/bin/mkdocs build --strict

format:
	$(ENV) dev
	$(DEV)/ruff check --fix .
	$(DEV)/ruff format .

clean:
	rm -rf .venvs build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
