"""The LSTM baselines with a config, so that they are built, saved and loaded like the others."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from glassformer.errors import ConfigError
from glassformer.models.config import Config, Layers
from glassformer.models.recurrent import LSTMLanguageModel, LSTMSeq2Seq
from glassformer.settings import Count, Share, as_plain, check_bounds, read_settings
from glassformer.text import SpecialTokens, Tokenizer

Family = Literal["lstm", "lstm_seq2seq"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecurrentConfig:
    """An LSTM: a language model, or one that reads a text and writes another.

    >>> RecurrentConfig(family="lstm", vocab_size=11, dim=8, n_layers=2).replace(dim=4).dim
    4
    """

    family: Family
    vocab_size: Count
    dim: Count
    n_layers: Layers
    dropout: Share = 0.0
    attention: bool = False  # lstm_seq2seq: each target position looks back at the source
    tied: bool = True  # the output matrix is the embedding
    max_len: Count = 1024  # what is written at most; an LSTM itself knows no limit

    def __post_init__(self) -> None:
        check_bounds(self)
        if self.attention and self.family != "lstm_seq2seq":
            raise ConfigError(f"attention is for family='lstm_seq2seq'; got {self.family!r}.")

    def replace(self, **changes: Any) -> "RecurrentConfig":
        """The same but for these fields."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `from_dict` reads them back."""
        return as_plain(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "RecurrentConfig":
        """The config that `as_dict` wrote; unknown or missing fields are named."""
        return read_settings(cls, plain)


class RecurrentLanguage(LSTMLanguageModel):
    """An LSTM language model with its tokenizer."""

    name: str | None = None  # what it was loaded as
    tokenizer: Tokenizer | None = None  # this and the next come with saved weights
    special = SpecialTokens()

    def __init__(self, config: RecurrentConfig) -> None:
        c = config
        super().__init__(c.vocab_size, c.dim, c.n_layers, dropout=c.dropout, tied=c.tied)
        self.config = config


class RecurrentTranslator(LSTMSeq2Seq):
    """An LSTM that reads one text and writes another, with its tokenizer for both."""

    name: str | None = None
    tokenizer: Tokenizer | None = None
    special = SpecialTokens()

    def __init__(self, config: RecurrentConfig) -> None:
        c = config
        super().__init__(
            c.vocab_size,
            None,  # one vocabulary for both
            c.dim,
            c.n_layers,
            dropout=c.dropout,
            attention=c.attention,
            tied=c.tied,
        )
        self.config = config


def read_config(plain: dict[str, Any]) -> Config | RecurrentConfig:
    """The config of any model, by its family."""
    kind = RecurrentConfig if plain.get("family") in Family.__args__ else Config
    return kind.from_dict(plain)
