# One command a check. `make test` is what a change must pass; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?= /usr/bin/python3
# how many test files run at once; most of their time is waiting for guests
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
PROTOS := $(wildcard protos/hvsvc/v1/*.proto)
PROTOC = $(BIN)/python -m grpc_tools.protoc -I protos --plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy \
	--plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc

# To build the virtualenv; to run domains (QEMU driver, private libvirtd, virsh); to build the test guest.
PACKAGES := git python3-venv python3-dev gcc pkg-config libvirt-dev \
	libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients qemu-system-x86 qemu-utils \
	cpio kmod xz-utils
# As root, libvirt's QEMU driver wants this user to exist, whoever QEMU then runs as; on Debian 12 this package makes it.
ifeq ($(shell id -u),0)
ifeq ($(shell getent passwd libvirt-qemu),)
PACKAGES += libvirt-daemon-system
endif
endif

.PHONY: help deps venv lock lint types proto proto-check test test-nova test-nova-long demo bench clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps: ## install the Debian packages that are missing (12 and 13)
	@missing=$$(for p in $(PACKAGES); do \
	  [[ $$(dpkg-query -W -f='$${Status}' $$p 2>/dev/null) == *"ok installed" ]] || echo $$p; done | xargs); \
	if [[ -n $$missing ]]; then \
	  echo "deps: installing: $$missing"; \
	  $(SUDO) apt-get update -q; \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing; \
	elif ! apt-cache show busybox-static >/dev/null 2>&1; then \
	  echo "deps: reading the package lists, which the test guest is built from"; $(SUDO) apt-get update -q; \
	fi

venv: $(STAMP) ## the virtualenv, from the lock, with the package itself editable

$(STAMP): pyproject.toml requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock: ## resolve requirements.lock afresh (one file for every Python from 3.11 on)
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install -q uv
	$(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
	  --extra daemon --extra dev pyproject.toml -o requirements.lock
	rm -r $(VENV)-lock

lint: venv ## ruff, and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: venv ## strict mypy
	$(BIN)/mypy

proto: venv ## regenerate the committed stubs
	$(PROTOC) --python_out=. --grpc_python_out=. --mypy_out=. --mypy_grpc_out=. $(PROTOS)

# Compared with the newest release; before the first one, with the last commit.
proto-check: venv ## buf lint, buf breaking, and stubs that match the protos
	$(BIN)/buf lint
	@ref=$$(git describe --tags --abbrev=0 2>/dev/null || echo HEAD); \
	if git cat-file -e "$$ref:protos/hvsvc/v1" 2>/dev/null; then \
	  echo "buf breaking --against $$ref"; $(BIN)/buf breaking --against ".git#ref=$$ref"; \
	else echo "buf breaking: no protos at $$ref, nothing to compare"; fi
	@out=$$(mktemp -d); trap 'rm -r "$$out"' EXIT; \
	$(PROTOC) --python_out="$$out" --grpc_python_out="$$out" --mypy_out="$$out" --mypy_grpc_out="$$out" $(PROTOS); \
	for f in "$$out"/hvsvc/v1/*; do diff -u "hvsvc/v1/$${f##*/}" "$$f"; done; \
	for f in hvsvc/v1/*_pb2*; do test -e "$$out/$$f" || { echo "$$f has no proto"; exit 1; }; done; \
	echo "stubs match the protos"

test: deps venv lint types proto-check ## every check and every test that needs no Nova
	$(BIN)/pytest -m "not nova" -n $(WORKERS) --dist loadfile --no-loadscope-reorder

test-nova: deps venv ## the tests on a real Nova (tests/lab)
	$(BIN)/pytest -m "nova and not nova_long"

test-nova-long: deps venv ## those that take many minutes more: parts of the cloud stopped, resizing, Placement, random acts
	$(BIN)/pytest -m nova_long

demo: deps venv ## the whole job on a small real guest, in under a minute
	packaging/demo/run.sh

bench: deps venv ## ratios against the raw calls, as JSON
	$(BIN)/python -m tests.bench.run

clean: ## remove what the targets made
	rm -rf $(VENV) .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist ./*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -r {} +
