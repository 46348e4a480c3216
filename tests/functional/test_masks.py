"""Masks: each kind against its drawing, the laws of their algebra, and what they refuse."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import glassformer as gf
from closeness import assert_same
from glassformer.errors import ConfigError, DtypeError, ShapeError
from glassformer.functional.cells import Blocks, Cells, Extent, Tile, as_indices
from glassformer.functional.drawing import draw_cells
from glassformer.functional.masks import simplify


def drawn(text: str) -> torch.Tensor:
    return gf.Explicit.from_drawing(text).tensor


def dense(mask: gf.Mask, L: int, S: int, batch: int = 1) -> torch.Tensor:
    return mask.dense(L, S, batch=batch).expand(batch, 1, L, S)[:, 0]


KINDS = {
    "causal, square": (gf.Causal(), 3, 3, "x.. / xx. / xxx"),
    "causal, more keys": (gf.Causal(), 2, 5, "xxxx. / xxxxx"),
    "causal, more queries": (gf.Causal(), 4, 2, ".. / .. / x. / xx"),
    "causal, placed": (gf.Causal(offset=1), 2, 5, "xx... / xxx.."),
    "window": (gf.Window(left=1, right=2), 5, 5, "xxx.. / xxxx. / .xxxx / ..xxx / ...xx"),
    "window, left only": (gf.Window(left=0), 3, 3, "xxx / .xx / ..x"),
    "window, right only": (gf.Window(right=0), 3, 3, "x.. / xx. / xxx"),
    "window, more keys": (gf.Window(left=1, right=0), 2, 4, ".xx. / ..xx"),
    "window, placed": (gf.Window(left=1, right=0, offset=0), 2, 4, "x... / xx.."),
    "prefix": (gf.Prefix(2), 2, 4, "xx.. / xx.."),
    "documents": (
        gf.Documents(torch.tensor([4, 4, 7, 7, 7])),
        5,
        5,
        "xx... / xx... / ..xxx / ..xxx / ..xxx",
    ),
    "documents, last queries": (gf.Documents(torch.tensor([4, 4, 7])), 2, 3, "xx. / ..x"),
    "documents, other queries": (
        gf.Documents(torch.tensor([1, 2, 2]), query_ids=torch.tensor([2, 9])),
        2,
        3,
        ".xx / ...",
    ),
    "and": (gf.Causal() & gf.Window(left=1), 4, 4, "x... / xx.. / .xx. / ..xx"),
    "or": (gf.Causal() | gf.Prefix(2), 3, 3, "xx. / xx. / xxx"),
    "not": (~gf.Causal(), 3, 3, ".xx / ..x / ..."),
    "nested": (~(gf.Causal() & gf.Window(left=1)) | gf.Prefix(1), 3, 3, "xxx / x.x / x.."),
}


@pytest.mark.parametrize("name", KINDS)
def test_kind_is_its_drawing(name: str) -> None:
    mask, L, S, drawing = KINDS[name]
    assert_same(dense(mask, L, S)[0], drawn(drawing))


def test_padding_of_keys_queries_both_and_sides() -> None:
    lengths = [2, 3]
    keys = gf.Padding(lengths)
    assert_same(dense(keys, 2, 4, 2), torch.stack([drawn("xx.. / xx.."), drawn("xxx. / xxx.")]))
    queries = gf.Padding(torch.tensor([1, 2]), of="queries")
    assert_same(dense(queries, 2, 3, 2), torch.stack([drawn("xxx / ..."), drawn("xxx / xxx")]))
    both = gf.Padding([1, 2], of="both")
    assert_same(dense(both, 2, 2, 2), torch.stack([drawn("x. / .."), drawn("xx / xx")]))
    left = gf.Padding(lengths, side="left")
    assert_same(dense(left, 1, 4, 2), torch.stack([drawn("..xx"), drawn(".xxx")]))
    both_left = gf.Padding([1, 2], of="both", side="left")
    assert_same(dense(both_left, 2, 3, 2), torch.stack([drawn("... / ..x"), drawn(".xx / .xx")]))


def test_numbers_per_sequence() -> None:
    starts = torch.tensor([0, 2])
    expected = torch.stack([drawn("x... / xx.."), drawn("xxx. / xxxx")])
    assert_same(dense(gf.Causal(offset=starts), 2, 4, 2), expected)
    expected = torch.stack([drawn("x... / xx.."), drawn(".xx. / ..xx")])
    assert_same(dense(gf.Window(left=1, right=0, offset=starts), 2, 4, 2), expected)
    expected = torch.stack([drawn("...."), drawn("xxx.")])
    assert_same(dense(gf.Prefix(torch.tensor([0, 3])), 1, 4, 2), expected)
    ids = torch.tensor([[1, 1, 2], [1, 2, 2]])
    expected = torch.stack([drawn("xx. / xx. / ..x"), drawn("x.. / .xx / .xx")])
    assert_same(dense(gf.Documents(ids), 3, 3, 2), expected)


# ── laws ──

lengths = st.integers(1, 13)


@st.composite
def masks(draw: st.DrawFn, B: int, L: int, S: int, depth: int = 2) -> Callable[[], gf.Mask]:
    """How to build a mask; the building is left to the test, since type checks draw at random."""
    kind = draw(st.integers(0, 6 if depth == 0 else 9))
    whole = st.integers(0, max(L, S))
    if kind == 0:
        offset = draw(st.none() | st.integers(-3, S))
        return lambda: gf.Causal(offset=offset)
    if kind == 1:
        left, right = draw(whole), draw(st.none() | whole)
        return lambda: gf.Window(left=left, right=right)
    if kind == 2:
        counts = draw(st.lists(st.integers(0, min(L, S)), min_size=B, max_size=B))
        of = draw(st.sampled_from(["keys", "queries", "both"]))
        side = draw(st.sampled_from(["left", "right"]))
        return lambda: gf.Padding(torch.tensor(counts), of=of, side=side)
    if kind == 3:
        length = draw(st.integers(0, S))
        return lambda: gf.Prefix(length)
    if kind == 4:
        ids = draw(st.lists(st.integers(0, 2), min_size=S, max_size=S))
        asking = draw(st.lists(st.integers(0, 2), min_size=L, max_size=L))
        return lambda: gf.Documents(torch.tensor(ids), query_ids=torch.tensor(asking))
    if kind in (5, 6):
        shape = draw(st.sampled_from([(L, S), (B, 1, L, S), (1, 1, 1, S), (B, 1, L, 1)]))
        seeded = torch.Generator().manual_seed(draw(st.integers(0, 99)))
        return lambda: gf.Explicit(torch.randint(0, 2, shape, generator=seeded).bool())
    inner = masks(B, L, S, depth - 1)
    a, b = draw(inner), draw(inner)
    return [lambda: ~a(), lambda: a() & b(), lambda: a() | b()][kind - 7]


@given(st.data(), lengths, lengths)
def test_algebra(data: st.DataObject, L: int, S: int) -> None:
    B = 3
    a, b = data.draw(masks(B, L, S))(), data.draw(masks(B, L, S))()
    A, B_ = (m.dense(L, S, batch=B) for m in (a, b))
    for combined, expected in ((a & b, A & B_), (a | b, A | B_), (~a, ~A)):
        got = combined.dense(L, S, batch=B)
        assert_same(got.expand(B, 1, L, S), expected.expand(B, 1, L, S))


@given(st.data(), lengths, lengths, st.integers(1, 5), st.integers(1, 5))
def test_bounds_are_never_wrong(data: st.DataObject, L: int, S: int, rows: int, cols: int) -> None:
    B = 3
    device = torch.device("cpu")
    mask = data.draw(masks(B, L, S))().fit_to(Extent(B, 1, L, S), device)
    blocks = Blocks(L, S, rows, cols, device)
    possible, certain = blocks.spread(mask.bounds(blocks))
    cells = mask.dense(L, S, batch=B).expand(B, 1, L, S)
    for i in range(possible.shape[2]):
        for j in range(possible.shape[3]):
            block = cells[:, :, i * rows : (i + 1) * rows, j * cols : (j + 1) * cols].flatten(2)
            assert not (block.any(-1) & ~possible[:, :, i, j]).any()
            assert not (certain[:, :, i, j] & ~block.all(-1)).any()


@given(st.data(), lengths, lengths)
def test_formula_and_tile_agree(data: st.DataObject, L: int, S: int) -> None:
    """What a kernel sees cell by cell is what the tile shows."""
    B, H = 3, 2
    extent = Extent(B, H, L, S)
    mask = data.draw(masks(B, L, S))().fit_to(extent, torch.device("cpu"))
    rows, cols = (torch.tensor(data.draw(st.permutations(range(n))))[: n // 2 + 1] for n in (L, S))
    grid = torch.cartesian_prod(torch.arange(B), torch.arange(H), rows, cols).unbind(-1)
    traced = mask.to_tensors(torch.device("cpu"))
    one_by_one = traced.allows(Cells(*grid, torch.tensor(L), torch.tensor(S)))
    tile = mask.tile(Tile(extent, rows, cols, rows.device)).expand(B, H, len(rows), len(cols))
    assert_same(one_by_one.expand(len(grid[0])), tile.flatten())


@given(st.data(), lengths, lengths)
def test_simplify_changes_nothing(data: st.DataObject, L: int, S: int) -> None:
    mask = data.draw(masks(1, L, S))()
    left = simplify(mask, Extent(1, 1, L, S))
    shown = torch.ones(1, 1, L, S, dtype=torch.bool) if left is None else left.dense(L, S)
    assert_same(shown.expand(1, 1, L, S), mask.dense(L, S).expand(1, 1, L, S))


def test_simplify_drops_what_hides_nothing() -> None:
    extent = Extent(1, 1, 5, 5)
    assert simplify(gf.Window(left=4), extent) is None
    assert repr(simplify(gf.Window(left=4) & gf.Causal(), extent)) == "Causal()"
    assert repr(simplify(gf.Window(left=3) & gf.Causal(), extent)) == "Window(left=3) & Causal()"
    assert simplify(gf.Causal(), Extent(1, 1, 1, 5)) is None
    assert simplify(gf.Prefix(2) | gf.Window(left=9), extent) is None


# ── how they look ──


def test_masks_print_as_drawings() -> None:
    assert str(gf.Causal() & gf.Window(3)).splitlines()[:3] == [
        "Causal() & Window(left=3)",
        "■ · · · · · · ·",
        "■ ■ · · · · · ·",
    ]
    assert str(gf.Padding([1, 2])) == ("Padding(lengths=[1, 2])  (sequence 0 of 2)\n■ ·\n■ ·")
    assert gf.Padding([1, 2]).draw(1, 2, batch=1) == "■ ■"
    assert repr(~(gf.Causal() | gf.Prefix(2)) & gf.Causal()) == (
        "~(Causal() | Prefix(length=2)) & Causal()"
    )
    assert repr(gf.Explicit(torch.ones(2, 1, 3, 5, dtype=torch.bool))) == (
        "Explicit(tensor=2×1×3×5 bool)"
    )


def test_sizes_to_draw_come_from_the_data() -> None:
    both = gf.Documents([0, 0, 1, 1]) | gf.Prefix(3)
    assert both.draw() == "■ ■ ■ ·\n■ ■ ■ ·\n■ ■ ■ ■\n■ ■ ■ ■"
    assert gf.Prefix(2).draw().splitlines() == ["■ ■ · · ·"] * 5
    assert gf.Padding([2, 3], of="queries").draw(n_keys=2) == "■ ■\n■ ■\n· ·"
    assert gf.Documents([0, 1], query_ids=[1]).draw() == "· ■"


def test_large_masks_are_pooled_in_the_drawing() -> None:
    lines = gf.Causal().draw(6, 6, most=3).splitlines()
    assert lines == ["▣ · ·", "■ ▣ ·", "■ ■ ▣", "(6 queries × 6 keys, one mark for about 2 × 2)"]
    assert gf.Causal().draw(1000).count("\n") == 48
    assert draw_cells(torch.ones(0, 3).bool()) == "(0 queries × 3 keys: nothing to draw)"


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=6))
def test_drawing_reads_back(rows: list[list[bool]]) -> None:
    mask = gf.Explicit(torch.tensor(rows))
    assert_same(gf.Explicit.from_drawing(mask.draw()).tensor, mask.tensor)


def test_to_moves_every_tensor() -> None:
    mask = gf.Causal() & (~gf.Padding(torch.tensor([1])) | gf.Documents(torch.tensor([1, 2])))
    moved = mask.to("meta")
    assert moved.b.a.a.lengths.is_meta and moved.b.b.ids.is_meta


# ── other conventions ──


def test_torch_mha_convention_is_turned_around() -> None:
    hidden = ~drawn("x.. / xx. / xxx")
    padding = torch.tensor([[False, False, True], [False, True, True]])
    got = gf.from_torch_mha(hidden, padding).dense(3, batch=2)[:, 0]
    assert_same(got, torch.stack([drawn("x.. / xx. / xx."), drawn("x.. / x.. / x..")]))
    per_head = torch.rand(6, 3, 3) > 0.5
    got = gf.from_torch_mha(per_head, n_heads=2).dense(3, batch=3, n_heads=2)
    assert_same(got, ~per_head.unflatten(0, (3, 2)))


@pytest.mark.plain
def test_torch_mha_refusals() -> None:
    with pytest.raises(DtypeError, match=r"attn_mask must be bool.*float32.*bias="):
        gf.from_torch_mha(torch.zeros(3, 3))
    with pytest.raises(DtypeError, match=r"key_padding_mask must be bool.*int64"):
        gf.from_torch_mha(key_padding_mask=torch.zeros(2, 3).long())
    with pytest.raises(ConfigError, match=r"rank 3.*\(6, 3, 3\).*n_heads=4"):
        gf.from_torch_mha(torch.zeros(6, 3, 3).bool(), n_heads=4)
    with pytest.raises(ShapeError, match=r"key_padding_mask must be \(B, S\); got shape \(3,\)"):
        gf.from_torch_mha(key_padding_mask=torch.zeros(3).bool())
    with pytest.raises(ConfigError, match="got neither"):
        gf.from_torch_mha()


# ── refusals ──


@pytest.mark.plain
@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: gf.Window(left=-1), ConfigError, r"left=….*at least 0; got -1"),
        (lambda: gf.Prefix(-5), ConfigError, r"Prefix.*at least 0; got -5"),
        (gf.Window, ConfigError, r"needs left, right or both; got neither"),
        (lambda: gf.Padding([1], of="values"), ConfigError, r"'queries' or 'both'; got 'values'"),
        (lambda: gf.Padding([1], side="top"), ConfigError, r"'right' or 'left'; got 'top'"),
        (lambda: gf.Explicit(torch.ones(3, 3)), DtypeError, r"bool.*float32.*\(3, 3\).*bias="),
        (lambda: gf.Explicit(torch.ones(3, 3).int()), DtypeError, r"int32.*mask\.bool\(\)"),
        (lambda: gf.Explicit(torch.ones(2, 3, 3).bool()), ShapeError, r"rank 2.*\(2, 3, 3\)"),
        (lambda: gf.Causal() & "x", DtypeError, r"mask value such as.*got str"),
        (lambda: bool(gf.Causal()), ConfigError, r"no truth value.*Causal\(\).*& \| ~"),
        (lambda: gf.Explicit.from_drawing("x. / x"), ConfigError, r"rows of \[2, 1\] marks"),
        (lambda: gf.Explicit.from_drawing("x?"), ConfigError, r"with \['\?'\]"),
    ],
)
def test_construction_refusals(
    make: Callable[[], object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        make()


@pytest.mark.plain
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: gf.Padding([5, 3]), r"0 … 4, the length of the keys; got 3 to 5"),
        (lambda: gf.Padding([4, 2], of="queries"), r"0 … 3, the length of the queries; got 2 to 4"),
        (lambda: gf.Padding([-1, 2]), r"0 … 4.*got -1 to 2"),
        (
            lambda: gf.Padding([1, 2, 3]),
            r"one whole number per sequence.*\(2,\); got torch.int64.*\(3,\)",
        ),
        (lambda: gf.Padding(torch.tensor([1.0, 2.0])), r"whole number.*float32"),
        (lambda: gf.Prefix(5), r"Prefix\(length\) must lie in 0 … 4.*got 5"),
        (lambda: gf.Prefix(torch.tensor([1])), r"one whole number per sequence, \(2,\).*\(1,\)"),
        (
            lambda: gf.Causal(offset=torch.tensor([1, 2, 3])),
            r"offset.*\(2,\); got torch.int64.*\(3,\)",
        ),
        (lambda: gf.Window(1, offset=torch.tensor(0.5)), r"offset must be a whole number.*float32"),
        (
            lambda: gf.Documents(torch.zeros(3).long()),
            r"Documents\(ids\).*\(4,\).*\(2, 4\); got \(3,\)",
        ),
        (
            lambda: gf.Documents(torch.zeros(4).long(), query_ids=torch.zeros(4).long()),
            r"query_ids\).*\(3,\).*\(2, 3\); got \(4,\)",
        ),
        (lambda: gf.Explicit(torch.ones(3, 5).bool()), r"\(2, 1, 3, 4\); got \(3, 5\)"),
        (lambda: gf.Explicit(torch.ones(2, 4).bool()), r"mask\[:, None, None, :\] or Padding"),
        (lambda: gf.Explicit(torch.ones(3, 1, 3, 4).bool()), r"got \(3, 1, 3, 4\)"),
    ],
)
def test_fitting_refusals(make: Callable[[], gf.Mask], sentence: str) -> None:
    """Each against two sequences of 3 queries and 4 keys."""
    with pytest.raises(ShapeError, match=sentence):
        make().dense(3, 4, batch=2)


@pytest.mark.plain
def test_more_queries_than_keys_need_query_ids() -> None:
    with pytest.raises(ShapeError, match=r"L ≤ S; got L=4, S=3.*\(1, 4\)"):
        gf.Documents(torch.zeros(3).long()).dense(4, 3)


@pytest.mark.plain
def test_other_device_is_named() -> None:
    with pytest.raises(
        DtypeError, match=r"lengths of Padding.* on meta and q on cpu.*mask.to\('cpu'\)"
    ):
        gf.Padding(torch.ones(2, dtype=torch.long, device="meta")).fit_to(
            Extent(2, 1, 3, 3), torch.device("cpu")
        )


def test_lists_follow_the_device() -> None:
    extent, meta = Extent(2, 1, 3, 3), torch.device("cpu")
    assert isinstance(gf.Padding([1, 2]).fit_to(extent, meta).lengths, torch.Tensor)


@pytest.mark.plain
def test_indices_refusals() -> None:
    cpu = torch.device("cpu")
    with pytest.raises(ShapeError, match=r"rows must lie in 0 … 4; got values from 2 to 5"):
        as_indices([2, 5], 5, "rows", cpu)
    with pytest.raises(ShapeError, match=r"cols must be a slice or a flat list.*float32"):
        as_indices(torch.tensor([0.5]), 5, "cols", cpu)
    assert as_indices([], 5, "rows", cpu).tolist() == []


def test_indices_of_every_form() -> None:
    cpu = torch.device("cpu")
    for form in (slice(1, 4), range(1, 4), [1, 2, 3], torch.tensor([1, 2, 3])):
        assert as_indices(form, 5, "rows", cpu).tolist() == [1, 2, 3]
