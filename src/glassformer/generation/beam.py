"""Beam search: several unfinished hypotheses are kept side by side to find the likeliest texts.

Every step extends each of the `beams` hypotheses by every token and keeps the best `beams` of all.
A hypothesis that reaches a stop token is finished; its score is

    score = log-probability / length^length_penalty        (length counts the stop token)

so a penalty of 0 favors short texts, and 1 compares mean log-probabilities.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.errors import ConfigError
from glassformer.generation.beam_state import MOST_BEAMS
from glassformer.generation.captured import CapturedSession
from glassformer.generation.captured_search import search_captured
from glassformer.generation.choice_rule import Rule
from glassformer.generation.output_selection import select_outputs
from glassformer.generation.prompts import GenerativeModel, check_excluded, check_prompts
from glassformer.generation.sampling import exclude_tokens
from glassformer.generation.sessions import can_drop, start_session


@dataclass(frozen=True, order=True)
class Hypothesis:
    """A text found by beam search: its score, log-probability and tokens without the stop token."""

    score: float
    log_probability: float
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A continuation that a step of the search considered, and what became of it.

    ::

        kept      one of the best: beam `beam` of the next step
        finished  it ended in a stop token, and was one of the best
        pruned    there were better ones
    """

    prompt: int
    parent: int  # the beam that it continues
    token: int
    log_probability: float  # of the whole text, from the prompt on
    fate: Literal["kept", "finished", "pruned"]
    beam: int | None = None


def beam_search(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    beams: int,
    source: Sequence[Sequence[int]] | None = None,
    stop: Sequence[int] = (),
    length_penalty: float = 1.0,
    n_best: int = 1,
    early: bool = True,
    never: Sequence[int] = (),
    forbidden: Bool[Tensor, "B V"] | None = None,
    renormalize: bool = False,
    observe: Callable[[list[Candidate]], None] | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` continuations of each prompt, best first.

    `early` stops a search once `beams` texts are finished; otherwise it continues until no
    unfinished hypothesis can still be among the best. Tokens in `never` are excluded. So are those
    that are True in a prompt's row of `forbidden`; but they keep their share of the probability, so
    that the scores of all other texts are the model's own. With `renormalize` the others share it,
    and a CPU does not compute the logits of what no prompt may have. `observe` is called after each
    step with the candidates of that step, best first.

    >>> from glassformer.models import Config, Decoder
    >>> config = Config(family="decoder", vocab_size=9, dim=8, n_layers=1, n_heads=2, max_len=16)
    >>> found = beam_search(Decoder(config).eval(), [[1, 2]], max_new_tokens=3, beams=4, n_best=2)
    >>> [len(text.tokens) for text in found[0]], found[0][0].score >= found[0][1].score
    ([3, 3], True)
    """
    check_prompts(model, prompts, source, max_new_tokens)
    check_beams(beams, n_best)
    check_excluded(model, prompts, never, forbidden)
    if renormalize:
        check_choice(never, forbidden)
    with torch.no_grad():
        search = _Search(
            model,
            prompts,
            source,
            max_new_tokens,
            beams,
            stop,
            length_penalty,
            never,
            forbidden,
            renormalize,
            observe,
        )
        session = search.session
        try:
            if isinstance(session, CapturedSession) and search.can_select(session) and early:
                search.run_captured(session)
            else:
                search.run(n_best, early)
        finally:
            session.close()
        return search.list_best(n_best)


def check_beams(beams: int, n_best: int = 1) -> None:
    """Reject a beam size below 1, or less than what is asked for."""
    if beams < 1 or not 1 <= n_best <= beams:
        raise ConfigError(
            f"beams must be at least 1 and n_best in 1 … beams; got beams={beams}, n_best={n_best}."
        )


def check_choice(never: Sequence[int], forbidden: Bool[Tensor, "B V"] | None) -> None:
    """Reject a prompt that is left no token, whose probabilities would not be numbers."""
    if forbidden is None:
        return
    left = ~forbidden
    left[:, list(never)] = False
    empty = (~left.any(dim=1)).nonzero()[:, 0].tolist()
    if empty:
        raise ConfigError(
            "With renormalize=True every prompt needs a token that may be written; never and "
            f"forbidden leave none to prompt {empty[0]}. Allow at least a stop token."
        )


class _Search:
    def __init__(
        self,
        model: GenerativeModel,
        prompts: Sequence[Sequence[int]],
        source: Sequence[Sequence[int]] | None,
        max_new_tokens: int,
        beams: int,
        stop: Sequence[int],
        length_penalty: float,
        never: Sequence[int],
        forbidden: Bool[Tensor, "B V"] | None,
        renormalize: bool,
        observe: Callable[[list[Candidate]], None] | None,
    ) -> None:
        self.beams, self.stop, self.max_new_tokens = beams, frozenset(stop), max_new_tokens
        self.length_penalty, self.observe = length_penalty, observe
        self.vocab_size = model.config.vocab_size
        # One row per beam; each prompt starts with one live beam and copies that cannot win.
        self.session = start_session(
            model,
            prompts,
            source=source,
            max_new_tokens=max_new_tokens,
            copies=beams,
            outputs=select_outputs(never, forbidden) if renormalize else None,
        )
        self.scores = [[0.0, *[-math.inf] * (beams - 1)] for _ in prompts]
        self.texts: list[list[tuple[int, ...]]] = [[()] * beams for _ in prompts]
        self.prompts = [*range(len(prompts))]  # those that are still searched, or may be
        self.finished: list[list[Hypothesis]] = [[] for _ in prompts]
        device = self.session.fresh.device
        self.rule = Rule(never, forbidden, renormalizes=renormalize, device=device)

    def can_select(self, session: CapturedSession) -> bool:
        """Whether the GPU selects the beams: nobody watches, and they are few."""
        if self.rule.forbidden is not None and self.rule.renormalizes:
            return False
        return self.observe is None and session.copies <= MOST_BEAMS

    def run_captured(self, session: CapturedSession) -> None:
        """Search on the GPU, and take over the texts it found."""
        found = search_captured(
            session,
            max_new_tokens=self.max_new_tokens,
            stops=sorted(self.stop),
            never=self.rule.never,
            forbidden=self.rule.forbidden,
        )
        for b, texts in enumerate(found):
            self.finished[b] = [
                self._text(each.log_probability, each.tokens, each.length)
                for each in texts
                if each.is_finished
            ]
            others = [each for each in texts if not each.is_finished]
            self.scores[b] = [each.log_probability for each in others]
            self.texts[b] = [each.tokens for each in others]

    def run(self, n_best: int, early: bool) -> None:
        """Search step by step."""
        for n in range(self.max_new_tokens):
            self.step(n)
            if self.is_over(n_best, early):
                break

    def step(self, n: int) -> None:
        tokens: list[int] = []
        parents: list[int] = []
        candidates: list[Candidate] = []
        for row, found in enumerate(self._find_best()):
            b, live = self.prompts[row], []
            for rank, (score, beam, token) in enumerate(found):
                if score == -math.inf:
                    break
                fate, kept_as = "pruned", None
                if token in self.stop:
                    if rank < self.beams:
                        self._finish(b, score, self.texts[row][beam], n + 1)
                        fate = "finished"
                elif len(live) < self.beams:
                    fate, kept_as = "kept", len(live)
                    live.append((score, beam, token))
                if self.observe is not None:
                    candidates.append(Candidate(b, beam, token, score, fate, kept_as))
            live += [(-math.inf, 0, 0)] * (self.beams - len(live))
            self.scores[row] = [score for score, _, _ in live]
            self.texts[row] = [(*self.texts[row][beam], token) for _, beam, token in live]
            parents += [row * self.beams + beam for _, beam, _ in live]
            tokens += [token for _, _, token in live]
        self.session.append(torch.tensor(tokens), parents=torch.tensor(parents))
        if self.observe is not None:
            self.observe(candidates)

    def _find_best(self) -> Iterable[list[tuple[float, int, int]]]:
        """For each prompt the best continuations of all its beams: score, beam and token."""
        most, V = self.beams * (1 + len(self.stop)), self.vocab_size
        n_best = min(most, V)  # the best of all beams are among the best of each
        ranked = self.session.rank(n_best, self.rule) if can_drop(self.session) else None
        if ranked is None:
            return _find_best(self.session.next_logits(), self.scores, self.rule, n_best, most)
        return _merge(*ranked, self.scores, most)

    def is_over(self, n_best: int, early: bool) -> bool:
        """End each search whose best texts are final, and say whether all have ended."""
        for row in range(len(self.scores)):
            if self._has_best(row, n_best, early):
                self.scores[row] = [-math.inf] * self.beams  # its neighbours in the batch continue
        live = [row for row, scores in enumerate(self.scores) if max(scores) > -math.inf]
        if can_drop(self.session) and 0 < len(live) < len(self.scores):
            self.session.keep(torch.tensor(live))
            self.scores = [self.scores[row] for row in live]
            self.texts = [self.texts[row] for row in live]
            self.prompts = [self.prompts[row] for row in live]
            self.rule = self.rule.keep(live)
        return not live

    def _has_best(self, row: int, n_best: int, early: bool) -> bool:
        done = sorted(self.finished[self.prompts[row]], reverse=True)
        if len(done) < self.beams:
            return False
        # Scores only fall, and the longest text divides them by the most.
        bound = max(self.scores[row]) / self.max_new_tokens ** max(self.length_penalty, 0.0)
        return early or bound <= done[n_best - 1].score

    def list_best(self, n_best: int) -> list[list[Hypothesis]]:
        """The best texts of each prompt; those that have not ended count where there are fewer."""
        found = [list(texts) for texts in self.finished]
        for b, scores, texts in zip(self.prompts, self.scores, self.texts, strict=True):
            if len(found[b]) < n_best or not self.stop:
                found[b] += [
                    self._text(score, text, len(text))
                    for score, text in zip(scores, texts, strict=True)
                    if score > -math.inf
                ]
        return [sorted(texts, reverse=True)[:n_best] for texts in found]

    def _finish(self, b: int, score: float, text: tuple[int, ...], length: int) -> None:
        self.finished[b].append(self._text(score, text, length))

    def _text(self, score: float, text: tuple[int, ...], length: int) -> Hypothesis:
        return Hypothesis(score / max(length, 1) ** self.length_penalty, score, text)


def _find_best(
    logits: Float[Tensor, "B V"],
    scores: Sequence[Sequence[float]],
    rule: Rule,
    n_best: int,
    most: int,
) -> Iterable[list[tuple[float, int, int]]]:
    """The best continuations of each prompt, found on the logits' device."""
    rows = None
    if rule.forbidden is not None:
        rows = rule.forbidden.repeat_interleave(len(scores[0]), dim=0)
    logits = exclude_tokens(logits, rule.never, rows if rule.renormalizes else None)
    largest, choices = logits.topk(n_best, dim=-1)  # only their logarithms are needed
    total = _add_exponentials(logits, largest[:, :1])
    before = torch.tensor(scores, dtype=torch.float64, device=logits.device)
    if rows is not None and not rule.renormalizes and bool(rows.gather(1, choices).any()):
        largest, choices = exclude_tokens(logits, (), rows).topk(n_best, dim=-1)
    totals = before[..., None] + (largest.double() - total).view(*before.shape, -1)
    best, where = totals.flatten(1).topk(min(most, totals[0].numel()), dim=-1)
    beams = where // n_best
    tokens = choices.view(len(before), -1).gather(1, where)
    found = [each.tolist() for each in (best, beams, tokens)]  # few values leave the GPU
    _check_numbers(found[0])
    return ([*zip(*row, strict=True)] for row in zip(*found, strict=True))


def _merge(
    logs: Sequence[Sequence[float]],
    tokens: Sequence[Sequence[int]],
    scores: Sequence[Sequence[float]],
    most: int,
) -> Iterator[list[tuple[float, int, int]]]:
    """The best continuations of each prompt among the best of each beam."""
    _check_numbers(logs)
    rows = zip(logs, tokens, strict=True)
    for before in scores:
        found = [
            (score + log, beam, token)
            for (beam, score), (each, best) in zip(enumerate(before), rows, strict=False)
            if score > -math.inf
            for log, token in zip(each, best, strict=True)
        ]
        yield sorted(found, key=lambda one: -one[0])[:most]


def _check_numbers(logs: Sequence[Sequence[float]]) -> None:
    if any(math.isnan(row[0]) for row in logs):
        raise ConfigError(
            "logits must be numbers; got NaN. Look for an overflow or a division by zero in the "
            "model."
        )


def _add_exponentials(
    logits: Float[Tensor, "B V"], largest: Float[Tensor, "B 1"]
) -> Float[Tensor, "B 1"]:
    """log Σ exp(logits) in float64; exponentials are computed as exactly as logits are known."""
    exact = torch.promote_types(logits.dtype, torch.float32)
    terms = (logits.to(exact) - largest.to(exact)).exp_()
    return terms.sum(-1, keepdim=True, dtype=torch.float64).log_() + largest.double()
