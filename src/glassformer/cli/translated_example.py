"""The demo's example: a sentence that the shipped translator writes in another language.

source ─ translate ─ traced once more ─┬─ cross-attention, in the terminal
                                       ├─ shapes of that attention
                                       └─ a page and a picture, in a folder
"""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from rich.console import Group, RenderableType
from rich.text import Text

from glassformer.cli.traced import traced
from glassformer.errors import GlassformerError
from glassformer.generate import translate
from glassformer.languages import Language
from glassformer.models.checkpoints import load
from glassformer.models.shapes import ShapeTrace, shapes
from glassformer.observe import Site, Trace
from glassformer.render import Paragraph, draw_legend
from glassformer.render.choice import choose
from glassformer.render.difference import told_difference
from glassformer.render.figure import draw_figure
from glassformer.render.heat import draw_heat
from glassformer.render.page import draw_page
from glassformer.render.shapes import draw_shapes
from glassformer.render.tokens import names_of

SENTENCE = "The cat sat on the mat."
SURE = 0.8  # of its attention
FOLDER = Path("glassformer-demo")
NAMES = {"fr": "français", "zh": "中文"}


class TranslatedExample:
    """The sentence, its translations, and what was looked at while one of them was written."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.to = "zh" if language.code == "zh" else "fr"
        self.model: Any = load("translator")

    @cached_property
    def trace(self) -> Trace:
        """Attention over the sentence and its translation."""
        return traced(self.model, SENTENCE, to=self.to)

    @cached_property
    def site(self) -> tuple[Site, int]:
        """The sharpest head that looks from the translation to the sentence."""
        cross = [site.name for site in self.trace if site.name.endswith(".cross")]
        found = [choose(self.trace, site=name) for name in cross]
        return min(found, key=lambda each: float(each[0].entropy(each[1]).mean()))

    def translations(self) -> RenderableType:
        """The sentence in every language that the model writes."""
        say = self.language.say
        codes = [self.to, *(code for code in NAMES if code != self.to)]
        lines = [("English", SENTENCE)]
        lines += [(NAMES[code], translate(self.model, SENTENCE, to=code)) for code in codes]
        return Group(Paragraph(say("demo.translation.intro")), "", draw_legend(lines))

    def looked_at(self) -> RenderableType:
        """Cross-attention: rows write the translation, columns are the sentence."""
        say = self.language.say
        site, head = self.site
        queries, keys = names_of(self.trace, site)
        weights = site.weights(head=head)
        intro = say("demo.cross.intro", site=site.name, head=head)
        return Group(
            Paragraph(intro),
            "",
            draw_heat(weights, queries, keys),
            "",
            Paragraph(self._told(weights, queries, keys)),
            Paragraph(told_difference([site], self.language), style="dim"),
        )

    def _told(self, weights: torch.Tensor, queries: list[str], keys: list[str]) -> str:
        """The first row behind the start that is sure of a word, or else the surest, in words."""
        words = torch.tensor([key.strip("␣").isalpha() for key in keys])
        shares, columns = (weights * words)[1:-1].max(-1)
        row = int((shares > SURE).int().argmax() if (shares > SURE).any() else shares.argmax())
        seen, following = queries[1:][row], queries[2:][row]
        return self.language.say(
            "demo.cross.row",
            seen=seen.strip("␣"),
            word=keys[int(columns[row])].strip("␣"),
            share=f"{float(shares[row]):.0%}",
            next=following.strip("␣"),
        )

    def shapes(self) -> RenderableType:
        """Every shape of one cross-attention, with this sentence's numbers."""
        site, _ = self.site
        whole = shapes(
            self.model.config,
            name="translator",
            batch=1,
            length=site.shape[2],
            context=site.shape[3],
        )
        steps = tuple(step for step in whole.steps if step.site == site.name)
        shown = [x for s in steps for x in (*s.inputs, *s.outputs, *s.parameters)]
        letters = "".join(part for shape in shown for part in shape.letters)
        sizes = {name: n for name, n in whole.sizes.items() if name in letters}
        few: ShapeTrace = replace(whole, steps=steps, sizes=sizes)
        return Group(
            draw_shapes(few, language=self.language),
            "",
            Text("glassformer shapes translator", style="cyan"),
        )

    def files(self) -> RenderableType:
        """A page with every head and number, and a picture of one layer."""
        say = self.language.say
        page, picture = FOLDER / "cat.html", FOLDER / "cat.png"
        try:
            FOLDER.mkdir(exist_ok=True)
            draw_page(self.trace, page, language=self.language)
            site, _ = self.site
            draw_figure(
                self.trace, picture, kind="alignment", site=site.name, language=self.language
            )
        except (OSError, GlassformerError) as error:
            return Paragraph(say("demo.files.failed", why=error))
        entries = [(str(page), say("demo.files.page")), (str(picture), say("demo.files.picture"))]
        return draw_legend(entries, style="cyan", gap=3)
