"""The screens of `glassformer demo`, one after another."""

import math
import os

import torch
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from glassformer.cli.translated_example import TranslatedExample
from glassformer.cli.worked_examples import (
    QUERY,
    SENTENCE,
    THREE_WORDS,
    cat_row,
    three_words,
)
from glassformer.functional import (
    ALiBi,
    Causal,
    Mask,
    Prefix,
    Window,
    attention_statistics,
    explain,
    memory_budget,
)
from glassformer.languages import Language, flag
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.columns import Beside
from glassformer.render.terminal.legend import draw_legend
from glassformer.render.terminal.mask import draw_mask
from glassformer.render.terminal.matrix import draw_scores, draw_weights
from glassformer.render.terminal.pooled_map import draw_map
from glassformer.render.terminal.steps import draw_steps

NEXT_LINES = """\
import torch, glassformer as gf
q, k, v = torch.randn(3, 1, 2, 6, 16).unbind(0)
causal = gf.Causal()
out = gf.attention(q, k, v, mask=causal)
print(gf.explain(q, k, v, mask=causal))
print(gf.attention_weights(q, k, mask=causal)[0, 0])
print(gf.cell_arithmetic(q, k, v, query=4, key=1))
"""
_N_TOKENS, _N_MORE_TOKENS = 2048, 16_384
_SEED = 0
_BUDGET = 4 << 20  # bytes
_MAP_SIZE = (12, 24)  # characters are twice as high as wide
_SLOPE = 1 / 256  # of ALiBi: the score falls by 1 every 256 tokens


def show(console: Console, language: Language) -> None:
    """Print each screen as soon as its numbers are computed."""
    say = language.say
    example = TranslatedExample(language)
    parts = [
        (say("demo.translation.title"), example.translations),
        (say("demo.cross.title"), example.cross_attention),
        (say("demo.shapes.title"), example.shapes),
        (say("demo.files.title"), example.files),
        (say("demo.steps.title"), lambda: _five_steps(language)),
        (say("demo.causal.title"), lambda: _three_words(language)),
        (say("demo.masks.title"), lambda: _masks(language)),
        (say("demo.fast.title"), lambda: _without_the_matrix(language)),
        (say("demo.next.title"), lambda: _next(language)),
    ]
    console.print()
    console.print(Text.assemble(("glassformer", "bold cyan"), "  ", (say("app.help"), "dim")))
    for number, (title, draw) in enumerate(parts, start=1):
        console.print()
        console.rule(Text(f"{number}  {title}", style="bold"), align="left", style="dim")
        console.print()
        console.print(Padding(draw(), (0, 0, 0, 3)))
    console.print()


def _five_steps(language: Language) -> RenderableType:
    tokens = _join_tokens(SENTENCE, language)
    intro = Paragraph(language.say("demo.steps.intro", query=QUERY, tokens=tokens))
    values = Paragraph(language.say("demo.steps.values"), style="dim")
    return Group(intro, "", draw_steps(cat_row(), SENTENCE, language=language), "", values)


def _three_words(language: Language) -> RenderableType:
    say, words, labels = language.say, three_words(), (THREE_WORDS, THREE_WORDS)
    weights = say("demo.causal.weights")
    drawings = Beside(
        draw_scores(words.scores, *labels, title=say("demo.causal.scores")),
        draw_scores(words.masked, *labels, title=say("demo.causal.masked")),
        draw_weights(words.weights, *labels, allowed=words.mask, title=weights),
    )
    return Group(Paragraph(say("demo.causal.intro")), "", drawings)


def _masks(language: Language) -> RenderableType:
    masks: list[Mask] = [Causal() & Window(3), Causal() | Prefix(3)]
    drawings = [Group(Text(repr(mask)), "", draw_mask(mask, 8, 8)) for mask in masks]
    return Group(Paragraph(language.say("demo.masks.intro")), "", Beside(*drawings))


def _without_the_matrix(language: Language) -> RenderableType:
    say = language.say
    choices: list[RenderableType] = []
    for n_tokens, mask in ((_N_TOKENS, Causal()), (_N_MORE_TOKENS, Causal() & Window(256))):
        q = torch.zeros(1, 1, n_tokens, 64)
        chosen = str(explain(q, q, q, mask=mask)).splitlines()[0]
        choices.append(say("demo.fast.case", mask=repr(mask), n=f"{n_tokens:,}"))
        choices.append(Padding(Text(chosen, style="cyan"), (0, 0, 0, 3)))
    return Group(
        Paragraph(say("demo.fast.explain")),
        "",
        *choices,
        "",
        Paragraph(say("demo.fast.statistics", n=f"{_N_TOKENS:,}", seed=_SEED)),
        "",
        _statistics(language),
    )


def _statistics(language: Language) -> RenderableType:
    say = language.say
    generator = torch.Generator().manual_seed(_SEED)
    q, k = torch.randn(2, 1, 1, _N_TOKENS, 64, generator=generator).unbind(0)
    bias = ALiBi(torch.tensor([_SLOPE]))
    with memory_budget(_BUDGET):
        seen = attention_statistics(q, k, mask=Causal(), bias=bias, map_size=_MAP_SIZE)
    assert seen.map is not None and seen.distance is not None
    rows, cols = _MAP_SIZE
    # Attention spread evenly over the i keys that query i may see has entropy log i.
    even = sum(math.log(i) for i in range(1, _N_TOKENS + 1)) / _N_TOKENS
    facts = [
        (
            say("demo.fast.cells"),
            say("demo.fast.cells.note", n=f"{_N_TOKENS**2:,}", budget=f"{_BUDGET >> 20} MiB"),
        ),
        (
            say("demo.fast.entropy"),
            say("demo.fast.entropy.note", mean=f"{seen.entropy.mean():.2f}", even=f"{even:.2f}"),
        ),
        (say("demo.fast.peak"), say("demo.fast.peak.note", mean=f"{seen.peak.mean():.2f}")),
        (
            say("demo.fast.distance"),
            say("demo.fast.distance.note", mean=f"{seen.distance.mean():.0f}"),
        ),
        (
            say("demo.fast.map"),
            say("demo.fast.map.note", rows=_N_TOKENS // rows, cols=_N_TOKENS // cols),
        ),
    ]
    both = Table.grid(padding=(0, 4, 0, 0))
    both.add_row(draw_map(seen.map.share[0, 0]), draw_legend(facts))
    return both


def _next(language: Language) -> RenderableType:
    say = language.say
    other = {"en": "zh", "zh": "en"}[language.code]
    lang = flag(language, os.environ)
    commands = [
        (f'glassformer look "I love you." --to fr{lang}', say("demo.next.look")),
        (f"glassformer learn{lang}", say("demo.next.learn")),
        (f"glassformer practice{lang}", say("demo.next.practice")),
        (f"glassformer lab scale{lang}", say("demo.next.lab")),
        (f'glassformer mask "causal & window(2)"{lang}', say("demo.next.mask")),
        (f"glassformer demo --lang {other}", say("demo.next.language")),
        ("glassformer demo --json", say("demo.next.json")),
    ]
    return Group(
        Paragraph(say("demo.next.python")),
        "",
        Text(NEXT_LINES.rstrip(), style="cyan"),
        "",
        draw_legend(commands, style="cyan", gap=3),
    )


def _join_tokens(tokens: tuple[str, ...], language: Language) -> str:
    return language.say("list.comma").join(tokens)
