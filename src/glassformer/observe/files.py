"""A trace as one file: safetensors, with what is no tensor in its header."""

import json
import reprlib
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from glassformer.errors import GlassformerError, TraceError
from glassformer.observe.parts import put_together, taken_apart
from glassformer.observe.site import Site
from glassformer.observe.trace import Run, Trace, Words
from glassformer.storage import whole_file

VERSION = 1
OPERANDS = ("q", "k", "v", "out")
CHOSEN = ("heads", "rows", "n_rows")  # where not all was recorded


def save_trace(trace: Trace, path: Path) -> None:
    """Write a trace whole or not at all; a trace of that name is replaced, no other file."""
    tensors: dict[str, Tensor] = {}
    runs = [_described(run, f"{i}", tensors) for i, run in enumerate(trace.runs)]
    header = {"version": VERSION, "model": trace.model, "runs": runs}
    with whole_file(path, TraceError, mark=b'"glassformer.trace"') as unfinished:
        save_file(
            _apart(tensors),
            unfinished,
            metadata={"glassformer.trace": json.dumps(header, ensure_ascii=False)},
        )


def append_trace(trace: Trace, path: Path) -> None:
    """Write the runs of a file and those of a trace into it, whole or not at all.

    The models must be described alike: runs of one file are shown side by side.
    """
    if not path.exists():
        save_trace(trace, path)
        return
    there = load_trace(path)
    ours = json.loads(json.dumps(trace.model))  # as a file would give it back
    if _flat(there.model) != _flat(ours):
        raise TraceError(
            f"Runs of one file must be of one model; {path} is of {_told(there.model, ours)}, "
            f"this trace of {_told(ours, there.model)}. Save it under another name."
        )
    save_trace(Trace([*there.runs, *trace.runs], ours), path)


def _told(model: dict[str, Any], other: dict[str, Any]) -> str:
    """What a model is, by what another is not: n_layers=2, dim=16."""
    flat, rest = _flat(model), _flat(other)
    own = [name for name in flat if name not in rest or flat[name] != rest[name]]
    told = ", ".join(f"{name}={reprlib.repr(flat[name])}" for name in own[:3])
    return told + (", …" if len(own) > 3 else "") or "a model without these"


def _flat(model: dict[str, Any]) -> dict[str, Any]:
    config = model.get("config")
    # A copy of a folder has another name, and is the same model.
    rest = {name: value for name, value in model.items() if name not in ("config", "name")}
    return rest | (config if isinstance(config, dict) else {"config": config})


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """On the CPU, and none of them a part of another's memory, which the format refuses."""
    kept, seen = {}, set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        where = plain.untyped_storage().data_ptr()
        kept[name] = plain.clone() if where in seen else plain
        seen.add(where)
    return kept


def load_trace(path: Path) -> Trace:
    """Read a trace; what is no trace, or a damaged one, is told in a sentence."""
    if not path.is_file():
        raise TraceError(f"A trace must be a file; {path} is not there.")
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get("glassformer.trace")
            if header is None:
                raise TraceError(f"{path} must be a trace of glassformer; it is another file.")
            described = json.loads(header)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise TraceError(
            f"{path} is damaged, or was not written to its end: {error}. Save the trace again."
        ) from None
    version = described.get("version") if isinstance(described, dict) else None
    if version != VERSION:
        raise TraceError(
            f"{path} is a trace of version {version!r}; this glassformer reads version {VERSION}. "
            "Record it again, or use the version that wrote it."
        )
    try:
        runs = [_run(run, f"{i}", tensors) for i, run in enumerate(described["runs"])]
        return Trace(runs, dict(described["model"]))
    except (LookupError, TypeError, ValueError, AttributeError, GlassformerError) as error:
        raise TraceError(f"{path} is damaged: {type(error).__name__} {error}.") from None


def _described(run: Run, where: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
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
                **{name: getattr(site, name) for name in CHOSEN},
                "mask": taken_apart(site.mask, f"{prefix}/mask", tensors),
                "bias": taken_apart(site.bias, f"{prefix}/bias", tensors),
            }
        )
    for name, words in run.texts.items():
        tensors[f"{where}/{name}"] = words.tokens
    labels = {name: words.labels for name, words in run.texts.items()}
    following = {name: words.following for name, words in run.texts.items()}
    return {"sites": sites, "labels": labels, "following": following, "refusals": run.refusals}


def _run(described: dict[str, Any], where: str, tensors: dict[str, Tensor]) -> Run:
    sites = {}
    for plain in described["sites"]:
        prefix = f"{where}/{plain['name']}"
        sites[plain["name"]] = Site(
            **{k: plain[k] for k in ("name", "queries", "keys", "scale", "softcap")},
            **_chosen(plain),
            q=tensors[f"{prefix}/q"],
            k=tensors[f"{prefix}/k"],
            v=tensors[f"{prefix}/v"],
            out=tensors.get(f"{prefix}/out"),
            mask=put_together(plain["mask"], tensors),
            bias=put_together(plain["bias"], tensors),
        )
    following = described.get("following", {})  # files before it was kept have none
    texts = {
        name: _words(tensors[f"{where}/{name}"], labels, following.get(name, []))
        for name, labels in described["labels"].items()
    }
    return Run(sites, texts, dict(described["refusals"]))


def _chosen(plain: dict[str, Any]) -> dict[str, Any]:
    found = {name: plain.get(name) for name in CHOSEN}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in found.items()}


def _words(tokens: Tensor, labels: list[list[str]], following: list[str]) -> Words:
    if labels and [len(row) for row in labels] != [tokens.shape[1]] * len(tokens):
        raise ValueError("a text must have one label for each token")
    if not all(isinstance(label, str) for row in labels for label in row):
        raise TypeError("labels must be texts")
    if following and (
        len(following) != len(tokens) or not all(isinstance(label, str) for label in following)
    ):
        raise ValueError("a text must have one following label for each sequence, or none")
    return Words(tokens, labels, list(following))
