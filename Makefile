# Everything sets itself up: `make run` and `make test` work on a fresh clone with Python 3.11+.

PYTHON ?= python3
PORT ?= 8501
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
PEERS_PIP := $(VENV)/peers/bin/python -m pip install --quiet --disable-pip-version-check
# A package index with another build of torch (for instance a CPU build), when yours has none.
TORCH_INDEX ?=
TORCH := $(shell sed -n 's/^\(torch==[0-9.]*\).*/\1/p' requirements.txt)

.PHONY: help run test test-slow test-newest test-repeat lint soak bench peers doctor local-model setup clean

help:
	@echo "make run [PORT=8501]   serve Counterpoint on this computer"
	@echo "make test              set up, lint, type-check and run the tests (10 minutes on two cores)"
	@echo "make test-slow         the other tests: browser, kills, training, real models, newest litellm"
	@echo "make test-repeat N=10  run the tests that depend on timing again and again on busy cores"
	@echo "make lint              ruff and mypy"
	@echo "make soak              100 kills during saves, and 20 annotators, for minutes"
	@echo "make bench [SETS=dir]  measure, and print what was measured"
	@echo "make peers SETS=dir    lay UQLM and SelfCheck-NLI beside the app, on the same rows"
	@echo "make doctor            say what works here"
	@echo "make local-model       add a small language model that runs on this computer (200 MB)"

run: setup
	@$(PY) -m components.app.launch --port $(PORT)

# A worker for each of two cores: threads of libraries beside them would only wait for each other.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadgroup

test: lint
	@$(PYTEST) -m "not slow"

test-slow: setup $(VENV)/.dev test-newest
	@$(PYTEST) -m slow

# Choose tests with TESTS="tests/store -k lease"; by default those that depend on timing.
test-repeat: setup $(VENV)/.dev
	@$(PY) -m tests.repeat $(or $(N),10) $(or $(TESTS),-m timing)

# Calls of models, with the newest litellm that is known to work beside the pinned one.
test-newest: setup $(VENV)/.dev $(VENV)/newest
	@PYTHONPATH=$(VENV)/newest $(PY) -c "import importlib.metadata as m; print('litellm', m.version('litellm'))"
	@PYTHONPATH=$(VENV)/newest $(PY) -m pytest -n 2 --dist loadgroup tests/llm/test_metering_over_http.py \
	  tests/llm/test_stream_end.py tests/llm/test_server_answers.py tests/llm/test_limits.py \
	  tests/agents/test_rosters.py tests/test_with_models.py

lint: setup $(VENV)/.dev
	@$(PY) -m ruff check . && $(PY) -m ruff format --check . && $(PY) -m mypy

soak: setup $(VENV)/.dev
	@COUNTERPOINT_SOAK=1 HYPOTHESIS_PROFILE=search $(PY) -m pytest -s --timeout 3600 \
	  tests/store/test_kills.py tests/store/test_queue.py

bench: setup $(VENV)/.dev
	@$(PY) -m tests.bench $(if $(SETS),--path $(SETS))

peers: setup $(VENV)/.local $(VENV)/.peers
	@$(PY) -m tests.bench.peers $(if $(SETS),--path $(SETS)) $(if $(ROWS),--rows $(ROWS))

doctor: setup
	@$(PY) -m core doctor

local-model: setup $(VENV)/.local

setup: $(VENV)/.packages
	@$(PY) -m core.llm.export && $(PY) -m core.baseline.encoder

# torch comes first: other packages would otherwise bring its newest build with gigabytes of CUDA.
$(VENV)/.packages: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Counterpoint needs Python 3.11 or newer; set PYTHON=python3.11"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "Installing packages (the first time; 3 GB on disk) ..."
	@$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	@$(PIP) -r requirements.txt
	@touch $@

$(VENV)/.local: $(VENV)/.packages requirements-local.txt
	@$(PIP) --no-deps -r requirements-local.txt
	@touch $@

$(VENV)/.peers: $(VENV)/.packages requirements-peers.txt
	@test -x $(VENV)/peers/bin/python || $(PYTHON) -m venv $(VENV)/peers
	@echo "Installing UQLM, in an environment of its own ..."
	@$(PEERS_PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	@$(PEERS_PIP) -r requirements-peers.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.packages $(VENV)/.local requirements-dev.txt requirements-ray.txt
	@$(PIP) -r requirements-dev.txt
	@touch $@

$(VENV)/newest: $(VENV)/.packages requirements-newest.txt
	@rm -rf $@ && $(PIP) --no-deps --target $@ -r requirements-newest.txt && touch $@

clean:
	rm -rf $(VENV) .models .pytest_cache .mypy_cache .ruff_cache .hypothesis
