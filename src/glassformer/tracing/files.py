"""A trace as one safetensors file; everything that is not a tensor is in its header."""

import json
import reprlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import GlassformerError, TraceError
from glassformer.functional.checks import check_scoring, check_values
from glassformer.settings import Count, Whole, quote, read_settings
from glassformer.tracing.mask_codec import decode_mask, encode_mask
from glassformer.tracing.shard_files import Part, find_shards, join_traces, shard_path
from glassformer.tracing.site import Site
from glassformer.tracing.stream_files import StreamHeader, decode_stream, encode_stream
from glassformer.tracing.tensor_file import read_tensors, write_tensors
from glassformer.tracing.trace import Run, Trace, TracedText

OPERANDS = ("q", "k", "v", "out")
SELECTED = ("heads", "rows", "n_rows")  # where only a part was recorded


def save_trace(trace: Trace, path: Path) -> None:
    """Write a trace whole or not at all; it replaces a trace of that name, but no other file.

    A part of a trace that several ranks recorded goes into the folder of that name.
    """
    path = path if trace.part is None else shard_path(path, trace)
    tensors: dict[str, Tensor] = {}
    runs = [encode_run(run, f"{i}", tensors) for i, run in enumerate(trace.runs)]
    write_tensors(path, "trace", tensors, {"model": trace.model, "runs": runs})


def append_trace(trace: Trace, path: Path) -> None:
    """Add the runs of a trace to those of a file, whole or not at all.

    Both must describe the same model: the runs of a file are shown side by side.
    """
    if trace.part is not None:
        raise TraceError(
            "Runs are added to a trace of one process; this one is a part of several. Save it."
        )
    if not path.exists():
        save_trace(trace, path)
        return
    there = load_trace(path)
    ours = json.loads(json.dumps(trace.model))  # as a file would return it
    if _flatten(there.model) != _flatten(ours):
        theirs, own = _format_differences(there.model, ours), _format_differences(ours, there.model)
        raise TraceError(
            f"Runs of one file must be of one model; {path} is of {theirs}, this trace of {own}. "
            "Save it under another name."
        )
    save_trace(Trace([*there.runs, *trace.runs], ours), path)


def _format_differences(model: dict[str, Any], other: dict[str, Any]) -> str:
    """The fields in which a model differs from another: n_layers=2, dim=16."""
    flat, rest = _flatten(model), _flatten(other)
    own = [name for name in flat if name not in rest or flat[name] != rest[name]]
    shown = ", ".join(f"{name}={reprlib.repr(flat[name])}" for name in own[:3])
    return shown + (", …" if len(own) > 3 else "") or "a model without these"


def _flatten(model: dict[str, Any]) -> dict[str, Any]:
    config = model.get("config")
    # A copy of a folder has another name but is the same model.
    rest = {name: value for name, value in model.items() if name not in ("config", "name")}
    return rest | (config if isinstance(config, dict) else {"config": config})


def load_trace(path: Path) -> Trace:
    """Read a trace, or the parts of one in a folder; a damaged file raises a TraceError."""
    if path.is_dir():
        shards = find_shards(path)
        return join_traces([Part.of(each.rank, load_trace(each.path)) for each in shards])
    described, tensors = read_tensors(path, "trace", "Save the trace again")
    try:
        whole = read_settings(_TraceHeader, described, "The header")
        runs = [decode_run(run, f"{i}", tensors) for i, run in enumerate(whole.runs)]
    except GlassformerError as error:
        raise TraceError(f"{path} is damaged: {str(error).rstrip('.')}.") from None
    return Trace(runs, whole.model)


@dataclass(frozen=True, kw_only=True, slots=True)
class _SiteHeader:
    """A site in the header."""

    name: str
    queries: str
    keys: str
    scale: float | None = None
    softcap: float | None = None
    heads: tuple[Whole, ...] | None = None
    rows: tuple[Whole, ...] | None = None
    n_rows: Count | None = None
    mask: dict[str, Any] | None = None
    bias: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RunHeader:
    """A run in the header."""

    sites: tuple[_SiteHeader, ...]
    labels: dict[str, Any]
    refusals: dict[str, Any]
    following: dict[str, Any] | None = None
    streams: tuple[StreamHeader, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _TraceHeader:
    version: int
    model: dict[str, Any]
    runs: tuple[RunHeader, ...]


def encode_run(run: Run, where: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """The header of a run; its tensors are added to `tensors`, under `where`."""
    sites = []
    for site in run.sites.values():
        prefix = f"{where}/{site.name}"
        for name in OPERANDS:
            if (operand := getattr(site, name)) is not None:
                tensors[f"{prefix}/{name}"] = operand
        sites.append(
            {
                "name": site.name,
                "queries": site.queries,
                "keys": site.keys,
                "scale": site.scale,
                "softcap": site.softcap,
                **{name: getattr(site, name) for name in SELECTED},
                "mask": encode_mask(site.mask, f"{prefix}/mask", tensors),
                "bias": encode_mask(site.bias, f"{prefix}/bias", tensors),
            }
        )
    for name, words in run.texts.items():
        tensors[f"{where}/{name}"] = words.tokens
    labels = {name: words.labels for name, words in run.texts.items()}
    following = {name: words.following for name, words in run.texts.items()}
    return {
        "sites": sites,
        "labels": labels,
        "following": following,
        "refusals": run.refusals,
        "streams": [encode_stream(each, where, tensors) for each in run.streams.values()],
    }


def decode_run(header: RunHeader, where: str, tensors: dict[str, Tensor]) -> Run:
    """The run of a header; what does not fit raises a TraceError."""
    following = header.following or {}  # older files have none
    texts = {
        name: _decode_text(
            _find_tensor(tensors, f"{where}/{name}"), labels, following.get(name, []), name
        )
        for name, labels in header.labels.items()
    }
    sites: dict[str, Site] = {}
    for each in header.sites:
        if each.name in sites:
            raise TraceError(f"it has the site {quote(each.name)} twice")
        sites[each.name] = _decode_site(each, f"{where}/{each.name}", tensors, texts)
    for name, why in header.refusals.items():
        if not isinstance(why, str):
            raise TraceError(f"the refusal of {quote(name)} must be a text; it is {quote(why)}")
    streams = {each.name: decode_stream(each, where, tensors) for each in header.streams or ()}
    return Run(sites, texts, header.refusals, streams)


def _decode_site(
    header: _SiteHeader, prefix: str, tensors: dict[str, Tensor], texts: dict[str, TracedText]
) -> Site:
    q, k, v = (_find_tensor(tensors, f"{prefix}/{name}") for name in ("q", "k", "v"))
    out = tensors.get(f"{prefix}/out")
    check_scoring(q, k, mask=None, bias=None, scale=None, softcap=None)
    check_values(q, k, v, 0.0)
    B, H, L, _ = q.shape
    if out is not None and (out.shape != (B, H, L, v.shape[3]) or not out.is_floating_point()):
        raise TraceError(f"{prefix}/out must fit q and v; it has shape {tuple(out.shape)}")
    n_rows = L if header.n_rows is None else header.n_rows
    for name, chosen, n in (("heads", header.heads, H), ("rows", header.rows, L)):
        if chosen is not None and (len(chosen) != n or len(set(chosen)) != n):
            raise TraceError(f"{name} of {prefix} must name {n} of them, each once")
    if n_rows < L or (header.rows is not None and max(header.rows, default=0) >= n_rows):
        raise TraceError(f"rows of {prefix} must lie among the {n_rows} that passed")
    for name, least in ((header.queries, L), (header.keys, k.shape[2])):
        words = texts.get(name)
        if words is not None and (len(words.tokens) < B or words.tokens.shape[1] < least):
            raise TraceError(
                f"the text {quote(name)} must have a token for each of {least} places of {prefix}; "
                f"it has shape {tuple(words.tokens.shape)}"
            )
    return Site(
        **{
            n: getattr(header, n)
            for n in ("name", "queries", "keys", "scale", "softcap", *SELECTED)
        },
        q=q,
        k=k,
        v=v,
        out=out,
        mask=decode_mask(header.mask, tensors),
        bias=decode_mask(header.bias, tensors),
    )


def _find_tensor(tensors: dict[str, Tensor], name: str) -> Tensor:
    if name not in tensors:
        raise TraceError(f"the tensor {quote(name)} is missing")
    return tensors[name]


def _decode_text(tokens: Tensor, labels: Any, following: Any, name: str) -> TracedText:
    if tokens.ndim != 2 or tokens.is_floating_point() or tokens.dtype == torch.bool:
        raise TraceError(f"the tokens of {quote(name)} must be whole numbers in rows")
    if not isinstance(labels, list) or not all(isinstance(row, list) for row in labels):
        raise TraceError(f"the labels of {quote(name)} must be lists; they are {quote(labels)}")
    if labels and [len(row) for row in labels] != [tokens.shape[1]] * len(tokens):
        raise TraceError(f"the text {quote(name)} must have one label for each token")
    if not all(isinstance(label, str) for row in labels for label in row):
        raise TraceError(f"labels of {quote(name)} must be texts")
    fits = isinstance(following, list) and all(isinstance(label, str) for label in following)
    if not fits or len(following) not in (0, len(tokens)):
        raise TraceError(
            f"{quote(name)} must have one following label for each sequence, or none; it has "
            f"{quote(following)}"
        )
    return TracedText(tokens, labels, following)
