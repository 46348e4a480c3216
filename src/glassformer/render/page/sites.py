"""The sites of a run as page data: a description of each, and its operands separately."""

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from glassformer.functional import RelativeBuckets
from glassformer.functional.biases import BiasSum
from glassformer.render.difference import MOST_QUERIES, sample_for_comparison
from glassformer.render.page.packing import pack_rows, pack_tensor, round_as_packed
from glassformer.render.sampled_queries import select_evenly
from glassformer.render.tokens import next_tokens, predicts_next, token_names
from glassformer.tracing import Site, Trace
from glassformer.tracing.mask_codec import encode_mask

_MOST_CHARACTERS = 200  # of a token's label


class Tensors:
    """The tensors of masks and biases, each stored once even if several layers share it."""

    def __init__(self) -> None:
        self.packed: list[dict[str, Any]] = []
        self._known: dict[tuple, int] = {}
        self._alive: list[Tensor] = []  # so that no address is reused

    def number(self, tensor: Tensor) -> int:
        """The index of a tensor, which is packed when it is first seen."""
        key = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
        if key not in self._known:
            self._known[key] = len(self.packed)
            self._alive.append(tensor)
            self.packed.append(pack_tensor(tensor))
        return self._known[key]


class Names:
    """Lists of tokens, each stored once: layers share them."""

    def __init__(self) -> None:
        self.lists: list[tuple[str | None, ...]] = []
        self._known: dict[tuple[str | None, ...], int] = {}

    def number(self, names: list[str] | list[str | None]) -> int:
        """The index of a list of tokens."""
        short = tuple(None if name is None else _short(name) for name in names)
        if short not in self._known:
            self._known[short] = len(self.lists)
            self.lists.append(short)
        return self._known[short]


def _short(label: str) -> str:
    return label if len(label) <= _MOST_CHARACTERS else f"{label[: _MOST_CHARACTERS - 1]}…"


def pack_site(site: Site) -> dict[str, Any]:
    """The operands from which the page computes every number of a site, and how exact they are."""
    operands = {"q": pack_rows(site.q), "k": pack_rows(site.k), "v": pack_rows(site.v)}
    return operands | {"difference": _difference(site)}


def _list_positions(site: Site) -> int | list[int]:
    """The key position of each query: the first where they follow each other, as nearly always."""
    positions = site.query_positions
    is_run = len(positions) > 0 and bool((positions.diff() == 1).all())
    return int(positions[0]) if is_run else positions.tolist()


def describe_site(trace: Trace, site: Site, names: Names, tensors: Tensors) -> dict[str, Any]:
    """What is shown of a site first, and how its scores are computed; nothing is measured."""
    head_dim = site.q.shape[-1]
    sequences = range(site.shape[0])
    both = [token_names(trace, site, sequence) for sequence in sequences]
    following = None
    if predicts_next(trace, site):
        following = [names.number(next_tokens(trace, site, sequence)) for sequence in sequences]
    return {
        "name": site.name,
        "queries": [names.number(queries) for queries, _ in both],
        "keys": [names.number(keys) for _, keys in both],
        "next": following,
        "shape": list(site.shape),
        "heads": list(site.head_numbers),
        "query_positions": _list_positions(site),
        "n_kv_heads": site.k.shape[1],
        "head_dim": head_dim,
        "value_dim": site.v.shape[-1],
        "dtype": str(site.q.dtype).removeprefix("torch."),
        "scale": head_dim**-0.5 if site.scale is None else float(site.scale),
        "softcap": None if site.softcap is None else float(site.softcap),
        "mask": _parts(site.mask, site, tensors),
        "bias": _parts(site.bias, site, tensors),
    }


def measure_sharpness(site: Site) -> list[list[float | None]]:
    """The sharpness of each head of each sequence; None if no query has more than one key."""
    some = select_evenly(site, MOST_QUERIES)
    found = [some.sharpness(sequence=sequence).tolist() for sequence in range(site.shape[0])]
    return [[round(v, 5) if math.isfinite(v) else None for v in heads] for heads in found]


def _difference(site: Site) -> dict[str, Any] | None:
    """The difference of weights · v from the model's output, with exact and packed operands."""
    if site.out is None:
        return None
    exact = sample_for_comparison(site)
    q, k, v = (round_as_packed(operand).double() for operand in (exact.q, exact.k, exact.v))
    here = replace(exact, q=q, k=k, v=v, _kept={})
    found = (exact.difference_from_output(), here.difference_from_output())
    recorded, page = (value if math.isfinite(value) else None for value in found)
    sampled = MOST_QUERIES if site.shape[2] > MOST_QUERIES else None
    return {"recorded": recorded, "page": page, "queries": sampled}


def _parts(part: Any, site: Site, tensors: Tensors) -> Any:
    """A mask or bias as plain values; tensors that are not integers are stored by index."""
    if part is None:
        return None
    if isinstance(part, BiasSum):
        a, b = (_parts(each, site, tensors) for each in (part.a, part.b))
        return {"kind": "BiasSum", "a": a, "b": b}
    found: dict[str, Tensor] = {}
    plain = _plain(encode_mask(part, "", found), found, tensors)
    if isinstance(part, RelativeBuckets):
        _, _, L, S = site.shape
        offset = torch.as_tensor(S - L if part.offset is None else part.offset)
        first, last = -int(offset.max()) - L + 1, S - 1 - int(offset.min())
        ahead = torch.arange(first, last + 1, device=part.table.device)
        plain |= {"first": first, "buckets": part.buckets(ahead).tolist()}
    return plain


def _plain(value: Any, found: dict[str, Tensor], tensors: Tensors) -> Any:
    if not isinstance(value, dict):
        return list(value) if isinstance(value, tuple | range) else value
    if "tensor" in value and "kind" not in value:
        tensor = found[value["tensor"]]
        whole = not tensor.is_floating_point() and tensor.dtype != torch.bool
        return tensor.tolist() if whole else tensors.number(tensor)
    return {name: _plain(each, found, tensors) for name, each in value.items()}
