"""Continuing a text with a decoder: whole, or piece by piece while the model writes."""

from collections.abc import Iterator, Sequence

from glassformer.errors import CheckpointError, ConfigError
from glassformer.generation.drafts import LOOKUP, Draft
from glassformer.generation.loop import stream_chosen
from glassformer.generation.sampling import Sampling
from glassformer.generation.text_arguments import Texts, list_texts, match_input
from glassformer.generation.text_stream import TextStream
from glassformer.models import Decoder
from glassformer.models.baselines import RecurrentLanguage
from glassformer.models.checkpoints import Saved
from glassformer.text import Tokenizer
from glassformer.text.chat import as_chat

MAX_NEW_TOKENS = 100  # by default; fewer where the model has less room


def generate(
    model: Decoder | RecurrentLanguage,
    text: Texts,
    *,
    max_new_tokens: int | None = None,
    temperature: float | int = 0.0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    repetition_penalty: float | int | None = None,
    stop: str | Sequence[str] = (),
    seed: int | None = None,
    chat: bool = False,
    draft: Draft | Decoder | str | None = LOOKUP,
) -> Texts:
    """Continue a text, or each text of a list, up to the model's end token or a stop string.

    ::

        max_new_tokens       at most so many tokens (default: 100, or as many as the model has room)
        temperature          0 is greedy; 1 samples from the model's own distribution
        top_k                sample from the k likeliest tokens
        top_p                sample from the nucleus: the fewest tokens with total probability p
        min_p                drop tokens less than min_p times as likely as the likeliest
        repetition_penalty   above 1, tokens that already occurred become less likely
        stop                 a string, or several, before which the text ends
        seed                 makes sampling reproducible
        chat                 wrap the text in the model's chat template, as a user's message
        draft                what guesses tokens ahead, which the model reads several at a time:
                             "lookup" (in the text so far), a smaller model, or None

    The texts of a list are generated together in one batch, with a draft model one by one; the
    answer has the continuations only. A draft changes how long that takes, never the text.

    >>> import glassformer as gf
    >>> writer = gf.load("writer")
    >>> gf.generate(writer, "And God said unto", max_new_tokens=2)
    ' him,'
    >>> gf.generate(writer, ["And God said unto", "And God"], max_new_tokens=2)
    [' him,', ' said unto']
    >>> drawn = gf.generate(writer, "It was", temperature=0.8, top_p=0.9, seed=1)
    >>> drawn == gf.generate(writer, "It was", temperature=0.8, top_p=0.9, seed=1)
    True
    """
    texts = list_texts(text)
    # An LSTM reads prompts of one length at a time, and a draft guesses for one text.
    is_single = isinstance(model, RecurrentLanguage) or isinstance(draft, Draft | Decoder)
    batches = [[each] for each in texts] if is_single else [texts]
    written: list[str] = []
    for batch in batches:
        pieces = stream(
            model,
            batch,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            stop=stop,
            seed=seed,
            chat=chat,
            draft=draft,
        )
        columns = list(pieces) or [[""] * len(batch)]
        written += ["".join(each) for each in zip(*columns, strict=True)]
    return match_input(text, written)


def stream(
    model: Decoder | RecurrentLanguage,
    text: Texts,
    *,
    max_new_tokens: int | None = None,
    temperature: float | int = 0.0,
    top_k: int | None = None,
    top_p: float | int | None = None,
    min_p: float | int | None = None,
    repetition_penalty: float | int | None = None,
    stop: str | Sequence[str] = (),
    seed: int | None = None,
    chat: bool = False,
    draft: Draft | Decoder | str | None = LOOKUP,
) -> Iterator[Texts]:
    """Continue a text as `generate` does, and yield each piece as soon as it is certain.

    For a list, each item is a list with one piece per text; a piece may be empty.

    >>> import glassformer as gf
    >>> writer = gf.load("writer")
    >>> list(gf.stream(writer, "And God said unto", max_new_tokens=2))
    [' him', ',']
    >>> list(gf.stream(writer, ["And God said unto", "And God"], max_new_tokens=2))
    [[' him', ' said'], [',', ' unto']]
    """
    if not isinstance(model, Decoder | RecurrentLanguage):
        raise ConfigError(
            f"Only a decoder continues a text; got {type(model).__name__}. Use translate for an "
            "encoder-decoder, fill or embed for an encoder."
        )
    sampling = Sampling(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
    )
    stops = [stop] if isinstance(stop, str) else list(stop)
    check_stops(stops)
    prompts = [_encode_prompt(model, each, chat=chat) for each in list_texts(text)]
    if max_new_tokens is None:
        room = model.config.max_len - max(map(len, prompts))
        max_new_tokens = max(1, min(MAX_NEW_TOKENS, room))
    if draft == LOOKUP and (len(prompts) > 1 or not isinstance(model, Decoder)):
        draft = None  # it is the default, and only for one text
    steps = stream_chosen(
        model,
        prompts,
        max_new_tokens=max_new_tokens,
        sampling=sampling,
        stop=model.special.end,
        never=model.special.never,
        seed=seed,
        draft=draft,
    )
    tokenizer = tokenizer_of(model)
    streams = [TextStream(tokenizer, prompt=prompt, stop=stops) for prompt in prompts]
    return (match_input(text, pieces) for pieces in _decode_steps(steps, streams))


def check_stops(stops: Sequence[str]) -> None:
    """Reject an empty stop string, which is everywhere."""
    if "" in stops:
        raise ConfigError("A stop string must have at least one character; got ''.")


def _encode_prompt(model: Decoder | RecurrentLanguage, text: str, *, chat: bool) -> list[int]:
    tokenizer = tokenizer_of(model)
    if chat:  # the template has the special tokens it needs
        tokens = tokenizer.encode(as_chat(text, tokenizer, model.special), add_special=False)
    else:
        tokens = tokenizer.encode(text)
    if tokens:
        return tokens
    if model.special.begin is None:
        raise ConfigError("A prompt must have at least one token; got an empty text.")
    return [model.special.begin]


def _decode_steps(
    steps: Iterator[tuple[list[int], list[bool]]], streams: Sequence[TextStream]
) -> Iterator[list[str]]:
    for tokens, done in steps:
        pieces = [
            each.finish() if is_done else each.add(token)
            for each, token, is_done in zip(streams, tokens, done, strict=True)
        ]
        if any(pieces):
            yield pieces
        if all(each.is_over for each in streams):
            return
    pieces = [each.finish() for each in streams]
    if any(pieces):
        yield pieces


def tokenizer_of(model: Saved) -> Tokenizer:
    """The model's tokenizer; a model without one cannot read text."""
    if model.tokenizer is None:
        raise CheckpointError(
            "A model needs a tokenizer to read text; this one has none. Load it from a folder "
            "that contains one, or set model.tokenizer."
        )
    return model.tokenizer
