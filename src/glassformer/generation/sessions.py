"""A decoding session: a model, what it has read, and the tokens that it reads next.

`next_logits` reads the tokens that are new, `append` adds the next ones. `DecodingSession` calls
the model's modules, so everybody can watch; `DirectSession` computes a step from the weights alone
and is used where nobody watches.
"""

import functools
from collections.abc import Callable, Sequence
from typing import TypeGuard, Union

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional import Mask, Prefix
from glassformer.generation.captured import CapturedSession
from glassformer.generation.cuda_step import refusal as cuda_refusal
from glassformer.generation.direct import DirectSession
from glassformer.generation.prompts import GenerativeModel, encode_source, pad_left
from glassformer.generation.recurrent import RecurrentSession
from glassformer.models import Decoder, EncoderDecoder, ModelCache
from glassformer.models.baselines import RecurrentLanguage, RecurrentTranslator
from glassformer.models.decoder_weights import refusal

Session = Union["DecodingSession", DirectSession, RecurrentSession]

_FEW = 8  # tokens: for fewer, setting up a graph takes longer than it saves


def start_session(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    *,
    source: Sequence[Sequence[int]] | None,
    max_new_tokens: int,
    copies: int = 1,
    outputs: Int[Tensor, " n"] | None = None,
    fixed: bool = False,
    compiled: bool = False,
) -> Session:
    """A session with `copies` rows for each prompt, by the fastest way that this model allows.

    The logits of tokens that are not among `outputs` need not be computed.
    """
    direct = None if fixed or compiled else choose_direct(model, max_new_tokens)
    if direct is not None and isinstance(model, Decoder | EncoderDecoder):
        sizes = {"source": source, "max_new_tokens": max_new_tokens, "copies": copies}
        return direct(model, prompts, **sizes, outputs=outputs)
    prompts = [prompt for prompt in prompts for _ in range(copies)]
    source = None if source is None else [text for text in source for _ in range(copies)]
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


def choose_direct(model: GenerativeModel, max_new_tokens: int) -> type[DirectSession] | None:
    """The session that decodes by the weights alone, where the model and the device allow it."""
    if refusal(model) is not None:
        return None
    assert isinstance(model, Decoder | EncoderDecoder)
    weight = model.embedding.weight
    if weight.is_cpu:
        return DirectSession
    if not weight.is_cuda or max_new_tokens < _FEW or cuda_refusal(model.config, weight.dtype):
        return None
    return CapturedSession


def can_drop(session: Session) -> TypeGuard[DirectSession]:
    """Whether prompts that have ended may be left out: nobody watches, and no graph needs them."""
    return isinstance(session, DirectSession) and session.drops_prompts


class DecodingSession:
    """Decoding by calls of the model, over its key-value cache."""

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
        self.fresh, self.missing = pad_left(prompts, device)
        B, L = self.fresh.shape
        self.is_real = torch.arange(L, device=device) >= self.missing[:, None]
        self.mask = ~Prefix(self.missing) if bool(self.missing.any()) else None
        self.compiled = compiled
        self.length = 0
        self.cache = model.new_cache(B, max_len=L + max_new_tokens if fixed or compiled else None)
        self.context = self.context_mask = None
        if isinstance(model, EncoderDecoder) and source is not None:
            self.context, self.context_mask = encode_source(model, source)

    def next_logits(self) -> Float[Tensor, "B V"]:
        """Read the new tokens; the logits of what follows them."""
        n = self.fresh.shape[1]
        columns = torch.arange(self.length, self.length + n, device=self.fresh.device)
        self.length += n
        self.cache.next_tokens = None
        read = _compile_read() if self.compiled and n == 1 else _read
        logits = read(
            self.model,
            self.fresh,
            (columns - self.missing[:, None]).clamp(min=0),
            self.mask,
            self.cache,
            self.context,
            self.context_mask,
        )
        return logits[:, -1]  # (B, L, V) → (B, V)

    def close(self) -> None:
        """Nothing is held."""

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
