# Everything a stranger needs: `make run`, `make test`. Sets itself up in .venv; once that is warm,
# nothing here needs the network but `make compiled`, which sets up an environment more.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILED := .venv-compiled
READY := $(VENV)/.ready
WORKERS ?= 2
# Tests of one module share what they start, so each worker gets whole stretches of them. Real
# clusters and Spark run one after the other: side by side they starve each other.
BESIDE := $(BIN)/pytest -q -n $(WORKERS) --dist worksteal

# Without bytecode each worker compiles every test anew, and each process of a cluster all of ours.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test quick check clean setup docs compiled nightly

run: $(READY)
	@# A first look and no gate: where no release of Kafka can be had, it is at the reference cluster.
	$(BIN)/fencepost run scenarios/nightly/smoke.yaml --cluster auto

test: check
	@# Both parts in any case: what fails in the first must not hide the second.
	code=0; \
	$(BESIDE) -m "not (spark or kafka or alone)" || code=$$?; \
	$(BIN)/pytest -q -m "spark or kafka or alone" && exit $$code

quick: $(READY)
	$(BESIDE) --hypothesis-profile=quick -m "not (spark or kafka or alone or slow)"

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What takes a night: storms of eight hours in virtual time in both generations, five minutes of 5,000
# partitions, an hour of processes, and three hours on Kafka; and checks tried on short runs, which
# are changed in ways that may not accuse their clusters. The seed is the day's; runs that are not as
# expected do not stop the rest.
SEED ?= $(shell date +%Y%m%d)
NIGHT = $(BIN)/fencepost run

nightly: $(READY)
	code=0; \
	$(BIN)/fencepost selftest --metamorphic --seed $(SEED) || code=1; \
	$(BIN)/fencepost selftest --planted --seed $(SEED) || code=1; \
	$(NIGHT) storm --cluster simulated --time-limit 8h --seed $(SEED) || code=1; \
	$(NIGHT) reference-zookeeper-storm --cluster simulated-zookeeper --time-limit 8h --seed $(SEED) || code=1; \
	$(NIGHT) wide --cluster simulated --seed $(SEED) || code=1; \
	$(NIGHT) storm --cluster reference --time-limit 1h --seed $(SEED) || code=1; \
	$(NIGHT) storm --cluster simulated --time-limit 3m --runs 24 --seed $(SEED) || code=1; \
	$(NIGHT) combined-storm --cluster simulated --time-limit 3m --runs 24 --seed $(SEED) || code=1; \
	$(NIGHT) reference-zookeeper-storm --cluster simulated-zookeeper --time-limit 3m --runs 24 --seed $(SEED) || code=1; \
	$(NIGHT) storm --cluster simulated --time-limit 15m --runs 6 --seed $(SEED) || code=1; \
	$(NIGHT) combined-storm --cluster simulated --time-limit 15m --runs 6 --seed $(SEED) || code=1; \
	$(NIGHT) reference-zookeeper-storm --cluster simulated-zookeeper --time-limit 15m --runs 6 --seed $(SEED) || code=1; \
	$(NIGHT) storm --time-limit 1h --seed $(SEED) || code=1; \
	$(NIGHT) combined-storm --time-limit 1h --seed $(SEED) || code=1; \
	$(NIGHT) kafka-zookeeper-storm --time-limit 1h --seed $(SEED) || code=1; \
	exit $$code

# The compiled simulator, in an environment of its own: what stands in $(VENV) stays plain Python.
compiled: $(READY)
	rm -rf $(COMPILED) build/compiled
	HATCH_BUILD_HOOK_ENABLE_CUSTOM=1 $(BIN)/python -m hatchling build -t wheel -d build/compiled
	$(PYTHON) -m venv $(COMPILED)
	$(COMPILED)/bin/pip install --quiet --disable-pip-version-check build/compiled/*.whl
	@echo "$(COMPILED)/bin/fencepost has these sources compiled; make it again when they change."
	@echo "To go back: $(BIN)/fencepost; to be rid of it: rm -r $(COMPILED)"

docs: $(READY)
	$(BIN)/python -m fencepost.history.errors_page
	$(BIN)/python -m fencepost.checkers.anomalies_page
	$(BIN)/python -m fencepost.clusters.reference.pages
	$(BIN)/python -m fencepost.harness.trials.rules_page
	$(BIN)/python -m fencepost.harness.metamorphic.planted_page
	$(BIN)/python -m fencepost.nemesis.verbs.page
	$(BIN)/python -m fencepost.harness.api.page
	$(BIN)/fencepost track-record --write docs/track-record.md
	$(BIN)/fencepost track-record --findings --write docs/identities.md
	$(BIN)/fencepost claim --write docs/claims.md

setup: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fencepost needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V). Pass PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(READY)

clean:
	-test -x $(BIN)/fencepost && $(BIN)/fencepost clean
	rm -rf $(VENV) $(COMPILED) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
