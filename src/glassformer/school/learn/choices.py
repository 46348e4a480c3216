"""The likeliest next tokens of a text, and what each way of sampling leaves of them."""

from dataclasses import dataclass

import torch
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.generation import Sampling, adjust
from glassformer.render.numbers import format_weights

# The columns of a picture that cannot be moved: each changes one setting.
_SETTINGS = {
    "T = 1": Sampling(),
    "T = 0.5": Sampling(temperature=0.5),
    "T = 2": Sampling(temperature=2.0),
    "top-k 3": Sampling(top_k=3),
    "top-p 0.7": Sampling(top_p=0.7),
    "min-p 0.2": Sampling(min_p=0.2),
}


@dataclass(frozen=True, slots=True)
class Choices:
    """Tokens with their logits, likeliest first."""

    text: str
    tokens: tuple[str, ...]
    logits: tuple[float, ...]


def tabulate_choices(picture: Choices) -> tuple[list[str], list[list[str]]]:
    """The settings, and for each token its probability under each of them."""
    logits = torch.tensor([picture.logits], dtype=torch.float64)
    columns = [
        format_weights(adjust(logits, sampling).softmax(-1)[0].tolist())
        for sampling in _SETTINGS.values()
    ]
    return list(_SETTINGS), [list(row) for row in zip(*columns, strict=True)]


def draw_choices(picture: Choices) -> RenderableType:
    """Probabilities in the terminal, a line for each token."""
    heads, rows = tabulate_choices(picture)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", *heads):
        grid.add_column(name, justify="right", no_wrap=True)
    for token, row in zip(picture.tokens, rows, strict=True):
        grid.add_row(Text(token, style="bold"), *row)
    return Group(Text(f"{picture.text} …", style="bold"), grid)
