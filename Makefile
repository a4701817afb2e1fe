# The same commands for people and for CI. Every target sets up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint unit bench reproduce browser clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[train,plot,ray,excel,sql,xlstm,live,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps TSB-AD==1.5
	touch $@

demo: .venv/ready  ## find the faults of a simulated plant; results in demo-results/
	$(BIN)/vace demo --out demo-results

test: lint unit  ## everything CI checks

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

bench: .venv/ready  ## fit and score side by side with a naive version, under ten minutes
	$(BIN)/python benchmarks/speed.py --series MSL_id_7 SMAP_id_26 --out runs/bench

reproduce: .venv/ready  ## what of the paper's study fits into an hour; needs the TSB-AD-M series
	$(BIN)/python benchmarks/reproduce.py

browser:  ## Chromium for the report's tests (Debian, as root)
	command -v chromium >/dev/null || \
	    (apt-get -qq update && apt-get -qq -y --no-install-recommends install chromium)

clean:  ## forget the environment and the caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-results
