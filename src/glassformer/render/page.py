"""A trace as one page: a single HTML file that needs nothing else, and no network.

The page carries operands, never matrices; the browser computes what is looked at. The rows of q, k
and v travel as 16-bit whole numbers with one step per row, so that no value is off by more than
half a step, 1.6e-5 of the largest of its row. web/ holds the sources of static/page.html.
"""

import base64
import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.attention import RelativeBuckets
from glassformer.attention.biases import BiasSum
from glassformer.errors import CheckpointError, TraceError
from glassformer.languages import CODES, Language
from glassformer.models.checkpoints.writing import whole_file
from glassformer.observe import Run, Site, Trace
from glassformer.observe.parts import taken_apart

VERSION = 1
MOST_TOKENS = 2048
MOST_BYTES = 200_000_000  # browsers hold text up to 2^29 characters
_PLACEHOLDER = "@@glassformer-trace@@"
_STEPS = 32767
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
    try:
        with whole_file(path) as unfinished:
            unfinished.write_text(html, "utf-8")
    except CheckpointError as error:
        raise TraceError(str(error)) from None


def page_html(trace: Trace, language: Language) -> str:
    """The page as text."""
    _check(trace)
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
            self.packed.append(_packed(tensor))
        return self._known[key]


def _check(trace: Trace) -> None:
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
            name: words.labels or [[str(t) for t in row] for row in words.tokens.tolist()]
            for name, words in run.texts.items()
        },
        "sites": [_site(site, tensors) for site in run.sites.values()],
        "refusals": run.refusals,
    }


def _site(site: Site, tensors: _Tensors) -> dict[str, Any]:
    head_dim = site.q.shape[-1]
    return {
        "name": site.name,
        "queries": site.queries,
        "keys": site.keys,
        "shape": list(site.shape),
        "n_kv_heads": site.k.shape[1],
        "head_dim": head_dim,
        "value_dim": site.v.shape[-1],
        "dtype": str(site.q.dtype).removeprefix("torch."),
        "scale": head_dim**-0.5 if site.scale is None else float(site.scale),
        "softcap": None if site.softcap is None else float(site.softcap),
        "q": _rows(site.q),
        "k": _rows(site.k),
        "v": _rows(site.v),
        "mask": _parts(site.mask, site, tensors),
        "bias": _parts(site.bias, site, tensors),
    }


def _rows(operand: Float[Tensor, "B H L D"]) -> dict[str, str]:
    """Row vectors in 16 bits: value = whole number · step, where a step is largest / 32767.

    A row with something that is no finite number has the step NaN, so that this stays visible.
    """
    values = operand.detach().cpu().double()
    steps = (values.abs().amax(-1) / _STEPS).float()
    steps = steps.masked_fill(~steps.isfinite(), torch.nan)
    whole = (values / steps.double().where(steps > 0, 1.0)[..., None]).round()
    whole = whole.nan_to_num(0.0).clamp(-_STEPS, _STEPS).short()
    return {"int16": _text(whole), "steps": _text(steps)}


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


def _packed(tensor: Tensor) -> dict[str, Any]:
    if tensor.dtype == torch.bool:
        return {"shape": list(tensor.shape), "bits": _text(_bits(tensor))}
    return {"shape": list(tensor.shape), "float32": _text(tensor.detach().cpu().float())}


def _bits(tensor: Tensor) -> Tensor:
    import numpy as np

    return torch.from_numpy(np.packbits(tensor.cpu().flatten().numpy()))


def _text(tensor: Tensor) -> str:
    array = tensor.contiguous().numpy()
    return base64.b64encode(array.astype(array.dtype.newbyteorder("<")).tobytes()).decode("ascii")


def _texts(code: str) -> dict[str, str]:
    content = files("glassformer.languages").joinpath(f"{code}.json").read_text("utf-8")
    catalogue = json.loads(content)
    return {key: catalogue[key] for key in KEYS}


@cache
def _template() -> str:
    return files("glassformer.render").joinpath("static/page.html").read_text("utf-8")
