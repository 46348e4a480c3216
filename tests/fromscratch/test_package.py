import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import pytest
import torch

from glassformer import fromscratch

FILES = sorted(module.name for module in pkgutil.iter_modules(fromscratch.__path__))
MODULES = [importlib.import_module(f"glassformer.fromscratch.{file}") for file in FILES]
OBJECTS = [
    pytest.param(thing, module, id=f"{module.__name__.split('.')[-1]}.{name}")
    for module in MODULES
    for name, thing in vars(module).items()
    if getattr(thing, "__module__", None) == module.__name__ and not name.startswith("_")
]


@pytest.mark.parametrize(("thing", "module"), OBJECTS)
def test_every_example_prints_what_it_says_whatever_the_seed(thing, module):
    # The docstring is read directly: doctest's own finder passes over wrapped functions.
    example = doctest.DocTestParser().get_doctest(
        inspect.getdoc(thing), dict(vars(module)), thing.__name__, module.__file__, 0
    )
    assert example.examples
    for seed in (0, 1):
        torch.manual_seed(seed)
        runner = doctest.DocTestRunner(verbose=False)
        report = []
        runner.run(example, out=report.append, clear_globs=False)
        assert runner.failures == 0, "".join(report)


def test_every_file_is_in_the_reading_order():
    listed = [line for line in fromscratch.__doc__.splitlines() if line.startswith("    ")]
    named = [name for line in listed for name in line.strip().split("  ")[0].split(", ")]
    assert sorted(named) == FILES


def test_every_public_object_is_exported_except_what_needs_einops():
    objects = {param.values[0].__name__ for param in OBJECTS}
    assert objects - set(fromscratch.__all__) == {"MultiHeadEinops"}
    assert set(fromscratch.__all__) <= objects


def test_the_package_does_not_import_einops():
    code = "import sys, glassformer.fromscratch; sys.exit('einops' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_form_of_attention_returns_out_and_weights_in_this_order():
    torch.manual_seed(0)
    x = torch.rand(2, 5, 12)
    visible = torch.ones(5, 5, dtype=torch.bool)
    results = [
        fromscratch.attention(x, x, x),
        fromscratch.SingleHeadParameters(12, 12)(x),
        fromscratch.SingleHeadLinear(12, 12)(x),
        fromscratch.MaskedSingleHead(12, 12)(x, visible),
        fromscratch.AdditiveMaskSelfAttention(12, 12)(x),
        fromscratch.MultiHeadParameters(12, 3)(x),
        fromscratch.MultiHeadLinear(12, 3)(x),
        fromscratch.MultiHeadEinsum(12, 3)(x),
        fromscratch.MultiHeadCausalBuffer(12, 3, max_len=5)(x, x, x),
    ]
    for out, weights in results:
        assert out.shape == (2, 5, 12)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
