# Tasks of development; `make` lists them.
.DEFAULT_GOAL := help
.PHONY: help test units tests alltests check format lint types imports smoke quick rerun bench docs
.PHONY: library wheel sbom clean

T ?= tests

help:  ## List the tasks
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

test:  ## Run one file or folder of tests: make test T=tests/rows
	uv run pytest -n 0 -q $(T)

units:  ## Run all tests but those of the workflow and of distributions
	uv run pytest -q --ignore=tests/workflow --ignore=tests/statistical

tests:  ## Run all tests but the slow ones
	uv run pytest

alltests:  ## Run all tests
	uv run pytest --all

check: lint types imports  ## Check formatting, style, types and imports

format:  ## Format the code
	uv run ruff check --fix .
	uv run ruff format .
	uv run snakefmt Snakefile workflow

lint:  ## Check formatting and style
	uv run ruff check .
	uv run ruff format --check .
	uv run snakefmt --check Snakefile workflow

types:  ## Check types
	uv run mypy

imports:  ## Check that no import runs upward or in a circle
	uv run lint-imports

smoke:  ## Run the workflow on small data
	uv run snakemake --cores all --config scale=smoke

quick:  ## Make every figure on thinner grids
	uv run snakemake --cores all

rerun:  ## Make published runs again, drawn at random, and compare their numbers
	uv run python -m dpmc_papers rerun --runs 20

bench:  ## Time sums over rows beside JAX
	uv run --group bench python benchmarks/bench_glm.py

docs:  ## Build documentation, API reference and published results as one site in build/docs
	uv run python -m dpmc_papers.site build/docs

library:  ## Run the tests of the library against its wheel: make library PYTHON=3.13
	.ci/library $(PYTHON) $(RESOLUTION)

wheel:  ## Build wheel and source distribution in dist, and check their metadata
	uv build --clear
	uvx twine check --strict dist/*

sbom:  ## List the wheel's dependencies and their licences in build/sbom.json, as CycloneDX
	uv venv --quiet --clear build/bare
	uv pip install --quiet --python build/bare dist/*.whl
	uvx --from cyclonedx-bom cyclonedx-py environment --output-file build/sbom.json build/bare

clean:  ## Remove caches of tools; results stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
