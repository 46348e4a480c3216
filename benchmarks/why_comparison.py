"""Every tool on every model: the largest difference of each quantity."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from why_float64 import read_by_hand
from why_models import FAMILIES, FURTHER, SMOLLM2, Case, smollm2_cases, tiny_case
from why_nnsight import Nnsight
from why_ours import Glassformer
from why_page import BY_HAND, NNSIGHT, OURS, TRANSFORMER_LENS, Record
from why_quantities import REMAINDER, Quantities, compute
from why_transformer_lens import TransformerLens

NAMES = (*FAMILIES, *FURTHER, SMOLLM2)


def compare_model(name: str, gguf: Path, root: Path) -> Iterator[Record]:
    """The eight families and SmolLM2 with both peers, further families with TransformerLens."""
    cases = smollm2_cases(gguf, root) if name == SMOLLM2 else [tiny_case(name, root)]
    yield from _compare(cases, {} if name in FURTHER else {NNSIGHT: Nnsight})


def _compare(cases: list[Case], more: dict[str, Any]) -> Iterator[Record]:
    """Cases of one folder: the peers compute theirs once."""
    fused = Glassformer(cases[0])
    for case in cases:
        case.choose_targets(fused.run(case.tokens), fused.run(case.clean))
    ours = {case.name: compute(Glassformer(case), case) for case in cases}
    theirs = {
        name: compute(tool(cases[0]), cases[0])
        for name, tool in {TRANSFORMER_LENS: TransformerLens, **more}.items()
    }
    for case in cases:
        for peer, found in theirs.items():
            yield from _differences(case.name, OURS, ours[case.name], peer, found)
    if cases[0].name == SMOLLM2:
        exact = read_by_hand(cases[0])
        for case in cases:
            yield from _differences(case.name, OURS, ours[case.name], BY_HAND, exact)
        for peer, found in theirs.items():
            yield from _differences(SMOLLM2, peer, found, BY_HAND, exact)


def _differences(
    model: str, tool: str, ours: Quantities, peer: str, theirs: Quantities
) -> Iterator[Record]:
    """The largest difference of each quantity that both have, and the largest value."""
    for quantity in ours:
        if quantity not in theirs:
            continue
        a, b = ours[quantity].double(), theirs[quantity].double()
        if a.shape != b.shape:
            raise ValueError(f"{model}, {quantity}: {a.shape} in {tool}, {b.shape} in {peer}")
        apart = _largest(b) if quantity == REMAINDER else _largest(a - b)
        yield Record(model, tool, peer, quantity, apart, _largest(b))


def _largest(x: Tensor) -> float:
    return float(x.abs().max())
