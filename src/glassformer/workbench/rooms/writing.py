"""Writing: a text written step by step, the choices of each step, and what was looked at."""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from glassformer.analysis.traced_text import count_layers
from glassformer.errors import ConfigError
from glassformer.generation import Candidate, Sampling, adjust, beam_search
from glassformer.generation.continuation import tokenizer_of
from glassformer.generation.copied_spans import insert_spans
from glassformer.generation.loop import stream_tokens
from glassformer.generation.sampling import exclude_tokens
from glassformer.generation.source_text import SourceText, read_any_source
from glassformer.generation.text_stream import TextStream
from glassformer.models import Decoder, Encoder, EncoderDecoder
from glassformer.text.pieces import labels
from glassformer.tracing import Site, Trace, change, watch
from glassformer.tracing.interventions import Changes
from glassformer.tracing.interventions.expression import read_changes
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.beam_tree import grow_tree
from glassformer.workbench.wire.requests import ReadingRequest
from glassformer.workbench.wire.writing import LooksRequest, WriteRequest

_CHOICES = 10
_MOST_TRACES = 4
_TRACES: OrderedDict[tuple[Any, ...], Trace] = OrderedDict()


@dataclass(frozen=True)
class _Beginning:
    """A model that writes, and what it begins with."""

    model: Decoder | EncoderDecoder
    prompt: list[int]  # of the decoder: the text that it continues, or the start of a translation
    source: SourceText | None
    changes: Changes | None

    @property
    def options(self) -> dict[str, Any]:
        """What every search and every sampling of the text is given."""
        special = self.model.special
        options: dict[str, Any] = {"stop": special.end, "never": special.never}
        if self.source is not None:
            options |= {"source": [self.source.tokens], "forbidden": self.forbidden}
        return options

    @property
    def forbidden(self) -> Tensor | None:
        """Tokens of other languages than the target, as (1, V)."""
        rows = None if self.source is None else self.source.forbidden
        return None if rows is None else rows[None]


@dataclass
class _Written:
    """New tokens, the end token included, and the logits of each step that was sampled."""

    tokens: list[int] = field(default_factory=list)
    has_end: bool = False
    logits: list[Tensor] = field(default_factory=list)  # (V,) the model's own
    adjusted: list[Tensor] = field(default_factory=list)  # (V,) from which the token was drawn
    tree: list[dict[str, Any]] | None = None
    score: float | None = None


@torch.no_grad()
def write_text(asked: WriteRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """A text, and for each of its tokens the choices that there were."""
    beginning = begin_writing(asked, memory)
    model, prompt = beginning.model, beginning.prompt
    _check_tokens(model, asked.kept)
    sampling = Sampling(temperature=asked.temperature, top_k=asked.top_k, top_p=asked.top_p)
    n_new = min(asked.max_new_tokens, model.config.max_len - len(prompt)) - len(asked.kept)
    if n_new < 1 and asked.kept:
        new = _Written(tree=[] if asked.beams > 1 else None)
    elif asked.beams > 1:
        new = _search(beginning, asked, max(n_new, 1), progress)
    else:
        new = _sample(beginning, asked, sampling, max(n_new, 1), progress)
    written = [*asked.kept, *new.tokens]
    tokens = written[: len(written) - new.has_end]
    logits, adjusted = new.logits, new.adjusted
    n_unseen = len(written) - len(logits)
    if n_unseen:  # what was kept or searched for is read once more
        seen_again = list(_read_logits(_trace(beginning, asked, tokens, progress), prompt))
        logits = [*seen_again[:n_unseen], *logits]
        adjusted = [_adjust(beginning, row, sampling) for row in logits[:n_unseen]] + adjusted
    tokenizer = tokenizer_of(model)
    pieces = labels(tokenizer, [*prompt, *written])
    steps = [
        {
            "token": token,
            "piece": pieces[len(prompt) + i],
            "is_kept": i < len(asked.kept),
            "is_end": new.has_end and i == len(written) - 1,
            **_describe_choices(
                model,
                token,
                logits[i].float().softmax(-1),
                None if asked.beams > 1 else _as_drawn(adjusted[i], sampling),
            ),
        }
        for i, token in enumerate(written)
    ]
    return {
        "source": []
        if beginning.source is None
        else labels(tokenizer, list(beginning.source.tokens)),
        "prompt": pieces[: len(prompt)],
        "text": _decode(beginning, tokens),
        "copied": [] if beginning.source is None else list(beginning.source.copied),
        "tokens": tokens,
        "ending": "stop" if new.has_end else "length",
        "steps": steps,
        "tree": new.tree,
        "score": new.score,
    }


@torch.no_grad()
def list_looks(asked: LooksRequest, memory: Memory, progress: Progress) -> dict[str, Any]:
    """What was looked at for each token, from a trace of the text that was written."""
    beginning = begin_writing(asked, memory)
    _check_tokens(beginning.model, asked.tokens)
    trace = _trace(beginning, asked, asked.tokens, progress)
    writers = [site for site in trace if site.queries == "tokens"]
    if asked.site is not None:
        writers = [trace[asked.site]]
        if writers[0].queries != "tokens":
            raise ConfigError(
                f"{asked.site} reads the source before anything is written. Choose a site of the "
                "decoder."
            )
    first = len(beginning.prompt) - 1
    looks = []
    for text in ("source", "tokens"):
        sites = [site for site in writers if site.keys == text]
        if sites:
            head = None if asked.site is None else asked.head
            weights, n_heads = _mean_weights(sites, head, first)
            looks.append({"of": text, "heads": n_heads, "rows": _strongest(weights, asked.most)})
    return {"looks": looks}


def begin_writing(asked: ReadingRequest, memory: Memory) -> _Beginning:
    model = memory.model(asked.model)
    if isinstance(model, Encoder):
        raise ConfigError(
            "An encoder reads a whole text at once and writes none. It fills gaps: read a text "
            "with [MASK] in it."
        )
    tokenizer = tokenizer_of(model)
    changes = None if asked.change is None else read_changes(asked.change)
    if isinstance(model, Decoder):
        begin = model.special.begin
        prompt = tokenizer.encode(asked.text) or ([] if begin is None else [begin])
        return _Beginning(model, prompt, None, changes)
    source = read_any_source(model, asked.text, asked.to)
    start = list(model.special.start) or [model.special.begin or 0]
    return _Beginning(model, start, source, changes)


def _writing(beginning: _Beginning) -> AbstractContextManager[Any]:
    """Under the interventions of the reading; whoever waits may give up at every token."""
    changes = beginning.changes
    return nullcontext() if changes is None else change(beginning.model, changes)


def _sample(
    beginning: _Beginning, asked: WriteRequest, sampling: Sampling, n_new: int, progress: Progress
) -> _Written:
    """Token by token, as `gf.generate` samples."""
    model, new = beginning.model, _Written()
    with _writing(beginning):
        steps = stream_tokens(
            model,
            [[*beginning.prompt, *asked.kept]],
            max_new_tokens=n_new,
            sampling=sampling,
            seed=asked.seed,
            **beginning.options,
        )
        for step in steps:
            new.tokens.append(int(step.tokens[0]))
            new.logits.append(step.logits[0])
            new.adjusted.append(step.adjusted[0])
            new.has_end = bool(step.done[0])
            progress(len(new.tokens) / n_new)
    return new


def _search(beginning: _Beginning, asked: WriteRequest, n_new: int, progress: Progress) -> _Written:
    """The best text of a beam search, as `gf.translate` searches, and all that it considered."""
    model, seen = beginning.model, list[list[Candidate]]()

    def observe(candidates: list[Candidate]) -> None:
        seen.append(candidates)
        progress(len(seen) / n_new)

    with _writing(beginning):
        best = beam_search(
            model,
            [[*beginning.prompt, *asked.kept]],
            max_new_tokens=n_new,
            beams=asked.beams,
            observe=observe,
            **beginning.options,
        )[0][0]
    tree = grow_tree(seen, best, tokenizer_of(model), beams=asked.beams)
    ends = [each["token"] for each in tree if each["is_best"] and each["fate"] == "finished"]
    return _Written(tokens=[*best.tokens, *ends], has_end=bool(ends), tree=tree, score=best.score)


def _trace(
    beginning: _Beginning, asked: ReadingRequest, tokens: Sequence[int], progress: Progress
) -> Trace:
    """The text that was written, read once more in one pass."""
    key = (asked.model, asked.text, asked.to, asked.change, *tokens)
    if key not in _TRACES:
        model, changes = beginning.model, beginning.changes
        device = model.embedding.weight.device
        read = torch.tensor([[*beginning.prompt, *tokens]], device=device)
        recorded = watch(model, residual=True)
        if changes is not None:
            recorded = change(model, changes, residual=True)
        with recorded as trace, count_layers(model, progress):
            if beginning.source is not None:
                model(torch.tensor([beginning.source.tokens], device=device), read)
            else:
                model(read)
        _TRACES[key] = trace
        while len(_TRACES) > _MOST_TRACES:
            _TRACES.popitem(last=False)
    _TRACES.move_to_end(key)
    return _TRACES[key]


def _read_logits(trace: Trace, prompt: list[int]) -> Tensor:
    """The logits of every row that predicts a new token."""
    stream = trace.residual()
    return stream.require_readout()(stream.end[:, len(prompt) - 1 :])[0]


def _adjust(beginning: _Beginning, logits: Tensor, sampling: Sampling) -> Tensor:
    never = beginning.model.special.never
    return adjust(exclude_tokens(logits[None], never, beginning.forbidden), sampling)[0]


def _as_drawn(adjusted: Tensor, sampling: Sampling) -> Tensor:
    """The probabilities with which a token is drawn; at temperature 0, one token is certain."""
    if sampling.temperature == 0:
        return torch.zeros_like(adjusted).index_fill(0, adjusted.argmax(), 1.0)
    return adjusted.softmax(-1)


def _describe_choices(
    model: Decoder | EncoderDecoder, token: int, before: Tensor, after: Tensor | None
) -> dict[str, Any]:
    """The likeliest tokens and the one that was chosen, before and after the settings."""
    best = before.topk(min(_CHOICES, len(before))).indices.tolist()
    tokenizer = tokenizer_of(model)
    choices = {
        each: {
            "token": each,
            "piece": labels(tokenizer, [each])[0],
            "before": float(before[each]),
            "after": None if after is None else float(after[each]),
        }
        for each in (*best, token)
    }
    return {
        "chosen": choices[token],
        "rank": int((before > before[token]).sum()),
        "entropy": _entropy(before),
        "entropy_after": None if after is None else _entropy(after),
        "top": [choices[each] for each in best],
    }


def _entropy(probabilities: Tensor) -> float:
    return max(0.0, float(torch.special.entr(probabilities.double()).sum()))


def _decode(beginning: _Beginning, tokens: list[int]) -> str:
    """The written text, as `gf.generate` and `gf.translate` return it."""
    tokenizer = tokenizer_of(beginning.model)
    if isinstance(beginning.model, EncoderDecoder) and beginning.source is not None:
        return insert_spans(beginning.model, beginning.source, tokens)
    stream = TextStream(tokenizer, prompt=beginning.prompt)
    return "".join([*map(stream.add, tokens), stream.finish()])


def _mean_weights(sites: list[Site], head: int | None, first: int) -> tuple[Tensor, int]:
    """The weights of all rows from `first` on, as a mean over sites and heads; and how many."""
    rows = slice(first, sites[0].shape[2])
    if head is not None:
        return sites[0].weights(head=head, rows=rows).float(), 1
    total = [site.weights(rows=rows).float() for site in sites]  # (H, R, S) each
    return torch.cat(total).mean(0), sum(len(each) for each in total)


def _strongest(weights: Tensor, most: int) -> list[list[dict[str, Any]]]:
    best = weights.topk(min(most, weights.shape[-1]), dim=-1)
    return [
        [
            {"key": key, "weight": weight}
            for key, weight in zip(keys, values, strict=True)
            if weight > 0
        ]
        for keys, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def _check_tokens(model: Decoder | EncoderDecoder, tokens: Sequence[int]) -> None:
    vocab_size = model.config.vocab_size
    for token in tokens:
        if token >= vocab_size:
            raise ConfigError(f"Tokens are numbers from 0 to {vocab_size - 1}; got {token}.")
