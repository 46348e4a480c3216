"""Tensors by name, from one safetensors file or from many that an index lists."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from glassformer.errors import CheckpointError
from glassformer.parsing import read_json
from glassformer.paths import is_file_name
from glassformer.settings import quote, summarize_error

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")


class TensorFiles:
    """Reads tensors one at a time: no more is in memory than the model being built.

    ::

        files = TensorFiles.of_folder(folder)
        files.names, files.get("lm_head.weight")
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        self._where: dict[str, tuple[Path, Any]] = {}
        for path in paths:
            opened = _open_file(path)
            for name in opened.keys():  # noqa: SIM118
                if name in self._where:
                    raise CheckpointError(
                        f"A tensor must lie in one file; {name} is in {self._where[name][0].name} "
                        f"and in {path.name}. Fetch the folder again."
                    )
                self._where[name] = path, opened

    @classmethod
    def of_folder(cls, folder: Path) -> "TensorFiles":
        """The weights in a folder; pickled ones are refused."""
        if (folder / WEIGHTS).is_file():
            return cls([folder / WEIGHTS])
        if (folder / INDEX).is_file():
            return cls._from_shards(folder)
        pickled = sorted(p.name for kind in PICKLES for p in folder.glob(kind))
        if pickled:
            raise CheckpointError(
                f"Weights must be safetensors; {folder} has {pickled[0]}, a kind of file that can "
                "run any code when it is opened, and glassformer never opens one. Where you trust "
                "it, convert it once: transformers.AutoModel.from_pretrained(folder)"
                ".save_pretrained(new_folder), with the class that config.json names."
            )
        raise CheckpointError(
            f"Weights must lie in {WEIGHTS} or in the files that {INDEX} lists; {folder} has "
            f"neither. It holds: {', '.join(sorted(p.name for p in folder.iterdir()))}."
        )

    @classmethod
    def _from_shards(cls, folder: Path) -> "TensorFiles":
        index = read_json(folder / INDEX, most=256 << 20)
        listed = index.get("weight_map")
        if not isinstance(listed, dict) or not listed:
            raise CheckpointError(f"{folder / INDEX} must have a weight_map; it has none.")
        for shard in listed.values():
            if not is_file_name(shard):
                raise CheckpointError(
                    f"{folder / INDEX} must name files beside it; it names {quote(shard)}."
                )
        shards = sorted(set(listed.values()))
        for shard in shards:
            if not (folder / shard).is_file():
                raise CheckpointError(
                    f"{folder / INDEX} lists {shard}, which is not there. Fetch the missing file."
                )
        files = cls(folder / shard for shard in shards)
        elsewhere = [n for n in listed if n in files.names and files.path(n).name != listed[n]]
        lost = elsewhere or sorted(set(listed) - files.names)
        if lost:
            raise CheckpointError(
                f"{listed[lost[0]]} must hold {lost[0]}, as {INDEX} says; it does not"
                f"{f' (and {len(lost) - 1} more)' if len(lost) > 1 else ''}."
            )
        return files

    @property
    def names(self) -> set[str]:
        return set(self._where)

    def path(self, name: str) -> Path:
        """The file that holds a tensor."""
        return self._where[name][0]

    def get(self, name: str, *, kind: torch.dtype | None = None) -> Tensor:
        """One tensor, on the CPU; it must be of floating point, or of the `kind` given."""
        path, opened = self._where[name]
        try:
            tensor = opened.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{path} is damaged: {name} cannot be read ({summarize_error(error)})."
            ) from None
        if kind is not None and tensor.dtype != kind:
            raise CheckpointError(
                f"{name} in {path.name} must be {kind}, as config.json says; it is {tensor.dtype}."
            )
        if kind is None and (not tensor.is_floating_point() or tensor.dtype.itemsize == 1):
            raise CheckpointError(
                f"{name} in {path.name} must be of floating point; it is {tensor.dtype}. Are the "
                "weights quantised? Load a version that is not, or a GGUF file."
            )
        return tensor

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the largest part of the weights: that of most of its tensors."""
        return self.common_dtype(self.names)

    def common_dtype(self, names: Iterable[str]) -> torch.dtype:
        """The dtype of most of these tensors."""
        kinds = [str(self._where[name][1].get_slice(name).get_dtype()) for name in names]
        if not kinds:
            return torch.float32
        most = max(set(kinds), key=kinds.count)
        return {"F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}.get(
            most, torch.float32
        )


def _open_file(path: Path) -> Any:
    with contextlib.suppress(OSError):
        if path.stat().st_size == 0:
            raise CheckpointError(f"{path} is empty: it was not written to its end.")
    try:
        return safe_open(path, framework="pt", device="cpu").__enter__()
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            f"{path} is damaged or was not written to its end: {summarize_error(error)}. "
            "Fetch or save it again."
        ) from None
