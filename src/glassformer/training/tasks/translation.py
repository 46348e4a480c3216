"""Translation: predict each target token from the source and the target tokens before it.

    source   Ein Hund schläft </s>
    tokens   <s>   A    dog   sleeps        what the decoder sees (teacher forcing)
    targets  A     dog  sleeps </s>         what it must predict

Padding follows each text: the causal mask hides it from the decoder, lengths from the encoder.
Packed, there is none (packed_pairs.py).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.functional import Padding
from glassformer.models.output_heads import PendingLogits
from glassformer.models.recurrent import LSTMSeq2Seq
from glassformer.text import SpecialTokens
from glassformer.text.store import TokenTable
from glassformer.training.batches import Batch, Ragged, Rows, as_tensors, batch_by_tokens
from glassformer.training.data import TrainingData
from glassformer.training.loss import IGNORED
from glassformer.training.recipe import Recipe
from glassformer.training.scores import score_translations, translate_all
from glassformer.training.tasks.packed_pairs import PackedShape, pack_pairs, packed_hidden
from glassformer.training.tasks.task import Task, as_ragged, locate_lines


class Translation(Task):
    """Pairs of texts, batched by number of tokens."""

    room: PackedShape | None = None  # that of each batch, once it is fixed

    def __init__(self, recipe: Recipe, data: TrainingData) -> None:
        super().__init__(recipe, data)
        self.start = start_token(data.special)
        self.pairs = [(as_ragged(data.train, "source"), as_ragged(data.train, "target"))]
        if data.valid is not None:
            self.pairs.append((as_ragged(data.valid, "source"), as_ragged(data.valid, "target")))

    def lengths(self) -> np.ndarray | None:
        return None if self.recipe.batches.packed else self.data.train.lengths

    def fix_shape(self) -> bool:
        b = self.recipe.batches
        if b.packed:
            lengths, rows = self.data.train.lengths, b.max_rows
            self.room = PackedShape.of(lengths, max_tokens=b.max_tokens, max_texts=rows)
        return b.packed

    def order(self, epoch: int) -> list[Rows]:
        b, lengths, seed = self.recipe.batches, self.data.train.lengths, self.recipe.seed
        if self.room is not None:
            return self.room.fill(lengths, seed=seed, epoch=epoch)
        return batch_by_tokens(
            lengths,
            max_tokens=b.max_tokens,
            seed=seed,
            epoch=epoch,
            pool=b.pool,
            max_rows=b.max_rows,
        )

    def batch(self, rows: Rows, *where: int) -> Batch:
        del where  # nothing is random here
        return self._batch(self.pairs[0], rows)

    def lay_out(self, batch: Batch) -> Batch:
        return pack_pairs(batch, self.room) if self.recipe.batches.packed else batch

    def valid_batches(self) -> Iterator[Batch]:
        if self.data.valid is None:
            return
        sizes = self.data.valid.lengths
        most = max(self.recipe.batches.max_tokens, int(sizes.max()))
        for rows in batch_by_tokens(sizes, max_tokens=most):
            yield self._batch(self.pairs[1], rows)

    def _batch(self, pair: tuple[Ragged, Ragged], rows: Rows) -> Batch:
        to = self.recipe.batches.round_to
        return pair_batch(pair, rows, start=self.start, pad=self.pad, round_to=to)

    def logits(self, model: Any, tensors: Mapping[str, Tensor]) -> Tensor:
        if "source_cells" in tensors:
            return model.head(packed_hidden(model, tensors), model.embedding.weight)
        return translation_logits(model, tensors)

    def pending_logits(self, model: Any, tensors: Mapping[str, Tensor]) -> PendingLogits | None:
        if isinstance(model, LSTMSeq2Seq):
            return None
        if "source_cells" in tensors:
            hidden = packed_hidden(model, tensors)
        else:
            mask = Padding(tensors["source_lengths"])
            context = model.encode(tensors["source"], mask=mask)
            hidden = model.hidden(tensors["tokens"], context, context_mask=mask)
        return model.head.prepare(hidden, model.embedding.weight)

    def extra_scores(self, model: Any) -> dict[str, float]:
        """BLEU and chrF; all translations of one source are its references."""
        settings = self.recipe.evaluate
        if not settings.bleu or self.data.valid is None:
            return {}
        sources, references = group_references(self.data.valid)
        sources, references = sources[: settings.n_texts], references[: settings.n_texts]
        found = translate_all(
            model, sources, beams=settings.beams, length_penalty=settings.length_penalty
        )
        return score_translations(
            found, references, tokenize=settings.tokenize, remove=settings.remove
        )

    def sample(self, model: Any, text: str) -> str:
        return translate_all(model, [text], beams=1)[0]

    def locate(self, rows: Rows) -> list[str]:
        return locate_lines(self.data.train, rows)


def pair_batch(
    pair: tuple[Ragged, Ragged], rows: Rows, *, start: int, pad: int, round_to: int = 1
) -> Batch:
    """The sources and shifted targets of some pairs."""
    source, source_lengths = pair[0].pad_rows(rows, pad=pad, round_to=round_to)
    targets, lengths = pair[1].pad_rows(rows, pad=IGNORED, round_to=round_to)
    tokens = np.roll(targets, 1, axis=1)
    tokens[:, 0] = start
    tokens[tokens == IGNORED] = pad
    tensors = as_tensors(
        source=source, source_lengths=source_lengths, tokens=tokens, targets=targets
    )
    n_targets = int(lengths.sum())
    return Batch(tensors, n_targets, n_targets + int(source_lengths.sum()))


def start_token(special: SpecialTokens) -> int:
    """The first token of every translation."""
    starts = special.start or (special.begin,)
    if len(starts) != 1 or starts[0] is None:
        raise ConfigError(
            f"A translator needs exactly one start token; the tokenizer has {starts}."
        )
    return starts[0]


def translation_logits(model: Any, tensors: Mapping[str, Tensor]) -> Tensor:
    """Logits for each target, from a Transformer or an LSTM."""
    source, lengths, tokens = (tensors[n] for n in ("source", "source_lengths", "tokens"))
    if isinstance(model, LSTMSeq2Seq):
        return model(source, lengths, tokens)
    return model(source, tokens, source_mask=Padding(lengths))


def group_references(table: TokenTable) -> tuple[list[str], list[list[str]]]:
    """The distinct sources of a table, each with all its translations."""
    found: dict[str, list[str]] = {}
    for source, target in table.notes["texts"]:
        found.setdefault(source, []).append(target)
    return list(found), list(found.values())
