"""Traces as PNG, SVG or PDF figures: a head, all heads of a site, an alignment, entropy, flow.

The title names the model and the text; the caption explains the colours and gives the difference
from the model's own output.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.render.charts.flow import chart_of_flow
from glassformer.render.difference import describe_difference
from glassformer.render.figure.chart import figure_language, write_chart
from glassformer.render.figure.files import check_suffix, figure_style, save_figure
from glassformer.render.figure.fonts import has_chinese, make_drawable
from glassformer.render.figure.grid import draw_brackets, grid_shape
from glassformer.render.focus import choose_focus
from glassformer.render.head_cells import Drawing, Scale, fit_scale, head_cells
from glassformer.render.heading import heading
from glassformer.render.layer_numbers import layer_number
from glassformer.render.numbers import format_brief
from glassformer.render.paragraph import join_sentences, wrap_text
from glassformer.render.sampled_queries import count_queries, sample_queries
from glassformer.render.tokens import is_cross, row_labels, row_title, token_names
from glassformer.tracing import Site, Trace

KINDS = ("head", "heads", "alignment", "entropy", "flow")
_MOST_TOKENS = 64  # whose labels fit along an axis
_MOST_CELLS = 256  # rows and columns of a figure; beyond that, blocks
_MOST_NAME = 14  # characters of each token of a row label
_MOST_SIDE = 2 * _MOST_NAME + 3  # of a whole row label
_INCHES_PER_CELL = 0.085  # of the caption
_HIDDEN = "#e4e4e4"  # on none of our colour scales


def draw_figure(
    trace: Trace,
    path: str | Path,
    *,
    kind: str = "head",
    site: str | None = None,
    head: int | None = None,
    sequence: int = 0,
    drawing: Drawing | None = None,
    language: Language,
) -> None:
    """Write a head, a grid of all heads, an alignment, the entropy of layers or the stream's flow.

    Defaults to the most informative head. The file is written atomically.
    """
    path = Path(path)
    check_figure(path, kind)
    if kind == "flow":
        chart = chart_of_flow(trace, figure_language(language), sequence=sequence)
        write_chart(chart, path, title=chart.title, caption=chart.caption)
        return
    trace = sample_queries(trace)
    with figure_style(TraceError):
        spoken = language if has_chinese() else Language("en")  # instead of empty boxes
        drawn = _Drawn(trace, sequence, drawing or Drawing(), spoken)
        save_figure(drawn.figure(kind, site, head), path, TraceError, dpi=160)


def check_figure(path: Path, kind: str) -> None:
    """Reject what cannot be drawn, before anything is computed for it."""
    check_suffix(path, TraceError)
    if kind not in KINDS:
        raise TraceError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    with figure_style(TraceError):
        pass


class _Drawn:
    """The figures of one sequence of a trace, in one language."""

    def __init__(self, trace: Trace, sequence: int, drawing: Drawing, language: Language) -> None:
        self.trace, self.sequence, self.drawing = trace, sequence, drawing
        self.language, self.say = language, language.say

    def figure(self, kind: str, site: str | None, head: int | None) -> Any:
        trace = self.trace
        if kind == "alignment":
            crossing = {n: s for n, s in trace.run.sites.items() if is_cross(s)}
            if not crossing or (site is not None and trace[site].name not in crossing):
                raise TraceError(
                    "An alignment needs attention from one text to another, such as "
                    f"decoder.0.cross; got {site or 'a trace without it'}. Draw a head instead."
                )
            trace = Trace([replace(trace.run, sites=crossing)], trace.model)
        chosen, number, *_ = choose_focus(trace, site=site, head=head, sequence=self.sequence)
        chosen = self.trace[chosen.name]
        if kind == "entropy":
            return self._entropy(chosen)
        if kind == "heads":
            return self._grid(chosen)
        if kind == "alignment":
            return self._alignment(chosen, head)
        label = self.say("figure.head", n=number)
        return self._heat(self._cells(chosen, number), chosen, label)

    def _cells(self, site: Site, head: int) -> Tensor:
        most = (_MOST_CELLS, _MOST_CELLS)
        return head_cells(site, head, most, self.drawing, sequence=self.sequence)

    def _heat(self, cells: Tensor, site: Site, label: str) -> Any:
        names = self._names(site, _MOST_TOKENS)
        room = [_inches(sides) for sides in names]  # of the queries' names, and of the keys'
        height, width = (min(8.0, max(2.4, 0.32 * n)) for n in cells.shape)
        figure = _figure(width + room[0] + 1.4, height + room[1] + 1.6)
        axes = figure.subplots()
        scale = fit_scale([cells], site, self.drawing)
        image = self._paint(axes, cells, site, scale)
        self._name_sides(axes, site, names)
        axes.tick_params(labelsize=8)
        self._colorbar(figure, image, axes, [cells], site, scale)
        self._title(figure, site, f"{_plain(site.name)} · {label}")
        self._caption(figure, [site], [cells])
        return figure

    def _alignment(self, site: Site, head: int | None) -> Any:
        """Target against source, with a ring around the largest weight of each row."""
        label = self.say("figure.mean") if head is None else self.say("figure.head", n=head)
        heads = site.head_numbers if head is None else [head]
        cells = torch.stack([self._cells(site, number) for number in heads]).mean(0)
        figure = self._heat(cells, site, label)
        if max(cells.shape) <= _MOST_TOKENS:
            rows = [i for i, row in enumerate(cells) if not bool(row.isnan().all())]
            strongest = cells.nan_to_num(nan=-1.0).argmax(-1)[rows].tolist()
            figure.axes[0].scatter(
                strongest, rows, s=70, facecolors="none", edgecolors="#ff5a36", lw=1.4
            )
        return figure

    def _grid(self, site: Site) -> Any:
        H = site.n_heads
        rows, columns, group = grid_shape(site)
        figure = _figure(3.2 * columns, 3.4 * rows + 0.9)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes in grid.flat[H:]:
            axes.axis("off")
        each = [self._cells(site, head) for head in site.head_numbers]
        scale = fit_scale(each, site, self.drawing)  # one scale for all heads
        names = self._names(site, _MOST_TOKENS // 2)
        below = site.head_numbers[-columns:]
        image = None
        for head, axes, cells in zip(site.head_numbers, grid.flat, each, strict=False):
            image = self._paint(axes, cells, site, scale)
            self._name_sides(axes, site, names)
            axes.tick_params(labelsize=6)
            axes.set_title(self.say("figure.head", n=head), fontsize=9)
            axes.xaxis.label.set(fontsize=8, visible=head in below)
            axes.yaxis.label.set(fontsize=8, visible=axes in grid[:, 0])
        self._colorbar(figure, image, grid, each, site, scale)
        self._title(figure, site, _plain(site.name), brackets=group > 1)
        self._caption(figure, [site], each)
        if group > 1:
            draw_brackets(figure, list(grid.flat[:H]), columns, group, self.language)
        return figure

    def _entropy(self, first: Site) -> Any:
        """The entropy of each layer: a dot for each head, a line through their means."""
        figure = _figure(7.0, 4.0)
        axes = figure.subplots()
        lines: dict[str, list[Site]] = {}
        for site in self.trace:
            words = [word for word in site.name.split(".") if not word.isdecimal()]
            lines.setdefault(" · ".join(words), []).append(site)
        for name, sites in lines.items():
            means = [s.entropy(sequence=self.sequence).float().mean(-1).tolist() for s in sites]
            layers = [i if (n := layer_number(s.name)) is None else n for i, s in enumerate(sites)]
            places = [layer for layer, mean in zip(layers, means, strict=True) for _ in mean]
            (line,) = axes.plot(layers, [sum(m) / len(m) for m in means], lw=1, label=_plain(name))
            each = [h for mean in means for h in mean]
            axes.scatter(places, each, s=14, alpha=0.6, color=line.get_color())
        axes.locator_params(axis="x", integer=True)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(self.say("figure.layer"))
        axes.set_ylabel(self.say("figure.entropy"))
        axes.legend(frameon=False)
        self._title(figure, first, "")
        self._caption(figure, list(self.trace), [])
        return figure

    def _names(self, site: Site, most: int) -> tuple[list[str], list[str]]:
        """The labels of the rows and columns; empty where there are more than `most`."""
        queries = row_labels(self.trace, site, self.sequence, most=_MOST_NAME)
        keys = token_names(self.trace, site, self.sequence)[1]
        return queries if len(queries) <= most else [], keys if len(keys) <= most else []

    def _name_sides(self, axes: Any, site: Site, names: tuple[list[str], list[str]]) -> None:
        """Label the axes with tokens, or with positions if there are too many tokens."""
        queries, keys = names
        if keys:
            axes.set_xticks(range(len(keys)), make_drawable(keys), rotation=90)
        if queries:
            axes.set_yticks(range(len(queries)), make_drawable(queries, most=_MOST_SIDE))
        say, title = self.say, row_title(self.trace, site, self.language)
        key = say("figure.source") if is_cross(site) else say("figure.key")
        axes.set_xlabel(key if keys else say("figure.place.key"))
        axes.set_ylabel(title if queries else say("figure.place.query"))

    def _paint(self, axes: Any, cells: Tensor, site: Site, scale: Scale) -> Any:
        """Draw cells in colour, masked ones in grey, and blocks where their tokens are."""
        import matplotlib as mpl
        from matplotlib.colors import PowerNorm

        _, passed = count_queries(site)
        S = site.shape[3]
        sides = None if tuple(cells.shape) == (passed, S) else (0, S, passed, 0)
        norm = PowerNorm(0.5 if scale.is_rooted else 1.0, vmin=0.0, vmax=scale.largest)
        colours = mpl.colormaps["viridis"].with_extremes(bad=_HIDDEN)
        options = {"aspect": "auto", "interpolation": "nearest", "extent": sides}
        return axes.imshow(cells.numpy(), cmap=colours, norm=norm, **options)

    def _colorbar(
        self, figure: Any, image: Any, axes: Any, cells: list[Tensor], site: Site, scale: Scale
    ) -> None:
        say = self.say
        is_pooled = max(site.shape[2:]) > _MOST_CELLS
        by_pool = {"max": say("figure.largest"), "mean": say("figure.pooled.mean")}
        label = by_pool[self.drawing.pool] if is_pooled else say("figure.weight")
        if self.drawing.scale == "row":
            label = say("figure.row.share", what=label)
        label = say("figure.root", what=label) if scale.is_rooted else label
        beyond = any(bool((each > scale.largest * (1 + 1e-6)).any()) for each in cells)
        bar = figure.colorbar(
            image, ax=axes, fraction=0.03, label=label, extend="max" if beyond else "neither"
        )
        ticks = [scale.value(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
        bar.set_ticks(ticks, labels=[format_brief(tick) for tick in ticks])
        bar.minorticks_off()

    def _title(self, figure: Any, site: Site, label: str, *, brackets: bool = False) -> None:
        """Set the title: the model, the text, and the part that is shown."""
        cells = int(figure.get_figwidth() / 0.095)
        above = heading(self.trace, site, self.language, sequence=self.sequence)
        lines = wrap_text(make_drawable([above], most=400)[0], cells) if above else []
        lines += [label] if label else []
        figure.suptitle("\n".join(lines) + ("\n" if brackets else ""), fontsize=10)

    def _caption(self, figure: Any, sites: list[Site], cells: list[Tensor]) -> None:
        """Set the caption: what the colours mean, and the difference from the model's output."""
        say = self.say
        width = int(figure.get_figwidth() / _INCHES_PER_CELL)
        some, passed = count_queries(sites[0])
        parts = [
            "" if some == passed else say("look.sampled", n=some, all=passed),
            say("figure.hidden") if any(bool(each.isnan().any()) for each in cells) else "",
            "" if self.drawing.first_key or not cells else say("figure.first.key"),
            describe_difference(sites, self.language),
        ]
        lines = wrap_text(join_sentences(parts, self.language), width)
        figure.supxlabel("\n".join(lines), fontsize=7, color="#666666", x=0.01, ha="left")


def _figure(width: float, height: float) -> Any:
    # Without pyplot, which would keep a reference to it and show it in a notebook.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _inches(names: list[str]) -> float:
    """The space that labels take along an axis, if there are any."""
    return 0.07 * max(map(len, make_drawable(names, most=_MOST_SIDE)), default=4)


def _plain(name: str) -> str:
    return make_drawable([name], most=60)[0]
