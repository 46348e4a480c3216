"""The package as a whole: what importing it loads, that its examples run, what it makes public."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import glassformer as gf

MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(gf.__path__, "glassformer.")
    if not m.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_importing_loads_nothing_heavy() -> None:
    """Only torch, numpy and jaxtyping come along; drawing, web and model libraries stay out."""
    code = (
        "import sys, torch; before = set(sys.modules); import glassformer;"
        "new = {m.split('.')[0] for m in set(sys.modules) - before}; print(*sorted(new))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"rich", "matplotlib", "fastapi", "transformers", "typer", "einops", "triton", "pandas"}
    assert not heavy & set(loaded)
    assert "glassformer" in loaded


def test_public_names_exist_and_are_sorted_out() -> None:
    assert len(set(gf.__all__)) == len(gf.__all__)
    for name in gf.__all__:
        assert getattr(gf, name) is not None
    assert callable(gf.attention)


def test_no_module_hides_behind_a_function() -> None:
    """`import glassformer.x.y` always gives the module of that name."""
    for name in MODULES:
        parent, _, last = name.rpartition(".")
        module = importlib.import_module(name)
        assert getattr(importlib.import_module(parent), last) is module, name


def test_every_module_says_what_it_is_for() -> None:
    for name in MODULES:
        assert importlib.import_module(name).__doc__, name
