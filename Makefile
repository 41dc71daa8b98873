# Everything one needs to run, test and measure Shardlab. Needs Python 3.11 or newer and git; the rest is set up in .venv.
#
#   make run      set up, then the app on http://localhost:8501 (PORT=9000 for another port)
#   make test     set up, then every test
#   make bench    set up, then every benchmark, one JSON line each
#   make setup    everything in .venv, nothing started
#   make clean    forget what was set up (run records in data/ stay)

PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# The first interpreter that is new enough; `make PYTHON=/path/to/python3 setup` names one.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)

.PHONY: setup run test bench check clean chromium postgres nvml-stub

setup: $(VENV)/.ready-dev

run: $(VENV)/.ready
	exec $(BIN)/python -m streamlit run app.py --server.port $(PORT) --server.showEmailPrompt false

# Two processes: one begins with the browser's tests, the other with the rest. Many wait for real processes: one alone leaves half of two cores idle.
# A test that fails is tried once more, and the summary names it as RERUN: such a line is a fault to be found. Without make, pytest shows a failure at once.
test: $(VENV)/.ready-dev chromium postgres nvml-stub
	$(BIN)/python -m pytest --numprocesses 2 --no-loadscope-reorder --reruns 1 --rerun-show-tracebacks -raR

bench: $(VENV)/.ready-dev chromium nvml-stub
	@for script in tests/benchmarks/[a-z]*.py; do $(BIN)/python $$script --json || exit 1; done

check: $(VENV)/.ready-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

chromium: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.browser.chromium

# A PostgreSQL for the tests of the store; they start one of their own.
postgres: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.postgres

# A libnvidia-ml.so.1 without a GPU, in C: what the NVML sampler is tested against.
nvml-stub: $(VENV)/.ready-dev
	@$(BIN)/python -m tests.nvml.build

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Shardlab needs Python 3.11 or newer; none was found. Name one: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up in $(VENV) with $$($(PYTHON) --version); this takes a few minutes, once"
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); sh .ci/debian python3-venv && $(PYTHON) -m venv $(VENV); }

# The stamps are newer than the pins they stand for: a second call has nothing to do.
$(VENV)/.ready: requirements.txt | $(BIN)/python
	$(PIP) -r requirements.txt
	@touch $@

$(VENV)/.ready-dev: requirements-dev.txt requirements-dev-bare.txt $(VENV)/.ready
	$(PIP) -r requirements-dev.txt
	$(PIP) --no-deps -r requirements-dev-bare.txt
	@touch $@
