"""Every wrong input of attention has a sentence with its numbers; edges have defined results."""

import pytest
import torch

import glassformer as gf
from closeness import assert_same, assert_zero
from glassformer.errors import ConfigError, DtypeError, ShapeError

pytestmark = pytest.mark.plain


def x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype)


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ((x(2, 5, 8), x(2, 1, 5, 8), x(2, 1, 5, 8)), r"rank 4.*q \(2, 5, 8\).*x\[:, None\]"),
        ((x(2, 1, 5, 8), x(2, 5, 8), x(2, 1, 5, 8)), r"rank 4.*k \(2, 5, 8\)"),
        ((x(2, 1, 5, 8), x(2, 1, 5, 8), x(5, 8)), r"rank 4.*v \(5, 8\)"),
        ((x(2, 1, 5, 8), x(3, 1, 5, 8), x(3, 1, 5, 8)), r"same batch size.*\(2, 1, 5, 8\).*\(3,"),
        ((x(2, 1, 5, 8), x(2, 1, 5, 9), x(2, 1, 5, 8)), r"same head_dim.*head_dim=8.*9 for k"),
        ((x(2, 1, 5, 0), x(2, 1, 5, 0), x(2, 1, 5, 8)), r"at least 1.*head_dim=0"),
        ((x(1, 12, 5, 8), x(1, 5, 5, 8), x(1, 5, 5, 8)), r"n_heads=12, n_kv_heads=5. Use 1, 2, 3"),
        ((x(1, 2, 5, 8), x(1, 4, 5, 8), x(1, 4, 5, 8)), r"n_heads=2, n_kv_heads=4. Use 1, 2\."),
        ((x(1, 2, 5, 8), x(1, 0, 5, 8), x(1, 0, 5, 8)), r"n_kv_heads=0"),
        ((x(1, 2, 5, 8), x(1, 2, 6, 8), x(1, 2, 7, 8)), r"k \(1, 2, 6, 8\).*v \(1, 2, 7, 8\)"),
        ((x(1, 2, 5, 8), x(1, 1, 6, 8), x(1, 2, 6, 8)), r"same n_kv_heads.*k \(1, 1,.*v \(1, 2,"),
    ],
)
def test_shapes(inputs: tuple[torch.Tensor, ...], sentence: str) -> None:
    with pytest.raises(ShapeError, match=sentence):
        gf.attention(*inputs)


def test_dtypes_and_devices() -> None:
    q = x(1, 1, 3, 8)
    with pytest.raises(DtypeError, match=r"q torch.float32 and k torch.float16.*k.to\(q.dtype\)"):
        gf.attention(q, q.half(), q)
    with pytest.raises(DtypeError, match=r"q torch.float32 and v torch.float64"):
        gf.attention(q, q, q.double())
    with pytest.raises(DtypeError, match=r"float64, float32, bfloat16, float16; got q torch.int64"):
        gf.attention(q.long(), q.long(), q.long())
    with pytest.raises(DtypeError, match=r"q on cpu and k on meta.*k.to\(q.device\)"):
        gf.attention(q, q.to("meta"), q)


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({"scale": float("nan")}, ConfigError, r"scale must be a finite number; got nan"),
        ({"scale": float("inf")}, ConfigError, r"scale must be a finite number; got inf"),
        ({"softcap": 0.0}, ConfigError, r"softcap must be greater than 0; got 0.0"),
        ({"softcap": -1.0}, ConfigError, r"softcap must be greater than 0; got -1.0"),
        ({"dropout": 1.0}, ConfigError, r"dropout must be at least 0 and less than 1; got 1.0"),
        ({"dropout": -0.1}, ConfigError, r"got -0.1"),
        (
            {"backend": "magic"},
            ConfigError,
            r"sdpa, native, padded, flex, streaming, reference; got 'magic'",
        ),
        ({"mask": torch.zeros(3, 3)}, DtypeError, r"mask must be bool.*float32.*pass it as bias="),
        ({"mask": torch.zeros(3, 3).int()}, DtypeError, r"int32.*mask.bool\(\)"),
        ({"mask": torch.zeros(3, 4).bool()}, ShapeError, r"\(1, 1, 3, 3\); got \(3, 4\)"),
        ({"mask": [[True]]}, DtypeError, r"got list"),
        ({"mask": gf.Padding([4])}, ShapeError, r"0 … 3, the length of the keys; got 4 to 4"),
        ({"bias": torch.zeros(3, 3).bool()}, DtypeError, r"Pass a bool tensor as mask="),
        ({"bias": torch.zeros(4, 3)}, ShapeError, r"\(1, 1, 3, 3\); got \(4, 3\)"),
    ],
)
def test_options(options: dict, error: type[Exception], sentence: str) -> None:
    q = x(1, 1, 3, 8)
    for function in (gf.attention, gf.explain):
        if function is gf.explain and "backend" in options:
            continue
        with pytest.raises(error, match=sentence):
            function(q, q, q, **options)


BACKENDS = ("sdpa", "streaming", "reference", None)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mask", [None, gf.Causal(), gf.Window(2, 1)])
@pytest.mark.parametrize(
    ("B", "L", "S"), [(0, 3, 5), (2, 0, 5), (2, 3, 0), (0, 0, 0)], ids=["B=0", "L=0", "S=0", "all"]
)
def test_empty(backend: str | None, mask: gf.Mask | None, B: int, L: int, S: int) -> None:
    """No batch or no queries: nothing. No keys: zeros, since every row is empty."""
    q, k, v = x(B, 4, L, 8), x(B, 2, S, 8), x(B, 2, S, 6)
    for t in (q, k, v):
        t.requires_grad_()
    out = gf.attention(q, k, v, mask=mask, backend=backend)
    assert_same(out, torch.zeros(B, 4, L, 6))
    grads = torch.autograd.grad(out.sum(), (q, k, v), allow_unused=True)
    assert all(g is None or g.abs().sum() == 0 for g in grads)
    statistics = gf.attention_statistics(q, k, mask=mask, map_size=3, top=2)
    assert statistics.received.shape == (B, 4, S)
    assert statistics.entropy.abs().sum() == 0


@pytest.mark.parametrize("n", [1, 15, 16, 17, 63, 64, 65, 300])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mask", [None, gf.Causal(), gf.Window(left=999)])
def test_a_query_of_nan_is_nan_at_any_length(n: int, dtype: torch.dtype, mask: gf.Mask) -> None:
    """Also where PyTorch's kernel alone would give zeros: fewer keys than a register holds."""
    for place in {0, n // 2, n - 1}:
        q, k, v = (x(1, 1, n, 8, dtype=dtype) for _ in range(3))
        q[0, 0, place, 3] = torch.nan
        assert gf.attention(q, k, v, mask=mask)[0, 0, place].isnan().all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("which", ["q", "k", "v"])
def test_nan_is_never_hidden(backend: str | None, which: str) -> None:
    """Every query that may attend to a NaN gets a NaN; those before it, by causality, need not."""
    operands = {name: x(1, 2, 7, 8) for name in ("q", "k", "v")}
    operands[which][0, 1, 4, 3] = torch.nan
    out = gf.attention(**operands, mask=gf.Causal(), backend=backend)
    seen = slice(4, 5) if which == "q" else slice(4, None)
    column = slice(3, 4) if which == "v" else slice(None)
    assert out[0, 1, seen, column].isnan().all()
    assert not out[0, 0].isnan().any()
    if which != "v":
        assert gf.explain(**operands).backend == "sdpa"
        statistics = gf.attention_statistics(operands["q"], operands["k"], mask=gf.Causal())
        assert statistics.lse[0, 1, seen].isnan().all()
        assert statistics.entropy[0, 1, seen].isnan().all()


def test_statistics_refusals() -> None:
    q = x(1, 2, 3, 8)
    with pytest.raises(ConfigError, match="top must be at least 1; got 0"):
        gf.attention_statistics(q, q, top=0)
    with pytest.raises(ConfigError, match=r"map_size must be at least 1.*got \(3, 0\)"):
        gf.attention_statistics(q, q, map_size=(3, 0))
    with pytest.raises(ShapeError, match=r"\(1, 2, 3\); got \(1, 2, 4\).*attention_lse"):
        gf.attention_statistics(q, q, lse=torch.zeros(1, 2, 4))
    with pytest.raises(ShapeError, match=r"\(1, 2, 3\); got \(3,\)"):
        gf.attention_tile(q, q, torch.zeros(3), slice(0, 1), slice(0, 1))
    with pytest.raises(ShapeError, match=r"cols must lie in 0 … 2; got values from 0 to 3"):
        gf.attention_tile(q, q, gf.attention_lse(q, q), [0], [0, 3])
    with pytest.raises(ConfigError, match="at least 1 byte; got 0"), gf.memory_budget(0):
        pass


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ({"query": 3, "key": 0}, r"query must lie in 0 … 2; got 3"),
        ({"query": 0, "key": -1}, r"key must lie in 0 … 4; got -1"),
        ({"query": 0, "key": 0, "head": 2}, r"head must lie in 0 … 1; got 2"),
        ({"query": 0, "key": 0, "batch": 1}, r"batch must lie in 0 … 0; got 1"),
    ],
)
def test_arithmetic_refusals(place: dict[str, int], sentence: str) -> None:
    with pytest.raises(ShapeError, match=sentence):
        gf.cell_arithmetic(x(1, 2, 3, 8), x(1, 2, 5, 8), x(1, 2, 5, 8), **place)


def test_a_single_token_attends_to_itself() -> None:
    q, k, v = x(2, 3, 1, 8), x(2, 3, 1, 8), x(2, 3, 1, 8)
    for backend in BACKENDS:
        assert_same(gf.attention(q, k, v, mask=gf.Causal(), backend=backend), v)
    assert_zero(gf.attention(q, k, v, mask=gf.Padding([0, 0])))
