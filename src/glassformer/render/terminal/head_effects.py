"""What each head is worth on a text, as a table: the largest effects, and roles beside them."""

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from glassformer.analysis import HeadEffects
from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.overview import name_role
from glassformer.render.traced_roles import find_roles
from glassformer.tracing import Trace


def draw_head_effects(
    found: HeadEffects, trace: Trace, *, top: int, language: Language
) -> RenderableType:
    """The heads that the predictions depend on most, and what each seems to do."""
    say = language.say
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(say("heads.column.head"), no_wrap=True)
    table.add_column(say("heads.column.effect"), justify="right", no_wrap=True)
    if found.loss is not None:
        table.add_column(say("heads.column.loss"), justify="right", no_wrap=True)
    table.add_column(say("look.column.role"), no_wrap=True)
    for site, head, effect in found.top(top):
        roles = find_roles(trace, trace[site], 0)
        role = roles[trace[site].head_numbers.index(head)]
        cells = [f"{site}.{head}", f"{effect:.4f}"]
        if found.loss is not None:
            cells.append(f"{float(found.loss[found.heads.index((site, head))]):+.4f}")
        named = "" if role is None else f"{name_role(role, language)} {role.score:.2f}"
        table.add_row(*cells, named)
    middle = float(found.divergence.median())
    summary = say("heads.effects", n=len(found.heads), median=f"{middle:.4f}")
    return Group(table, Paragraph(summary), Paragraph(say("heads.effects.legend"), style="dim"))
