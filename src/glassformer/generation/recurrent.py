"""Decoding with an LSTM: its state takes the place of a key-value cache."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.errors import ShapeError
from glassformer.models.baselines import RecurrentLanguage, RecurrentTranslator
from glassformer.models.recurrent import Memory, State


class RecurrentSession:
    """An LSTM, its state, and the tokens it has not read yet."""

    def __init__(
        self,
        model: RecurrentLanguage | RecurrentTranslator,
        prompts: Sequence[Sequence[int]],
        *,
        source: Sequence[Sequence[int]] | None,
    ) -> None:
        if len({len(prompt) for prompt in prompts}) > 1:
            raise ShapeError(
                "An LSTM reads a batch of prompts of equal length; got lengths "
                f"{[len(prompt) for prompt in prompts]}. Pass them one by one."
            )
        self.model = model
        device = next(model.parameters()).device
        self.fresh = torch.tensor([list(prompt) for prompt in prompts], device=device)
        self.is_real = torch.ones_like(self.fresh, dtype=torch.bool)
        self.state: State | None = None
        self.memory: Memory | None = None
        if isinstance(model, RecurrentTranslator):
            assert source is not None
            lengths = torch.tensor([len(text) for text in source])
            rows = [torch.tensor(list(text)) for text in source]
            padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
            self.memory = model.encode(padded, lengths)

    def next_logits(self) -> Float[Tensor, "B V"]:
        """Read the new tokens; the logits of what follows them."""
        if isinstance(self.model, RecurrentTranslator):
            assert self.memory is not None
            logits, self.state = self.model.decode(self.fresh, self.memory, self.state)
        else:
            logits, self.state = self.model(self.fresh, self.state)
        return logits[:, -1]  # (B, L, V) → (B, V)

    def close(self) -> None:
        """Nothing is held."""

    def append(
        self, tokens: Int[Tensor, " B"], *, parents: Int[Tensor, " B"] | None = None
    ) -> None:
        """Append a token to each row; with `parents`, row i continues row `parents[i]`."""
        if parents is not None and self.state is not None:
            rows = parents.to(self.fresh.device)
            hidden, cell = (part.index_select(1, rows) for part in self.state)
            self.state = (hidden, cell)
        self.fresh = tokens.to(self.fresh.device)[:, None]
