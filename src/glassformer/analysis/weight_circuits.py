"""Circuits of weights: what each head would look for, and what it would write.

A head is two matrices of low rank (Elhage et al. 2021, "A Mathematical Framework for Transformer
Circuits"): QK says which token looks at which, OV what a token that is looked at adds. They are
read off the model by probing it (`weight_probes`), and seen between the residual stream and itself.
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.analysis.composition import Composition, CompositionKind, compose
from glassformer.analysis.reading import ReadingFinder
from glassformer.analysis.site_weights import (
    Factors,
    SiteWeights,
    carry,
    carry_back,
    divide_by_size,
    linear_part,
    pull_back,
)
from glassformer.analysis.token_model import TokenModel
from glassformer.analysis.token_scores import TokenScores
from glassformer.analysis.token_vectors import TokenVectors
from glassformer.analysis.vocabulary import resolve_token
from glassformer.analysis.weight_assembly import assemble_site
from glassformer.analysis.weight_probes import Probes
from glassformer.errors import RecordingWarning, TraceError
from glassformer.tracing.readout import Readout
from glassformer.tracing.stream import Stream, Transform

_ROWS = 8192  # of a vocabulary, held in float64 at once


@dataclass(eq=False, kw_only=True)
class Circuits:
    """The weights of every attention site, seen from the residual stream; indexed by its name.

    Norms are folded in: their gain, centring and bias are part of the matrices, the size that they
    divide by is left out. So are positions: `qk` is the score of two tokens at the same place.
    """

    model: str
    sites: dict[str, SiteWeights]
    refusals: dict[str, str]  # sites without any of their matrices, and why
    streams: dict[str, list[Transform | str]]  # its norms and factors, and the names of parts
    readouts: dict[str, Readout]
    subject: TokenModel = field(repr=False)
    tokenizer: Any = field(default=None, repr=False)
    _vectors: dict[str, TokenVectors] = field(default_factory=dict, repr=False)
    _kept: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def __getitem__(self, site: str) -> SiteWeights:
        if site in self.sites:
            return self.sites[site]
        if site in self.refusals:
            raise TraceError(self.refusals[site])
        raise TraceError(f"A site must be one of {', '.join(self.sites)}; got {site!r}.")

    def qk(self, site: str, head: int) -> Factors:
        """W_Qᵀ W_K, times the scale: score(x, y) = xᵀ · this · y."""
        return self[site].qk(head)

    def ov(self, site: str, head: int) -> Factors:
        """W_O W_V: what attending to y adds is this · y."""
        return self[site].ov(head)

    def vectors(self, stack: str) -> TokenVectors:
        """The tokens of a stack as vectors of its stream."""
        if stack not in self._vectors:
            self._vectors[stack] = TokenVectors.of(self.subject, stack)
        return self._vectors[stack]

    def ov_tokens(self, site: str, head: int, token: int | str, *, top: int = 10) -> TokenScores:
        """Which tokens a head makes more likely by attending to this one.

        The token's embedding alone passes the head and the unembedding; what layers between them
        would change is left out, as are biases and the size that the final norm divides by. Scores
        are relative to their mean over the vocabulary, which no softmax sees.
        """
        weights = self[site]
        ov = self._in_stream(weights, weights.ov(head))
        number = resolve_token(token, self.subject.vocab_size, self.tokenizer)
        x = self._read_tokens(weights, [number], keys=True)[0]
        added = ov.left.double() @ (ov.right.double().mT @ x)
        logits = self._unembed(weights.stack, added[None])[0]
        notes = (
            self.vectors(self._key_stack(weights)).note,
            *weights.notes("values", "norm after"),
        )
        title = f"{site}.{head} attends to"
        return TokenScores.of(title, number, logits - logits.mean(), top, self.tokenizer, notes)

    def qk_tokens(
        self,
        site: str,
        head: int,
        *,
        query: int | str | None = None,
        key: int | str | None = None,
        top: int = 10,
    ) -> TokenScores:
        """Which keys a query token looks for, or which query tokens look for a key.

        Scores before the softmax, with the biases of queries and keys, positions left out: both
        tokens are at the same place. Tokens are their embeddings alone; at the first layer that is
        what is read.
        """
        if (query is None) == (key is None):
            raise TraceError("qk_tokens needs either a query or a key.")
        weights = self[site]
        key_head = weights.key_head(head)
        weights.require("q", "k")
        queries = weights.q[head], weights.q_bias[head]
        keys = weights.k[key_head], weights.k_bias[key_head]
        given, others = (queries, keys) if query is not None else (keys, queries)
        token = query if query is not None else key
        assert token is not None
        number = resolve_token(token, self.subject.vocab_size, self.tokenizer)
        x = self._read_tokens(weights, [number], keys=query is None)[0]
        asked = given[0].double() @ x + given[1].double()
        scores = []
        for ids in torch.arange(self.subject.vocab_size).split(_ROWS):
            y = self._read_tokens(weights, ids.tolist(), keys=query is not None)
            scores.append((y @ others[0].double().mT + others[1].double()) @ asked)
        word = "keys for the query" if query is not None else "queries for the key"
        found = weights.scale * torch.cat(scores)
        notes = (self.vectors(weights.stack).note, *weights.notes("queries", "keys", "positions"))
        return TokenScores.of(f"{site}.{head}: {word}", number, found, top, self.tokenizer, notes)

    def copying(self, site: str) -> Float[Tensor, " H"]:
        """Σ λ / Σ |λ| over the eigenvalues of W_U W_OV W_E, by head: 1 copies, −1 suppresses.

        A positive eigenvalue belongs to a mixture of tokens that raises its own logits (Elhage et
        al. 2021): the score tells the sign of what a head does to the tokens it attends to, not how
        much. It reads embeddings; late heads read what earlier layers have made of them, and may
        copy all the same: `gf.roles(site, tokens, stream=trace.residual())` sees that in a text.

        Logits count relative to their mean over the vocabulary. The V × V matrix is never formed: a
        D × D matrix has the same eigenvalues.
        """
        weights = self[site]
        weights.require("v", "o")
        between = self._vocabulary_product(self._key_stack(weights), weights.stack)
        before = self._steps_before(weights, keys=True)
        scores = []
        for head in range(weights.n_heads):
            ov = self._in_stream(weights, weights.ov(head))
            reading = carry_back(ov.right.double().mT, before)
            small = reading @ between @ ov.left.double()
            found = torch.linalg.eigvals(small)
            scores.append(found.real.sum() / found.abs().sum().clamp(min=1e-300))
        return torch.stack(scores).float().cpu()

    def composition(
        self,
        kind: CompositionKind,
        *,
        writers: list[str] | None = None,
        readers: list[str] | None = None,
    ) -> Composition:
        """How much of what each head reads is what an earlier head writes: by Q, K or V.

        ‖W_read W_OV‖ / ‖W_read‖ ‖W_OV‖ in Frobenius norms, W_read being W_QKᵀ (Q), W_QK (K) or
        W_OV (V) of the later head (Elhage et al. 2021). Random matrices of these shapes give
        `baseline`, not 0.
        """
        return compose(self, kind, writers, readers)

    def __repr__(self) -> str:
        lines = [f"Circuits of {self.model}: {len(self.sites)} sites, norms folded in"]
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, each in self.sites.items():
            notes = (*each.notes(""), *each.refusals.values())
            groups.setdefault(tuple(n.replace(name, "…").rstrip(".") for n in notes), []).append(
                name
            )
        for notes, names in groups.items():
            shown = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]} ({len(names)})"
            lines.append(f"  {shown}: {'; '.join(notes) or 'as they are'}")
        lines += [f"  {name}: {why}" for name, why in self.refusals.items()]
        return "\n".join(lines)

    def _key_stack(self, weights: SiteWeights) -> str:
        return "encoder" if weights.is_cross else weights.stack

    def _steps_before(self, weights: SiteWeights, *, keys: bool) -> list[Transform]:
        """The norms of the stream itself (post-norm) that a token passes before a site reads it."""
        if keys and weights.is_cross:
            return _transforms(self.streams["encoder"])
        steps = self.streams[weights.stack]
        return _transforms(steps[: steps.index(weights.name)])

    def _read_tokens(
        self, weights: SiteWeights, tokens: list[int], *, keys: bool
    ) -> Float[Tensor, "N C"]:
        """What a site reads, were the stream to hold these tokens' embeddings alone."""
        stack = self._key_stack(weights) if keys else weights.stack
        x = self.vectors(stack)(torch.tensor(tokens))
        for step in self._steps_before(weights, keys=keys):
            x = step.push(x, x)
        return divide_by_size(weights.key_norm if keys else weights.query_norm, x)

    def _in_stream(self, weights: SiteWeights, ov: Factors) -> Factors:
        """OV as the end of the stream sees it: after the norms of a post-norm stream."""
        steps = self.streams[weights.stack]
        return Factors(
            carry(ov.left.mT, _transforms(steps[steps.index(weights.name) :])).mT, ov.right
        )

    def _unembed(self, stack: str, x: Float[Tensor, "N C"]) -> Float[Tensor, "N V"]:
        readout = self._require_readout(stack)
        x = x if readout.norm is None else linear_part(readout.norm, x)
        matrix = readout.require_matrix()
        parts = [x @ rows.double().mT for rows in matrix.split(_ROWS)]
        return readout.factor * torch.cat(parts, dim=-1)

    def _vocabulary_product(self, keys: str, stack: str) -> Float[Tensor, "X C"]:
        """W_Eᵀ W_U, with the final norm folded in: from what a head writes to what a head reads."""
        if (name := f"{keys} {stack}") not in self._kept:
            readout = self._require_readout(stack)
            vectors, matrix = self.vectors(keys), readout.require_matrix()
            n = min(len(vectors), len(matrix))
            total = of_all = mean = torch.zeros((), dtype=torch.float64, device=matrix.device)
            for ids in torch.arange(n, device=matrix.device).split(_ROWS):
                e, u = vectors(ids), matrix[ids].double()
                u = u if readout.norm is None else pull_back(readout.norm, u)
                total, of_all, mean = total + e.mT @ u, of_all + e.sum(0), mean + u.mean(0) * len(u)
            self._kept[name] = total - of_all[:, None] * mean / n
        return self._kept[name]

    def _require_readout(self, stack: str) -> Readout:
        if stack not in self.readouts:
            raise TraceError(
                f"The stream of {stack!r} has no readout: it gives no scores for tokens."
            )
        return self.readouts[stack]


def circuits(model: nn.Module, tokenizer: Any = None) -> Circuits:
    """The QK and OV circuits of every head, in token space too, and how heads compose.

    W_Q, W_K, W_V are found by probing the model, hence for any model that `gf.watch` follows; W_O
    is what writes to its residual stream. Each is proved on the spot or refused with the reason.

    >>> import glassformer as gf
    >>> found = gf.circuits(gf.load("writer"))
    >>> found.ov("decoder.1.self", 0)
    Factors(256 × 256 of rank 64)
    >>> found.copying("decoder.1.self").shape
    torch.Size([4])
    >>> found.composition("k").top(1)[0][:2]
    (('decoder.3.self', 0), ('decoder.4.self', 1))
    """
    subject = TokenModel(model, "circuits")
    if tokenizer is None:
        tokenizer = getattr(subject.model, "tokenizer", None)
    finder = ReadingFinder(subject)
    with warnings.catch_warnings(), subject.evaluating():
        warnings.simplefilter("ignore", RecordingWarning)  # refusals are said here
        trace = finder.run()
        if not trace.run.streams:
            trace.residual()  # says why
        readings, refusals = finder.read(trace)
        probed = Probes(subject, readings).run() if readings else {}
    for name in [name for name in readings if name not in probed]:
        refusals[name] = f"{name} could not be probed with one token at a time."
    if not probed:
        raise TraceError(next(iter(refusals.values()), f"{subject.name} has no attention."))
    sites = {
        name: assemble_site(name, each, readings[name], trace) for name, each in probed.items()
    }
    streams = trace.run.streams
    return Circuits(
        model=subject.name,
        sites=sites,
        refusals=refusals,
        streams={name: _name_steps(stream) for name, stream in streams.items()},
        readouts={n: s.readout for n, s in streams.items() if s.readout is not None},
        subject=subject,
        tokenizer=tokenizer,
    )


def _transforms(steps: list[Transform | str]) -> list[Transform]:
    return [step for step in steps if isinstance(step, Transform)]


def _name_steps(stream: Stream) -> list[Transform | str]:
    """The steps of a stream without what was added: parts by the name of their site."""
    return [
        step if isinstance(step, Transform) else step.site or step.name for step in stream.steps
    ]
