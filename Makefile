# Everything runs in .venv, which each target creates by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --editable
NAME ?= table1
ARGS ?=

.PHONY: demo docs test test-baselines test-browser test-gpu test-long lint bench paper clean

# The demonstration needs the library alone; the first import compiles what it needs by itself.
$(VENV)/library: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) . --no-compile
	touch $@

$(VENV)/development: $(VENV)/library
	$(PIP) ".[dev]"
	touch $@

$(VENV)/benchmarks: $(VENV)/development
	$(PIP) ".[bench]"
	touch $@

demo: $(VENV)/library
	$(BIN)/hcnet demo --output demo-output --force

# A few processes: more would only compile the same at once.
PARALLEL := -n logical --maxprocesses 4

# All tests of a file in the same process, because they share what was learned.  The CUDA engine is
# tested in Numba's simulator, which must be switched on before Numba is there (5: none was asked for).
test: $(VENV)/development
	$(BIN)/python -m pytest $(PARALLEL) --dist loadfile $(ARGS)
	NUMBA_ENABLE_CUDASIM=1 $(BIN)/python -m pytest tests/cuda $(PARALLEL) $(ARGS) || [ $$? = 5 ]

# The same tests, and larger ones, on an NVIDIA GPU.
test-gpu: $(VENV)/development
	$(BIN)/python -m pytest tests/cuda $(ARGS)

test-long: $(VENV)/development
	$(BIN)/python -m pytest -m long $(ARGS)
	HCNET_EXAMPLES=20 $(BIN)/python -m pytest tests/properties $(PARALLEL) --timeout 3600 $(ARGS)

# The rivals in the benchmarks, some of which need JAX.
test-baselines: $(VENV)/benchmarks
	$(BIN)/python -m pytest tests/baselines $(ARGS)

# Needs Chromium beside Python: Debian's package chromium.
test-browser: $(VENV)/development
	$(BIN)/python -m pytest tests/browser $(ARGS)

lint: $(VENV)/development
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/development
	$(BIN)/python -m mkdocs build --strict
	@echo "The documentation is in site/index.html."

bench: $(VENV)/benchmarks
	$(BIN)/python -m benchmarks.$(NAME) $(ARGS)

paper: $(VENV)/benchmarks
	$(BIN)/python -m benchmarks.paper $(ARGS)

clean:
	rm -rf $(VENV) .cache demo-output bench-output site build dist .pytest_cache .mypy_cache .ruff_cache .numba_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
