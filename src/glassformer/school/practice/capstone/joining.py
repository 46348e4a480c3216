"""Parts and weights become a model that runs.

Everything that computes is a part; what is here holds them together: weights find their places,
norms after the last layer are applied, heads share a batch.
"""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.school.practice.capstone.kit import Kit


def load_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    """Put weights in their places, without copying them."""
    module.load_state_dict(dict(weights), assign=True)
    return module.eval()


def over_heads(attention: Callable[..., Any]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Attention of one head as attention of many: heads become sequences of a larger batch.

    The mask is as a Transformer makes it, (B, 1, S) or (L, S), and holds for every head; without
    one, nothing is masked.
    """

    def attend(
        q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        batch, width = q.shape[:2], (*q.shape[:3], k.shape[2])
        if mask is None:
            mask = torch.ones(width[2:], dtype=torch.bool)
        every = mask.unsqueeze(-3).expand(width).flatten(0, 1)  # (B·H, L, S)
        out, weights = attention(*(x.flatten(0, 1) for x in (q, k, v)), every)
        return out.unflatten(0, batch), weights.unflatten(0, batch)

    return attend


def translator_parts(parts: SimpleNamespace) -> SimpleNamespace:
    """The parts as the joint of a translator receives them."""
    return SimpleNamespace(**{**vars(parts), "attention": over_heads(parts.attention)})


class _Normed(nn.Module):
    """The norm after an encoder's last layer, called as a layer is."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return self.norm(x)


class _Head(nn.Module):
    """From hidden states to logits: the last norm, then the output matrix."""

    def __init__(self, norm: nn.Module, weight: Tensor) -> None:
        super().__init__()
        self.norm, self.weight = norm, nn.Parameter(weight, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(self.norm(x), self.weight)


def build_translator_parts(parts: SimpleNamespace, kit: Kit) -> tuple[Any, ...]:
    """What a Transformer is made of, with the weights of the kit, in the order it takes them."""
    sizes, joint = kit.sizes, translator_parts(parts)
    embedding = load_weights(parts.Embedding(sizes.vocab_size, sizes.dim), kit.take("embedding."))
    norms = [
        load_weights(parts.LayerNorm(sizes.dim), kit.take(f"{side}.final_norm."))
        for side in ("encoder", "decoder")
    ]
    encoder_layers = [
        load_weights(parts.EncoderLayer(joint, sizes), kit.take(f"encoder.{i}."))
        for i in range(sizes.n_layers)
    ]
    decoder_layers = [
        load_weights(parts.DecoderLayer(joint, sizes), kit.take(f"decoder.{i}."))
        for i in range(sizes.n_decoder_layers)
    ]
    head = _Head(norms[1], kit.output_matrix)
    encoder_layers.append(_Normed(norms[0]))
    return embedding, embedding, encoder_layers, decoder_layers, head, sizes.pad


@torch.no_grad()
def translate(parts: SimpleNamespace, kit: Kit) -> Tensor:
    """The tokens that the joined translator writes for the source of the kit, up to the end."""
    model = parts.Transformer(*build_translator_parts(parts, kit)).eval()
    settings = kit.settings
    allowed = torch.ones(kit.sizes.vocab_size, dtype=torch.bool)
    allowed[settings["never"]] = False

    def next_logits(source: Tensor, tokens: Tensor) -> Tensor:
        return model(source, tokens).masked_fill(~allowed, -torch.inf)

    tokens = parts.greedy(
        next_logits, kit["source"], *(settings[n] for n in ("begin", "end", "pad", "max_new"))
    )
    return cut_at_end(tokens[0], [settings["end"]])


def cut_at_end(tokens: Tensor, ends: Sequence[int]) -> Tensor:
    """The tokens before the first that ends a text.

    >>> cut_at_end(torch.tensor([5, 7, 2, 0]), [2])
    tensor([5, 7])
    """
    places = torch.isin(tokens, torch.tensor(ends, dtype=tokens.dtype)).nonzero()
    return tokens[: int(places[0])] if len(places) else tokens


def join_decoder(parts: SimpleNamespace, kit: Kit) -> nn.Module:
    """The decoder: parts of exercises, with the weights of the kit."""
    sizes = kit.sizes
    rows = kit.weights["embedding.weight"]
    # The exercise's embedding multiplies by √dim, and these models were trained without that.
    embedding = load_weights(
        parts.Embedding(sizes.vocab_size, sizes.dim), {"weight": rows / sizes.dim**0.5}
    )
    blocks = [
        load_weights(parts.Block(parts, sizes), kit.take(f"decoder.{i}."))
        for i in range(sizes.n_layers)
    ]
    norm = load_weights(parts.RMSNorm(sizes.dim, sizes.eps), kit.take("decoder.final_norm."))
    head = nn.Linear(sizes.dim, sizes.vocab_size, bias=False, device="meta")
    load_weights(head, {"weight": kit.output_matrix})
    return parts.Writer(embedding, blocks, norm, head).eval()


@torch.no_grad()
def generate(parts: SimpleNamespace, kit: Kit) -> Tensor:
    """The tokens that the joined decoder writes after the prompt of the kit, up to the end."""
    model, settings = join_decoder(parts, kit), kit.settings
    generator = torch.Generator().manual_seed(settings["seed"])
    written: list[Tensor] = []
    caches: Any = [None] * kit.sizes.n_layers
    logits, position = torch.empty(0), 0
    for token in kit["tokens"][0]:  # the prompt, read as the text is written: token by token
        logits, caches = model(token.view(1, 1), position, caches)
        position += 1
    for n in range(settings["max_new"]):
        likely = parts.probabilities(logits, settings["temperature"], settings["top_k"])
        token = torch.multinomial(likely, 1, generator=generator)  # (1, 1)
        written.append(token[0, 0])
        if int(token) in settings["ends"] or n + 1 == settings["max_new"]:
            break
        logits, caches = model(token, position, caches)
        position += 1
    return cut_at_end(torch.stack(written), settings["ends"])
