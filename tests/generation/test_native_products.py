"""Products in C beside the definition: any number of rows, whole vectors and what is left over.

On x86 also for processors with fewer instructions than this one.
"""

import ctypes
import platform
from ctypes import addressof

import pytest
import torch

from closeness import assert_close, assert_same
from glassformer.compilation import STACK
from glassformer.functional.native_library import load_library
from glassformer.functional.quantized import quantize_rows
from glassformer.generation import native_structures as structures

X86 = platform.machine() in ("x86_64", "AMD64")
VARIANTS = {"native": ()} | (
    {"AVX2": ("-mno-avx512f",), "no VNNI": ("-mno-avx512vnni",)} if X86 else {}
)
SHAPES = [(37, 20), (131, 129), (64, 512), (5, 7), (67, 200), (4, 1), (33, 2052)]  # out, in
ROWS = [*range(1, 15), 25, 70]


@pytest.fixture(params=VARIANTS, scope="module")
def library(request) -> ctypes.CDLL:
    library = load_library(STACK._replace(flags=(*STACK.flags, *VARIANTS[request.param])))
    if library is None:
        pytest.skip("needs a C compiler")
    structures.declare_functions(library)
    return library


def describe(
    weight: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor
) -> structures.Linear:
    n_out, n_in = weight.shape
    linear = structures.Linear(n_out=n_out, n_in=n_in, bias=bias.data_ptr())
    if scale is None:
        linear.weight = weight.data_ptr()
    else:
        linear.integers, linear.scale = weight.data_ptr(), scale.data_ptr()
    return linear


def project(library, x, weight, scale, bias, *, panels: bool, alike: bool = False) -> torch.Tensor:
    """x · weightᵀ (· scale) + bias; what lies around the result must stay as it was."""
    (n_rows, n_in), n_out = x.shape, len(weight)
    linear = describe(weight, scale, bias)
    size = library.panel_bytes(addressof(linear))
    kept = torch.full((size + 64,), 77, dtype=torch.uint8)
    if panels and size:
        library.lay_out(addressof(linear), kept.data_ptr())
        linear.panels = kept.data_ptr()
    assert bool((kept[size:] == 77).all())
    shape = structures.Stack(
        dim=n_in, hidden=n_in, heads=1, kv_heads=1, head_dim=1, is_int8=scale is not None
    )
    call = structures.Call(n_sequences=n_rows, n_tokens=1, most_threads=1, alike=alike)
    n_scratch = library.scratch_floats(addressof(shape), addressof(call))
    scratch = torch.full((n_scratch + 16,), 77.0)
    call.scratch = scratch.data_ptr()
    y = torch.full((n_rows * n_out + 16,), 77.0)
    library.project_rows(*map(addressof, (shape, call, linear)), x.data_ptr(), y.data_ptr())
    assert bool((y[n_rows * n_out :] == 77).all() and (scratch[n_scratch:] == 77).all())
    return y[: n_rows * n_out].view(n_rows, n_out)


@pytest.mark.parametrize("panels", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_floats(library, shape: tuple[int, int], panels: bool) -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(shape), torch.randn(shape[0])
    for n in ROWS:
        x = torch.randn(n, shape[1])
        exact = torch.nn.functional.linear(x.double(), weight.double(), bias.double())
        found = project(library, x, weight, None, bias, panels=panels)
        assert_close(found, exact.float(), 1e-6 * shape[1] ** 0.5 * float(exact.abs().max()))


@pytest.mark.parametrize("panels", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_that_must_be_alike_are_as_if_each_were_alone(library, shape, panels: bool) -> None:
    torch.manual_seed(0)
    weight, bias = torch.randn(shape), torch.randn(shape[0])
    x = torch.randn(max(ROWS), shape[1])
    options = {"panels": panels, "alike": True}
    each = torch.cat(
        [project(library, row, weight, None, bias, panels=panels) for row in x.split(1)]
    )
    for n in ROWS:
        assert_same(project(library, x[:n], weight, None, bias, **options), each[:n])


@pytest.mark.parametrize("panels", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_integers_are_exact(library, shape: tuple[int, int], panels: bool) -> None:
    torch.manual_seed(0)
    weight, scale = quantize_rows(torch.randn(shape))
    bias = torch.zeros(shape[0])
    for n in ROWS:
        whole = torch.randint(-127, 128, (n, shape[1]))
        whole[:, 0] = 127  # so that a step is 1
        expected = (whole @ weight.long().T).float() * scale
        found = project(library, whole.float(), weight, scale, bias, panels=panels)
        assert_same(found, expected)


@pytest.mark.parametrize("panels", [False, True])
@pytest.mark.parametrize("value", [-128, 127])
def test_the_largest_integers_do_not_saturate(library, value: int, panels: bool) -> None:
    weight = torch.full((40, 1 << 17), value, dtype=torch.int8)
    for sign in (1.0, -1.0):
        x = torch.full((6, 1 << 17), 127 * sign)
        found = project(library, x, weight, torch.ones(40), torch.zeros(40), panels=panels)
        assert_same(found, torch.full((6, 40), float(int(127 * sign) * value * (1 << 17))))
