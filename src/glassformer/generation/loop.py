"""The decoding loop: a model, one prompt per sequence, and a rule for the next token.

    prompts ─ left-padded ─ prefill ─ logits ─ adjust ─ choose ─┐
                              ▲                                 │
                              └────────── decode, one token ◄───┘

Prefill reads the prompts in one pass; each decode step reads one new token, as everything before it
is in the key-value cache. Prompts of unequal length are padded on the left, so that they all end in
the same column; the padding is masked, and positions do not count it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.generation.captured import CapturedSession
from glassformer.generation.captured_queue import write_queued_on_gpu
from glassformer.generation.choice_rule import Rule
from glassformer.generation.direct import DirectSession
from glassformer.generation.drafting import stream_by_draft
from glassformer.generation.drafts import Draft, check_drafted, find_draft
from glassformer.generation.output_selection import select_outputs
from glassformer.generation.prompts import GenerativeModel, check_excluded, check_prompts
from glassformer.generation.queueing import OnToken, count_slots, write_queued
from glassformer.generation.sampling import GREEDY, Sampling, adjust, choose, exclude_tokens
from glassformer.generation.sessions import Session, can_drop, choose_direct, start_session
from glassformer.layers.embedding import check_tokens
from glassformer.models import Decoder

_STRETCH = 8  # tokens per call into C when the output is not streamed; Ctrl+C waits for them


@dataclass(frozen=True, eq=False)
class DecodingStep:
    """One token for each sequence, and which sequences have ended.

    `logits` are the model's own, `allowed` those after the exclusions; `adjusted` are those from
    which the token was chosen, after the sampling settings, too.
    """

    tokens: Int[Tensor, " B"]
    done: Bool[Tensor, " B"]
    logits: Float[Tensor, "B V"]
    allowed: Float[Tensor, "B V"]
    adjusted: Float[Tensor, "B V"]

    @property
    def log_probabilities(self) -> Float[Tensor, " B"]:
        """Of the tokens, among those that are allowed."""
        logs = self.allowed.float().log_softmax(-1)
        return logs.gather(1, self.tokens[:, None])[:, 0]


def generate_tokens(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    source: Sequence[Sequence[int]] | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[int] = (),
    never: Sequence[int] = (),
    forbidden: Bool[Tensor, "B V"] | None = None,
    seed: int | None = None,
    fixed: bool = False,
    compiled: bool = False,
    draft: Draft | Decoder | str | None = None,
) -> list[list[int]]:
    """Continue each prompt up to a stop token, which is left out.

    `source` is the encoder's input; tokens in `never` are excluded, and for each prompt those that
    are True in its row of `forbidden`. `fixed` uses a cache of fixed size; `compiled` does too, and
    compiles the decode step. A `draft` guesses tokens of a single prompt, which the model reads
    several at a time (`speculative`); the result is the same.

    >>> from glassformer.models import Config, Decoder
    >>> config = Config(family="decoder", vocab_size=9, dim=8, n_layers=1, n_heads=2, max_len=16)
    >>> written = generate_tokens(Decoder(config).eval(), [[1, 2], [3]], max_new_tokens=4)
    >>> [len(tokens) for tokens in written]
    [4, 4]
    """
    written: list[list[int]] = [[] for _ in prompts]
    is_plain = source is forbidden is draft is None and not fixed and not compiled

    def add(i: int, token: int) -> bool:
        if token not in stop:
            written[i].append(token)
        return token in stop

    if is_plain and write_many(
        model,
        prompts,
        add,
        max_new_tokens=max_new_tokens,
        sampling=sampling,
        stop=stop,
        never=never,
        seed=seed,
    ):
        return written
    ended = [False] * len(written)
    steps = stream_chosen(
        model,
        prompts,
        max_new_tokens=max_new_tokens,
        source=source,
        sampling=sampling,
        stop=stop,
        never=never,
        forbidden=forbidden,
        seed=seed,
        fixed=fixed,
        compiled=compiled,
        draft=draft,
        stretch=_STRETCH,
    )
    for tokens, all_done in steps:
        for i, (token, done) in enumerate(zip(tokens, all_done, strict=True)):
            if not ended[i] and not done:
                written[i].append(token)
            ended[i] = done
    return written


@torch.no_grad()
def write_many(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    on_token: OnToken,
    *,
    max_new_tokens: int,
    sampling: Sampling,
    stop: Sequence[int],
    never: Sequence[int],
    seed: int | None,
) -> bool:
    """Continue prompts that are too many for one batch; False if they are not.

    `on_token` is called with each token as it is chosen, and returns whether its text is over.
    """
    if not prompts or sampling.repetition_penalty is not None:
        return False
    check_prompts(model, prompts, None, max_new_tokens)
    check_excluded(model, prompts, never, None)
    slots = count_slots(model, prompts, max_new_tokens)
    if slots == len(prompts) or not isinstance(model, Decoder):
        return False
    check_tokens(torch.tensor([[*chain.from_iterable(prompts)]]), model.config.vocab_size)
    if choose_direct(model, max_new_tokens) is CapturedSession:
        write_queued_on_gpu(
            model,
            prompts,
            slots=slots,
            max_new_tokens=max_new_tokens,
            sampling=sampling,
            never=never,
            seed=seed,
            on_token=on_token,
        )
        return True
    generator = None if seed is None else torch.Generator().manual_seed(seed)

    def choose_next(logits: Float[Tensor, "B V"]) -> Int[Tensor, " B"]:
        allowed = exclude_tokens(logits, never, None)
        return choose(adjust(allowed, sampling), sampling, generator)

    write_queued(
        model,
        prompts,
        slots=slots,
        max_new_tokens=max_new_tokens,
        rule=Rule(never, None, stop),
        choose=None if sampling.temperature == 0 else choose_next,
        on_token=on_token,
    )
    return True


def stream_tokens(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    source: Sequence[Sequence[int]] | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[int] = (),
    never: Sequence[int] = (),
    forbidden: Bool[Tensor, "B V"] | None = None,
    seed: int | None = None,
    fixed: bool = False,
    compiled: bool = False,
) -> Iterator[DecodingStep]:
    """Generate as `generate_tokens` does, and yield each step as it is decoded."""
    sizes = {"source": source, "max_new_tokens": max_new_tokens}
    start = _prepare_session(
        model, prompts, never, forbidden, **sizes, fixed=fixed, compiled=compiled
    )
    return _steps(start, max_new_tokens, sampling, stop, never, forbidden, seed)


def stream_chosen(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    source: Sequence[Sequence[int]] | None = None,
    sampling: Sampling = GREEDY,
    stop: Sequence[int] = (),
    never: Sequence[int] = (),
    forbidden: Bool[Tensor, "B V"] | None = None,
    seed: int | None = None,
    fixed: bool = False,
    compiled: bool = False,
    draft: Draft | Decoder | str | None = None,
    stretch: int = 1,
) -> Iterator[tuple[list[int], list[bool]]]:
    """The tokens of each step and which sequences have ended, without the logits.

    On a GPU the host need not wait for each token: this is the fastest way to generate. Up to
    `stretch` tokens may be decoded before the first of them is yielded.
    """
    sizes = {"source": source, "max_new_tokens": max_new_tokens}
    start = _prepare_session(
        model, prompts, never, forbidden, **sizes, fixed=fixed, compiled=compiled
    )
    found = find_draft(draft, model)
    if found is not None:
        check_drafted(found, model, prompts)
    return _stream_chosen(
        start, max_new_tokens, sampling, stop, never, forbidden, seed, found, stretch
    )


def _prepare_session(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    never: Sequence[int],
    forbidden: Bool[Tensor, "B V"] | None,
    *,
    source: Sequence[Sequence[int]] | None,
    max_new_tokens: int,
    fixed: bool,
    compiled: bool,
) -> Callable[[], Session]:
    """Check what is given now; the session begins with the first step."""
    check_prompts(model, prompts, source, max_new_tokens)
    check_excluded(model, prompts, never, forbidden)
    options = {
        "source": source,
        "max_new_tokens": max_new_tokens,
        "outputs": select_outputs(never, forbidden),
    }
    return partial(start_session, model, prompts, **options, fixed=fixed, compiled=compiled)


@torch.no_grad()
def _stream_chosen(
    start: Callable[[], Session],
    max_new_tokens: int,
    sampling: Sampling,
    stop: Sequence[int],
    never: Sequence[int],
    forbidden: Bool[Tensor, "B V"] | None,
    seed: int | None,
    draft: Draft | None,
    stretch: int,
) -> Iterator[tuple[list[int], list[bool]]]:
    session = start()
    stops = frozenset(stop)
    if draft is not None:
        rule = Rule(never, forbidden, stop, device=session.fresh.device)
        tokens = stream_by_draft(
            session, draft, max_new_tokens=max_new_tokens, sampling=sampling, rule=rule, seed=seed
        )
        if tokens is not None:
            yield from _end_at_stop(session, tokens, stops)
            return
    if can_drop(session) and sampling.is_argmax:
        rule = Rule(never, forbidden, stop, device=session.fresh.device)
        yield from _stream_greedy(session, max_new_tokens, rule, stretch)
        return
    if not isinstance(session, CapturedSession):
        steps = _steps(lambda: session, max_new_tokens, sampling, stop, never, forbidden, seed)
        for step in steps:
            yield step.tokens.tolist(), step.done.tolist()
        return
    done = [False] * len(session.fresh)
    try:
        for tokens in session.stream_tokens(
            sampling,
            max_new_tokens=max_new_tokens,
            never=never,
            forbidden=forbidden,
            seed=seed,
        ):
            done = [ended or token in stops for token, ended in zip(tokens, done, strict=True)]
            yield tokens, done
            if all(done):
                return
    finally:
        session.close()


def _end_at_stop(
    session: Session, tokens: Iterator[int], stops: frozenset[int]
) -> Iterator[tuple[list[int], list[bool]]]:
    """The tokens of a single text up to a stop token, as steps of a batch."""
    try:
        for token in tokens:
            yield [token], [token in stops]
            if token in stops:
                return
    finally:
        session.close()


def _stream_greedy(
    session: DirectSession, max_new_tokens: int, rule: Rule, stretch: int
) -> Iterator[tuple[list[int], list[bool]]]:
    """The most probable tokens; texts that have ended are no longer read."""
    tokens, done = [0] * len(session.fresh), [False] * len(session.fresh)
    live = [*range(len(tokens))]  # the text of each row that is read
    n = 0
    while n < max_new_tokens:
        written = session.write(min(stretch, max_new_tokens - n), rule)
        n += len(written)
        going = []
        for chosen in written:
            going = []
            for row, (text, token) in enumerate(zip(live, chosen, strict=True)):
                tokens[text], done[text] = token, token in rule.stops
                if not done[text]:
                    going.append(row)
            yield [*tokens], [*done]
        if not going:
            return
        if len(going) < len(live):
            session.keep(torch.tensor(going))
            live = [live[row] for row in going]
            rule = rule.keep(going)


@torch.no_grad()
def _steps(
    start: Callable[[], Session],
    max_new_tokens: int,
    sampling: Sampling,
    stop: Sequence[int],
    never: Sequence[int],
    forbidden: Bool[Tensor, "B V"] | None,
    seed: int | None,
) -> Iterator[DecodingStep]:
    session = start()
    device = session.fresh.device
    forbidden = None if forbidden is None else forbidden.to(device)
    generator = None if seed is None else torch.Generator(device).manual_seed(seed)
    stops = torch.tensor(list(stop), dtype=torch.long, device=device)
    penalizes = sampling.repetition_penalty is not None
    seen, counts = session.fresh, session.is_real  # padding is not penalized
    done = torch.zeros(len(seen), dtype=torch.bool, device=device)
    try:
        for _ in range(max_new_tokens):
            own = session.next_logits()
            logits = exclude_tokens(own, never, forbidden)
            adjusted = adjust(logits, sampling, seen, mask=counts)
            chosen = choose(adjusted, sampling, generator)
            done = done | torch.isin(chosen, stops)
            session.append(chosen)  # before the yield: a trace wants the last token, too
            yield DecodingStep(chosen, done, own, logits, adjusted)
            if bool(done.all()):
                return
            if penalizes:
                seen = torch.cat([seen, chosen[:, None]], dim=1)
                counts = torch.cat([counts, ~done[:, None]], dim=1)
    finally:
        session.close()
