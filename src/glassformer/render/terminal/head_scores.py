"""Scores of heads as a table: for each score, the heads that have most of it."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from glassformer.analysis import HeadScores
from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph


def draw_head_scores(found: HeadScores, *, top: int, language: Language) -> RenderableType:
    """One row for each of the best heads of each score, and what the scores mean."""
    say = language.say
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(say("heads.column.score"), no_wrap=True)
    table.add_column(say("heads.column.head"), no_wrap=True)
    table.add_column(say("heads.column.value"), justify="right", no_wrap=True)
    table.add_column(say("heads.column.chance"), justify="right", no_wrap=True, style="dim")
    names = {
        "previous": say("heads.score.previous"),
        "duplicate": say("heads.score.duplicate"),
        "induction": say("heads.score.induction"),
        "sink": say("heads.score.sink"),
        "copying": say("heads.score.copying"),
    }
    for score in found.scores:
        for i, (site, head, value) in enumerate(found.top(score, top)):
            chance = f"{found.chance[score]:.2f}" if score in found.chance else "–"
            row = (f"{site}.{head}", f"{value:.2f}", chance)
            table.add_row(names[score] if i == 0 else "", *row)
    tested = say(
        "heads.tested",
        n=len(found.heads),
        sequences=found.sequences,
        length=found.length,
        seed=found.seed,
    )
    notes = [Paragraph(tested), Paragraph(say("heads.legend"), style="dim")]
    for name, why in found.refusals.items():
        notes.append(Paragraph(say("heads.missing", name=names.get(name, name), why=why)))
    return Group(table, *notes)
