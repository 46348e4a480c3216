"""The kernel in C inside a band of the matrix: every kind of mask, soft-capping and biases."""

import math

import pytest
import torch
from torch import Tensor

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.functional.backends import native
from glassformer.functional.cells import Extent, Tile
from native_calls import CAUSAL, check_against_definition, make_operands, run

pytestmark = pytest.mark.skipif(native.find_kernel() is None, reason="needs a C compiler")

# queries and keys: one, parts of a block, whole ones, one more; after a past, and more than keys
EXTENTS = (
    (1, 1),
    (1, 300),
    (5, 5),
    (64, 64),
    (65, 65),
    (200, 200),
    (70, 300),
    (128, 129),
    (300, 70),
)


def bands(L: int, S: int) -> dict[str, gf.Mask | None]:
    """Masks that six numbers describe, for two sequences."""
    both = min(L, S)
    return {
        "none": None,
        "causal": CAUSAL,
        "causal, elsewhere": gf.Causal(offset=3),
        "offsets of sequences": gf.Causal(offset=torch.tensor([0, S - L])),
        "narrow window": CAUSAL & gf.Window(5),
        "wide window": CAUSAL & gf.Window(100),
        "window on both sides": gf.Window(30, 10),
        "window without right": gf.Window(left=7),
        "window without left": gf.Window(right=9),
        "padded keys": gf.Padding([S, S // 3]),
        "padding first": CAUSAL & gf.Padding([S // 2, S], side="left") & gf.Window(40),
        "padded queries": gf.Padding([L // 2, L], of="queries"),
        "padding of both": CAUSAL & gf.Padding([both, both // 2], of="both"),
        "prefix": gf.Prefix(S // 2),
        "after a prefix": CAUSAL & ~gf.Prefix(S // 3),
        "no key": gf.Padding([0, S]),
    }


@pytest.mark.parametrize("name", list(bands(1, 1)))
@pytest.mark.parametrize(("L", "S"), EXTENTS)
def test_bands(L: int, S: int, name: str) -> None:
    check_against_definition(make_operands(L, 32, S=S), mask=bands(L, S)[name])


@pytest.mark.parametrize("name", list(bands(1, 1)))
@pytest.mark.parametrize("softcap", [0.5, 50.0])
def test_soft_capped(softcap: float, name: str) -> None:
    operands = make_operands(90, 16, S=130, H=4, K=2)
    with torch.no_grad():
        operands[0].mul_(5)  # so that the cap bends
    check_against_definition(operands, mask=bands(90, 130)[name], softcap=softcap)


def documents(L: int, S: int) -> dict[str, gf.Mask]:
    """Masks that cut a band into documents."""
    ids = (torch.arange(S) * 4 // S).repeat(2, 1)  # four of one length, and as many as there are
    ids[1] = torch.randint(0, 3, (S,)).cumsum(0)  # blocks begin and end within them
    mixed = torch.randint(0, 5, (2, S)), torch.randint(0, 6, (2, L))  # also without keys
    own = gf.Documents(*mixed)
    masks = {
        "in any order": own,
        "in any order, causal": CAUSAL & own,
        "far numbers": gf.Documents(mixed[0] * 2**40, mixed[1] * 2**40),
        "small integers": gf.Documents(mixed[0].int(), mixed[1].int()),
        "all others": gf.Documents(torch.zeros(S).long(), torch.ones(L).long()),
    }
    if L <= S:
        masks |= {
            "documents": gf.Documents(ids),
            "of all sequences": CAUSAL & gf.Documents(ids[1]),
            "of each": CAUSAL & gf.Documents(ids),
            "within windows": gf.Documents(ids) & CAUSAL & gf.Window(20) & gf.Padding([S, S // 3]),
        }
    return masks


def prefixes(L: int, S: int) -> dict[str, gf.Mask]:
    """Causal masks beside a prefix that all queries see."""
    return {
        "half": CAUSAL | gf.Prefix(S // 2),
        "one key": gf.Prefix(1) | CAUSAL,
        "all": CAUSAL | gf.Prefix(S),
        "of each": CAUSAL | gf.Prefix(torch.tensor([S // 3, S - S // 4])),
        "elsewhere": gf.Causal(offset=-20) | gf.Prefix(S // 5),
        "padded": (CAUSAL | gf.Prefix(S // 2)) & gf.Padding([S, S // 3]),
        "padding first": (CAUSAL | gf.Prefix(S // 2)) & gf.Padding([S // 4, S], side="left"),
        "in a window": (CAUSAL | gf.Prefix(S // 2)) & gf.Window(left=30),
        "in documents": (CAUSAL | gf.Prefix(S // 2)) & documents(L, S)["in any order"],
    }


@pytest.mark.parametrize("name", list(prefixes(1, 1)))
@pytest.mark.parametrize(("L", "S"), EXTENTS)
def test_prefixes(L: int, S: int, name: str) -> None:
    check_against_definition(make_operands(L, 32, S=S, H=4, K=2), mask=prefixes(L, S)[name])


@pytest.mark.parametrize("options", [{"softcap": 2.0}, {"bias": gf.ALiBi.of_heads(3)}])
@pytest.mark.parametrize("name", list(prefixes(1, 1)))
def test_prefixes_beside_all_else(name: str, options: dict) -> None:
    check_against_definition(make_operands(150, 16), mask=prefixes(150, 150)[name], **options)


@pytest.mark.parametrize(
    ("L", "S", "name"), [(L, S, name) for L, S in EXTENTS for name in documents(L, S)]
)
def test_documents(L: int, S: int, name: str) -> None:
    check_against_definition(make_operands(L, 32, S=S, H=4, K=2), mask=documents(L, S)[name])


@pytest.mark.parametrize("options", [{"softcap": 2.0}, {"bias": gf.ALiBi.of_heads(3)}])
@pytest.mark.parametrize("name", list(documents(1, 1)))
def test_documents_beside_all_else(name: str, options: dict) -> None:
    check_against_definition(make_operands(150, 16), mask=documents(150, 150)[name], **options)


def test_blocks_of_other_documents_are_left_out() -> None:
    """Otherwise 0 · NaN would show."""
    operands, ids = make_operands(256, 16), torch.arange(256) // 64
    back = torch.randn(operands[0].shape)
    expected = run(operands, back, mask=gf.Documents(ids))
    changed = [x.detach().clone() for x in operands]
    for x in changed:
        x[:, :, ids == 2] = math.nan
    got = run(tuple(x.requires_grad_() for x in changed), back, mask=gf.Documents(ids))
    for ours, right in zip(got, expected, strict=True):
        assert_same(ours[:, :, ids != 2], right[:, :, ids != 2])
        assert ours[:, :, ids == 2].isnan().all()


@pytest.mark.parametrize("lengths", [(100, 37, 63), (64, 64, 72), (1, 1, 198)])
def test_documents_side_by_side_are_each_alone(lengths: tuple[int, ...]) -> None:
    """Other documents change no number, except where a row begins elsewhere in a block."""
    q, k, v = make_operands(sum(lengths), 32, B=1)
    ids = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    packed = gf.attention(q, k, v, mask=CAUSAL & gf.Documents(ids), backend="native")
    ends = torch.tensor(lengths).cumsum(0).tolist()
    for begin, end in zip([0, *ends], ends, strict=False):
        own = [x[:, :, begin:end] for x in (q, k, v)]
        alone = gf.attention(*own, mask=CAUSAL, backend="native")
        assert_close(packed[:, :, begin:end], alone, 2e-6)


BIASES = {
    "ALiBi": gf.ALiBi.of_heads,
    "buckets": lambda H: gf.RelativeBuckets(torch.randn(32, H)),
    "buckets of the past": lambda H: gf.RelativeBuckets(torch.randn(8, H), bidirectional=False),
    "sum": lambda H: gf.ALiBi.of_heads(H) + gf.RelativeBuckets(torch.randn(32, H)),
}


@pytest.mark.parametrize("kind", list(BIASES))
@pytest.mark.parametrize("name", list(bands(1, 1)))
@pytest.mark.parametrize(("L", "S"), [(150, 150), (66, 130), (130, 66)])
def test_biases_of_distances(L: int, S: int, name: str, kind: str) -> None:
    operands = make_operands(L, 16, S=S, H=4, K=2)
    check_against_definition(operands, mask=bands(L, S)[name], bias=BIASES[kind](4))


def test_values_of_distances_are_those_of_the_cells() -> None:
    """The table that the kernel reads, beside the matrix."""
    bias, extent = gf.RelativeBuckets(torch.randn(32, 4)), Extent(1, 4, 7, 12)
    matrix = bias.tile(Tile.whole(extent, torch.device("cpu"))).expand(extent)[0]
    table = bias.by_distance(extent, 3, torch.device("cpu"))
    assert table.shape == (4, 7 + 12 - 1 + 3)
    for i in range(7):
        for j in range(12):
            assert_same(table[:, i - j + 11], matrix[:, i, j])


@pytest.mark.parametrize(
    "x", [0.0, 1e-30, 1e-6, 1e-3, 0.1, 0.29999, 0.3, 0.5, 1.0, 4.0, 9.0, 100.0]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_the_tangent_is_exact_everywhere(x: float, sign: int) -> None:
    """Two keys, one of them with score 0: the weight tells the tangent of the other's score."""
    q, k = torch.full((1, 1, 1, 16), 0.25), torch.zeros(1, 1, 2, 16)
    k[..., 0, :] = sign * x / (16 * 0.25)
    v = torch.zeros(1, 1, 2, 16)
    v[..., 0, :] = 1.0
    got = gf.attention(q, k, v, softcap=1.0, scale=1.0, backend="native")[0, 0, 0, 0].double()
    exact = 1 / (1 + math.exp(-math.tanh(sign * x)))
    assert abs(got.item() - exact) <= 1.2e-7


def test_hidden_keys_change_no_bit_and_get_no_gradient() -> None:
    operands, mask = make_operands(150, 16), CAUSAL & gf.Window(20) & gf.Padding([150, 90])
    back = torch.randn(operands[0].shape)
    expected = run(operands, back, mask=mask)
    changed = [x.detach().clone() for x in operands]
    for x in changed[1:]:
        x[1, :, 90:] = math.nan
    got = run(tuple(x.requires_grad_() for x in changed), back, mask=mask)
    for ours, right in zip(got, expected, strict=True):
        assert_same(ours, right)
    assert not got[2][1, :, 90:].any() and not got[3][1, :, 90:].any()


def test_one_mask_per_sequence_is_that_of_each_alone() -> None:
    q, k, v = make_operands(100, 32)
    together = gf.attention(q, k, v, mask=CAUSAL & gf.Padding([100, 37]), backend="native")
    for i, n in enumerate((100, 37)):
        own = [x[i : i + 1] for x in (q, k, v)]
        alone = gf.attention(*own, mask=CAUSAL & gf.Padding([n]), backend="native")
        assert_same(together[i : i + 1], alone)


@pytest.mark.parametrize(
    "options",
    [
        {"softcap": 3.0},
        {"mask": CAUSAL & gf.Window(9)},
        {"mask": CAUSAL & gf.Documents([0] * 30 + [1] * 40)},
        {"bias": 1},
    ],
)
def test_second_derivatives(options: dict) -> None:
    operands = make_operands(70, 16, B=1, H=2)
    if "bias" in options:
        options = {"bias": gf.ALiBi.of_heads(2)}

    def penalty(backend: str) -> list[Tensor]:
        out = gf.attention(*operands, **{"mask": CAUSAL, **options}, backend=backend)
        first = torch.autograd.grad(out.square().sum(), operands, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), operands)
        return [*first, *second]

    for got, right in zip(penalty("native"), penalty("reference"), strict=True):
        assert_close(got, right, 1e-5 * right.abs().max().item())


def test_a_batch_of_gradients_with_soft_capping() -> None:
    operands = make_operands(20, 16, B=1, H=4, K=2)
    backs = torch.randn(3, *operands[0].shape)
    out = gf.attention(*operands, mask=CAUSAL, softcap=2.0, backend="native")
    got = torch.autograd.grad(out, operands, backs, is_grads_batched=True)
    for i, back in enumerate(backs):
        for batched, single in zip(got, run(operands, back, softcap=2.0)[1:], strict=True):
            assert_close(batched[i], single, 1e-5)
