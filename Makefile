# Two commands do everything on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
# One thread a process: the tests and the trials share the cores by processes.
export OMP_NUM_THREADS := 1

.PHONY: install demo test slow bench lint format gallery clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,lint]'
	touch $@

demo: install
	$(BIN)/ablate run experiments/quickstart.yaml
	$(BIN)/ablate report experiments/quickstart.yaml

test: install
	$(BIN)/pytest -n 2 --dist worksteal -m 'not slow'

slow: install
	$(BIN)/pytest -m slow

bench: install
	$(BIN)/python -m tests.benchmarks.overhead
	$(BIN)/python -m tests.benchmarks.many
	$(BIN)/python -m tests.benchmarks.report

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

gallery: install
	for name in quickstart factorial digits copying mqar positions norm_placement seq2seq_baselines seq2seq_equal_time aa; do \
	  $(BIN)/ablate run experiments/$$name.yaml && \
	  $(BIN)/ablate report experiments/$$name.yaml --out reports/$$name || exit 1; \
	done

clean:
	rm -rf .venv runs
