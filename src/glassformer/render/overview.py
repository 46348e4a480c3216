"""All heads of a trace at a glance: one mark for each, by how sharply it looks."""

import math
import re
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.languages import Language
from glassformer.observe import Site, Trace
from glassformer.observe.roles import Role, roles
from glassformer.render.marks import HIDDEN, shade, shown
from glassformer.render.paragraph import Paragraph
from glassformer.render.tokens import crosses

_LIGHTEST = 1e-9  # even attention has a mark too: blank would be no head at all
_MANY = 20  # heads of a layer that still have room for two cells each


def draw_overview(trace: Trace, *, language: Language, sequence: int = 0) -> RenderableType:
    """A block for each kind of attention: layers downwards, heads across.

    decoder · self   0  1  2
                 0  ▓▓ ░░ ██
                 1  ██ ▒▒ ▓▓
    """
    blocks: list[RenderableType] = []
    for title, sites in _groups(trace).items():
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True)
        heads = max((site.head_numbers for site in sites), key=len)
        many = len(heads) > _MANY
        table.add_row(Text(title, style="bold"), Text(_numbers(heads, many), style="dim"))
        for site in sites:
            levels = site.sharpness(sequence=sequence).tolist()
            marks = "".join(map(_mark, levels)) if many else " ".join(_mark(x) * 2 for x in levels)
            layer = layer_of(site.name)
            name = shown(site.name) if layer is None else str(layer)
            table.add_row(name, Text(marks, style="cyan"))
        blocks += [table, ""]
    blocks.append(Paragraph(language.say("look.overview.legend"), style="dim"))
    return Group(*blocks)


def _mark(sharpness: float) -> str:
    """A shade, the lightest for even attention; a dot where no query has a choice."""
    return HIDDEN if math.isnan(sharpness) else shade(max(sharpness, _LIGHTEST))


def _numbers(heads: Sequence[int], many: bool) -> str:
    """The heads' numbers above their marks; where these stand close, every eighth."""
    if many:
        return "".join(str(head).ljust(8) for head in heads[::8])
    return " ".join(str(head).rjust(2) for head in heads)


def draw_heads(trace: Trace, site: Site, *, language: Language, sequence: int = 0) -> Table:
    """The heads of one site in numbers: how sharp, how far, how much rests on the first, what for.

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
    for head, role in enumerate(_roles(trace, site, sequence)):
        named = "" if role is None else f"{_role_name(role, language)} {role.score:.2f}"
        table.add_row(
            str(site.head_numbers[head]),
            f"{float(keys[head]):.1f}",
            f"{float(peak[head]):.2f}",
            f"{float(distance[head]):.1f}",
            f"{float(first[head]):.2f}",
            named,
        )
    return table


def layer_of(site: str) -> int | None:
    """The layer in the name of a site.

    >>> layer_of("decoder.2.cross"), layer_of("attention")
    (2, None)
    """
    found = re.search(r"\.(\d+)(?=\.|$)", site)
    return None if found is None else int(found[1])


def _groups(trace: Trace) -> dict[str, list[Site]]:
    groups: dict[str, list[Site]] = {}
    for site in trace:
        words = [word for word in site.name.split(".") if not word.isdecimal()]
        groups.setdefault(shown(" · ".join(words)), []).append(site)
    return groups


def _roles(trace: Trace, site: Site, sequence: int) -> list[Role | None]:
    if crosses(site):
        return [None] * site.n_heads
    words = trace.run.texts.get(site.keys)
    known = words is not None and sequence < len(words.tokens)
    tokens = words.tokens[sequence] if words is not None and known else None
    delimiters = _delimiters(trace, site.keys, sequence) if known else set()
    return list(roles(site, tokens, delimiters=delimiters, sequence=sequence))


def _delimiters(trace: Trace, text: str, sequence: int) -> set[int]:
    words = trace.run.texts.get(text)
    if words is None or not words.labels:
        return set()
    marks = {".", ",", ";", ":", "!", "?", "。", "，", "、", "；", "：", "！", "？"}
    special = ("[", "<")
    return {
        int(token)
        for token, shown in zip(words.tokens[sequence], words.labels[sequence], strict=True)
        if shown.strip("␣") in marks or (shown.startswith(special) and shown.endswith(("]", ">")))
    }


def _title(name: str, language: Language) -> str:
    say = language.say
    return {
        "head": say("look.column.head"),
        "keys": say("look.column.keys"),
        "peak": say("look.column.peak"),
        "distance": say("look.column.distance"),
        "first": say("look.column.first"),
    }[name]


def _role_name(role: Role, language: Language) -> str:
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
        "sink": say("look.role.sink"),
        "mixed": say("look.role.mixed"),
    }[role.role]
