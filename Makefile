# One command per chore; each sets up what it needs, and a second call is quick.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test lint bench slow clean

demo: $(STAMP)
	$(BIN)/agcd demo

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 -m "not slow"

slow: $(STAMP)
	$(BIN)/python -m pytest -q -m slow

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/tail.py
	$(BIN)/python benchmarks/strategies.py

# torch first and alone: the pin in constraints.txt picks the CPU build where one is offered.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[demo,onnx,dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) agcd-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
