"""Decoding on a CPU from the weights alone, where nobody listens to the model's modules.

The prompt is read by the modules, the tokens after it by `Step`. Copies of a prompt, which beam
search continues in different ways, share its encoding and its prefill.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.functional import Prefix
from glassformer.generation.choice_rule import Rule
from glassformer.generation.native_stack import Reading
from glassformer.generation.native_step import MOST_ROWS, NativeStep, encode, find_native
from glassformer.generation.products import prepare_weights
from glassformer.generation.prompts import encode_source, pad_left
from glassformer.generation.sampling import GREEDY, choose, exclude_tokens
from glassformer.generation.step import Step
from glassformer.layers.embedding import check_tokens
from glassformer.models import Decoder, EncoderDecoder
from glassformer.models.decoder import causal_mask


class DirectSession:
    """Decoding with a model that `models.decoder_weights.refusal` accepts.

    On a CPU, only the tokens of `outputs` get logits where it is given.
    """

    drops_prompts = True  # `keep` may be called

    def __init__(
        self,
        model: Decoder | EncoderDecoder,
        prompts: Sequence[Sequence[int]],
        *,
        source: Sequence[Sequence[int]] | None,
        max_new_tokens: int,
        copies: int = 1,
        outputs: Int[Tensor, " n"] | None = None,
    ) -> None:
        self.model, self.copies, self.outputs = model, copies, outputs
        self.prompt, self.missing = pad_left(prompts, model.embedding.weight.device)
        check_tokens(self.prompt, model.config.vocab_size)
        B, L = self.prompt.shape
        self.is_padded = bool(self.missing.any())
        missing = self.missing.repeat_interleave(copies)
        self.fresh = self.prompt.repeat_interleave(copies, dim=0)
        self.is_real = torch.arange(L, device=missing.device) >= missing[:, None]
        self.length = 0
        self.native = find_native(model) if self.prompt.device.type == "cpu" else None
        self.context = self.context_mask = None
        if isinstance(model, EncoderDecoder):
            assert source is not None
            encoded = encode(model, self.native, source) or encode_source(model, source)
            self.context, self.context_mask = encoded
        self._set_up(B * copies, L + max_new_tokens, missing if self.is_padded else None)
        if self.context is not None and source is not None:
            lengths = None if self.context_mask is None else torch.tensor([*map(len, source)])
            self.step.read_context(self.context, lengths, copies)

    def _set_up(self, batch: int, capacity: int, missing: Tensor | None) -> None:
        sizes = {
            "batch": batch,
            "capacity": capacity,
            "missing": missing,
            "outputs": self.outputs,
        }
        if self.native is None or batch > MOST_ROWS:
            self.step = Step(prepare_weights(self.model, batch), **sizes)
        else:
            self.step = NativeStep(self.native, **sizes, copies=self.copies)

    @property
    def reading(self) -> Reading | None:
        """What reads the new tokens in C, if they are not too many."""
        if isinstance(self.step, NativeStep) and self.fresh.numel() <= MOST_ROWS:
            return self.step.reading
        return None

    def next_logits(self) -> Float[Tensor, "B V"]:
        """Read the new tokens; the logits of what follows them."""
        n = self.fresh.shape[1]
        if self.reading is not None:
            logits = self.reading.read_tokens(self.fresh, self.length)
        elif n > 1:
            hidden = self._prefill(self.prompt)[:, -1:]
            logits = self.model.head(hidden, self.model.embedding.weight)[:, 0]
            logits = logits.repeat_interleave(self.copies, dim=0)
        else:
            logits = self._read(self.fresh[:, 0])
        self.length += n
        return logits

    def _read(self, tokens: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        return self.step(tokens, self.length)

    def write(self, most: int, rule: Rule) -> list[list[int]]:
        """Append the most probable tokens of up to `most` steps, until a row has ended.

        In C, that is one call; otherwise it is one step.
        """
        if self.reading is None:
            logits = exclude_tokens(self.next_logits(), rule.never, rule.forbidden)
            chosen = choose(logits, GREEDY)[None]
        else:
            written = self.reading.write(self.fresh, self.length, most, rule)
            # Logits without a token to choose are an error.
            chosen = choose(self.reading.logits, GREEDY)[None] if written is None else written
            self.length += self.fresh.shape[1] + len(chosen) - 1
        self.append(chosen[-1])
        return chosen.tolist()

    @property
    def reads_ahead(self) -> bool:
        """Whether `read_ahead` and `write_ahead` may be called: one text, read in C."""
        return isinstance(self.step, NativeStep) and len(self.fresh) == 1

    def read_ahead(self, length: int, tokens: Sequence[int]) -> Float[Tensor, "n V"]:
        """The logits after each of these tokens, which follow the first `length` of the text.

        They are as if each token were read alone.
        """
        assert isinstance(self.step, NativeStep)
        return self.step.reading.read_ahead(self.fresh.new_tensor([tokens]), length)

    def write_ahead(self, length: int, tokens: Sequence[int], rule: Rule) -> list[int]:
        """The most probable token after each of these, until one is not the next of them."""
        assert isinstance(self.step, NativeStep)
        reading = self.step.reading
        written = reading.write_ahead(self.fresh.new_tensor([tokens]), length, rule)
        return (choose(reading.logits, GREEDY) if written is None else written).tolist()

    def go_back(self, length: int, tokens: Sequence[int]) -> None:
        """Forget what was read after the first `length` tokens; go on with these."""
        self.length, self.fresh = length, self.fresh.new_tensor([[*tokens]])

    def rank(self, n_best: int, rule: Rule) -> tuple[list[list[float]], list[list[int]]] | None:
        """Read the new tokens; for each row the log-probabilities of the best next ones, and these.

        None where that is not done in C, and nothing has been read.
        """
        if self.reading is None:
            return None
        logs, tokens = self.reading.rank(self.fresh, self.length, n_best, rule)
        self.length += self.fresh.shape[1]
        return logs.tolist(), tokens.tolist()

    def close(self) -> None:
        """Free what the next session can use; this one must not be used again."""

    def append(
        self, tokens: Int[Tensor, " B"], *, parents: Int[Tensor, " B"] | None = None
    ) -> None:
        """Append a token to each row; with `parents`, row i continues row `parents[i]`.

        Rows may only change places among copies of one prompt: padding and source do not move.
        """
        if parents is not None:
            self.step.reorder(parents.to(self.fresh.device), self.length)
        self.fresh = tokens.to(self.fresh.device)[:, None]

    def keep(self, prompts: Int[Tensor, " m"]) -> None:
        """Read on with these prompts alone, in ascending order, and with all copies of each."""
        rows = (prompts[:, None] * self.copies + torch.arange(self.copies)).flatten()
        self.step.keep(rows, self.length)
        self.fresh = self.fresh[rows]

    def _prefill(self, tokens: Int[Tensor, "B L"]) -> Float[Tensor, "B L C"]:
        """Read the beginning of the prompts by the model's modules; keeps the keys and values."""
        model, (B, L) = self.model, tokens.shape
        cache = model.new_cache(B)
        mask = ~Prefix(self.missing.clamp(max=L)) if self.is_padded else None
        places = torch.arange(L, device=tokens.device) - self.missing[:, None]
        hidden = model.decoder(
            model.embedding(tokens),
            positions=places.clamp(min=0),
            mask=causal_mask(mask, cache, model.config.window),
            cache=cache,
            context=self.context,
            context_mask=self.context_mask,
        )
        for i, layer in enumerate(cache.layers):
            assert layer.k is not None and layer.v is not None
            for kind, kept in enumerate((layer.k, layer.v)):
                rows = kept.transpose(1, 2).repeat_interleave(self.copies, dim=0)
                self.step.memory[i, :, :L, kind] = rows
        return hidden
