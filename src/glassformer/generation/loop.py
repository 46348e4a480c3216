"""Token by token: a model, a prompt for each sequence, and a rule for the next token.

    prompts ─ left-padded ─ prefill ─ logits ─ adjust ─ choose ─┐
                              ▲                                 │
                              └────────── decode, one token ◄───┘

The prompts are read at once, then each new token alone: everything before it is in the cache.
Padding on the left lets prompts of unequal length end together; masks hide it and places do not
count it.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError
from glassformer.functional import Mask, Padding, Prefix
from glassformer.generation.recurrent import RecurrentPrompted
from glassformer.generation.sampling import Sampling, adjust, choose, without
from glassformer.models import Decoder, EncoderDecoder, ModelCache
from glassformer.models.baselines import RecurrentLanguage, RecurrentTranslator

Writer = Decoder | EncoderDecoder | RecurrentLanguage | RecurrentTranslator  # of tokens

GREEDY = Sampling(temperature=0)


@dataclass(frozen=True, eq=False)
class Step:
    """One round: a token for each sequence, its log-probability, and which sequences have ended."""

    tokens: Int[Tensor, " B"]
    log_probabilities: Float[Tensor, " B"]
    done: Bool[Tensor, " B"]


def generate_tokens(
    model: Writer,
    prompts: Sequence[Sequence[int]],
    *,
    max_new: int,
    source: Sequence[Sequence[int]] | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[int] = (),
    never: Sequence[int] = (),
    seed: int | None = None,
    fixed: bool = False,
    compiled: bool = False,
) -> list[list[int]]:
    """What the model writes behind each prompt, up to and without a stop token.

    `source` is what an encoder reads; tokens in `never` are not written. `fixed` takes a cache of
    fixed size; `compiled` does so too, and compiles the step that reads one token.

    >>> from glassformer.models import Config
    >>> config = Config(family="decoder", vocab_size=9, dim=8, n_layers=1, n_heads=2, max_len=16)
    >>> [len(text) for text in generate_tokens(Decoder(config).eval(), [[1, 2], [3]], max_new=4)]
    [4, 4]
    """
    written: list[list[int]] = [[] for _ in prompts]
    ended = [False] * len(written)
    steps = stream_tokens(
        model,
        prompts,
        max_new=max_new,
        source=source,
        sampling=sampling,
        stop=stop,
        never=never,
        seed=seed,
        fixed=fixed,
        compiled=compiled,
    )
    for step in steps:
        for i, (token, done) in enumerate(
            zip(step.tokens.tolist(), step.done.tolist(), strict=True)
        ):
            if not ended[i] and not done:
                written[i].append(token)
            ended[i] = done
    return written


def stream_tokens(
    model: Writer,
    prompts: Sequence[Sequence[int]],
    *,
    max_new: int,
    source: Sequence[Sequence[int]] | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[int] = (),
    never: Sequence[int] = (),
    seed: int | None = None,
    fixed: bool = False,
    compiled: bool = False,
) -> Iterator[Step]:
    """The same as an iterator, a step at a time; stop reading whenever you like."""
    check_prompts(model, prompts, source, max_new)
    return _steps(model, prompts, max_new, source, sampling, stop, never, seed, fixed, compiled)


@torch.no_grad()
def _steps(
    model: Writer,
    prompts: Sequence[Sequence[int]],
    max_new: int,
    source: Sequence[Sequence[int]] | None,
    sampling: Sampling,
    stop: Sequence[int],
    never: Sequence[int],
    seed: int | None,
    fixed: bool,
    compiled: bool,
) -> Iterator[Step]:
    prompted = read_prompts(
        model, prompts, source=source, max_new=max_new, fixed=fixed, compiled=compiled
    )
    device = prompted.fresh.device
    generator = None if seed is None else torch.Generator(device).manual_seed(seed)
    stops = torch.tensor(list(stop), dtype=torch.long, device=device)
    seen, counts = prompted.fresh, prompted.is_real  # padding was never said
    done = torch.zeros(len(seen), dtype=torch.bool, device=device)
    for _ in range(max_new):
        logits = without(prompted.logits()[:, -1], never)
        chosen = choose(adjust(logits, sampling, seen, mask=counts), sampling, generator)
        done = done | torch.isin(chosen, stops)
        log_probabilities = logits.float().log_softmax(-1).gather(1, chosen[:, None])[:, 0]
        prompted.follow(None, chosen)  # before anybody stops reading: a trace wants the last one
        yield Step(chosen, log_probabilities, done)
        if bool(done.all()):
            return
        seen = torch.cat([seen, chosen[:, None]], dim=1)
        counts = torch.cat([counts, ~done[:, None]], dim=1)


def read_prompts(
    model: Writer,
    prompts: Sequence[Sequence[int]],
    *,
    source: Sequence[Sequence[int]] | None,
    max_new: int,
    fixed: bool = False,
    compiled: bool = False,
) -> "Prompted | RecurrentPrompted":
    """A model with its prompts read, whichever way it remembers them."""
    if isinstance(model, RecurrentLanguage | RecurrentTranslator):
        return RecurrentPrompted(model, prompts, source=source)
    return Prompted(model, prompts, source=source, max_new=max_new, fixed=fixed, compiled=compiled)


class Prompted:
    """A model with its prompts read into a cache: it gives logits, and is told what follows."""

    def __init__(
        self,
        model: Decoder | EncoderDecoder,
        prompts: Sequence[Sequence[int]],
        *,
        source: Sequence[Sequence[int]] | None,
        max_new: int,
        fixed: bool = False,
        compiled: bool = False,
    ) -> None:
        device = model.embedding.weight.device
        self.model = model
        self.fresh, self.missing = _left_padded(prompts, device)
        B, L = self.fresh.shape
        self.is_real = torch.arange(L, device=device) >= self.missing[:, None]
        self.mask = ~Prefix(self.missing) if bool(self.missing.any()) else None
        self.compiled = compiled
        self.length = 0
        self.cache = model.new_cache(B, max_len=L + max_new if fixed or compiled else None)
        self.context, self.context_mask = _encoded(model, source, device)

    def logits(self) -> Float[Tensor, "B L V"]:
        """Scores behind each token that the model has not read yet."""
        n = self.fresh.shape[1]
        places = torch.arange(self.length, self.length + n, device=self.fresh.device)
        self.length += n
        self.cache.next_tokens = None
        read = _compiled_read() if self.compiled and n == 1 else _read
        return read(
            self.model,
            self.fresh,
            (places - self.missing[:, None]).clamp(min=0),
            self.mask,
            self.cache,
            self.context,
            self.context_mask,
        )

    def follow(self, rows: Int[Tensor, " B"] | None, tokens: Int[Tensor, " B"]) -> None:
        """These tokens come next; `rows` says which text each of them continues, if not its own.

        Rows may only be exchanged among copies of one prompt: its padding and source stay.
        """
        if rows is not None:
            self.cache.reorder(rows.to(self.fresh.device))
        self.fresh = tokens.to(self.fresh.device)[:, None]
        # Beams that are over are continued by any token: what follows them says nothing.
        self.cache.next_tokens = self.fresh[:, 0] if rows is None else None


def _read(
    model: Decoder | EncoderDecoder,
    tokens: Int[Tensor, "B L"],
    positions: Int[Tensor, "B L"],
    mask: Mask | None,
    cache: ModelCache,
    context: Float[Tensor, "B S C"] | None,
    context_mask: Mask | None,
) -> Float[Tensor, "B L V"]:
    """Prefill with many tokens, a decode step with one: all that a step computes."""
    if isinstance(model, EncoderDecoder):
        assert context is not None
        return model.decode(
            tokens,
            context,
            context_mask=context_mask,
            mask=mask,
            positions=positions,
            cache=cache,
        )
    return model(tokens, mask=mask, positions=positions, cache=cache)


@functools.cache
def _compiled_read() -> Callable[..., Tensor]:
    # Not fullgraph: beyond PyTorch's limit of graphs for one function it goes on uncompiled.
    return torch.compile(_read, dynamic=False)


def _encoded(
    model: Decoder | EncoderDecoder, source: Sequence[Sequence[int]] | None, device: torch.device
) -> tuple[Tensor | None, Mask | None]:
    if source is None or not isinstance(model, EncoderDecoder):
        return None, None
    lengths = [len(text) for text in source]
    padded = torch.zeros(len(source), max(lengths), dtype=torch.long, device=device)
    for row, text in zip(padded, source, strict=True):
        row[: len(text)] = torch.tensor(list(text), device=device)
    mask = None if min(lengths) == max(lengths) else Padding(torch.tensor(lengths, device=device))
    return model.encode(padded, mask=mask), mask


def _left_padded(
    prompts: Sequence[Sequence[int]], device: torch.device
) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
    longest = max(len(prompt) for prompt in prompts)
    padded = torch.zeros(len(prompts), longest, dtype=torch.long, device=device)
    for row, prompt in zip(padded, prompts, strict=True):
        row[longest - len(prompt) :] = torch.tensor(list(prompt), device=device)
    missing = torch.tensor([longest - len(prompt) for prompt in prompts], device=device)
    return padded, missing


def check_prompts(
    model: Writer,
    prompts: Sequence[Sequence[int]],
    source: Sequence[Sequence[int]] | None,
    max_new: int,
) -> None:
    """What must hold before anything is written."""
    if max_new < 1:
        raise ConfigError(f"max_new must be at least 1; got {max_new}.")
    if not prompts or min(len(prompt) for prompt in prompts) < 1:
        raise ShapeError(
            "Every prompt needs at least one token, such as one that begins a text; got lengths "
            f"{[len(prompt) for prompt in prompts]}."
        )
    longest, most = max(len(prompt) for prompt in prompts), model.config.max_len
    if longest >= most:
        raise ShapeError(
            f"A prompt must be shorter than max_len={most}, to leave room for what follows; got "
            f"{longest} tokens. Shorten it."
        )
    if longest + max_new > most:
        raise ShapeError(
            f"Prompt and new tokens must fit max_len={most}; got {longest} + {max_new}. "
            f"Use max_new={most - longest} or a shorter prompt."
        )
    if isinstance(model, EncoderDecoder | RecurrentTranslator) != (source is not None):
        raise ConfigError(
            f"source is what an encoder reads; got source={'given' if source else None} for "
            f"{type(model).__name__}."
        )
    if source is not None and (len(source) != len(prompts) or min(map(len, source)) < 1):
        raise ShapeError(
            f"source needs one text of at least one token per prompt; got lengths "
            f"{[len(text) for text in source]} for {len(prompts)} prompts."
        )
