"""The demo's example: a sentence that the shipped translator writes in another language.

source ─ translate ─ traced once more ─┬─ cross-attention, in the terminal
                                       ├─ shapes of that attention
                                       └─ a page and a picture, in a folder
"""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from glassformer.analysis.traced_text import trace_text
from glassformer.errors import GlassformerError
from glassformer.generation import translate
from glassformer.languages import Language
from glassformer.models.checkpoints import load
from glassformer.models.shapes import ShapeTrace, shapes
from glassformer.render.difference import describe_difference
from glassformer.render.figure.drawing import draw_figure
from glassformer.render.focus import choose_focus
from glassformer.render.informative_heads import Focus
from glassformer.render.page.document import draw_page
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.heat_map import ROW, WIDEST_ROW, draw_heat
from glassformer.render.terminal.legend import draw_legend
from glassformer.render.terminal.shapes import draw_shapes
from glassformer.render.tokens import next_tokens, row_labels, token_names
from glassformer.tracing import Trace

SENTENCE = "The cat sat on the mat."
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
        return trace_text(self.model, SENTENCE, to=self.to)

    @cached_property
    def telling(self) -> Focus:
        """The most telling head between the translation and the sentence, and its clearest cell."""
        return choose_focus(self.trace)

    def translations(self) -> RenderableType:
        """The sentence in every language that the model writes."""
        say = self.language.say
        codes = [self.to, *(code for code in NAMES if code != self.to)]
        lines = [("English", SENTENCE)]
        lines += [(NAMES[code], translate(self.model, SENTENCE, to=code)) for code in codes]
        return Group(Paragraph(say("demo.translation.intro")), "", draw_legend(lines))

    def cross_attention(self) -> RenderableType:
        """Cross-attention: rows write the translation, columns are the sentence."""
        say = self.language.say
        site, head, row, col = self.telling
        weights = site.weights(head=head)
        read, keys = token_names(self.trace, site)
        following = next_tokens(self.trace, site)
        sentence = say(
            "demo.cross.row",
            seen=read[row].strip("␣"),
            word=keys[col].strip("␣"),
            share=f"{float(weights[row, col]):.0%}",
            next=(following[row] or "…").strip("␣"),
        )
        return Group(
            Paragraph(say("demo.cross.intro", site=site.name, head=head)),
            "",
            draw_heat(weights, row_labels(self.trace, site, most=ROW), keys, most=WIDEST_ROW),
            "",
            Paragraph(sentence),
            Paragraph(describe_difference([site], self.language), style="dim"),
        )

    def shapes(self) -> RenderableType:
        """Every shape of one cross-attention, with this sentence's numbers."""
        site = self.telling.site
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
        """A page with every head and number, and a picture of one layer: each where it can be."""
        say = self.language.say
        page, picture = FOLDER / "cat.html", FOLDER / "cat.png"
        site = self.telling.site.name
        language = self.language

        def write_page() -> None:
            FOLDER.mkdir(exist_ok=True)
            draw_page(self.trace, page, language=language)

        def write_picture() -> None:
            draw_figure(self.trace, picture, kind="alignment", site=site, language=language)

        entries: list[tuple[str, str]] = []
        failures: list[str] = []
        for path, text, write in (
            (page, say("demo.files.page"), write_page),
            (picture, say("demo.files.picture"), write_picture),
        ):
            try:
                write()
            except (OSError, GlassformerError) as error:
                failures.append(say("demo.files.failed", file=path, why=error))
            else:
                entries.append((str(path), text))
        parts: list[RenderableType] = [draw_legend(entries, style="cyan", gap=3)] if entries else []
        return Group(*parts, *map(Paragraph, failures))
