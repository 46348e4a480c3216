"""The texts of an experiment: a TOML file beside its code, a table for each language.

[en]            title, claim, prediction, explanation
[en.names]      the labels of its chart
[en.checks]     a sentence for each check, with the numbers as {placeholders}
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from glassformer.languages import Language
from glassformer.render.numbers import format_brief


@dataclass(frozen=True, slots=True)
class ExperimentTexts:
    """What one experiment says in one language; called, it gives a name for the chart.

    >>> ExperimentTexts("scale", Language("zh")).title
    '为什么要除以 √d_k'
    """

    experiment: str
    language: Language

    @property
    def title(self) -> str:
        return self.table["title"]

    @property
    def claim(self) -> str:
        return self.table["claim"]

    @property
    def prediction(self) -> str:
        return self.table["prediction"]

    @property
    def explanation(self) -> str:
        return self.table["explanation"]

    @property
    def table(self) -> dict[str, Any]:
        return read_texts(self.experiment)[self.language.code]

    def __call__(self, key: str, **values: Any) -> str:
        return self.table["names"][key].format(**format_values(values))

    def check_sentence(self, key: str, values: dict[str, Any]) -> str:
        """The sentence of a check, its numbers filled in."""
        return self.table["checks"][key].format(**format_values(values))


@cache
def read_texts(experiment: str) -> dict[str, Any]:
    """Both languages of an experiment, as its file has them."""
    file = f"{experiment.replace('-', '_')}.toml"
    folder = files("glassformer.course").joinpath("experiments")
    return tomllib.loads(folder.joinpath(file).read_text("utf-8"))


def format_values(values: dict[str, Any]) -> dict[str, str]:
    """Numbers as they stand in a sentence; of several runs, the mean and the range.

    >>> format_values({"n": 3, "share": 0.12345, "what": "all"})
    {'n': '3', 'share': '0.123', 'what': 'all'}
    """
    return {
        name: format_brief(v) if isinstance(v, float | int) else str(v)
        for name, v in values.items()
    }
