# Tasks of development; `make` lists them.
.DEFAULT_GOAL := help
.PHONY: help test units tests alltests check format lint types imports smoke quick bench docs clean

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

bench:  ## Time sums over rows beside JAX
	uv run --group bench python benchmarks/bench_glm.py

docs:  ## Build documentation, API reference and published results as one site in build/docs
	uv run python -m dpmc_papers.site build/docs

clean:  ## Remove caches of tools; results stay
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
