"""Tensors and a JSON header in one safetensors file: how traces and interventions are saved."""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from glassformer.errors import GlassformerError, TraceError
from glassformer.parsing import parse_json
from glassformer.settings import quote, summarize_error
from glassformer.storage import atomic_file

VERSION = 1


def write_tensors(
    path: Path,
    kind: str,
    tensors: dict[str, Tensor],
    header: dict[str, Any],
    error: type[GlassformerError] = TraceError,
) -> None:
    """Write a file whole or not at all; it replaces one of its kind, but no other file."""
    mark = f"glassformer.{kind}"
    with atomic_file(path, error, mark=f'"{mark}"'.encode()) as unfinished:
        save_file(
            _separate_storages(tensors),
            unfinished,
            metadata={mark: json.dumps({"version": VERSION, **header}, ensure_ascii=False)},
        )


def read_tensors(
    path: Path, kind: str, remedy: str, error: type[GlassformerError] = TraceError
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header of a file, and its tensors; another file, or a damaged one, raises `error`.

    `remedy` says how to get such a file again.
    """
    a_file = f"{'a trace' if kind == 'trace' else f'a file of {kind}'}"
    if not path.is_file():
        raise error(f"{a_file.capitalize()} must be a file; {path} is not there.")
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get(f"glassformer.{kind}")
            if header is None:
                raise error(f"{path} must be {a_file} of glassformer; it is another file.")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as wrong:
        if isinstance(wrong, error):
            raise
        raise error(
            f"{path} is damaged, or was not written to its end: {summarize_error(wrong)}. {remedy}."
        ) from None
    described = parse_json(header, f"The header of {path}", error)
    version = described.get("version") if isinstance(described, dict) else None
    if version != VERSION:
        raise error(
            f"{path} is {a_file} of version {quote(version)}; this glassformer reads version "
            f"{VERSION}. {remedy}, or use the version that wrote it."
        )
    return described, tensors


def _separate_storages(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Copies on the CPU that share no memory: safetensors refuses shared memory."""
    kept, seen = {}, set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        where = plain.untyped_storage().data_ptr()
        kept[name] = plain.clone() if where in seen else plain
        seen.add(where)
    return kept
