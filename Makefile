# Every target sets up what it needs; `make` alone explains them.

PYTHON ?= python3
PORT ?= 5055

# VENV=none uses PYTHON's environment and installs nothing.
VENV := .venv
ifeq ($(VENV),none)
PY := $(PYTHON)
else
PY := $(VENV)/bin/python
CREATED := $(VENV)/.created
INSTALLED := $(VENV)/.installed
endif
CLI := $(PY) -m benchmarks
FLOWER_ENV := $(VENV)/flower
FLOWER_PINS := benchmarks/performance/requirements-flower.txt

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Any other goal is a benchmark's id, or `sweep-` and an id, so a new benchmark needs no line here. The goals come from
# the command line: a pattern rule would also try to make this file and every prerequisite.
TARGETS := help setup encoder list data campaign demo rehearse test test-all lint format bench ui report site readme lock
FILES := environment.yml requirements.lock $(VENV)/%
IDS := $(filter-out $(TARGETS) $(FILES),$(MAKECMDGOALS))
SWEEPS := $(filter sweep-%,$(IDS))
RUNS := $(filter-out $(SWEEPS),$(IDS))
.PHONY: $(TARGETS) $(RUNS) $(SWEEPS)

# A variable that is set becomes a flag. Its text is not expanded (`value`), and is quoted for the shell.
quote = '$(subst ','\'',$(1))'
flag = $(if $(strip $(value $(2))),$(1) $(call quote,$(value $(2))))
FILTERS = $(call flag,--tasks,TASKS) $(call flag,--methods,METHODS) $(call flag,--seeds,SEEDS)
PLACES = $(call flag,--data-dir,DATA_DIR) $(call flag,--results-dir,RESULTS_DIR)
SELECTION = $(FILTERS) $(PLACES) $(call flag,--backbone,BACKBONE)
WHERE = $(call flag,--executor,EXECUTOR) $(call flag,--ray-address,RAY_ADDRESS)
OPTIONS = $(SELECTION) $(call flag,--workers,WORKERS) $(WHERE) $(ARGS)

# Check the folder before anything is downloaded.
ifneq ($(filter-out help setup encoder list test test-all lint format ui readme lock,$(MAKECMDGOALS)),)
ifneq ($(strip $(value DATA_DIR)),)
ifneq ($(shell test -d $(call quote,$(value DATA_DIR)) && echo there),there)
$(error DATA_DIR=$(value DATA_DIR): expected a folder with your datasets, found none; `make data` without DATA_DIR says what belongs there)
endif
endif
endif

# A variable on the command line that nothing here reads is a typing error, such as TASK for TASKS.
VARIABLES := SCALE TASKS METHODS SEEDS DATA_DIR RESULTS_DIR BACKBONE WORKERS EXECUTOR RAY_ADDRESS ARGS PORT PYTHON VENV \
  FLOWER INSTALLED
FOREIGN := PIP_% HF_% HUGGINGFACE_% TRANSFORMERS_% TOKENIZERS_% MLFLOW_% CUDA_% NVIDIA_% OMP_% MKL_% KMP_% TORCH_% \
  PYTORCH_% RAY_% SLURM_% PYTHON% MAKE% MPL% CI %_PROXY %_proxy SHELL
GIVEN := $(foreach name,$(.VARIABLES),$(if $(filter command%,$(origin $(name))),$(name)))
UNKNOWN := $(firstword $(filter-out $(VARIABLES) $(FOREIGN),$(GIVEN)))
ifneq ($(UNKNOWN),)
UPPER := $(shell echo $(call quote,$(UNKNOWN)) | tr a-z- A-Z_)
NEAR := $(firstword $(filter $(UPPER) $(UPPER)S $(UPPER:S=) $(UPPER)_DIR,$(VARIABLES)))
$(error unknown variable $(UNKNOWN)$(if $(NEAR),: did you mean $(NEAR)?,; the variables are $(VARIABLES)))
endif

# Lines of `make help`.
define HELP
make demo             FedSplitBERT, one task of table III, generated data: about a minute, no download
make list             list all tables and figures with their finished cells
make <benchmark>      run a table or figure, e.g. make fedsplitbert-table3 SCALE=lite TASKS=mrpc
make <paper>          run all of its tables and figures, e.g. make fedfreezebert SCALE=lite
make data             list the datasets in DATA_DIR, or where to download them
make sweep-<benchmark>  tune settings on validation data; ARGS=--adopt saves the best as the
                      table's defaults; ARGS="--grid …": other values
make campaign         run the evidence campaign (docs/protocol.md); resumes; ARGS="--hours 2"
make rehearse         run one step of each method and model of SCALE=paper on random texts: minutes
make report           show what has been run; ARGS=--tables: with all tables and claims
make site             write everything as web pages: results/site/index.html
make ui               open the runs in MLflow
make bench            measure speed and memory; ARGS=engine: one part; FLOWER=1: with Flower
make test             run the tests that take under two seconds each; ARGS="tests/fedsim -x": for pytest
make test-all         run every test; ARGS="-m slow": only the slow ones
make lint | format    check | format the code
make setup            only install, into $(VENV)
make encoder          download the small encoder of the lite scale (84 MB); BACKBONE=all-mpnet-base-v2 or
                      multilingual-e5-small: another one; runs fetch what they need, too
make readme           render the README files from the committed records
make lock             pin the newest versions in requirements.lock and environment.yml

Variables of make <benchmark>, <paper> and sweep-<benchmark>; report takes the first seven, other targets the folders:
  SCALE=demo (default)|lite|literal|paper   TASKS=mrpc,rte   METHODS=fedavg,fedsplitbert
  SEEDS=3 (how many) or 5-10   DATA_DIR=folder   RESULTS_DIR=folder
  BACKBONE=folder or hub name   WORKERS=2 (in parallel)
  EXECUTOR=serial|processes|slurm|ray   RAY_ADDRESS=head-node:6379 (docs/clusters.md)
  ARGS="other options"   PORT=5055 (ui)   PYTHON=python3.12 (for the first set-up)
  VENV=none (use PYTHON's environment, install nothing)

Time on a network and device: $(CLI) time fedsplitbert-table3 --scale lite --network 3g --device phone
MLFLOW_TRACKING_URI is respected.
Without a GPU, PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu avoids a large download.
endef
export HELP

help:
	@echo "$$HELP"

# ---- set-up ----------------------------------------------------------------------------------------------------

setup: $(INSTALLED)

encoder: $(INSTALLED)
	@$(CLI) encoder $(call flag,,BACKBONE)

ifneq ($(VENV),none)
# The stamp is written last: an interrupted attempt leaves an incomplete environment.
$(CREATED):
	@command -v $(call quote,$(PYTHON)) >/dev/null || { \
	  echo "set-up needs Python 3.11 or newer, and '$(PYTHON)' does not exist here: name one with PYTHON=…" >&2; exit 2; }
	@$(call quote,$(PYTHON)) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "set-up needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) -V 2>&1): name another with PYTHON=…" >&2; \
	  exit 2; }
	@$(call quote,$(PYTHON)) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' cannot make environments: install its venv module (Debian, Ubuntu: apt install python3-venv)" >&2; \
	  exit 2; }
	@$(call quote,$(PYTHON)) -m venv $(VENV)
	@touch $@

$(INSTALLED): pyproject.toml requirements.lock | $(CREATED)
	@echo "Installing PyTorch and the other packages of pyproject.toml into $(VENV): this takes some minutes, once."
	@$(PY) -m pip install -q --disable-pip-version-check -c requirements.lock -e '.[dev]'
	@touch $@
endif

# Flower has a separate environment, as it pins other versions of this project's packages. FLOWER=1 creates it.
$(FLOWER_ENV)/.installed: $(FLOWER_PINS) | $(CREATED)
	@echo "Installing Flower with a separate PyTorch into $(FLOWER_ENV): this takes some minutes, once."
	@$(PY) -m venv $(FLOWER_ENV)
	@$(FLOWER_ENV)/bin/python -m pip install -q --disable-pip-version-check -r $(FLOWER_PINS)
	@touch $@

lock: $(CREATED)
	@echo "Resolving the newest versions that pyproject.toml accepts: about a minute."
	@$(PY) tools/lock.py

# ---- benchmarks ------------------------------------------------------------------------------------------------

$(RUNS): $(INSTALLED)
	@$(CLI) run $(call quote,$@) $(call flag,--scale,SCALE) $(OPTIONS)

$(SWEEPS): $(INSTALLED)
	@$(CLI) sweep $(call quote,$(@:sweep-%=%)) $(call flag,--scale,SCALE) $(OPTIONS)

list: $(INSTALLED)
	@$(CLI) list $(call flag,--scale,SCALE) $(call flag,--results-dir,RESULTS_DIR) $(ARGS)

data: $(INSTALLED)
	@$(CLI) data $(PLACES) $(ARGS)

campaign: $(INSTALLED)
	@$(CLI) campaign $(PLACES) $(call flag,--workers,WORKERS) $(ARGS)

# It shows the paper's effect: with many short rounds averaging works despite skewed labels, and on this task clients
# gain by local layers. The user's options come last, so they win.
DEMO = --tasks sst2 --methods overall-majority,local-majority,fedavg,fedsplitbert \
  --set training.rounds=10 --set training.local_epochs=2 --set training.learning_rate=1e-3

demo: $(INSTALLED)
	$(if $(filter-out demo,$(SCALE)),$(error the demo has only the demo scale; for SCALE=$(SCALE) use make fedsplitbert-table3))
	@$(CLI) run fedsplitbert-table3 --scale demo $(DEMO) $(OPTIONS)
	@echo "Look at every run, round by round: make ui"

rehearse: $(INSTALLED)
	@$(CLI) rehearse $(ARGS)

report: $(INSTALLED)
	@$(CLI) report $(call flag,--scale,SCALE) $(SELECTION) $(ARGS)

site: $(INSTALLED)
	@$(CLI) site $(call flag,--scale,SCALE) $(call flag,--results-dir,RESULTS_DIR) $(ARGS)

# The committed records, not those in the results folder.
COMMITTED := $(wildcard benchmarks/*/records)
SHOWN = --scale lite $(COMMITTED:%=--records %) --pictures docs/pictures $(PLACES)

readme: $(INSTALLED)
	@$(CLI) front --scale lite $(COMMITTED:%=--records %) --readme README.md --picture docs/pictures/front.png
	@$(foreach paper,$(patsubst benchmarks/%/audit.toml,%,$(wildcard benchmarks/*/audit.toml)),\
	  $(CLI) report $(paper) --readme benchmarks/$(paper)/README.md $(SHOWN) &&) true

ui: $(INSTALLED)
	@$(CLI) ui --port $(call quote,$(PORT)) $(call flag,--results-dir,RESULTS_DIR) $(ARGS)

bench: $(INSTALLED) $(if $(FLOWER),$(FLOWER_ENV)/.installed)
	@$(CLI) bench $(PLACES) $(ARGS)

# ---- the code itself -------------------------------------------------------------------------------------------

test: $(INSTALLED)
	@$(PY) -m pytest -q -n auto --dist worksteal -m 'not slow' $(ARGS)

test-all: $(INSTALLED)
	@$(PY) -m pytest -q -n auto --dist worksteal $(ARGS)

lint: $(INSTALLED)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: $(INSTALLED)
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .
