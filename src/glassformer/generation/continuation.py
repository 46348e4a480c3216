"""Continuing a text with a decoder: whole, or piece by piece while the model writes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from glassformer.errors import CheckpointError, ConfigError
from glassformer.generation.drafts import AUTO, Draft
from glassformer.generation.loop import stream_chosen, write_many
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
    draft: Draft | Decoder | str | None = AUTO,
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
                             "lookup" (in the text so far), a smaller model, or None; "auto" is a
                             lookup for a single text on a CPU

    The texts of a list are generated together, as many at a time as is quickest, and with a draft
    one by one; the answer has the continuations only. A draft changes how long that takes,
    never the text.

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
    options = {
        "max_new_tokens": max_new_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "stop": stop,
        "seed": seed,
        "chat": chat,
    }
    texts = list_texts(text)
    # An LSTM reads prompts of one length at a time, and a draft guesses for one text.
    is_single = isinstance(model, RecurrentLanguage) or draft not in (AUTO, None)
    written: list[str] = []
    for batch in [[each] for each in texts] if is_single else [texts]:
        request = _read_request(model, batch, **options)
        written += _write_queued(request) or _write_together(request, draft)
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
    draft: Draft | Decoder | str | None = AUTO,
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
    request = _read_request(
        model,
        list_texts(text),
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        stop=stop,
        seed=seed,
        chat=chat,
    )
    return (match_input(text, pieces) for pieces in _stream_pieces(request, draft))


class _Request(NamedTuple):
    """What is to be continued, and how; all of it has been checked but for lengths."""

    model: Decoder | RecurrentLanguage
    prompts: list[list[int]]
    max_new_tokens: int
    sampling: Sampling
    stops: list[str]
    seed: int | None

    @property
    def options(self) -> dict[str, Any]:
        """What functions on tokens take."""
        special = self.model.special
        return {
            "max_new_tokens": self.max_new_tokens,
            "sampling": self.sampling,
            "stop": special.end,
            "never": special.never,
            "seed": self.seed,
        }

    def start_texts(self) -> list[TextStream]:
        """A text for each prompt, which takes its tokens."""
        tokenizer = tokenizer_of(self.model)
        return [TextStream(tokenizer, prompt=each, stop=self.stops) for each in self.prompts]


def _read_request(
    model: Decoder | RecurrentLanguage,
    texts: Sequence[str],
    *,
    max_new_tokens: int | None,
    stop: str | Sequence[str],
    seed: int | None,
    chat: bool,
    **settings: Any,  # of Sampling
) -> _Request:
    if not isinstance(model, Decoder | RecurrentLanguage):
        raise ConfigError(
            f"Only a decoder continues a text; got {type(model).__name__}. Use translate for an "
            "encoder-decoder, fill or embed for an encoder."
        )
    sampling = Sampling(**settings)
    stops = [stop] if isinstance(stop, str) else list(stop)
    check_stops(stops)
    prompts = [_encode_prompt(model, each, chat=chat) for each in texts]
    if max_new_tokens is None:
        room = model.config.max_len - max(map(len, prompts))
        max_new_tokens = max(1, min(MAX_NEW_TOKENS, room))
    return _Request(model, prompts, max_new_tokens, sampling, stops, seed)


def _stream_pieces(request: _Request, draft: Draft | Decoder | str | None) -> Iterator[list[str]]:
    model, prompts = request.model, request.prompts
    if draft == AUTO and len(prompts) > 1:
        draft = None  # which guesses for one text alone
    steps = stream_chosen(model, prompts, draft=draft, **request.options)
    return _decode_steps(steps, request.start_texts())


def _write_together(request: _Request, draft: Draft | Decoder | str | None) -> list[str]:
    columns = list(_stream_pieces(request, draft)) or [[""] * len(request.prompts)]
    return ["".join(each) for each in zip(*columns, strict=True)]


def _write_queued(request: _Request) -> list[str] | None:
    """The continuations of prompts that are too many for one batch; None if they are not."""
    streams = request.start_texts()
    pieces: list[list[str]] = [[] for _ in streams]
    ends = request.model.special.end

    def add(i: int, token: int) -> bool:
        if token not in ends:
            pieces[i].append(streams[i].add(token))
        return token in ends or streams[i].is_over

    if not write_many(request.model, request.prompts, add, **request.options):
        return None
    return ["".join([*each, text.finish()]) for each, text in zip(pieces, streams, strict=True)]


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
