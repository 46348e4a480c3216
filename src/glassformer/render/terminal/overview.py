"""An overview of all heads of a trace: one mark each, by the sharpness of its attention."""

from rich.console import Group, RenderableType
from rich.table import Table

from glassformer.analysis.head_roles import Role
from glassformer.languages import Language
from glassformer.render.layer_numbers import layer_number
from glassformer.render.marks import visible_token
from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.head_marks import draw_marks
from glassformer.render.traced_roles import find_roles
from glassformer.tracing import Site, Trace


def draw_overview(
    trace: Trace, *, language: Language, width: int = 80, sequence: int = 0
) -> RenderableType:
    """A block for each kind of attention: rows are layers, columns are heads.

    decoder · self   0  1  2  3
                     └───┘ └───┘
                 0  ▓▓ ░░ ██ ▒▒
                 1  ██ ▒▒ ▓▓ ░░
    """
    blocks: list[RenderableType] = []
    is_grouped = False
    for title, sites in _groups(trace).items():
        rows = {_name(site): site.sharpness(sequence=sequence).tolist() for site in sites}
        group = max(site.n_heads // site.k.shape[1] for site in sites)
        heads = max((site.head_numbers for site in sites), key=len)
        blocks += [draw_marks(title, rows, heads, width=width, group=group), ""]
        is_grouped |= group > 1
    legend = language.say("look.overview.legend")
    blocks.append(Paragraph(legend, style="dim"))
    if is_grouped:
        blocks.append(Paragraph(language.say("look.grouped"), style="dim"))
    return Group(*blocks)


def _name(site: Site) -> str:
    layer = layer_number(site.name)
    return visible_token(site.name) if layer is None else str(layer)


def draw_heads(trace: Trace, site: Site, *, language: Language, sequence: int = 0) -> Table:
    """The heads of one site in numbers: sharpness, distance, attention on the first key, and role.

    head  keys  peak  distance  first  role
       0   2.1  0.81       1.4   0.03  previous 0.79
    """
    say = language.say
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("head", "keys", "peak", "distance", "first"):
        table.add_column(_title(name, language), justify="right", no_wrap=True)
    table.add_column(say("look.column.role"), no_wrap=True)
    keys = site.entropy(sequence=sequence).float().exp().mean(-1)
    peak = site.peak(sequence=sequence).float().mean(-1)
    distance = site.distance(sequence=sequence).float().mean(-1)
    first = site.received(sequence=sequence).float()[:, 0] / site.shape[2]
    for head, role in enumerate(find_roles(trace, site, sequence)):
        named = "" if role is None else f"{name_role(role, language)} {role.score:.2f}"
        table.add_row(
            str(site.head_numbers[head]),
            f"{float(keys[head]):.1f}",
            f"{float(peak[head]):.2f}",
            f"{float(distance[head]):.1f}",
            f"{float(first[head]):.2f}",
            named,
        )
    return table


def _groups(trace: Trace) -> dict[str, list[Site]]:
    groups: dict[str, list[Site]] = {}
    for site in trace:
        words = [word for word in site.name.split(".") if not word.isdecimal()]
        groups.setdefault(visible_token(" · ".join(words)), []).append(site)
    return groups


def _title(name: str, language: Language) -> str:
    say = language.say
    return {
        "head": say("look.column.head"),
        "keys": say("look.column.keys"),
        "peak": say("look.column.peak"),
        "distance": say("look.column.distance"),
        "first": say("look.column.first"),
    }[name]


def name_role(role: Role, language: Language) -> str:
    """A role in words."""
    say = language.say
    return {
        "previous": say("look.role.previous"),
        "next": say("look.role.next"),
        "self": say("look.role.self"),
        "duplicate": say("look.role.duplicate"),
        "induction": say("look.role.induction"),
        "delimiter": say("look.role.delimiter"),
        "positional": say("look.role.positional"),
        "broad": say("look.role.broad"),
        "distant": say("look.role.distant"),
        "copying": say("look.role.copying"),
        "sink": say("look.role.sink"),
        "mixed": say("look.role.mixed"),
    }[role.role]
