# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
# torch is the user's own; any build will do. Installed first, by itself, so that nothing else chooses it.
TORCH ?= torch==2.13.0
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin

.PHONY: help demo test check unit fuzz acceptance audit bench scorecard clean

help:
	@echo "make demo               server, two agents and a real job that hangs; ARGS=--list for all cases"
	@echo "make test               lint, types and every test"
	@echo "make check              lint and types only"
	@echo "make unit               the tests that need no torch job and no browser"
	@echo "make fuzz               the API asked a thousand times per operation and kind of token"
	@echo "make acceptance         the real jobs only"
	@echo "make scorecard          every program, beside torch's own tools; writes docs/scorecard.md"
	@echo "make audit              known weaknesses of the installed packages; asks the network"
	@echo "make bench              every measurement, one table each"

$(VENV)/.torch:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(TORCH)
	@touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.torch
	$(BIN)/pip install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.torch
	$(BIN)/pip install --quiet --editable '.[dev]'
	sh tests/support/packages.sh $(BIN)
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/hangwatch demo $(ARGS)

# Most tests wait: for a server, a browser, a hang. Three processes share them. They start our
# programs hundreds of times, each of which would compile our modules anew.
test: check
	$(BIN)/python -m compileall -q agent server
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses 3 --no-loadscope-reorder $(ARGS)

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/pytest -m "not acceptance and not web" $(ARGS)

# Each operation of the API asked a thousand times, with each kind of token.
fuzz: $(VENV)/.dev
	FUZZ_EXAMPLES=1000 $(BIN)/pytest --hypothesis-profile search \
		tests/integration/api/test_every_operation.py $(ARGS)

acceptance: $(VENV)/.dev
	$(BIN)/pytest -m acceptance $(ARGS)

$(VENV)/.scorecard: pyproject.toml $(VENV)/.dev
	$(BIN)/pip install --quiet --editable '.[dev,scorecard]'
	@touch $@

# An hour; ARGS="--from-json FILE" keeps the rows, and a run that was cut short goes on from there.
scorecard: $(VENV)/.scorecard
	$(BIN)/python -m bench.scorecard $(ARGS)

# Not part of `make test`: the answer changes from day to day, and without the network there is none.
audit: $(VENV)/.dev
	$(BIN)/pip-audit --local --skip-editable $(ARGS)

bench: $(VENV)/.dev
	@for program in bench/*.py; do echo "== $$program"; $(BIN)/python $$program || exit 1; done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
