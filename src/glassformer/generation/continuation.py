"""Text after text: a decoder continues what it is given, piece by piece."""

from collections.abc import Iterator, Sequence

from glassformer.errors import CheckpointError, ConfigError
from glassformer.generation.loop import GREEDY, stream_tokens
from glassformer.generation.sampling import Sampling
from glassformer.models import Decoder
from glassformer.models.baselines import RecurrentLanguage
from glassformer.models.checkpoints import Saved
from glassformer.text import Tokenizer
from glassformer.text.chat import as_chat

MAX_NEW = 100  # unless told otherwise, or less where a model has less room


def generate(
    model: Decoder | RecurrentLanguage,
    prompt: str,
    *,
    max_new: int | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[str] = (),
    seed: int | None = None,
    chat: bool = False,
) -> str:
    """What the model writes behind the prompt, up to its end token or a stop string.

    `chat` puts the prompt into the form of a question that the model was trained on.
    """
    pieces = stream(
        model, prompt, max_new=max_new, sampling=sampling, stop=stop, seed=seed, chat=chat
    )
    return "".join(pieces)


def stream(
    model: Decoder | RecurrentLanguage,
    prompt: str,
    *,
    max_new: int | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[str] = (),
    seed: int | None = None,
    chat: bool = False,
) -> Iterator[str]:
    """The same as an iterator: each piece of text as soon as it is certain."""
    if not isinstance(model, Decoder | RecurrentLanguage):
        raise ConfigError(
            f"Only a decoder continues a text; got {type(model).__name__}. Use translate for an "
            "encoder-decoder, fill or embed for an encoder."
        )
    if "" in stop:
        raise ConfigError("A stop string must have at least one character; got ''.")
    tokenizer = tokenizer_of(model)
    text = as_chat(prompt, tokenizer, model.special) if chat else prompt
    tokens = tokenizer.encode(text, add_special=not chat)  # a chat's form has its own
    if not tokens:
        if model.special.begin is None:
            raise ConfigError("A prompt must have at least one token; got an empty text.")
        tokens = [model.special.begin]
    if max_new is None:
        max_new = max(1, min(MAX_NEW, model.config.max_len - len(tokens)))
    steps = stream_tokens(
        model,
        [tokens],
        max_new=max_new,
        sampling=sampling,
        stop=model.special.end,
        never=model.special.never,
        seed=seed,
    )
    new = (int(step.tokens[0]) for step in steps if not bool(step.done[0]))
    return until(texts(tokenizer, tokens, new), stop)


def texts(tokenizer: Tokenizer, before: Sequence[int], new: Iterator[int]) -> Iterator[str]:
    """Tokens as text: a piece waits until the bytes of its last character are all there."""
    tokens, told = list(before), tokenizer.decode(before)
    for token in new:
        tokens.append(token)
        text = tokenizer.decode(tokens)
        if text.endswith("\N{REPLACEMENT CHARACTER}") or not text.startswith(told):
            continue
        if text != told:
            yield text[len(told) :]
            told = text
    rest = tokenizer.decode(tokens)
    if rest.startswith(told) and rest != told:
        yield rest[len(told) :]


def until(pieces: Iterator[str], stop: Sequence[str]) -> Iterator[str]:
    """Pieces of text up to the first stop string, which may lie across several of them.

    >>> "".join(until(iter(["one, t", "w", "o, three"]), ["two"]))
    'one, '
    """
    held = ""  # what may be the beginning of a stop string
    for piece in pieces:
        held += piece
        ends = [held.find(each) for each in stop if each in held]
        if ends:
            yield held[: min(ends)]
            return
        keep = max((_overlap(held, each) for each in stop), default=0)
        if len(held) > keep:
            yield held[: len(held) - keep]
            held = held[len(held) - keep :]
    if held:
        yield held


def _overlap(text: str, stop: str) -> int:
    """How much of the end of a text is the beginning of a stop string."""
    return next((n for n in range(len(stop) - 1, 0, -1) if text.endswith(stop[:n])), 0)


def tokenizer_of(model: Saved) -> Tokenizer:
    """The model's tokenizer, which it must have to read text."""
    if model.tokenizer is None:
        raise CheckpointError(
            "To read text a model must have a tokenizer; this one has none. Load it from a folder "
            "that holds one, or set model.tokenizer."
        )
    return model.tokenizer
