"""Traces as pictures, PNG or SVG: one head, all heads of a site, entropy through the layers."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from glassformer.errors import CheckpointError, TraceError
from glassformer.models.checkpoints.writing import whole_file
from glassformer.observe import Site, Trace

# Fonts with Chinese characters, on the systems that have them.
_FONTS = (
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "SimHei",
    "Arial Unicode MS",
)
_MOST_TOKENS = 64  # whose names still fit along a side
_MOST_CELLS = 256  # rows and columns of a picture: beyond them, a pooled map


def draw_figure(
    trace: Trace, path: str | Path, *, site: str, head: int | None = None, sequence: int = 0
) -> None:
    """A heat map of one head, or a grid of all heads of a site; written whole or not at all."""
    chosen = trace[site]
    if head is None:
        _save(lambda: _grid(trace, chosen, sequence), Path(path))
    else:
        chosen.weights(head=head, rows=[0], sequence=sequence)  # says so if there is no such head
        _save(lambda: _heat(trace, chosen, head, sequence), Path(path))


def draw_entropy(trace: Trace, path: str | Path, *, sequence: int = 0) -> None:
    """How spread attention is, layer by layer: a dot for each head."""
    _save(lambda: _entropy(trace, sequence), Path(path))


def _save(draw: Any, path: Path) -> None:
    if path.suffix not in (".png", ".svg"):
        raise TraceError(f"A figure must be named .png or .svg; got {path.name!r}.")
    with _style() as plt:
        figure = draw()
        try:
            with whole_file(path) as unfinished:
                figure.savefig(unfinished, format=path.suffix[1:], dpi=160, bbox_inches="tight")
        except CheckpointError as error:
            raise TraceError(str(error)) from None
        finally:
            plt.close(figure)


@contextlib.contextmanager
def _style() -> Iterator[Any]:
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: F401
    except ImportError:
        raise TraceError(
            "Figures need the package matplotlib; it is not installed. "
            "Run: pip install 'glassformer[figures]'"
        ) from None
    import matplotlib.pyplot as plt

    with mpl.rc_context({"font.family": [*_found_fonts(), "DejaVu Sans"], "svg.fonttype": "path"}):
        yield plt


def _found_fonts() -> list[str]:
    from matplotlib import font_manager

    there = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _FONTS if name in there][:1]


def _drawable(labels: Sequence[str]) -> list[str]:
    """Labels in which characters that no font here has are written as their numbers."""
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    names = [*_found_fonts(), "DejaVu Sans"]
    fonts = [FT2Font(font_manager.findfont(name)) for name in names]

    def shown(character: str) -> str:
        if any(font.get_char_index(ord(character)) for font in fonts):
            return character
        return f"U+{ord(character):04X}"

    return ["".join(map(shown, label)).replace("$", r"\$") for label in labels]


def _heat(trace: Trace, site: Site, head: int, sequence: int) -> Any:
    import matplotlib.pyplot as plt

    values, queries, keys = _values(trace, site, head, sequence)
    size = [max(3.0, min(14.0, 0.32 * n)) for n in reversed(values.shape)]
    figure, axes = plt.subplots(figsize=size)
    image = axes.imshow(values, cmap="viridis", vmin=0.0, aspect="auto", interpolation="nearest")
    _name_sides(axes, queries, keys)
    axes.set_title(f"{site.name} · head {head}", fontsize=10)
    axes.set_xlabel("key")
    axes.set_ylabel("query")
    figure.colorbar(image, ax=axes, fraction=0.04, label="weight")
    return figure


def _grid(trace: Trace, site: Site, sequence: int) -> Any:
    import matplotlib.pyplot as plt

    H = site.n_heads
    columns = min(4, H)
    figure, grid = plt.subplots(
        -(-H // columns),
        columns,
        figsize=(3.2 * columns, 3.2 * -(-H // columns)),
        squeeze=False,
        layout="constrained",
    )
    for head, axes in enumerate(grid.flat):
        if head >= H:
            axes.axis("off")
            continue
        values, queries, keys = _values(trace, site, head, sequence)
        axes.imshow(values, cmap="viridis", vmin=0.0, aspect="auto", interpolation="nearest")
        few = len(keys) <= _MOST_TOKENS // 2
        _name_sides(axes, queries if few else [], keys if few else [], small=True)
        axes.set_title(f"head {head}", fontsize=9)
    figure.suptitle(site.name, fontsize=11)
    return figure


def _entropy(trace: Trace, sequence: int) -> Any:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    for kind in sorted({site.name.rsplit(".", 1)[1] for site in trace}):
        sites = [site for site in trace if site.name.endswith(f".{kind}")]
        means = [site.entropy(sequence=sequence).float().mean(-1).tolist() for site in sites]
        places = [i for i, mean in enumerate(means) for _ in mean]
        axes.scatter(places, [h for mean in means for h in mean], s=14, alpha=0.6, label=kind)
        axes.plot(range(len(sites)), [sum(m) / len(m) for m in means], linewidth=1)
    axes.set_xlabel("layer")
    axes.set_ylabel("entropy (nats)")
    axes.legend(frameon=False)
    return figure


def _values(
    trace: Trace, site: Site, head: int, sequence: int
) -> tuple[Any, Sequence[str], Sequence[str]]:
    L, S = site.shape[2:]
    if max(L, S) > _MOST_CELLS:
        pooled = site.map(head, _MOST_CELLS, sequence=sequence)
        return pooled.share.float().cpu().numpy(), [], []
    weights = site.weights(head=head, sequence=sequence).float().cpu().numpy()
    queries = (
        trace.labels(site.queries, sequence=sequence) if site.queries in trace.run.texts else []
    )
    keys = trace.labels(site.keys, sequence=sequence) if site.keys in trace.run.texts else []
    return weights, queries[:L], keys[:S]


def _name_sides(
    axes: Any, queries: Sequence[str], keys: Sequence[str], *, small: bool = False
) -> None:
    size = 6 if small else 8
    if 0 < len(keys) <= _MOST_TOKENS:
        axes.set_xticks(range(len(keys)), _drawable(keys), rotation=90, fontsize=size)
    if 0 < len(queries) <= _MOST_TOKENS:
        axes.set_yticks(range(len(queries)), _drawable(queries), fontsize=size)
