"""Translation: the encoder reads a text, and beam search over the decoder writes another."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.generation.beam import beam_search
from glassformer.generation.copied_spans import insert_spans
from glassformer.generation.source_text import SourceText, Translator, read_sources
from glassformer.generation.text_arguments import Texts, list_texts, match_input
from glassformer.models import EncoderDecoder
from glassformer.models.baselines import RecurrentTranslator

MAX_NEW_TOKENS = 200  # by default; fewer where the model has less room
BATCH_TOKENS = {"cuda": 1 << 16, "cpu": 1 << 12}  # padded source tokens of all beams of a batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Translation:
    """A translation, the model's tokens, and its score: log-probability over length.

    `copied` are the parts of the source that the model could not read; they are in `text` as they
    were, and no tokens.
    """

    text: str
    tokens: tuple[int, ...]
    score: float
    copied: tuple[str, ...] = ()


def translate(
    model: Translator,
    text: Texts,
    *,
    to: str | None = None,
    beams: int = 4,
    max_new_tokens: int | None = None,
    restricted: bool = True,
    shortlist: bool = False,
) -> Texts:
    """The best translation of a text, or of each text of a list, by beam search.

    `to` is the target language, for models that translate into several. A model that has a list of
    what it was trained on, as the included translator does, writes tokens of this language alone,
    and copies what it cannot read; with `restricted=False`, neither.

    With `shortlist`, only tokens that were likely with those of the text in training are considered
    (and frequent ones, and those of the text itself), which is faster on a CPU for large
    vocabularies, and changes some translations. The model must have such a list, as the included
    translator does.

    >>> import glassformer as gf
    >>> translator = gf.load("translator")
    >>> gf.translate(translator, "Where is the station?", to="fr")
    'Où se trouve la gare ?'
    >>> gf.translate(translator, ["Where is the station?", "Thank you."], to="zh")
    ['车站在哪里？', '谢谢。']
    >>> gf.translate(translator, "Where is the 🚂 station?", to="fr")
    'Où se trouve la 🚂 gare ?'
    """
    best = rank_translations(
        model,
        list_texts(text),
        to=to,
        beams=beams,
        max_new_tokens=max_new_tokens,
        restricted=restricted,
        shortlist=shortlist,
    )
    return match_input(text, [candidates[0].text for candidates in best])


def check_translator(model: object) -> None:
    """Reject a model that does not translate, and name what it can do."""
    if not isinstance(model, EncoderDecoder | RecurrentTranslator):
        raise ConfigError(
            f"Only an encoder-decoder translates; got {type(model).__name__}. Use generate for a "
            "decoder, fill or embed for an encoder."
        )


def rank_translations(
    model: Translator,
    texts: Sequence[str],
    *,
    to: str | None = None,
    beams: int = 4,
    n_best: int = 1,
    length_penalty: float = 1.0,
    max_new_tokens: int | None = None,
    restricted: bool = True,
    shortlist: bool = False,
    progress: Callable[[int], None] | None = None,
    on_token: Callable[[], None] | None = None,
) -> list[list[Translation]]:
    """The `n_best` translations of each text, best first; texts of similar length share a batch.

    `progress` is called after each batch with the number of texts that are done, `on_token` after
    each token of a batch. Scores with a `shortlist` are probabilities among its tokens.
    """
    check_translator(model)
    special = model.special
    start = list(special.start) or ([] if special.begin is None else [special.begin])
    if not start:
        raise ConfigError(
            "A translation needs a start token; this model has none. Set model.special.start."
        )
    sources = read_sources(model, texts, to, restricted=restricted, shortlist=shortlist)
    if not texts or not all(source.tokens or source.spans for source in sources):
        raise ConfigError("A text to translate must have at least one token; got an empty one.")
    if max_new_tokens is None:
        max_new_tokens = max(1, min(MAX_NEW_TOKENS, model.config.max_len - len(start)))
    ranked = [[_copy_all(source)] if not source.tokens else [] for source in sources]
    device = next(model.parameters()).device.type
    limit = BATCH_TOKENS.get(device, BATCH_TOKENS["cpu"]) // max(1, beams)
    n_done = sum(map(len, ranked))
    shortened = [source.is_shortened for source in sources]
    for batch in _group_by_length([source.tokens for source in sources], limit, shortened):
        found = beam_search(
            model,
            [start] * len(batch),
            source=[sources[i].tokens for i in batch],
            max_new_tokens=max_new_tokens,
            beams=beams,
            n_best=n_best,
            length_penalty=length_penalty,
            stop=special.end,
            never=special.never,
            forbidden=stack_forbidden([sources[i] for i in batch]),
            renormalize=shortened[batch[0]],
            observe=None if on_token is None else lambda _: on_token(),
        )
        for i, hypotheses in zip(batch, found, strict=True):
            ranked[i] = [
                Translation(
                    text=insert_spans(model, sources[i], h.tokens),
                    tokens=h.tokens,
                    score=h.score,
                    copied=sources[i].copied,
                )
                for h in hypotheses
            ]
        n_done += len(batch)
        if progress is not None:
            progress(n_done)
    return ranked


def stack_forbidden(sources: Sequence[SourceText]) -> Bool[Tensor, "B V"] | None:
    """What may not be written for each source; None if everything may."""
    rows = [source.forbidden for source in sources]
    found = [row for row in rows if row is not None]
    if not found:
        return None
    free = torch.zeros_like(found[0])
    return torch.stack([free if row is None else row for row in rows])


def _copy_all(source: SourceText) -> Translation:
    """A text of which nothing can be read."""
    return Translation(text="".join(source.copied), tokens=(), score=0.0, copied=source.copied)


def _group_by_length(
    source: Sequence[Sequence[int]], limit: int, kinds: Sequence[bool]
) -> Iterator[list[int]]:
    """Batches of texts of one kind and of similar length, with at most `limit` tokens when padded.

    Texts without a token are in none.

    >>> list(_group_by_length([[1] * 5, [1], [1] * 4, [1, 2], []], 10, [False] * 5))
    [[1, 3], [2, 0]]
    """
    texts = sorted((kinds[i], len(text), i) for i, text in enumerate(source) if text)
    batch: list[int] = []
    for kind, length, i in texts:
        if batch and ((len(batch) + 1) * length > limit or kind != kinds[batch[0]]):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
