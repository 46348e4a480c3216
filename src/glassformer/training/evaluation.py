"""Scores of a saved translator on unseen texts: loss, BLEU and chrF."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from glassformer.errors import ConfigError
from glassformer.generation import add_language_tag
from glassformer.generation.translation import check_translator
from glassformer.training.batches import Ragged, batch_by_tokens
from glassformer.training.loss import count_hits, cross_entropy_sum
from glassformer.training.scores import score_translations, translate_all
from glassformer.training.tasks.translation import pair_batch, start_token, translation_logits


def evaluate_translation(
    model: Any,
    pairs: Sequence[tuple[str, str]],
    *,
    to: str | None = None,
    beams: int = 5,
    length_penalty: float = 1.0,
    tokenize: str = "13a",
    remove: str = "",
    shortlist: bool = False,
    progress: Callable[[float], None] | None = None,
) -> tuple[dict[str, float], list[str]]:
    """The scores of a model on pairs of texts, and its translations of the sources.

    Pairs with the same source are several references for one translation. `to` is the target
    language, for a multilingual model and texts that do not start with a language tag. With
    `shortlist`, translations have only tokens that are likely with those of their source; the loss
    is that without. `progress` receives the share of the texts translated so far.
    """
    check_translator(model)
    if model.tokenizer is None or not pairs:
        raise ConfigError(
            "Evaluation needs a model with a tokenizer and at least one pair of texts; got "
            f"{len(pairs)} pairs."
        )
    pairs = [(add_language_tag(model, source, to), target) for source, target in pairs]
    scores = translation_loss(model, pairs)
    references: dict[str, list[str]] = {}
    for source, target in pairs:
        references.setdefault(source, []).append(target)
    found = translate_all(
        model,
        list(references),
        beams=beams,
        length_penalty=length_penalty,
        shortlist=shortlist,
        progress=None if progress is None else lambda n: progress(n / len(references)),
    )
    scores |= score_translations(found, list(references.values()), tokenize=tokenize, remove=remove)
    if remove:
        found = [text.replace(remove, "") for text in found]
    by_source = dict(zip(references, found, strict=True))
    return scores, [by_source[source] for source, _ in pairs]


@torch.no_grad()
def translation_loss(model: Any, pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
    """Loss, perplexity and accuracy per target token."""
    sides = [Ragged.of(model.tokenizer.encode_many([p[i] for p in pairs])) for i in (0, 1)]
    lengths = np.stack([side.lengths for side in sides], axis=1)
    pad = 0 if model.special.pad is None else model.special.pad
    start, device = start_token(model.special), next(model.parameters()).device
    loss, hits, n = 0.0, 0, 0
    for rows in batch_by_tokens(lengths, max_tokens=max(4096, int(lengths.max()))):
        batch = pair_batch((sides[0], sides[1]), rows, start=start, pad=pad).to(device)
        logits = translation_logits(model, batch.tensors)
        loss += float(cross_entropy_sum(logits, batch.tensors["targets"]))
        hits += int(count_hits(logits, batch.tensors["targets"]))
        n += batch.n_targets
    return {"loss": loss / n, "perplexity": float(np.exp(loss / n)), "accuracy": hits / n}
