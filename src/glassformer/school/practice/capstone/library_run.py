"""The library's model on the learner's text: what counts as right, and the kits made from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional import Padding
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.loop import generate_tokens
from glassformer.generation.sampling import Sampling, adjust
from glassformer.generation.translation import add_language_tag, rank_translations
from glassformer.layers import Block
from glassformer.models import Decoder, EncoderDecoder
from glassformer.models.config import Config
from glassformer.school.practice.capstone.kit import WHOLE, write_kit, write_weights
from glassformer.school.practice.capstone.parts import DECODER, TRANSLATOR

MOST_NEW = {TRANSLATOR: 64, DECODER: 40}
SAMPLING = Sampling(temperature=0.8, top_k=40)
SEED = 1
_MOST_TARGET = 8  # tokens of the translation that the Transformer is compared on


@dataclass(frozen=True, slots=True)
class LibraryRun:
    """What the library's own model writes."""

    text: str
    tokens: tuple[int, ...]


def write_translator_kits(
    model: EncoderDecoder, text: str, to: str | None, folder: Path
) -> LibraryRun:
    """Translate a text greedily, and write a kit for each part of the translator."""
    special, config = model.special, model.config
    best = rank_translations(model, [text], to=to, beams=1, max_new_tokens=MOST_NEW[TRANSLATOR])
    written = best[0][0]
    source = torch.tensor([tokenizer_of(model).encode(add_language_tag(model, text, to))])
    begin, end, pad = special.start[0], special.end[0], special.pad
    assert pad is not None
    target = torch.tensor([[begin, *written.tokens]])
    settings = {
        "sizes": {
            "vocab_size": config.vocab_size,
            "dim": config.dim,
            "n_layers": config.n_layers,
            "n_decoder_layers": config.decoder_layers,
            "n_heads": config.n_heads,
            "hidden_dim": config.hidden_dim,
            "base": config.positions.base,
            "pad": pad,
        },
        "n_split": config.n_heads,
        "begin": begin,
        "end": end,
        "pad": pad,
        "never": list(special.never),
        "max_new": MOST_NEW[TRANSLATOR],
    }
    first, block = model.encoder.blocks[0], model.decoder.blocks[0]
    assert isinstance(first, Block) and isinstance(block, Block)
    with torch.no_grad(), _Recorder(model) as seen:
        logits = model(source, target)
    allowed = logits.index_fill(-1, torch.tensor(special.never), -torch.inf)
    L, S = target.shape[1], source.shape[1]
    causal = torch.ones(L, L, dtype=torch.bool).tril()
    everything = torch.ones(1, 1, S, dtype=torch.bool)
    q, k, _ = _split_projection(seen.out(first.attention.qkv), config)
    kits = {
        "embedding": {"tokens": source, "out": seen.out(model.embedding, 0)},
        "layer_norm": _pair(seen, first.attention_norm),
        "residual": {"x": seen.given(first.feed_forward_norm), "out": seen.out(first)},
        "gelu_feed_forward": _pair(seen, first.feed_forward),
        "split_heads": {"x": q, "out": _as_heads(q, config)},
        "merge_heads": {
            "x": seen.out(first.attention.core),
            "out": seen.given(first.attention.out),
        },
        "rotary": _rotary_kit(seen, first, q, k, config),
        "padding_mask": {
            **_attention_kit("attention", seen, block.attention.core, causal),
            **_attention_kit("cross", seen, block.cross.core, everything),
        },
        "capstone_translator": {
            "encoder.x": seen.given(first),
            "encoder.mask": everything,
            "encoder.out": seen.out(first),
            "decoder.x": seen.given(block),
            "decoder.context": seen.out(model.encoder),
            "decoder.mask": causal,
            "decoder.context_mask": everything,
            "decoder.out": seen.out(block),
        },
        "transformer": _padded_run(model, source, target[:, :_MOST_TARGET], pad),
        "greedy": {
            "source": source,
            "logits": allowed,
            # The loop ends with the end token, or without it where the most are written.
            "tokens_out": allowed.argmax(-1)[:, : MOST_NEW[TRANSLATOR]],
        },
        WHOLE: {"source": source, "tokens_out": torch.tensor(written.tokens)},
    }
    for part, tensors in kits.items():
        write_kit(folder, TRANSLATOR, part, tensors, settings)
    write_weights(folder, _name_weights(model, config))
    return LibraryRun(written.text, written.tokens)


def write_decoder_kits(model: Decoder, text: str, folder: Path) -> LibraryRun:
    """Continue a text with a fixed seed, and write a kit for each part of the decoder."""
    config, special = model.config, model.special
    tokenizer = tokenizer_of(model)
    prompt = tokenizer.encode(text)
    if not prompt:
        raise ConfigError("A text to continue must have at least one token; got an empty one.")
    max_new = min(MOST_NEW[DECODER], config.max_len - len(prompt))
    if max_new < 1:
        raise ConfigError(
            f"A text to continue must leave room in {config.max_len} tokens; got {len(prompt)}."
        )
    [written] = generate_tokens(
        model,
        [prompt],
        max_new_tokens=max_new,
        sampling=SAMPLING,
        stop=special.end,
        seed=SEED,
    )
    tokens = torch.tensor([prompt])
    settings = {
        "sizes": {
            "vocab_size": config.vocab_size,
            "dim": config.dim,
            "n_layers": config.n_layers,
            "n_heads": config.n_heads,
            "n_kv_heads": config.n_kv_heads,
            "hidden_dim": config.hidden_dim,
            "base": config.positions.base,
            "eps": config.norms.eps,
        },
        "n_split": config.n_kv_heads,
        "ends": list(special.end),
        "max_new": max_new,
        "seed": SEED,
        "temperature": SAMPLING.temperature,
        "top_k": SAMPLING.top_k,
    }
    block = model.decoder.blocks[0]
    assert isinstance(block, Block)
    with torch.no_grad(), _Recorder(model) as seen:
        logits = model(tokens)[:, -1]
    q, k, _ = _split_projection(seen.out(block.attention.qkv), config)
    core = block.attention.core
    turned_q, turned_k, v = seen.all_given(core)
    kits = {
        "embedding": {"tokens": tokens, "out": seen.out(model.embedding)},
        "rms_norm": _pair(seen, block.attention_norm),
        "swiglu": _pair(seen, block.feed_forward),
        "split_heads": {"x": k, "out": _as_heads(k, config)},
        "merge_heads": {"x": seen.out(core), "out": seen.given(block.attention.out)},
        "rotary": _rotary_kit(seen, block, q, k, config),
        "grouped_queries": {
            "q": turned_q[:, :, -1:],
            "k": turned_k,
            "v": v,
            "out": seen.out(core)[:, :, -1:],
        },
        "capstone_writer": {
            "x": seen.given(block)[:, -1:],
            "k": turned_k[:, :, :-1],
            "v": v[:, :, :-1],
            "out": seen.out(block)[:, -1:],
            "tokens": tokens,
            "logits": logits,
        },
        "sampling": {"logits": logits, "out": adjust(logits, SAMPLING).softmax(-1)},
        WHOLE: {"tokens": tokens, "tokens_out": torch.tensor(written)},
    }
    for part, tensors in kits.items():
        write_kit(folder, DECODER, part, tensors, settings)
    write_weights(folder, _name_weights(model, config))
    return LibraryRun(tokenizer.decode(written), tuple(written))


def check_decoder(model: nn.Module) -> Decoder:
    """A decoder that the capstone's parts can run: as Llama, SmolLM2 and the writer are built."""
    if not isinstance(model, Decoder):
        raise ConfigError(
            f"The capstone's decoder path needs a decoder; got {type(model).__name__}. "
            "Give the folder of a Llama-style model such as SmolLM2."
        )
    config = model.config
    needed = {
        "norms.kind": (config.norms.kind, "rms"),
        "norms.place": (config.norms.place, "pre"),
        "norms.heads": (config.norms.heads, False),
        "gated": (config.gated, True),
        "activation": (config.activation, "silu"),
        "biases": (config.biases, "none"),
        "positions.kind": (config.positions.kind, "rotary"),
        "positions.layout": (config.positions.layout, "half"),
        "positions.scaling": (config.positions.scaling, None),
        "head_dim": (config.head_dim, config.dim // config.n_heads),
        "scaled_embedding": (config.scaled_embedding, False),
        "attention_scale": (config.attention_scale, None),
        "softcap": (config.softcap, None),
        "window": (config.window, None),
        "output.bias": (config.output.bias, False),
        "output.scale": (config.output.scale, 1.0),
    }
    for name, (got, wanted) in needed.items():
        if got != wanted:
            raise ConfigError(
                f"The capstone's decoder has {name}={wanted!r}; this model has {got!r}. "
                "Give the folder of a Llama-style model such as SmolLM2."
            )
    return model


class _Recorder:
    """What goes into each module of a model, and what comes out, in the order of calls."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._seen: dict[nn.Module, list[tuple[tuple[Tensor, ...], Tensor]]] = {}
        self._hooks: list[Any] = []

    def __enter__(self) -> "_Recorder":
        for module in self._model.modules():
            self._hooks.append(module.register_forward_hook(self._record))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _record(self, module: nn.Module, given: tuple[Any, ...], out: Tensor) -> None:
        self._seen.setdefault(module, []).append((given, out))

    def out(self, module: nn.Module, call: int = 0) -> Tensor:
        return self._seen[module][call][1]

    def given(self, module: nn.Module) -> Tensor:
        return self._seen[module][0][0][0]

    def all_given(self, module: nn.Module) -> tuple[Tensor, ...]:
        return self._seen[module][0][0]


def _pair(seen: _Recorder, module: nn.Module) -> dict[str, Tensor]:
    return {"x": seen.given(module), "out": seen.out(module)}


def _split_projection(qkv: Tensor, config: Config) -> Sequence[Tensor]:
    """Queries, keys and values of all heads, before they are split into heads: (B, L, H·D)."""
    q, kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    return qkv.split([q, kv, kv], dim=-1)


def _as_heads(x: Tensor, config: Config) -> Tensor:
    return x.unflatten(-1, (-1, config.head_dim)).transpose(1, 2)  # (B, L, H·D) → (B, H, L, D)


def _rotary_kit(
    seen: _Recorder, block: Block, q: Tensor, k: Tensor, config: Config
) -> dict[str, Tensor]:
    turned = seen.all_given(block.attention.core)
    return {
        "q": _as_heads(q, config),
        "k": _as_heads(k, config),
        "q_out": turned[0],
        "k_out": turned[1],
    }


def _attention_kit(
    site: str, seen: _Recorder, core: nn.Module, mask: Tensor
) -> dict[str, Tensor]:
    """Heads as a batch, as the joined model calls attention."""
    q, k, v = seen.all_given(core)
    width = (*q.shape[:3], k.shape[2])
    named = {"q": q, "k": k, "v": v, "mask": mask.expand(width), "out": seen.out(core)}
    return {f"{site}.{name}": each.flatten(0, 1) for name, each in named.items()}


def _padded_run(
    model: EncoderDecoder, source: Tensor, target: Tensor, pad: int
) -> Mapping[str, Tensor]:
    """The source, and its first half beside it, padded: so that the padding mask counts."""
    lengths = torch.tensor([source.shape[1], max(1, source.shape[1] // 2)])
    both = source.repeat(2, 1)
    both[1, lengths[1] :] = pad
    targets = target.repeat(2, 1)
    with torch.no_grad():
        logits = model(both, targets, source_mask=Padding(lengths))
    return {"source": both, "target": targets, "logits": logits}


def _name_weights(model: EncoderDecoder | Decoder, config: Config) -> dict[str, Tensor]:
    """The weights under the names that the exercises give to their parameters."""
    named: dict[str, Tensor] = {"embedding.weight": model.embedding.weight.detach()}
    if not model.head.output.tied:
        named["head.weight"] = model.head.weight.detach()
    stacks = {"decoder": model.decoder}
    if isinstance(model, EncoderDecoder):
        stacks["encoder"] = model.encoder
    for side, stack in stacks.items():
        for name, tensor in stack.final_norm.state_dict().items():
            named[f"{side}.final_norm.{name}"] = tensor
        for i, block in enumerate(stack.blocks):
            for name, tensor in block.state_dict().items():
                named |= _name_parameter(f"{side}.{i}.", name, tensor, config)
    return named


def _name_parameter(
    prefix: str, name: str, tensor: Tensor, config: Config
) -> dict[str, Tensor]:
    """A fused projection under the names of the matrices that it joins."""
    site, _, kind = name.rpartition(".")
    q, kv = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
    part, _, layer = site.rpartition(".")
    match layer:
        case "qkv":
            layers, widths = ("q_proj", "k_proj", "v_proj"), [q, kv, kv]
        case "kv":
            layers, widths = ("k_proj", "v_proj"), [kv, kv]
        case "q":
            layers, widths = ("q_proj",), [q]
        case "out":
            layers, widths = ("out_proj",), [len(tensor)]
        case "up" if config.gated:
            layers, widths = ("gate", "up"), [config.hidden_dim] * 2
        case _:
            return {prefix + name: tensor}
    pieces = tensor.split(widths)
    return {f"{prefix}{part}.{each}.{kind}": p for each, p in zip(layers, pieces, strict=True)}
