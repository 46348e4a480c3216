"""A trace as one page: a single HTML file that needs nothing else, and no network.

The page carries operands, never matrices; the browser computes what is looked at. `packing` says
how they travel. web/ holds the sources of static/page.html.
"""

import json
import math
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.attention import RelativeBuckets
from glassformer.attention.biases import BiasSum
from glassformer.errors import TraceError
from glassformer.languages import CODES, Language
from glassformer.observe import Run, Site, Trace
from glassformer.observe.parts import taken_apart
from glassformer.render.difference import MOST_QUERIES, compared
from glassformer.render.packing import as_packed, packed_rows, packed_tensor
from glassformer.render.signature import PAGE
from glassformer.storage import whole_file

VERSION = 1
MOST_TOKENS = 2048
MOST_BYTES = 200_000_000  # browsers hold text up to 2^29 characters
_PLACEHOLDER = "@@glassformer-trace@@"
_MOST_CHARACTERS = 200  # of a token's name
# What the page says, in both languages: its own sources ask for these.
KEYS = (
    "page.overview",
    "page.overview.note",
    "page.overview.sampled",
    "page.overview.mark",
    "page.sharpness",
    "page.refused",
    "page.model.layers",
    "page.model.heads",
    "page.model.dim",
    "page.run",
    "page.sequence",
    "page.site",
    "page.layer",
    "page.head",
    "page.text",
    "page.theme",
    "page.theme.auto",
    "page.theme.light",
    "page.theme.dark",
    "page.language",
    "page.view",
    "page.view.heat",
    "page.view.lines",
    "page.view.statistics",
    "page.heat.label",
    "page.lines.label",
    "page.lines.note",
    "page.cell",
    "page.query",
    "page.key",
    "page.queries",
    "page.keytokens",
    "page.place",
    "page.weight",
    "page.hidden",
    "page.table.whole",
    "page.table.strongest",
    "page.scale.root",
    "page.zoom.in",
    "page.zoom.out",
    "page.zoom.fit",
    "page.mean",
    "page.entropy",
    "page.entropy.note",
    "page.peak",
    "page.peak.note",
    "page.distance",
    "page.distance.note",
    "page.received",
    "page.received.note",
    "page.arithmetic",
    "page.step.dots",
    "page.step.scale",
    "page.step.softcap",
    "page.step.bias",
    "page.step.mask",
    "page.step.mask.open",
    "page.step.mask.hidden",
    "page.step.exp",
    "page.step.weight",
    "page.step.empty",
    "page.step.sum",
    "page.step.part",
    "page.step.out",
    "page.precision",
    "page.difference",
    "page.difference.sampled",
    "page.difference.none",
    "page.keys",
    "page.keys.move",
    "page.keys.ends",
    "page.keys.ten",
    "page.keys.open",
    "page.keys.zoom",
    "page.keys.head",
    "page.keys.site",
    "page.keys.view",
    "page.keys.text",
    "page.keys.keys",
    "page.keys.close",
    "page.close",
)


def draw_page(trace: Trace, path: str | Path, *, language: Language) -> None:
    """Write the page, whole or not at all; it opens in this language and can change it."""
    path = Path(path)
    if path.suffix != ".html":
        raise TraceError(f"A page must be named .html; got {path.name!r}.")
    html = page_html(trace, language)
    with whole_file(path, TraceError, mark=PAGE) as unfinished:
        unfinished.write_text(html, "utf-8")


def page_html(trace: Trace, language: Language) -> str:
    """The page as text."""
    page_size(trace)
    tensors = _Tensors()
    runs = [_run(run, tensors) for run in trace.runs if run.sites]
    data = {
        "version": VERSION,
        "language": language.code,
        "languages": {code: _texts(code) for code in CODES},
        "model": _model(trace),
        "tensors": tensors.packed,
        "runs": runs,
    }
    # In ASCII no line separator is left, and without "<" neither an end tag nor a comment.
    plain = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return _template().replace(_PLACEHOLDER, plain)


class _Tensors:
    """What masks and biases hold, each tensor once, though every layer may share it."""

    def __init__(self) -> None:
        self.packed: list[dict[str, Any]] = []
        self._known: dict[tuple, int] = {}
        self._alive: list[Tensor] = []  # so that no other tensor takes an address

    def number(self, tensor: Tensor) -> int:
        key = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
        if key not in self._known:
            self._known[key] = len(self.packed)
            self._alive.append(tensor)
            self.packed.append(packed_tensor(tensor))
        return self._known[key]


def page_size(trace: Trace) -> int:
    """About how many bytes the page of a trace takes; what no page can show is told."""
    if not trace.runs or not any(run.sites for run in trace.runs):
        raise TraceError(
            "A page needs a trace with at least one site; got none. Run the model while it is "
            "observed, then draw the page."
        )
    sites = [site for run in trace.runs for site in run.sites.values()]
    longest = max(sites, key=lambda site: max(site.shape[2:]))
    if (length := max(longest.shape[2:])) > MOST_TOKENS:
        raise TraceError(
            f"A page shows texts of up to {MOST_TOKENS} tokens; got {length} at {longest.name}. "
            "Record a shorter text, or draw a figure, which pools long ones."
        )
    size = sum(_size(site) for site in sites)
    if size > MOST_BYTES:
        raise TraceError(
            f"A page holds up to {MOST_BYTES / 1e6:.0f} MB; this trace of {len(sites)} sites needs "
            f"{size / 1e6:.0f} MB. Record a shorter text, or choose layers: observe(…, layers=…)."
        )
    return size


def _size(site: Site) -> int:
    """About how many characters a site takes: 2 bytes for each value, 4 for each row, in base64."""
    operands = (site.q, site.k, site.v)
    return sum(4 * (2 * t.numel() + 4 * (t.numel() // t.shape[-1])) // 3 for t in operands)


def _model(trace: Trace) -> Any:
    """What is known of the model, numbers that JSON has no words for as words."""
    return json.loads(json.dumps(trace.model, default=str), parse_constant=str)


def _run(run: Run, tensors: _Tensors) -> dict[str, Any]:
    return {
        "texts": {
            name: [[_short(label) for label in row] for row in words.labels]
            or [[str(t) for t in row] for row in words.tokens.tolist()]
            for name, words in run.texts.items()
        },
        "sites": [_site(site, tensors) for site in run.sites.values()],
        "refusals": run.refusals,
    }


def _short(label: str) -> str:
    return label if len(label) <= _MOST_CHARACTERS else f"{label[: _MOST_CHARACTERS - 1]}…"


def _site(site: Site, tensors: _Tensors) -> dict[str, Any]:
    head_dim = site.q.shape[-1]
    return {
        "name": site.name,
        "queries": site.queries,
        "keys": site.keys,
        "shape": list(site.shape),
        "heads": list(site.head_numbers),
        "stands": site.stands.tolist(),
        "n_kv_heads": site.k.shape[1],
        "head_dim": head_dim,
        "value_dim": site.v.shape[-1],
        "dtype": str(site.q.dtype).removeprefix("torch."),
        "scale": head_dim**-0.5 if site.scale is None else float(site.scale),
        "softcap": None if site.softcap is None else float(site.softcap),
        "q": packed_rows(site.q),
        "k": packed_rows(site.k),
        "v": packed_rows(site.v),
        "mask": _parts(site.mask, site, tensors),
        "bias": _parts(site.bias, site, tensors),
        "difference": _difference(site),
    }


def _difference(site: Site) -> dict[str, Any] | None:
    """How far weights · v lie from the model's output: from its operands, and from the page's."""
    if site.out is None:
        return None
    exact = compared(site)
    q, k, v = (as_packed(operand).double() for operand in (exact.q, exact.k, exact.v))
    here = replace(exact, q=q, k=k, v=v, _kept={})
    found = (exact.difference_from_output(), here.difference_from_output())
    recorded, page = (value if math.isfinite(value) else None for value in found)
    sampled = MOST_QUERIES if site.shape[2] > MOST_QUERIES else None
    return {"recorded": recorded, "page": page, "queries": sampled}


def _parts(part: Any, site: Site, tensors: _Tensors) -> Any:
    """A mask or bias as plain values; what is not whole numbers as the number of a tensor."""
    if part is None:
        return None
    if isinstance(part, BiasSum):
        a, b = (_parts(each, site, tensors) for each in (part.a, part.b))
        return {"kind": "BiasSum", "a": a, "b": b}
    found: dict[str, Tensor] = {}
    plain = _plain(taken_apart(part, "", found), found, tensors)
    if isinstance(part, RelativeBuckets):
        _, _, L, S = site.shape
        stands = torch.as_tensor(S - L if part.offset is None else part.offset)
        first, last = -int(stands.max()) - L + 1, S - 1 - int(stands.min())
        ahead = torch.arange(first, last + 1, device=part.table.device)
        plain |= {"first": first, "buckets": part.buckets(ahead).tolist()}
    return plain


def _plain(value: Any, found: dict[str, Tensor], tensors: _Tensors) -> Any:
    if not isinstance(value, dict):
        return list(value) if isinstance(value, tuple | range) else value
    if "tensor" in value and "kind" not in value:
        tensor = found[value["tensor"]]
        whole = not tensor.is_floating_point() and tensor.dtype != torch.bool
        return tensor.tolist() if whole else tensors.number(tensor)
    return {name: _plain(each, found, tensors) for name, each in value.items()}


def _texts(code: str) -> dict[str, str]:
    content = files("glassformer.languages").joinpath(f"{code}.json").read_text("utf-8")
    catalogue = json.loads(content)
    return {key: catalogue[key] for key in KEYS}


@cache
def _template() -> str:
    return files("glassformer.render").joinpath("static/page.html").read_text("utf-8")
