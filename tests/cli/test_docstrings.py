"""Every example in the docstrings of the command line, the drawings and the languages runs."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

from glassformer import cli, languages, render

MODULES = [
    importlib.import_module(f"{package.__name__}.{module.name}")
    for package in (cli, languages, render)
    for module in pkgutil.iter_modules(package.__path__)
]
EXAMPLES = [
    pytest.param(thing, module, id=f"{module.__name__.removeprefix('glassformer.')}.{name}")
    for module in MODULES
    for name, thing in vars(module).items()
    if getattr(thing, "__module__", None) == module.__name__
    and ">>>" in (inspect.getdoc(thing) or "")
]


@pytest.mark.parametrize(("thing", "module"), EXAMPLES)
def test_the_example_prints_what_it_says(thing, module):
    # The docstring is read directly: doctest's own finder passes over wrapped functions.
    example = doctest.DocTestParser().get_doctest(
        inspect.getdoc(thing), dict(vars(module)), thing.__name__, module.__file__, 0
    )
    report = []
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(example, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_there_are_examples():
    assert len(EXAMPLES) >= 12
