# The same commands for people and for CI. Every target sets up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help demo test lint unit fuzz simulate faults week arm64 spark docs dist bench budgets mutation reproduce lock machine clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# Not compiled ahead: most modules are never imported, and the rest is compiled at first use.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# What a user has: the demo needs no more.
.venv/base: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --constraint constraints.txt --editable .
	touch $@

# Where requirements.lock was written for this system, each file's hash is checked; torch, which is
# not in it, and other systems go by constraints.txt. aeon, holidays, sktime and TSB-AD ask for older versions
# than they work with, so they come without what they name.
.venv/ready: .venv/base requirements.lock study/pyproject.toml
	if [ "$$(head -n 1 requirements.lock)" = "# $$($(BIN)/python tools/lock.py --here)" ]; then \
	    $(PIP) --require-hashes --no-deps --requirement requirements.lock; fi
	$(PIP) --constraint constraints.txt \
	    --editable '.[paper,openvino,train,plot,ray,excel,sql,live,prometheus,otlp,opcua,mcp,docs,dev]' --editable './study[xlstm]'
	$(PIP) --constraint constraints.txt --no-deps \
	    TSB-AD==1.5 aeon pyod sktime scikit-base numba llvmlite Deprecated holidays
	touch $@

demo: .venv/base  ## find the faults of a simulated plant; results in demo-results/
	$(BIN)/vace demo --out demo-results

test: lint machine unit  ## everything CI checks

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Bytecode is kept, or each of the many processes would compile torch and Ray again.
unit: .venv/ready
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n 4 --dist worksteal  # on two cores: many tests wait for servers

MINUTES ?= 5
fuzz: .venv/ready  ## damaged inputs of every kind, MINUTES=5; findings go to tests/fuzz/corpus
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m fuzz --minutes $(MINUTES)

simulate: .venv/ready  ## vace watch in simulated worlds, MINUTES=5; a broken one prints its seed
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m live.simulation --minutes $(MINUTES)

faults: .venv/ready  ## every system call of every kind of file fails once; counts in runs/nth-failure.csv
	mkdir -p runs && cd tests && ../$(BIN)/python -m faults.nth ../runs/nth-failure.csv

ENTITIES ?= 10000
week: .venv/ready  ## vace watch for seven days on a fake clock, ENTITIES=10000; curves in runs/week.csv
	mkdir -p runs && cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m live.simulation.week \
	  --entities $(ENTITIES) --out ../runs/week.csv

arm64: .venv/ready  ## golden scores on ARM64, emulated; needs root, debootstrap and qemu-user-static
	mkdir -p runs && benchmarks/arm64.sh $(BIN)/python runs/arm64

spark: .venv/ready  ## Spark on 200 keys; needs Java 17 or newer, installs pyspark (490 MB)
	$(PIP) --constraint constraints.txt --editable '.[spark]'
	OMP_NUM_THREADS=1 VACE_SPARK_KEYS=200 $(BIN)/pytest tests/spark

docs: .venv/ready  ## the site, in runs/site; needs no network once .venv is there
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: .venv/base  ## wheels, sdists and bill of materials in dist/, checked, installed and run
	$(PIP) --constraint constraints.txt --editable '.[release]'
	$(BIN)/python .ci/dist.py
	$(BIN)/python tools/bom.py dist/vace-ad.cdx.json

bench: .venv/ready  ## fit and score side by side with a naive version, under ten minutes
	$(BIN)/python benchmarks/speed.py --series MSL_id_7 SMAP_id_26 --out runs/bench

budgets: .venv/ready  ## false alarms on 49 kinds of clean processes beside what was allowed
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/budgets.py

mutation: .venv/ready  ## how many small changes of the core modules the tests notice
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/mutation.py

reproduce: .venv/ready  ## an hour of the study, on from where it stopped; needs the TSB-AD-M series
	$(BIN)/python study/benchmarks/reproduce.py

lock: .venv/ready  ## requirements.lock anew, after a change of constraints.txt
	$(BIN)/python tools/lock.py

# The browser and the servers that some tests talk to; without them those tests say so and skip.
PROGRAMS := chromium strace mosquitto prometheus prometheus-node-exporter prometheus-alertmanager
machine:
	@missing=; for p in $(PROGRAMS); do command -v $$p >/dev/null || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    (apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
	        --no-install-recommends install $$missing) >/dev/null 2>&1 \
	    || echo "could not install$$missing: tests that need them will skip"; \
	elif [ -n "$$missing" ]; then \
	    echo "not here:$$missing; tests that need them will skip"; fi

clean:  ## forget the environment and the caches
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-results
