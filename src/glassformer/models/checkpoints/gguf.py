"""GGUF files of the Llama family: quantised weights, made whole again at loading."""

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from glassformer.errors import CheckpointError, ConfigError
from glassformer.functional.positions.rotary_scalings import (
    BandedScaling,
    LinearScaling,
    Scaling,
    YaRNScaling,
)
from glassformer.installation import install_command
from glassformer.models.checkpoints.assembly import (
    Model,
    assemble_model,
    check_names,
    check_tokens,
    describe_shapes,
)
from glassformer.models.checkpoints.gguf_header import GGUFHeader
from glassformer.models.checkpoints.names import Columns, Origin, Table, part_sizes
from glassformer.models.config import Config, Norms, Output, Positions
from glassformer.settings import quote
from glassformer.text.ggml import tokenizer_of_header

NAMES: Columns = (
    ("embedding.weight", "token_embd.weight"),
    ("decoder.blocks.{i}.attention_norm.weight", "blk.{i}.attn_norm.weight"),
    ("decoder.blocks.{i}.attention.qkv.{x}", "blk.{i}.attn_[q|k|v].{x}"),
    ("decoder.blocks.{i}.attention.q_norm.weight", "blk.{i}.attn_q_norm.weight"),
    ("decoder.blocks.{i}.attention.k_norm.weight", "blk.{i}.attn_k_norm.weight"),
    ("decoder.blocks.{i}.attention.out.weight", "blk.{i}.attn_output.weight"),
    ("decoder.blocks.{i}.feed_forward_norm.weight", "blk.{i}.ffn_norm.weight"),
    ("decoder.blocks.{i}.feed_forward.up.weight", "blk.{i}.ffn_[gate|up].weight"),
    ("decoder.blocks.{i}.feed_forward.down.weight", "blk.{i}.ffn_down.weight"),
    ("decoder.final_norm.weight", "output_norm.weight"),
    ("head.weight", "output.weight"),
)
ARCHITECTURES = ("llama", "qwen2", "qwen3")
QUANTISATIONS = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1")


class GGUFFile:
    """A GGUF file: its header as a config, its tensors as ours."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _check_package(path)
        self.header = GGUFHeader(path)
        self.tensors = self.header.tensors
        self.kind = self.header.fields.get("general.architecture")
        if self.kind not in ARCHITECTURES:
            raise CheckpointError(
                f"A GGUF file must hold a model of {', '.join(ARCHITECTURES)}; {path} holds "
                f"{quote(self.kind)}."
            )
        self.config = self._config()

    def load(
        self,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        allow_non_finite: bool = False,
    ) -> Model:
        """The model with its tokenizer, in float32 unless told otherwise."""
        table = Table(NAMES)
        shapes = describe_shapes(self.config, len(self.tensors), str(self.path))
        origins = {name: _found(table.origin(name)) for name in shapes}
        available = set(self.tensors)
        used = {part for origin in origins.values() for part in origin.names}
        check_names(
            (part for origin in origins.values() for part in origin.missing(available)),
            available - used - {"rope_freqs.weight"},
            str(self.path),
        )

        def get(name: str) -> Tensor:
            sizes = part_sizes(name, shapes[name][0], self.config)
            return origins[name].read(self._get, available, sizes)

        model = assemble_model(
            self.config,
            get,
            shapes,
            dtype=dtype or torch.float32,
            device=device,
            allow_non_finite=allow_non_finite,
        )
        model.tokenizer, model.special = tokenizer_of_header(self.header.fields, str(self.path))
        model.tokenizer.n_known = self.config.vocab_size
        model.special = check_tokens(model.special, self.config.vocab_size, str(self.path))
        return model

    def _config(self) -> Config:
        dim, n_heads = self._whole("embedding_length"), self._whole("attention.head_count")
        head_dim = self._whole("attention.key_length", dim // n_heads)
        if self._whole("rope.dimension_count", head_dim) != head_dim:
            raise CheckpointError(
                f"All {head_dim} numbers of a head must be rotated; {self.path} rotates "
                f"{self._whole('rope.dimension_count')}."
            )
        try:
            return Config(
                family="decoder",
                vocab_size=self._vocab_size(),
                dim=dim,
                n_layers=self._whole("block_count"),
                n_heads=n_heads,
                n_kv_heads=self._whole("attention.head_count_kv", n_heads),
                head_dim=head_dim,
                hidden_dim=self._whole("feed_forward_length"),
                max_len=self._whole("context_length"),
                activation="silu",
                gated=True,
                biases="qkv" if "blk.0.attn_q.bias" in self.tensors else "none",
                positions=self._positions(head_dim),
                norms=Norms(
                    kind="rms",
                    eps=self._number("attention.layer_norm_rms_epsilon"),
                    heads="blk.0.attn_q_norm.weight" in self.tensors,
                ),
                output=Output(tied="output.weight" not in self.tensors),
            )
        except ConfigError as error:
            raise CheckpointError(
                f"The header of {self.path} describes no model: {error}"
            ) from None

    def _number(self, name: str, default: float | int | None = None, *, kind: type = float) -> Any:
        """A number of the header; one without a default must be there."""
        full = f"{self.kind}.{name}"
        value = self.header.fields.get(full, default)
        fits = isinstance(value, int | kind) and not isinstance(value, bool)
        if not fits or not math.isfinite(value):
            what = "a whole number" if kind is int else "a number"
            raise CheckpointError(
                f"{self.path} must have {full}, {what}, in its header; it has "
                f"{'nothing' if value is None else quote(value)}."
            )
        return kind(value)

    def _whole(self, name: str, default: int | None = None) -> int:
        value = self._number(name, default, kind=int)
        if not 1 <= value < 2**31:
            raise CheckpointError(
                f"{self.kind}.{name} in {self.path} must be at least 1 and below 2³¹; it is "
                f"{value}."
            )
        return value

    def _vocab_size(self) -> int:
        table = self.tensors.get("token_embd.weight")
        if table is None or len(table.shape) != 2:
            raise CheckpointError(f"{self.path} must have a matrix token_embd.weight; it has none.")
        return table.shape[0]

    def _positions(self, head_dim: int) -> Positions:
        base = self._number("rope.freq_base", 10000.0)
        kind = self.header.fields.get(f"{self.kind}.rope.scaling.type", "none")
        scaling: Scaling | None = None
        if kind == "linear":
            scaling = LinearScaling(self._number("rope.scaling.factor"))
        elif kind == "yarn":
            scaling = YaRNScaling(
                self._number("rope.scaling.factor"),
                original_len=self._whole("rope.scaling.original_context_length"),
            )
        elif kind != "none":
            raise CheckpointError(
                f"Rotary positions must be scaled as none, linear or yarn; {self.path} says "
                f"{quote(kind)}."
            )
        if "rope_freqs.weight" in self.tensors:
            scaling = self._banded(base, head_dim)
        return Positions(kind="rotary", base=base, scaling=scaling)

    def _banded(self, base: float, head_dim: int) -> Scaling:
        """Llama 3's scaling, of which the file keeps the result: one divisor per pair."""
        divisors = self._get("rope_freqs.weight").double()
        if divisors.shape != (head_dim // 2,) or not bool((divisors > 0.999).all()):
            raise CheckpointError(
                f"rope_freqs.weight in {self.path} must hold {head_dim // 2} divisors of at least "
                f"1; it has shape {tuple(divisors.shape)}."
            )
        scaling = BandedScaling(
            float(divisors.max()), low_freq_factor=1.0, high_freq_factor=4.0, original_len=8192
        )
        plain = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
        expected = plain / scaling.scale(plain, base, None)
        if divisors.shape != expected.shape or not torch.allclose(divisors, expected, rtol=1e-3):
            raise CheckpointError(
                f"rope_freqs.weight in {self.path} must be the scaling of Llama 3 (bands 1 and 4, "
                "trained on 8,192 tokens); it is another."
            )
        return scaling

    def _get(self, name: str) -> Tensor:
        import gguf

        tensor = self.tensors[name]
        if tensor.kind not in QUANTISATIONS:
            raise CheckpointError(
                f"Tensors must be of {', '.join(QUANTISATIONS)}; {name} in {self.path} is "
                f"{tensor.kind}."
            )
        kind = gguf.GGMLQuantizationType[tensor.kind]
        plain = {"F32": np.float32, "F16": np.float16}.get(tensor.kind, np.uint8)
        rows = self.header.data(tensor).view(plain).reshape(*tensor.shape[:-1], -1)
        whole = torch.from_numpy(gguf.dequantize(rows, kind).astype(np.float32))
        whole = whole.reshape(tensor.shape)
        turned = re.search(r"\.attn_([qk])\.", name) if self.kind == "llama" else None
        if turned is None:
            return whole
        n_heads = self.config.n_heads if turned[1] == "q" else self.config.n_kv_heads
        if len(whole) != n_heads * self.config.head_dim:
            raise CheckpointError(
                f"{name} in {self.path} must have {n_heads * self.config.head_dim} rows by the "
                f"header; it has {len(whole)}."
            )
        return unpermuted(whole, n_heads)


def unpermuted(rows: Tensor, n_heads: int) -> Tensor:
    """Rows of queries or keys as halves: GGUF puts the two that rotate together side by side.

    >>> unpermuted(torch.tensor([[0.0], [2.0], [1.0], [3.0]]), 1).flatten()
    tensor([0., 1., 2., 3.])
    """
    pairs = rows.unflatten(0, (n_heads, -1, 2))  # H D/2 2 …
    return pairs.transpose(1, 2).flatten(0, 2)


def _check_package(path: Path) -> None:
    try:
        import gguf  # noqa: F401
    except ImportError:
        raise CheckpointError(
            f"{path} needs the package gguf; it is not installed. Run: {install_command('gguf')}"
        ) from None


def _found(origin: Origin | None) -> Origin:
    assert origin is not None  # the config was read from a header of this family
    return origin
