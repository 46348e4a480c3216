"""The decoding loop: a model, one prompt per sequence, and a rule for the next token.

    prompts ─ left-padded ─ prefill ─ logits ─ adjust ─ choose ─┐
                              ▲                                 │
                              └────────── decode, one token ◄───┘

Prefill reads the prompts in one pass; each decode step reads one new token, as everything before it
is in the key-value cache. Prompts of unequal length are padded on the left, so that they all end in
the same column; the padding is masked, and positions do not count it.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.errors import ConfigError, ShapeError
from glassformer.functional import Mask, Padding, Prefix
from glassformer.generation.recurrent import RecurrentSession
from glassformer.generation.sampling import Sampling, adjust, choose, exclude_tokens
from glassformer.models import Decoder, EncoderDecoder, ModelCache
from glassformer.models.baselines import RecurrentLanguage, RecurrentTranslator

GenerativeModel = Decoder | EncoderDecoder | RecurrentLanguage | RecurrentTranslator

GREEDY = Sampling(temperature=0)


@dataclass(frozen=True, eq=False)
class DecodingStep:
    """One token for each sequence, its log-probability, and which sequences have ended.

    `logits` are the model's own; `adjusted` are those from which the token was chosen, after the
    exclusions and the sampling settings.
    """

    tokens: Int[Tensor, " B"]
    log_probabilities: Float[Tensor, " B"]
    done: Bool[Tensor, " B"]
    logits: Float[Tensor, "B V"]
    adjusted: Float[Tensor, "B V"]


def generate_tokens(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    source: Sequence[Sequence[int]] | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[int] = (),
    never: Sequence[int] = (),
    seed: int | None = None,
    fixed: bool = False,
    compiled: bool = False,
) -> list[list[int]]:
    """Continue each prompt up to a stop token, which is left out.

    `source` is the encoder's input; tokens in `never` are excluded. `fixed` uses a cache of fixed
    size; `compiled` does too, and compiles the decode step.

    >>> from glassformer.models import Config
    >>> config = Config(family="decoder", vocab_size=9, dim=8, n_layers=1, n_heads=2, max_len=16)
    >>> written = generate_tokens(Decoder(config).eval(), [[1, 2], [3]], max_new_tokens=4)
    >>> [len(tokens) for tokens in written]
    [4, 4]
    """
    written: list[list[int]] = [[] for _ in prompts]
    ended = [False] * len(written)
    steps = stream_tokens(
        model,
        prompts,
        max_new_tokens=max_new_tokens,
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
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    source: Sequence[Sequence[int]] | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[int] = (),
    never: Sequence[int] = (),
    seed: int | None = None,
    fixed: bool = False,
    compiled: bool = False,
) -> Iterator[DecodingStep]:
    """Generate as `generate_tokens` does, and yield each step as it is decoded."""
    check_prompts(model, prompts, source, max_new_tokens)
    return _steps(
        model, prompts, max_new_tokens, source, sampling, stop, never, seed, fixed, compiled
    )


@torch.no_grad()
def _steps(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    source: Sequence[Sequence[int]] | None,
    sampling: Sampling,
    stop: Sequence[int],
    never: Sequence[int],
    seed: int | None,
    fixed: bool,
    compiled: bool,
) -> Iterator[DecodingStep]:
    session = start_session(
        model, prompts, source=source, max_new_tokens=max_new_tokens, fixed=fixed, compiled=compiled
    )
    device = session.fresh.device
    generator = None if seed is None else torch.Generator(device).manual_seed(seed)
    stops = torch.tensor(list(stop), dtype=torch.long, device=device)
    seen, counts = session.fresh, session.is_real  # padding is not penalized
    done = torch.zeros(len(seen), dtype=torch.bool, device=device)
    for _ in range(max_new_tokens):
        own = session.logits()[:, -1]  # (B, L, V) → (B, V)
        logits = exclude_tokens(own, never)
        adjusted = adjust(logits, sampling, seen, mask=counts)
        chosen = choose(adjusted, sampling, generator)
        done = done | torch.isin(chosen, stops)
        log_probabilities = logits.float().log_softmax(-1).gather(1, chosen[:, None])[:, 0]
        session.append(chosen)  # before the yield: a trace wants the last token, too
        yield DecodingStep(chosen, log_probabilities, done, own, adjusted)
        if bool(done.all()):
            return
        seen = torch.cat([seen, chosen[:, None]], dim=1)
        counts = torch.cat([counts, ~done[:, None]], dim=1)


def start_session(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    *,
    source: Sequence[Sequence[int]] | None,
    max_new_tokens: int,
    fixed: bool = False,
    compiled: bool = False,
) -> "DecodingSession | RecurrentSession":
    """A decoding session over a key-value cache, or over an LSTM's state."""
    if isinstance(model, RecurrentLanguage | RecurrentTranslator):
        return RecurrentSession(model, prompts, source=source)
    return DecodingSession(
        model,
        prompts,
        source=source,
        max_new_tokens=max_new_tokens,
        fixed=fixed,
        compiled=compiled,
    )


class DecodingSession:
    """A model, its key-value cache, and the tokens it has not read yet.

    `logits` reads those tokens; `append` adds the next ones.
    """

    def __init__(
        self,
        model: Decoder | EncoderDecoder,
        prompts: Sequence[Sequence[int]],
        *,
        source: Sequence[Sequence[int]] | None,
        max_new_tokens: int,
        fixed: bool = False,
        compiled: bool = False,
    ) -> None:
        device = model.embedding.weight.device
        self.model = model
        self.fresh, self.missing = _pad_left(prompts, device)
        B, L = self.fresh.shape
        self.is_real = torch.arange(L, device=device) >= self.missing[:, None]
        self.mask = ~Prefix(self.missing) if bool(self.missing.any()) else None
        self.compiled = compiled
        self.length = 0
        self.cache = model.new_cache(B, max_len=L + max_new_tokens if fixed or compiled else None)
        self.context, self.context_mask = _encode_source(model, source, device)

    def logits(self) -> Float[Tensor, "B L V"]:
        """The next-token logits after each token not read yet."""
        n = self.fresh.shape[1]
        columns = torch.arange(self.length, self.length + n, device=self.fresh.device)
        self.length += n
        self.cache.next_tokens = None
        read = _compile_read() if self.compiled and n == 1 else _read
        return read(
            self.model,
            self.fresh,
            (columns - self.missing[:, None]).clamp(min=0),
            self.mask,
            self.cache,
            self.context,
            self.context_mask,
        )

    def append(
        self, tokens: Int[Tensor, " B"], *, parents: Int[Tensor, " B"] | None = None
    ) -> None:
        """Append a token to each row; with `parents`, row i continues row `parents[i]`.

        Rows may only change places among copies of one prompt: padding and source do not move.
        """
        if parents is not None:
            self.cache.reorder(parents.to(self.fresh.device))
        self.fresh = tokens.to(self.fresh.device)[:, None]
        # A finished beam is continued by an arbitrary token, which is not its next token.
        self.cache.next_tokens = self.fresh[:, 0] if parents is None else None


def _read(
    model: Decoder | EncoderDecoder,
    tokens: Int[Tensor, "B L"],
    positions: Int[Tensor, "B L"],
    mask: Mask | None,
    cache: ModelCache,
    context: Float[Tensor, "B S C"] | None,
    context_mask: Mask | None,
) -> Float[Tensor, "B L V"]:
    """One pass: prefill with many tokens, a decode step with one."""
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
def _compile_read() -> Callable[..., Tensor]:
    # Not fullgraph: past PyTorch's recompilation limit it falls back to eager mode.
    return torch.compile(_read, dynamic=False)


def _encode_source(
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


def _pad_left(
    prompts: Sequence[Sequence[int]], device: torch.device
) -> tuple[Int[Tensor, "B L"], Int[Tensor, " B"]]:
    longest = max(len(prompt) for prompt in prompts)
    padded = torch.zeros(len(prompts), longest, dtype=torch.long, device=device)
    for row, prompt in zip(padded, prompts, strict=True):
        row[longest - len(prompt) :] = torch.tensor(list(prompt), device=device)
    missing = torch.tensor([longest - len(prompt) for prompt in prompts], device=device)
    return padded, missing


def check_max_new_tokens(n: int | None) -> None:
    """Reject a number of new tokens below 1; None is the default."""
    if n is not None and n < 1:
        raise ConfigError(f"max_new_tokens must be at least 1; got {n}.")


def check_prompts(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    source: Sequence[Sequence[int]] | None,
    max_new_tokens: int,
) -> None:
    """Reject prompts, sources and lengths that cannot be decoded."""
    check_max_new_tokens(max_new_tokens)
    if not prompts or min(len(prompt) for prompt in prompts) < 1:
        raise ShapeError(
            "Every prompt needs at least one token, such as the begin token; got lengths "
            f"{[len(prompt) for prompt in prompts]}."
        )
    longest, most = max(len(prompt) for prompt in prompts), model.config.max_len
    if longest >= most:
        raise ShapeError(
            f"A prompt must be shorter than max_len={most} to leave room for new tokens; got "
            f"{longest} tokens. Shorten it."
        )
    if longest + max_new_tokens > most:
        raise ShapeError(
            f"Prompt and new tokens must fit max_len={most}; got {longest} + {max_new_tokens}. "
            f"Generate at most {most - longest} new tokens or shorten the prompt."
        )
    if isinstance(model, EncoderDecoder | RecurrentTranslator) != (source is not None):
        raise ConfigError(
            "source is the input of an encoder-decoder, and required there; got "
            f"source={'given' if source else None} for {type(model).__name__}."
        )
    if source is not None and (len(source) != len(prompts) or min(map(len, source)) < 1):
        raise ShapeError(
            f"source needs one text of at least one token per prompt; got lengths "
            f"{[len(text) for text in source]} for {len(prompts)} prompts."
        )
