"""Which backend is taken, whether that is told truly, and no dense mask without need."""

import warnings

import pytest
import torch
import torch.nn.functional as F

import glassformer as gf
from closeness import assert_close
from glassformer.errors import BackendError
from glassformer.functional import dispatch, reference
from glassformer.functional.backends import flex, sdpa


def operands(L: int, S: int, *, grad: bool = False) -> tuple[torch.Tensor, ...]:
    shapes = ((1, 4, L, 8), (1, 2, S, 8), (1, 2, S, 8))
    return tuple(torch.randn(*shape, requires_grad=grad) for shape in shapes)


CHOICES = [
    ("nothing hidden", 19, 19, {}, "sdpa", "needs no mask"),
    ("causal", 19, 19, {"mask": gf.Causal()}, "sdpa", "flag"),
    ("one query", 1, 19, {"mask": gf.Causal()}, "sdpa", "needs no mask"),
    ("more queries", 19, 16, {"mask": gf.Causal()}, "sdpa", "first L − S queries see nothing"),
    ("wide window", 19, 19, {"mask": gf.Causal() & gf.Window(20)}, "sdpa", "flag"),
    ("few keys", 9, 15, {}, "sdpa", "so few keys that a dense mask costs nothing"),
    ("few keys, causal", 9, 15, {"mask": gf.Causal()}, "sdpa", "so few keys"),
    ("few keys, offset", 4, 4, {"mask": gf.Causal(offset=3)}, "sdpa", "so few keys"),
    ("small window", 9, 9, {"mask": gf.Window(2)}, "sdpa", "9 × 9 is small"),
    ("large window", 2048, 2048, {"mask": gf.Causal() & gf.Window(9)}, "streaming", "is hidden"),
    ("large, half hidden", 2048, 2048, {"mask": ~gf.Window(9)}, "sdpa", "dense mask or bias"),
    ("too large", 32768, 32768, {"mask": gf.Prefix(30000)}, "streaming", "would not fit"),
    ("softcap", 9, 9, {"softcap": 2.0}, "streaming", "no soft-capping"),
    ("no keys", 9, 0, {}, "reference", "nothing to attend to"),
]


@pytest.mark.parametrize(("L", "S", "options", "backend", "reason"), [c[1:] for c in CHOICES])
def test_choice_and_reason(L: int, S: int, options: dict, backend: str, reason: str) -> None:
    explanation = gf.explain(*operands(L, S), **options)
    assert explanation.backend == backend
    assert reason in explanation.reason
    assert str(explanation).startswith(f"{backend}: {explanation.reason}")


def test_explanation_names_what_the_others_cannot() -> None:
    text = str(gf.explain(*operands(9, 9, grad=True), softcap=2.0))
    assert "sdpa: no, scaled_dot_product_attention has no soft-capping" in text
    assert "flex: no, FlexAttention computes no gradients on the CPU" in text
    assert "reference: possible" in text


@pytest.mark.parametrize(
    ("backend", "options", "sentence"),
    [
        ("sdpa", {"softcap": 2.0}, r"'sdpa' cannot.*soft-capping. Leave backend out.*'streaming'"),
        ("flex", {"dropout": 0.1}, r"'flex' cannot.*no dropout.*backend='sdpa'"),
        ("flex", {}, r"computes no gradients on the CPU"),
    ],
)
def test_a_forced_backend_refuses_with_its_reason(
    backend: str, options: dict, sentence: str
) -> None:
    with pytest.raises(BackendError, match=sentence):
        gf.attention(*operands(9, 9, grad=True), **options, backend=backend)


def fail_to_compile(monkeypatch: pytest.MonkeyPatch, message: str) -> list[object]:
    """Have FlexAttention's compiler fail; the options of each attempt are kept."""
    from torch._dynamo.exc import TorchDynamoException

    attempts: list[object] = []

    def fail(*_args, kernel_options: dict | None, **_kwargs):
        attempts.append(kernel_options)
        raise TorchDynamoException(message)

    monkeypatch.setattr(flex, "has_avx2", lambda: True)
    monkeypatch.setattr(flex, "_failures", {})
    monkeypatch.setattr(flex, "_compile_flex", lambda: fail)
    return attempts


UNDECLARED = "CppCompileError\nkernel.cpp:7: error: ‘x3’ was not declared"


def test_a_failing_compiler_is_a_refusal_with_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = fail_to_compile(monkeypatch, UNDECLARED)
    with pytest.raises(BackendError, match=r"float32 on cpu \(‘x3’ was not declared\).*streaming"):
        gf.attention(*operands(9, 9), backend="flex")
    for _ in range(2):  # a kind that failed is not compiled again, at other lengths neither
        with pytest.raises(BackendError, match=r"failed on this kind of mask or bias before"):
            gf.attention(*operands(7, 12), backend="flex")
    assert attempts == [None]
    assert gf.explain(*operands(9, 9), mask=gf.Causal()).refusals["flex"] is None
    assert gf.explain(*operands(9, 9), softcap=5.0).refusals["flex"] is None


def test_kernels_that_are_too_large_are_tried_with_less(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = fail_to_compile(monkeypatch, "OutOfMemoryError: out of resource: Required: 245760")
    with pytest.raises(BackendError, match=r"Required: 245760"):
        gf.attention(*operands(9, 9), backend="flex")
    assert attempts == [None, {"num_stages": 2}, {"num_stages": 1}]


def test_a_kernel_that_worked_with_less_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = fail_to_compile(monkeypatch, "out of resource")
    fail, q = flex._compile_flex(), operands(9, 9)[0]

    def compute(*args, kernel_options: dict | None, **options):
        if kernel_options != {"num_stages": 1}:
            fail(*args, kernel_options=kernel_options, **options)
        attempts.append(kernel_options)
        return q

    monkeypatch.setattr(flex, "_compile_flex", lambda: compute)
    for _ in range(2):
        assert gf.attention(*operands(9, 9), backend="flex") is q
    assert attempts == [None, {"num_stages": 2}, {"num_stages": 1}, {"num_stages": 1}]


def test_where_no_kernel_can_be_compiled_another_backend_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempts = fail_to_compile(monkeypatch, UNDECLARED)
    choose = dispatch._choose

    def prefer_flex(*args):
        return choose(*args) if flex.refusal(*args) else dispatch._Choice("flex", "as on a GPU")

    monkeypatch.setattr(dispatch, "_choose", prefer_flex)
    q, k, v = operands(9, 9)
    bias = gf.RelativeBuckets(torch.randn(8, 4))
    with pytest.warns(UserWarning, match=r"computes what 'flex' cannot.*was not declared"):
        found = gf.attention(q, k, v, bias=bias)
    assert_close(found, reference.attention(q, k, v, bias=bias), 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_close(gf.attention(q, k, v, bias=bias), found, 1e-5)
    assert attempts == [None]


def test_a_processor_without_kernels_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flex, "has_avx2", lambda: False)
    with pytest.raises(BackendError, match=r"need an x86 processor with AVX2.*backend='sdpa'"):
        gf.attention(*operands(9, 9), backend="flex")


def test_low_precision_does_not_round_a_bias_silently() -> None:
    q, k, v = (t.bfloat16() for t in operands(9, 9))
    bias = gf.ALiBi.of_heads(4)
    with pytest.raises(BackendError, match=r"would round this bias to torch.bfloat16"):
        gf.attention(q, k, v, bias=bias, backend="sdpa")
    with pytest.raises(BackendError, match=r"float32 at most"):
        gf.attention(*(t.double() for t in (q, k, v)), backend="flex")
    assert gf.explain(q, k, v, bias=bias).backend == "streaming"
    assert gf.explain(q, k, v, bias=torch.zeros(9, 9).bfloat16()).backend == "sdpa"


@pytest.mark.parametrize(
    ("L", "S", "mask", "is_causal", "shape"),
    [
        (19, 19, None, False, None),
        (19, 19, gf.Causal(), True, None),
        (19, 19, gf.Causal() & gf.Window(18), True, None),
        (19, 19, gf.Causal(offset=18), False, None),
        (1, 19, gf.Causal(), False, None),
        (19, 16, gf.Causal(), True, None),
        (9, 9, None, False, (1, 9)),
        (9, 9, gf.Causal(), False, (9, 9)),
        (4, 9, gf.Causal(), False, (4, 9)),
        (9, 9, gf.Padding([5]), False, (9, 9)),
        (9, 9, gf.Window(right=0), False, (9, 9)),
    ],
)
def test_no_dense_mask_where_a_flag_would_do(
    monkeypatch: pytest.MonkeyPatch,
    L: int,
    S: int,
    mask: gf.Mask | None,
    is_causal: bool,
    shape: tuple[int, ...] | None,
) -> None:
    calls = []
    real = F.scaled_dot_product_attention

    def spy(*args, **kwargs):
        calls.append(kwargs)
        return real(*args, **kwargs)

    monkeypatch.setattr(sdpa.F, "scaled_dot_product_attention", spy)
    q, k, v = operands(L, S)
    got = gf.attention(q, k, v, mask=mask, backend="sdpa")
    (call,) = calls
    assert call.get("is_causal", False) == is_causal
    given = call.get("attn_mask")
    assert (None if given is None else tuple(given.shape)) == shape
    assert_close(got, reference.attention(q, k, v, mask=mask), 1e-6)


def test_works_on_the_meta_device() -> None:
    """Shapes alone: what a model can be described with, without memory."""
    q, k, v = (t.to("meta") for t in operands(9, 9))
    padding = gf.Padding(torch.ones(1, dtype=torch.long, device="meta"))
    for mask in (None, gf.Causal(), gf.Causal() & padding):
        assert gf.attention(q, k, v, mask=mask).shape == (1, 4, 9, 8)
