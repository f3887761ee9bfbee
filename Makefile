# Everything runs in .venv, which each target creates by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NAME ?= table1
ARGS ?=

.PHONY: demo docs test test-browser test-gpu test-long lint bench paper clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: $(VENV)/installed
	$(BIN)/hcnet demo --output demo-output --force

# A few processes: more would only compile the same at once.
PARALLEL := -n logical --maxprocesses 4

# All tests of a file in the same process, because they share what was learned.  The CUDA engine is
# tested in Numba's simulator, which must be switched on before Numba is there (5: none was asked for).
test: $(VENV)/installed
	$(BIN)/python -m pytest $(PARALLEL) --dist loadfile $(ARGS)
	NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m pytest tests/cuda $(PARALLEL) $(ARGS) || [ $$? = 5 ]

# The same tests, and larger ones, on an NVIDIA GPU.
test-gpu: $(VENV)/installed
	$(BIN)/python -m pytest tests/cuda $(ARGS)

test-long: $(VENV)/installed
	$(BIN)/python -m pytest -m long $(ARGS)
	HCNET_EXAMPLES=20 $(BIN)/python -m pytest tests/properties $(PARALLEL) --timeout 3600 $(ARGS)

# Needs Chromium beside Python: Debian's package chromium.
test-browser: $(VENV)/installed
	$(BIN)/python -m pytest tests/browser $(ARGS)

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/installed
	$(BIN)/python -m mkdocs build --strict
	@echo "The documentation is in site/index.html."

bench: $(VENV)/installed
	$(BIN)/python -m benchmarks.$(NAME) $(ARGS)

paper: $(VENV)/installed
	$(BIN)/python -m benchmarks.paper $(ARGS)

clean:
	rm -rf $(VENV) .cache demo-output bench-output site build dist .pytest_cache .mypy_cache .ruff_cache .numba_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
