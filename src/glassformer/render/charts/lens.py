"""The lens grid: borders × positions, in each cell the most probable token."""

from collections.abc import Sequence

from glassformer.analysis import Lens
from glassformer.languages import Language
from glassformer.render.chart import Cells, Chart, Number
from glassformer.render.charts.labels import as_number, as_rows, title_of_run
from glassformer.render.paragraph import join_sentences


def chart_of_lens(
    lens: Lens,
    language: Language,
    *,
    parts: bool = False,
    positions: Sequence[int] | None = None,
) -> Chart:
    """The top token of every cell, as colourful as it is probable; the end is the first row.

    Without `parts`, one row for each block; with them, one for each part of it.
    """
    say = language.say
    rows = list(reversed(select_borders(lens, parts=parts)))
    n = len(lens.positions)
    columns = range(n) if positions is None else [i % n for i in positions]
    chosen = (rows, list(columns))

    def grid(values) -> tuple:
        return as_rows(values[chosen[0]][:, chosen[1]])

    name, basis = {
        None: (say("lens.column.plain"), say("lens.legend.plain")),
        "tuned": (say("lens.column.tuned"), say("lens.legend.tuned")),
        "jacobian": (say("lens.column.jacobian"), say("lens.legend.jacobian")),
    }[lens.kind]
    panel = Cells(
        title=say("chart.lens", lens=name),
        rows=say("chart.border"),
        columns=say("chart.token"),
        values=grid(lens.probabilities[..., 0]),
        row_names=tuple(lens.borders[i] for i in rows),
        column_names=tuple(lens.positions[j] for j in columns),
        texts=tuple(tuple(lens.labels[i][j][0] for j in columns) for i in rows),
        legend=say("chart.probability"),
        most=1.0,
        measure_names=(say("figure.entropy"), say("chart.divergence"), say("chart.rank")),
        measures=(grid(lens.entropy), grid(lens.divergence), grid(lens.rank)),
        lists=tuple(tuple(_list_tokens(lens, i, j) for j in columns) for i in rows),
    )
    caption = join_sentences([say("chart.lens.caption"), basis], language)
    return Chart((panel,), title_of_run(lens.model, lens.positions, language), caption)


def select_borders(lens: Lens, *, parts: bool) -> list[int]:
    """All borders, or the start and the last border of each block."""
    if parts:
        return list(range(len(lens.borders)))
    blocks = [name.split(".")[1] for name in lens.borders]
    return [i for i, block in enumerate(blocks) if i + 1 == len(blocks) or blocks[i + 1] != block]


def _list_tokens(lens: Lens, border: int, position: int) -> tuple[tuple[str, Number], ...]:
    shares = map(as_number, lens.probabilities[border, position].tolist())
    pairs = zip(lens.labels[border][position], shares, strict=True)
    return tuple((token, share) for token, share in pairs if share is not None)
