# The same commands for people and for CI. Every target sets up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint unit docs bench reproduce machine clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    --constraint constraints.txt --editable '.[train,plot,ray,excel,sql,xlstm,live,docs,dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps TSB-AD==1.5
	touch $@

demo: .venv/ready  ## find the faults of a simulated plant; results in demo-results/
	$(BIN)/vace demo --out demo-results

test: lint machine unit  ## everything CI checks

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2

docs: .venv/ready  ## the site, in runs/site; needs no network once .venv is there
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: .venv/ready  ## fit and score side by side with a naive version, under ten minutes
	$(BIN)/python benchmarks/speed.py --series MSL_id_7 SMAP_id_26 --out runs/bench

reproduce: .venv/ready  ## what of the paper's study fits into an hour; needs the TSB-AD-M series
	$(BIN)/python benchmarks/reproduce.py

# The browser and the servers that some tests talk to; without them those tests say so and skip.
PROGRAMS := chromium mosquitto prometheus prometheus-node-exporter prometheus-alertmanager
machine:
	@missing=; for p in $(PROGRAMS); do command -v $$p >/dev/null || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
	        --no-install-recommends install $$missing) >/dev/null 2>&1 \
	    || echo "could not install$$missing: tests that need them will skip"; \
	elif [ -n "$$missing" ]; then \
	    echo "not here:$$missing; tests that need them will skip"; fi

clean:  ## forget the environment and the caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-results
