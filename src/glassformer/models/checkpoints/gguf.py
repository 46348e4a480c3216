"""GGUF files of the Llama family: quantised weights, made whole again at loading."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.attention.rotary_scalings import (
    BandedScaling,
    LinearScaling,
    Scaling,
    YaRNScaling,
)
from glassformer.errors import CheckpointError, ConfigError
from glassformer.models.checkpoints.assembly import Model, assembled, check_names, empty
from glassformer.models.checkpoints.names import Columns, Origin, Table, part_sizes
from glassformer.models.config import Config, Norms, Output, Positions
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
        self._reader = _opened(path)
        self.kind = self._field("general.architecture")
        if self.kind not in ARCHITECTURES:
            raise CheckpointError(
                f"A GGUF file must hold a model of {', '.join(ARCHITECTURES)}; {path} holds "
                f"{self.kind!r}."
            )
        self.tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self.config = self._config()

    def load(
        self, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Model:
        """The model with its tokenizer, in float32 unless told otherwise."""
        table, shapes = Table(NAMES), empty(self.config).state_dict()
        origins = {name: _found(table.origin(name)) for name in shapes}
        available = set(self.tensors)
        used = {part for origin in origins.values() for part in origin.names}
        check_names(
            (part for origin in origins.values() for part in origin.missing(available)),
            available - used - {"rope_freqs.weight"},
            str(self.path),
        )

        def get(name: str) -> Tensor:
            sizes = part_sizes(name, len(shapes[name]), self.config)
            return origins[name].read(self._get, available, sizes)

        model = assembled(self.config, get, dtype=dtype or torch.float32, device=device)
        model.tokenizer, model.special = tokenizer_of_header(self._field)
        return model

    def _config(self) -> Config:
        def number(name: str, default: Any = None) -> Any:
            value = self._field(f"{self.kind}.{name}")
            if value is None and default is None:
                raise CheckpointError(f"{self.path} must have {self.kind}.{name} in its header.")
            return default if value is None else value

        n_heads, dim = number("attention.head_count"), number("embedding_length")
        head_dim = number("attention.key_length", dim // n_heads)
        if number("rope.dimension_count", head_dim) != head_dim:
            raise CheckpointError(
                f"All {head_dim} numbers of a head must be rotated; {self.path} rotates "
                f"{number('rope.dimension_count')}."
            )
        try:
            return Config(
                family="decoder",
                vocab_size=self._vocab_size(),
                dim=dim,
                n_layers=number("block_count"),
                n_heads=n_heads,
                n_kv_heads=number("attention.head_count_kv", n_heads),
                head_dim=head_dim,
                hidden_dim=number("feed_forward_length"),
                max_len=number("context_length"),
                activation="silu",
                gated=True,
                biases="qkv" if "blk.0.attn_q.bias" in self.tensors else "none",
                positions=self._positions(number, head_dim),
                norms=Norms(
                    kind="rms",
                    eps=number("attention.layer_norm_rms_epsilon"),
                    heads="blk.0.attn_q_norm.weight" in self.tensors,
                ),
                output=Output(tied="output.weight" not in self.tensors),
            )
        except ConfigError as error:
            raise CheckpointError(
                f"The header of {self.path} describes no model: {error}"
            ) from None

    def _vocab_size(self) -> int:
        table = self.tensors.get("token_embd.weight")
        if table is None:
            raise CheckpointError(f"{self.path} must have token_embd.weight; it has not.")
        return int(table.shape[-1])

    def _positions(self, number: Any, head_dim: int) -> Positions:
        base = float(number("rope.freq_base", 10000.0))
        kind = number("rope.scaling.type", "none")
        scaling: Scaling | None = None
        if kind == "linear":
            scaling = LinearScaling(float(number("rope.scaling.factor")))
        elif kind == "yarn":
            scaling = YaRNScaling(
                float(number("rope.scaling.factor")),
                original_len=number("rope.scaling.original_context_length"),
            )
        elif kind != "none":
            raise CheckpointError(
                f"Rotary positions must be scaled as none, linear or yarn; {self.path} says "
                f"{kind!r}."
            )
        if "rope_freqs.weight" in self.tensors:
            scaling = self._banded(base, head_dim)
        return Positions(kind="rotary", base=base, scaling=scaling)

    def _banded(self, base: float, head_dim: int) -> Scaling:
        """Llama 3's scaling, of which the file keeps the result: one divisor per pair."""
        divisors = self._get("rope_freqs.weight").double()
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

    def _field(self, name: str) -> Any:
        field = self._reader.get_field(name)
        return None if field is None else field.contents()

    def _get(self, name: str) -> Tensor:
        import gguf

        tensor = self.tensors[name]
        kind = tensor.tensor_type.name
        if kind not in QUANTISATIONS:
            raise CheckpointError(
                f"Tensors must be of {', '.join(QUANTISATIONS)}; {name} in {self.path} is {kind}."
            )
        try:
            whole = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy())
            whole = whole.reshape([int(n) for n in reversed(tensor.shape)])
        except (ValueError, RuntimeError, IndexError) as error:
            raise CheckpointError(f"{self.path} is damaged at {name}: {error}.") from None
        if self.kind == "llama" and ".attn_q." in name:
            return unpermuted(whole, self.config.n_heads)
        if self.kind == "llama" and ".attn_k." in name:
            return unpermuted(whole, self.config.kv_heads)
        return whole


def unpermuted(rows: Tensor, n_heads: int) -> Tensor:
    """Rows of queries or keys as halves: GGUF puts the two that rotate together side by side.

    >>> unpermuted(torch.tensor([[0.0], [2.0], [1.0], [3.0]]), 1).flatten()
    tensor([0., 1., 2., 3.])
    """
    pairs = rows.unflatten(0, (n_heads, -1, 2))  # H D/2 2 …
    return pairs.transpose(1, 2).flatten(0, 2)


def _opened(path: Path) -> Any:
    try:
        import gguf
    except ImportError:
        raise CheckpointError(
            f"{path} needs the package gguf; it is not installed. "
            "Run: pip install 'glassformer[gguf]'"
        ) from None
    try:
        return gguf.GGUFReader(path)
    except Exception as error:  # whatever a damaged header makes of the reader
        raise CheckpointError(f"{path} is damaged or no GGUF file: {error}.") from None


def _found(origin: Origin | None) -> Origin:
    assert origin is not None  # the config was read from a header of this family
    return origin
