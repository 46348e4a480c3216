"""Traces as pictures, PNG or SVG: one head, all heads of a site, an alignment, the entropy.

A picture says below itself how far it lies from what the model computed.
"""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from glassformer.errors import TraceError
from glassformer.languages import Language
from glassformer.observe import Site, Trace
from glassformer.render.choice import choose
from glassformer.render.difference import told_difference
from glassformer.render.fonts import drawable, families, has_chinese
from glassformer.render.overview import layer_of
from glassformer.render.paragraph import wrapped
from glassformer.render.sampled import n_queries, sampled
from glassformer.render.tokens import crosses, names_of
from glassformer.storage import whole_file

KINDS = ("head", "heads", "alignment", "entropy")
_MOST_TOKENS = 64  # whose names still fit along a side
_MOST_CELLS = 256  # rows and columns of a picture: beyond them, a pooled map
_FEW_KEYS = 32  # whose weights are large enough for colours in proportion
_COLUMNS = 4  # of a grid
_INCHES_PER_CELL = 0.085  # of small print


def draw_figure(
    trace: Trace,
    path: str | Path,
    *,
    kind: str = "head",
    site: str | None = None,
    head: int | None = None,
    sequence: int = 0,
    language: Language,
) -> None:
    """A heat map of a head, a grid of all heads, an alignment or the entropy of every layer.

    What is not given is chosen: the head that looks most sharply. Written whole or not at all.
    """
    path = Path(path)
    if path.suffix not in (".png", ".svg"):
        raise TraceError(f"A figure must be named .png or .svg; got {path.name!r}.")
    if kind not in KINDS:
        raise TraceError(f"A figure is one of {', '.join(KINDS)}; got {kind!r}.")
    trace = sampled(trace)
    with _style():
        spoken = language if has_chinese() else Language("en")  # rather than empty boxes
        figure = _drawn(trace, kind, site, head, sequence, spoken)
        with whole_file(path, TraceError) as unfinished:
            figure.savefig(unfinished, format=path.suffix[1:], dpi=160, bbox_inches="tight")


def _drawn(
    trace: Trace, kind: str, site: str | None, head: int | None, sequence: int, language: Language
) -> Any:
    if kind == "entropy":
        choose(trace, site=site, head=head, sequence=sequence)  # says so if there is nothing
        return _entropy(trace, sequence, language)
    if kind == "alignment":
        crossing = {n: s for n, s in trace.run.sites.items() if crosses(s)}
        if not crossing or (site is not None and trace[site].name not in crossing):
            raise TraceError(
                "An alignment needs attention from one text to another, such as decoder.0.cross; "
                f"got {site or 'a trace without it'}. Draw a head instead."
            )
        site = choose(_part(trace, crossing), site=site, head=head, sequence=sequence)[0].name
        return _alignment(trace, trace[site], head, sequence, language)
    chosen, number, *_ = choose(trace, site=site, head=head, sequence=sequence)
    if kind == "heads":
        return _grid(trace, chosen, sequence, language)
    title = f"{_plain(chosen.name)} · {language.say('figure.head', n=number)}"
    values, names = _values(trace, chosen, number, sequence)
    return _heat(values, names, chosen, title, language)


def _part(trace: Trace, sites: dict[str, Site]) -> Trace:
    return Trace([replace(trace.run, sites=sites)], trace.model)


@contextlib.contextmanager
def _style() -> Iterator[None]:
    try:
        import matplotlib as mpl
    except ImportError:
        raise TraceError(
            "Figures need the package matplotlib; it is not installed. "
            "Run: pip install 'glassformer[figures]'"
        ) from None
    with mpl.rc_context({"font.family": families(), "svg.fonttype": "path"}):
        yield


def _figure(width: float, height: float) -> Any:
    # Without pyplot, which would keep it, and show it in a notebook.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _heat(
    values: Any, names: tuple[list[str], list[str]], site: Site, title: str, language: Language
) -> Any:
    say = language.say
    room = [_inches(sides) for sides in names]  # of the queries' names, and of the keys'
    height, width = (min(8.0, max(2.4, 0.32 * n)) for n in values.shape)
    figure = _figure(width + room[0] + 1.4, height + room[1] + 1.2)
    axes = figure.subplots()
    image = _paint(axes, values, site)
    _name_sides(axes, *names)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(say("figure.key"))
    axes.set_ylabel(say("figure.query"))
    figure.colorbar(image, ax=axes, fraction=0.04, label=_weight(site, language))
    _caption(figure, [site], language)
    return figure


def _alignment(
    trace: Trace, site: Site, head: int | None, sequence: int, language: Language
) -> Any:
    """What is written beside what was read: a ring around the strongest key of each query."""
    say = language.say
    told = say("figure.mean") if head is None else say("figure.head", n=head)
    heads = site.head_numbers if head is None else [head]
    each = [_values(trace, site, number, sequence) for number in heads]
    values: Any = sum(values for values, _ in each) / len(each)
    figure = _heat(values, each[0][1], site, f"{_plain(site.name)} · {told}", language)
    axes = figure.axes[0]
    if max(values.shape) <= _MOST_TOKENS:
        strongest = values.argmax(-1)
        axes.scatter(
            strongest, range(len(values)), s=70, facecolors="none", edgecolors="#ff5a36", lw=1.4
        )
    axes.set_xlabel(say("figure.source"))
    axes.set_ylabel(say("figure.written"))
    return figure


def _grid(trace: Trace, site: Site, sequence: int, language: Language) -> Any:
    H = site.n_heads
    columns = min(H, _COLUMNS, math.ceil(math.sqrt(H))) if H % _COLUMNS else _COLUMNS
    rows = -(-H // columns)
    figure = _figure(3.2 * columns, 3.2 * rows + 0.6)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[H:]:
        axes.axis("off")
    each = [_values(trace, site, head, sequence) for head in site.head_numbers]
    most = max(float(values.max()) for values, _ in each)  # one scale for all of them
    image = None
    for head, axes, (values, (queries, keys)) in zip(
        site.head_numbers, grid.flat, each, strict=False
    ):
        image = _paint(axes, values, site, most)
        few = max(len(queries), len(keys)) <= _MOST_TOKENS // 2
        _name_sides(axes, queries if few else [], keys if few else [], small=True)
        axes.set_title(language.say("figure.head", n=head), fontsize=9)
    figure.colorbar(image, ax=grid, fraction=0.02, label=_weight(site, language))
    figure.suptitle(_plain(site.name), fontsize=11)
    _caption(figure, [site], language)
    return figure


def _entropy(trace: Trace, sequence: int, language: Language) -> Any:
    """How spread attention is, layer by layer: a dot for each head, a line through their means."""
    say = language.say
    figure = _figure(7.0, 3.6)
    axes = figure.subplots()
    lines: dict[str, list[Site]] = {}
    for site in trace:
        words = [word for word in site.name.split(".") if not word.isdecimal()]
        lines.setdefault(" · ".join(words), []).append(site)
    for name, sites in lines.items():
        means = [site.entropy(sequence=sequence).float().mean(-1).tolist() for site in sites]
        layers = [i if (n := layer_of(s.name)) is None else n for i, s in enumerate(sites)]
        places = [layer for layer, mean in zip(layers, means, strict=True) for _ in mean]
        (line,) = axes.plot(layers, [sum(m) / len(m) for m in means], lw=1, label=_plain(name))
        each = [h for mean in means for h in mean]
        axes.scatter(places, each, s=14, alpha=0.6, color=line.get_color())
    axes.locator_params(axis="x", integer=True)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(say("figure.layer"))
    axes.set_ylabel(say("figure.entropy"))
    axes.legend(frameon=False)
    _caption(figure, list(trace), language)
    return figure


def _values(
    trace: Trace, site: Site, head: int, sequence: int
) -> tuple[Any, tuple[list[str], list[str]]]:
    """The weights of a head and the names of its sides; a pooled map of a long text has none."""
    if max(site.shape[2:]) > _MOST_CELLS:
        size = (min(site.shape[2], _MOST_CELLS), min(site.shape[3], _MOST_CELLS))
        pooled = site.map(head, size, sequence=sequence)
        return pooled.share.float().cpu().numpy(), ([], [])
    weights = site.weights(head=head, sequence=sequence).float().cpu().numpy()
    return weights, names_of(trace, site, sequence)


def _weight(site: Site, language: Language) -> str:
    is_pooled = max(site.shape[2:]) > _MOST_CELLS
    told = language.say("figure.pooled") if is_pooled else language.say("figure.weight")
    return language.say("figure.root", what=told) if _is_rooted(site) else told


def _paint(axes: Any, values: Any, site: Site, most: float | None = None) -> Any:
    """Cells in colours; those of a pooled map lie where their tokens are."""
    from matplotlib.colors import PowerNorm

    _, passed = n_queries(site)
    S = site.shape[3]
    sides = None if values.shape == (passed, S) else (0, S, passed, 0)
    largest = (float(values.max()) if most is None else most) or 1.0
    # Weights of many keys are small; by their square roots they can be seen.
    norm = PowerNorm(0.5 if _is_rooted(site) else 1.0, vmin=0.0, vmax=largest)
    options = {"aspect": "auto", "interpolation": "nearest", "extent": sides}
    return axes.imshow(values, cmap="viridis", norm=norm, **options)


def _is_rooted(site: Site) -> bool:
    return site.shape[3] > _FEW_KEYS


def _inches(names: list[str]) -> float:
    """How much room names take along a side, if they are written at all."""
    return 0.07 * max(map(len, drawable(names))) if 0 < len(names) <= _MOST_TOKENS else 0.3


def _name_sides(axes: Any, queries: list[str], keys: list[str], *, small: bool = False) -> None:
    size = 6 if small else 8
    if 0 < len(keys) <= _MOST_TOKENS:
        axes.set_xticks(range(len(keys)), drawable(keys), rotation=90, fontsize=size)
    if 0 < len(queries) <= _MOST_TOKENS:
        axes.set_yticks(range(len(queries)), drawable(queries), fontsize=size)


def _caption(figure: Any, sites: list[Site], language: Language) -> None:
    """The difference from the model's output, in small print as wide as the picture."""
    cells = int(figure.get_figwidth() / _INCHES_PER_CELL)
    some, passed = n_queries(sites[0])
    told = "" if some == passed else language.say("look.sampled", n=some, all=passed)
    lines = wrapped(f"{told} {told_difference(sites, language)}".strip(), cells)
    figure.supxlabel("\n".join(lines), fontsize=7, color="#777777", x=0.01, ha="left")


def _plain(name: str) -> str:
    return drawable([name], most=60)[0]
