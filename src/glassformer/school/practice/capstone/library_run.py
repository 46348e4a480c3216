"""The library's model on the learner's text: what counts as right, and the kits made from it."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from glassformer.errors import ConfigError
from glassformer.functional import Padding
from glassformer.generation import rank_translations
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.loop import generate_tokens
from glassformer.generation.sampling import Sampling, adjust
from glassformer.generation.source_text import read_any_source
from glassformer.layers import Block, SelfAttention
from glassformer.models import Decoder, EncoderDecoder
from glassformer.school.practice.capstone.capstone_report import Writing
from glassformer.school.practice.capstone.kit import WHOLE, write_kit, write_weights
from glassformer.school.practice.capstone.parts import DECODER, TRANSLATOR
from glassformer.school.practice.capstone.recording import (
    Recorder,
    as_heads,
    attention_tensors,
    record_pair,
    rotary_tensors,
    split_projection,
)
from glassformer.school.practice.capstone.weight_names import name_weights

MOST_NEW = {TRANSLATOR: 64, DECODER: 40}
SAMPLING = Sampling(temperature=0.8, top_k=40)
SEED = 1
_MOST_TARGET = 8  # tokens of the translation that the Transformer is compared on
_MOST_MORE = 8


def write_translator_kits(
    model: EncoderDecoder, text: str, to: str | None, folder: Path
) -> Writing:
    """Translate a text greedily, and write a kit for each part of the translator."""
    special, config = model.special, model.config
    read = read_any_source(model, text, to)
    is_restricted = read.forbidden is not None
    best = rank_translations(
        model,
        [text],
        to=to,
        beams=1,
        max_new_tokens=MOST_NEW[TRANSLATOR],
        restricted=is_restricted,
    )
    written = best[0][0]
    source = torch.tensor([read.tokens])
    never = list(special.never)
    if read.forbidden is not None:
        never = sorted({*never, *read.forbidden.nonzero().flatten().tolist()})
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
        "never": never,
        # A wrong model may never end; a few tokens more than the right ones show that.
        "max_new": min(MOST_NEW[TRANSLATOR], len(written.tokens) + _MOST_MORE),
    }
    first, block = model.encoder.blocks[0], model.decoder.blocks[0]
    assert isinstance(first, Block) and isinstance(block, Block)
    assert isinstance(first.attention, SelfAttention)
    with torch.no_grad(), Recorder(model) as seen:
        logits = model(source, target)
    allowed = logits.index_fill(-1, torch.tensor(never), -torch.inf)
    L, S = target.shape[1], source.shape[1]
    causal = torch.ones(L, L, dtype=torch.bool).tril()
    everything = torch.ones(1, 1, S, dtype=torch.bool)
    q, k, _ = split_projection(seen.out(first.attention.qkv), config)
    kits = {
        "embedding": {"tokens": source, "out": seen.out(model.embedding, 0)},
        "layer_norm": record_pair(seen, first.attention_norm),
        "residual": {"x": seen.given(first.feed_forward_norm), "out": seen.out(first)},
        "gelu_feed_forward": record_pair(seen, first.feed_forward),
        "split_heads": {"x": q, "out": as_heads(q, config)},
        "merge_heads": {
            "x": seen.out(first.attention.core),
            "out": seen.given(first.attention.out),
        },
        "rotary": rotary_tensors(seen, first, q, k, config),
        "padding_mask": {
            **attention_tensors("attention", seen, block.attention.core, causal),
            **attention_tensors("cross", seen, block.cross.core, everything),
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
    write_weights(folder, name_weights(model, config))
    return Writing(written.text, written.tokens)


def write_decoder_kits(model: Decoder, text: str, folder: Path) -> Writing:
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
    assert isinstance(block, Block) and isinstance(block.attention, SelfAttention)
    with torch.no_grad(), Recorder(model) as seen:
        logits = model(tokens)[:, -1]
    q, k, _ = split_projection(seen.out(block.attention.qkv), config)
    core = block.attention.core
    turned_q, turned_k, v = seen.all_given(core)
    kits = {
        "embedding": {"tokens": tokens, "out": seen.out(model.embedding)},
        "rms_norm": record_pair(seen, block.attention_norm),
        "swiglu": record_pair(seen, block.feed_forward),
        "split_heads": {"x": k, "out": as_heads(k, config)},
        "merge_heads": {"x": seen.out(core), "out": seen.given(block.attention.out)},
        "rotary": rotary_tensors(seen, block, q, k, config),
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
    write_weights(folder, name_weights(model, config))
    return Writing(tokenizer.decode(written), tuple(written))


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
