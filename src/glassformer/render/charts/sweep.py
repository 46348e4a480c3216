"""The effect of every patch of a sweep: a map of heads or places, beside it the heads' roles."""

from collections.abc import Iterable

from glassformer.analysis import Role, Sweep
from glassformer.languages import Language
from glassformer.render.chart import Axis, Bars, Cells, Chart, Number, Panel, Series, Values
from glassformer.render.charts.labels import as_number, as_rows, title_of_run
from glassformer.render.numbers import MINUS, format_number
from glassformer.render.paragraph import join_sentences

_MOST_NUMBERED = 16  # columns whose cells carry their number


def chart_of_sweep(found: Sweep, language: Language, roles: Iterable[Role] = ()) -> Chart:
    """Signed cells, rows × columns, or bars where there is one column; the last row is on top.

    0 is the corrupted run, 1 the clean one. `roles` of heads are drawn beside a sweep over heads.
    """
    say = language.say
    rows = tuple(reversed(found.rows))
    effects = as_rows(found.effects.flip(0))
    over = {
        "heads": say("chart.sweep.heads"),
        "heads × positions": say("chart.sweep.heads.positions"),
        "parts": say("chart.sweep.parts"),
        "parts × positions": say("chart.sweep.parts.positions"),
        "borders × positions": say("chart.sweep.borders.positions"),
        "edges": say("chart.sweep.edges"),
    }.get(found.over, found.over)
    caption = say(
        "chart.sweep.caption",
        measured=found.measured,
        clean=format_number(found.clean),
        corrupted=format_number(found.corrupted),
    )
    title = say("chart.sweep", over=over)
    panels: list[Panel] = []
    sentences = [caption]
    if found.method == "gradient":
        sentences.append(say("chart.sweep.gradient"))
    if len(found.columns) == 1:
        values = tuple(row[0] for row in effects)
        panels.append(
            Bars(
                title=title,
                y=Axis(label=say("chart.effect")),
                names=rows,
                series=(Series(name=say("chart.effect"), values=values),),
                is_signed=True,
            )
        )
    else:
        is_over_heads = found.over == "heads"
        columns = {"heads": say("chart.head"), "edges": say("chart.receiver")}.get(
            found.over, say("chart.token")
        )
        panels.append(
            Cells(
                title=title,
                rows=say("chart.place"),
                columns=columns,
                values=effects,
                row_names=rows,
                column_names=tuple(found.columns),
                texts=_write_numbers(effects),
                legend=say("chart.effect"),
                is_signed=True,
            )
        )
        known = {role.layer_head: role for role in roles} if is_over_heads else {}
        if known:
            panels.append(_draw_roles(found, known, language))
            sentences.append(say("chart.roles.caption"))
    return Chart(
        tuple(panels), title_of_run(found.model, (), language), join_sentences(sentences, language)
    )


def _write_numbers(effects: tuple[Values, ...]) -> tuple[tuple[str, ...], ...]:
    """The effects in per cent, where they are few enough to be read."""
    if len(effects[0]) > _MOST_NUMBERED:
        return ()
    return tuple(tuple("" if e is None else _as_percent(e) for e in row) for row in effects)


def _as_percent(effect: Number) -> str:
    """An effect with its sign, unless it rounds to nothing."""
    text = f"{100 * effect:+.0f}".replace("-", MINUS)
    return "0 %" if text in ("+0", f"{MINUS}0") else f"{text} %"


def _draw_roles(found: Sweep, known: dict[tuple[str, int], Role], language: Language) -> Cells:
    say = language.say
    names = {
        "previous": say("chart.role.previous"),
        "next": say("chart.role.next"),
        "self": say("chart.role.self"),
        "duplicate": say("chart.role.duplicate"),
        "induction": say("chart.role.induction"),
        "delimiter": say("chart.role.delimiter"),
        "positional": say("chart.role.positional"),
        "broad": say("chart.role.broad"),
        "distant": say("chart.role.distant"),
        "copying": say("chart.role.copying"),
        "mixed": say("chart.role.mixed"),
    }
    rows = tuple(reversed(found.rows))
    grid = [[known.get((row, int(column))) for column in found.columns] for row in rows]
    return Cells(
        title=say("chart.roles"),
        rows="",
        columns=say("chart.head"),
        values=tuple(
            tuple(None if role is None else as_number(role.score) for role in row) for row in grid
        ),
        row_names=rows,
        column_names=tuple(found.columns),
        texts=tuple(
            tuple("" if role is None else names[role.role] for role in row) for row in grid
        ),
        legend=say("chart.role.score"),
        most=1.0,
    )
