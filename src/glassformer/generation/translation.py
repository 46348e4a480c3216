"""Translation: the encoder reads a text, and beam search over the decoder writes another."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from glassformer.errors import ConfigError
from glassformer.generation.beam import beam_search
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.text_arguments import Texts, list_texts, match_input
from glassformer.models import EncoderDecoder
from glassformer.models.baselines import RecurrentTranslator

Translator = EncoderDecoder | RecurrentTranslator

MAX_NEW_TOKENS = 200  # by default; fewer where the model has less room
BATCH_TOKENS = {"cuda": 1 << 16, "cpu": 1 << 12}  # padded source tokens of all beams of a batch


@dataclass(frozen=True, kw_only=True, slots=True)
class Translation:
    """A translation, its tokens, and its score: log-probability over length."""

    text: str
    tokens: tuple[int, ...]
    score: float


def translate(
    model: Translator,
    text: Texts,
    *,
    to: str | None = None,
    beams: int = 4,
    max_new_tokens: int | None = None,
) -> Texts:
    """The best translation of a text, or of each text of a list, by beam search.

    `to` is the target language, for models that translate into several.

    >>> import glassformer as gf
    >>> translator = gf.load("translator")
    >>> gf.translate(translator, "Where is the station?", to="fr")
    'Où se trouve la gare ?'
    >>> gf.translate(translator, ["Where is the station?", "Thank you."], to="zh")
    ['车站在哪里？', '谢谢。']
    """
    best = rank_translations(
        model, list_texts(text), to=to, beams=beams, max_new_tokens=max_new_tokens
    )
    return match_input(text, [candidates[0].text for candidates in best])


def add_language_tag(model: Translator, text: str, to: str | None) -> str:
    """Put the tag of the target language before a text, for models that translate into several."""
    known = tokenizer_of(model).languages
    if not text:
        return text  # an empty text is refused where it is read
    if to is None and (not known or text.startswith(tuple(f"<{code}>" for code in known))):
        return text
    if not known:
        raise ConfigError(
            f"This model translates into one language only; got {to!r}. Leave it out."
        )
    if to not in known:
        given = "no target language was given" if to is None else f"got {to!r}"
        raise ConfigError(
            f"This model translates into {' and '.join(known)}; {given}. Choose one of them."
        )
    return f"<{to}> {text}"


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
    progress: Callable[[int], None] | None = None,
    on_token: Callable[[], None] | None = None,
) -> list[list[Translation]]:
    """The `n_best` translations of each text, best first; texts of similar length share a batch.

    `progress` is called after each batch with the number of texts that are done, `on_token` after
    each token of a batch.
    """
    check_translator(model)
    tokenizer, special = tokenizer_of(model), model.special
    start = list(special.start) or ([] if special.begin is None else [special.begin])
    if not start:
        raise ConfigError(
            "A translation needs a start token; this model has none. Set model.special.start."
        )
    source = [tokenizer.encode(add_language_tag(model, text, to)) for text in texts]
    if not texts or min(map(len, source)) == 0:
        raise ConfigError("A text to translate must have at least one token; got an empty one.")
    if max_new_tokens is None:
        max_new_tokens = max(1, min(MAX_NEW_TOKENS, model.config.max_len - len(start)))
    ranked: list[list[Translation]] = [[] for _ in texts]
    device = next(model.parameters()).device.type
    limit = BATCH_TOKENS.get(device, BATCH_TOKENS["cpu"]) // max(1, beams)
    n_done = 0
    for batch in _group_by_length(source, limit):
        found = beam_search(
            model,
            [start] * len(batch),
            source=[source[i] for i in batch],
            max_new_tokens=max_new_tokens,
            beams=beams,
            n_best=n_best,
            length_penalty=length_penalty,
            stop=special.end,
            never=special.never,
            observe=None if on_token is None else lambda _: on_token(),
        )
        for i, hypotheses in zip(batch, found, strict=True):
            ranked[i] = [
                Translation(text=tokenizer.decode(h.tokens), tokens=h.tokens, score=h.score)
                for h in hypotheses
            ]
        n_done += len(batch)
        if progress is not None:
            progress(n_done)
    return ranked


def _group_by_length(source: Sequence[Sequence[int]], limit: int) -> Iterator[list[int]]:
    """Batches of texts of similar length, each with at most `limit` tokens when padded.

    >>> list(_group_by_length([[1] * 5, [1], [1] * 4, [1, 2]], 10))
    [[1, 3], [2, 0]]
    """
    batch: list[int] = []
    for i in sorted(range(len(source)), key=lambda i: len(source[i])):
        if batch and (len(batch) + 1) * len(source[i]) > limit:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
