"""What the workbench can open: the included models, and what the command line names.

Requests name these names and nothing else; where a name leads is known here alone. Descriptions are
read from small files: the server loads no weights.
"""

import json
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from glassformer.errors import ConfigError
from glassformer.paths import is_folder, user_path

Kind = Literal["included", "folder", "gguf", "trace"]
Family = Literal["encoder", "decoder", "encoder_decoder"]

# The first is the one that the workbench opens with.
_INCLUDED = ("translator", "writer", "storyteller", "reader")
_MOST = 500  # entries of one folder
_MOST_HEADER = 64 << 20  # bytes of the header of a trace; its operands come after it
_MOST_DESCRIPTION = 64 << 20  # bytes of a config or a tokenizer
_LARGE = 1 << 30  # bytes of weights that are held by one worker alone
_LANGUAGE = re.compile(r"<([a-z]{2})>")
_EXAMPLES = {
    "translator": "The cat sat on the mat.",
    "writer": "And God said unto Moses, Go",
    "storyteller": "It was a dark and stormy night",
    "reader": "I am going to [MASK] my homework.",
    "encoder": "The capital of France is [MASK].",
    "decoder": "When Mary and John went to the store, John gave a drink to",
    "encoder_decoder": "The cat sat on the mat.",
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """A model or a saved trace: its name, where it is, and what its files say about it."""

    name: str
    kind: Kind
    path: Path
    family: Family | None = None
    languages: tuple[str, ...] = ()
    is_large: bool = False

    @property
    def example(self) -> str | None:
        """A text to begin with; a trace has its own."""
        if self.kind == "trace":
            return None
        return _EXAMPLES.get(self.name if self.kind == "included" else self.family or "decoder")

    def as_entry(self) -> dict[str, Any]:
        """As /api/models describes it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "family": self.family,
            "languages": list(self.languages),
            "example": self.example,
        }


class Library:
    """Sources by name: those of the command line first, then the included models."""

    def __init__(self, paths: Iterable[str | Path] = ()) -> None:
        self._given = [_resolve(path) for path in paths]
        self._described: dict[tuple[Path, int], dict[str, Any]] = {}
        self.sources: dict[str, Source] = {}
        self.refresh()

    def refresh(self) -> None:
        """Look again at what is there: a training run may have saved its first weights."""
        found: dict[str, Source] = {}
        taken: set[str] = {*_INCLUDED}
        for path in dict.fromkeys(each for given in self._given for each in _find_sources(given)):
            name = _name(path, taken)
            taken.add(name)
            found[name] = Source(name=name, path=path, **self._describe(path))
        for name in _INCLUDED:
            path = Path(str(files("glassformer").joinpath("models", "pretrained", name)))
            found[name] = Source(
                name=name, path=path, **{**self._describe(path), "kind": "included"}
            )
        self.sources = found

    def find(self, name: str) -> Source:
        """The source of a name; a name that is not known opens nothing."""
        if name not in self.sources:
            known = ", ".join(list(self.sources)[:20])
            raise ConfigError(
                f"There is no model or trace {name[:100]!r} here; there are {known}. "
                "To add one, start the workbench with its path: glassformer serve PATH."
            )
        return self.sources[name]

    @property
    def default(self) -> Source:
        """What the workbench opens with."""
        return next(iter(self.sources.values()))

    def _describe(self, path: Path) -> dict[str, Any]:
        """What a source's small files say; read again only after a change."""
        folder = _select_weights(path)
        config = folder / "config.json" if folder.is_dir() else folder
        key = (config, config.stat().st_mtime_ns if config.exists() else 0)
        if key not in self._described:
            self._described[key] = _describe_folder(folder) if folder.is_dir() else _describe(path)
        return self._described[key]


def locate_sources(arguments: dict[str, Any], library: Library) -> list[Source]:
    """What a request names; where it is, is added for whatever is not included."""
    found = [library.find(name) for name in _find_names(arguments)]
    if paths := {each.name: str(each.path) for each in found if each.kind != "included"}:
        arguments["sources"] = paths
    return found


def _find_names(value: Any) -> Iterator[str]:
    """Every model that a request names, wherever it does."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        if key == "model" and isinstance(each, str):
            yield each
        elif isinstance(each, dict | list):
            yield from _find_names(each)


def _resolve(path: str | Path) -> Path:
    """A path of the command line, which must lead to something that can be opened."""
    found = user_path(path, ConfigError)
    if not found.exists():
        raise ConfigError(f"A model or a trace must be a file or a folder; {found} is not there.")
    if next(_find_sources(found.resolve()), None) is None:
        raise ConfigError(
            f"{found} is no model, GGUF file, saved trace or training run, nor a folder with one."
        )
    return found.resolve()


def _find_sources(path: Path) -> Iterator[Path]:
    """What a path leads to: itself, or what its folder holds."""
    if _is_source(path):
        yield path
    elif is_folder(path):
        inside = (each for each in sorted(path.iterdir())[:_MOST] if not each.name.startswith("."))
        yield from (each for each in inside if _is_source(each))


def _is_source(path: Path) -> bool:
    if is_folder(path):
        return _is_model(path) or (path / "essence.json").is_file()
    return path.is_file() and (path.suffix == ".gguf" or _is_trace(path))


def _is_model(folder: Path) -> bool:
    values = _read_json(folder / "config.json")
    return "glassformer" in values or "model_type" in values


def _is_trace(path: Path) -> bool:
    """Whether a file is a trace of ours: the header of a safetensors file says so."""
    with path.open("rb") as file:
        head = file.read(8)
        size = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if not 2 <= size <= _MOST_HEADER or file.read(1) != b"{":
            return False
        return b'"glassformer.trace"' in file.read(size - 1)


def _select_weights(path: Path) -> Path:
    """The folder whose config describes a training run."""
    if is_folder(path) and not (path / "config.json").exists():
        for name in ("model", "best", "latest"):
            if (path / name / "config.json").is_file():
                return path / name
    return path


def _describe(file: Path) -> dict[str, Any]:
    if file.suffix == ".gguf":
        size = file.stat().st_size
        return {"kind": "gguf", "family": "decoder", "is_large": size > _LARGE}
    return {"kind": "trace"}


def _describe_folder(folder: Path) -> dict[str, Any]:
    values = _read_json(folder / "config.json")
    config = values.get("config")
    family = config.get("family") if isinstance(config, dict) else _guess_family(values)
    added = _read_json(folder / "tokenizer.json").get("added_tokens")
    pieces = [str(each.get("content")) for each in added or () if isinstance(each, dict)]
    tensors = (each for each in folder.glob("*.safetensors") if each.stem != "shortlist")
    weights = sum(each.stat().st_size for each in tensors)
    return {
        "kind": "folder",
        "family": family if family in ("encoder", "decoder", "encoder_decoder") else None,
        "languages": tuple(found[1] for piece in pieces if (found := _LANGUAGE.fullmatch(piece)))
        if family == "encoder_decoder"
        else (),
        "is_large": weights > _LARGE,
    }


def _guess_family(values: dict[str, Any]) -> str | None:
    """The family of a checkpoint of transformers, by the class that was saved."""
    classes = " ".join(map(str, values.get("architectures") or ()))
    if values.get("is_encoder_decoder") or "ConditionalGeneration" in classes:
        return "encoder_decoder"
    if "CausalLM" in classes or "LMHead" in classes:
        return "decoder"
    return "encoder" if "MaskedLM" in classes or "Classification" in classes else None


def _read_json(file: Path) -> dict[str, Any]:
    """What a file says; nothing where there is none, or another kind of file."""
    try:
        if file.stat().st_size > _MOST_DESCRIPTION:
            return {}
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _name(path: Path, taken: set[str]) -> str:
    """A short name that no other source has: cat.trace, runs/cat.trace, cat.trace-2."""
    short = "".join(c if c.isprintable() else "�" for c in path.name)[:100]
    for name in (short, f"{path.parent.name}/{short}"[:200]):
        if name not in taken:
            return name
    return next(name for i in range(2, 10**6) if (name := f"{short}-{i}") not in taken)
