"""What a picture is made of: numbers and names, without a word about how they are drawn."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from glassformer.functional import RowArithmetic
from glassformer.school.learn.bars import Bars
from glassformer.school.learn.choices import Choices
from glassformer.school.learn.image_map import ImageMap
from glassformer.school.learn.merges import Merges
from glassformer.school.learn.timeline import Timeline


@dataclass(frozen=True, eq=False)
class Matrix:
    """Numbers in rows and columns with names along the sides.

    weights lie in 0 … 1, scores anywhere with −∞ where hidden, a mask is 1 where one may attend,
    waves lie in −1 … 1 and are drawn without their numbers.
    """

    kind: Literal["weights", "scores", "mask", "waves"]
    values: Tensor  # (L, S)
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True, eq=False)
class Steps:
    """One query's attention in five steps."""

    row: RowArithmetic
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A tensor with its shape, and the operation that produced it."""

    operation: str  # empty for what is given
    name: str
    shape: tuple[int, ...] = ()
    letters: str = ""


@dataclass(frozen=True, slots=True)
class Flow:
    """Stages, each made from the one before."""

    stages: tuple[Stage, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Pictures next to each other."""

    pictures: tuple["Picture", ...]


@dataclass(frozen=True, slots=True)
class Album:
    """Pictures of one kind with their names: a page shows the one that is chosen."""

    pictures: tuple[tuple[str, "Picture"], ...]


Picture = Matrix | Steps | Flow | Bars | Merges | Choices | ImageMap | Timeline | Row | Album
