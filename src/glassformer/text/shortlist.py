"""A lexical shortlist: which tokens a translation may need, from the tokens of its source.

    shortlist.safetensors    fr.always    (A,)     the language's most frequent tokens
                             fr.offsets   (V + 1,) those that go with source token i are
                             fr.tokens    (M,)       tokens[offsets[i] : offsets[i + 1]]

It lies beside tokenizer.json; recipes/data/translator_shortlist.py makes it from training pairs. A
model that translates into one language, without a tag for it, has the columns without a name
before the point (Jean et al. 2015, "On using very large target vocabulary").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Shaped
from safetensors import SafetensorError
from safetensors.numpy import load, save

from glassformer.errors import CheckpointError
from glassformer.settings import quote
from glassformer.storage import read_regular

FILE = "shortlist.safetensors"
_COLUMNS = ("always", "offsets", "tokens")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TargetShortlist:
    """The tokens of one target language that are likely with each source token.

    >>> found = TargetShortlist(
    ...     always=np.array([4]), offsets=np.array([0, 0, 2, 3, 3, 3]), tokens=np.array([3, 1, 4])
    ... )
    >>> found.select([1, 2]), found.select([0, 1])
    (array([False,  True, False,  True,  True]), None)
    """

    always: Shaped[np.ndarray, " A"]
    offsets: Shaped[np.ndarray, " N"]  # one more than there are tokens in the vocabulary
    tokens: Shaped[np.ndarray, " M"]
    _is_always: Bool[np.ndarray, " V"] = field(init=False)

    def __post_init__(self) -> None:
        is_always = np.zeros(len(self.offsets) - 1, dtype=np.bool_)
        is_always[self.always] = True
        object.__setattr__(self, "_is_always", is_always)

    def select(self, source: Sequence[int]) -> Bool[np.ndarray, " V"] | None:
        """Which tokens a translation of this source may have.

        None if a token of the source was in no training pair.
        """
        found = self._is_always.copy()
        for token in {*source}:
            start, stop = self.offsets[token], self.offsets[token + 1]
            if start == stop:
                return None
            found[self.tokens[start:stop]] = True
        return found


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shortlist:
    """The shortlists of all target languages, by their codes; "" where there is one only."""

    targets: Mapping[str, TargetShortlist]

    def as_bytes(self) -> bytes:
        """The content of `shortlist.safetensors`."""
        return save(
            {
                f"{code}.{column}": np.ascontiguousarray(getattr(target, column))
                for code, target in self.targets.items()
                for column in _COLUMNS
            }
        )


def read_shortlist(folder: Path, vocab_size: int) -> Shortlist | None:
    """The shortlist in a model's folder; None if it has none."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        columns = load(read_regular(path))
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}.") from None
    codes = sorted({name.rpartition(".")[0] for name in columns})
    expected = {f"{code}.{column}" for code in codes for column in _COLUMNS}
    if not codes or columns.keys() != expected:
        raise CheckpointError(
            f"{path} must have always, offsets and tokens of each target language; it has "
            f"{quote(', '.join(sorted(columns)))}."
        )
    found = {code: [columns[f"{code}.{column}"] for column in _COLUMNS] for code in codes}
    for code, (always, offsets, tokens) in found.items():
        _check(f"{code or 'its only language'} in {path}", always, offsets, tokens, vocab_size)
    return Shortlist(
        targets={
            code: TargetShortlist(always=always, offsets=offsets, tokens=tokens)
            for code, (always, offsets, tokens) in found.items()
        }
    )


def _check(
    where: str, always: np.ndarray, offsets: np.ndarray, tokens: np.ndarray, vocab_size: int
) -> None:
    for name, column in zip(_COLUMNS, (always, offsets, tokens), strict=True):
        if column.ndim != 1 or column.dtype.kind not in "iu":
            raise CheckpointError(
                f"The {name} of {where} must be a list of whole numbers; they have the shape "
                f"{column.shape} and the type {column.dtype}."
            )
    ends = offsets.astype(np.int64)
    if (
        len(ends) != vocab_size + 1
        or ends[0]
        or ends[-1] != len(tokens)
        or (ends[:-1] > ends[1:]).any()
    ):
        raise CheckpointError(
            f"The offsets of {where} must rise from 0 to the number of tokens, {len(tokens)}, in "
            f"{vocab_size + 1} steps, one more than the vocabulary; there are {len(ends)}."
        )
    ids = np.concatenate([always, tokens]).astype(np.int64)
    wrong = ids[(ids < 0) | (ids >= vocab_size)]
    if len(wrong):
        raise CheckpointError(
            f"Tokens of {where} must be ids from 0 to {vocab_size - 1}; there is {wrong[0]}."
        )
