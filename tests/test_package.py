"""The package as a whole: what importing it loads, that its examples run, what it makes public."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import glassformer as gf

MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(gf.__path__, "glassformer.")
    if not m.name.endswith("__main__")
)

PUBLIC = [
    "ALiBi",
    "Ablate",
    "AffineLens",
    "Bias",
    "Causal",
    "Config",
    "Documents",
    "Explicit",
    "ExplicitBias",
    "Freeze",
    "GlassformerError",
    "Knockout",
    "Mask",
    "Packed",
    "Padding",
    "Patch",
    "Prefix",
    "Recipe",
    "RecordingWarning",
    "RelativeBuckets",
    "Scale",
    "Sequences",
    "Skip",
    "Steer",
    "Swap",
    "Trace",
    "Window",
    "add_lora",
    "attention",
    "attention_lse",
    "attention_statistics",
    "attention_tile",
    "attention_weights",
    "attribute",
    "bisect",
    "build",
    "cell_arithmetic",
    "change",
    "circuits",
    "compare",
    "embed",
    "explain",
    "fill",
    "fit_jacobian_lens",
    "from_torch_mha",
    "generate",
    "head_effects",
    "head_scores",
    "load",
    "load_changes",
    "load_lora",
    "logit_lens",
    "memory_budget",
    "merge_lora",
    "quantize",
    "record",
    "rerun",
    "roles",
    "row_arithmetic",
    "save",
    "save_changes",
    "save_lora",
    "stream",
    "sweep",
    "train",
    "train_lens",
    "translate",
    "watch",
    "watch_routing",
    "why",
]


@cache
def find_examples(module: ModuleType) -> list[doctest.DocTest]:
    return [each for each in doctest.DocTestFinder().find(module) if each.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_importing_loads_nothing_heavy() -> None:
    """Every public name needs torch, numpy, jaxtyping and safetensors; the rest stays out."""
    code = (
        "import sys, torch; before = set(sys.modules); from glassformer import *;"
        "new = {m.split('.')[0] for m in set(sys.modules) - before}; print(*sorted(new))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"rich", "matplotlib", "fastapi", "transformers", "typer", "einops", "triton", "pandas"}
    assert not heavy & set(loaded)
    assert "glassformer" in loaded


def test_the_public_api() -> None:
    """Every public name, once and literally; whoever adds or removes one changes this list."""
    assert gf.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(gf, name) is not None


def test_the_lazy_table_the_imports_for_editors_and_all_agree() -> None:
    tree = ast.parse(Path(gf.__file__).read_text("utf-8"))
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = {
        alias.name: node.module
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imports == gf._HOMES
    assert sorted(imports) == gf.__all__
    assert set(dir(gf)) >= set(gf.__all__)


def test_importing_the_package_or_listing_it_does_not_load_torch() -> None:
    code = (
        "import sys, glassformer as gf; dir(gf); gf.GlassformerError; gf.errors.ConfigError;"
        "assert not {'torch', 'numpy', 'jaxtyping'} & set(sys.modules);"
        "gf.functional.attention; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_does_not_exist_is_named() -> None:
    with pytest.raises(AttributeError, match="module 'glassformer' has no attribute 'atention'"):
        gf.atention


def test_no_module_hides_behind_a_function() -> None:
    """`import glassformer.x.y` always gives the module of that name."""
    for name in MODULES:
        parent, _, last = name.rpartition(".")
        module = importlib.import_module(name)
        assert getattr(importlib.import_module(parent), last) is module, name


def test_every_module_says_what_it_is_for() -> None:
    for name in MODULES:
        assert importlib.import_module(name).__doc__, name


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name: str) -> None:
    """`test_examples_in_docstrings_run` runs those that doctest finds; the others run here.

    doctest's own finder passes over decorated functions such as `watch`.
    """
    thing = getattr(gf, name)
    text = inspect.getdoc(thing) or ""
    assert ">>>" in text, name
    module = importlib.import_module(thing.__module__)
    if any(each.name == f"{module.__name__}.{name}" for each in find_examples(module)):
        return
    example = doctest.DocTestParser().get_doctest(text, dict(vars(module)), name, None, 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=report.append)
    assert runner.failures == 0, "".join(report)
