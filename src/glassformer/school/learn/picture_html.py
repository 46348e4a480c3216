"""Pictures in the book: tables whose cells have colours, boxes with arrows, bars."""

import math
from html import escape

from glassformer.languages import Language
from glassformer.render.numbers import format_number, format_numbers, format_weights
from glassformer.school.learn.choices import Choices, tabulate_choices
from glassformer.school.learn.image_map import ImageMap, image_map_markup
from glassformer.school.learn.merges import Merges, format_piece, merge_heads
from glassformer.school.learn.picture import Album, Bars, Flow, Matrix, Picture, Row, Steps
from glassformer.school.learn.timeline import Timeline, timeline_markup


def picture_markup(picture: Picture, *, language: Language) -> str:
    """A picture as HTML."""
    match picture:
        case Row(pictures):
            inner = "".join(picture_markup(each, language=language) for each in pictures)
            return f'<div class="beside">{inner}</div>'
        case Steps():
            return _steps(picture, language)
        case Flow():
            return _flow(picture)
        case Bars():
            return _bars(picture)
        case Album(pictures):
            shown = (
                f"{_title(name)}{picture_markup(each, language=language)}"
                for name, each in pictures
            )
            return f"<div>{''.join(shown)}</div>"
        case Choices():
            return _choices(picture)
        case Merges():
            return _merges(picture, language)
        case ImageMap():
            return image_map_markup(picture)
        case Timeline():
            return timeline_markup(picture)
        case Matrix():
            return _matrix(picture)


def _matrix(picture: Matrix) -> str:
    values = picture.values.double().tolist()
    flat = [cell for row in values for cell in row]
    match picture.kind:
        case "scores":
            shown = format_numbers(flat)
            shares = [0.0] * len(flat)
        case "weights" if picture.columns:
            shown, shares = format_weights(flat), flat
        case "waves":
            shown, shares = [""] * len(flat), [(cell + 1) / 2 for cell in flat]
        case _:
            shown, shares = [""] * len(flat), flat
    cells = iter(zip(shown, shares, strict=True))
    head = "".join(f"<th>{escape(name)}</th>" for name in picture.columns)
    lines = [f'<tr><td class="corner"></td>{head}</tr>'] if picture.columns else []
    for i, row in enumerate(values):
        name = f"<th>{escape(picture.rows[i])}</th>" if picture.rows else ""
        drawn = "".join(_cell(*next(cells)) for _ in row)
        lines.append(f"<tr>{name}{drawn}</tr>")
    kind = "numbers" if picture.columns else f"marks {picture.kind}"
    return f'<div>{_title(picture.title)}<table class="{kind}">{"".join(lines)}</table></div>'


def _cell(shown: str, share: float) -> str:
    style = f' style="--share: {share:.3f}"' if math.isfinite(share) and share > 0 else ""
    return f"<td{style}>{escape(shown)}</td>"


def _steps(picture: Steps, language: Language) -> str:
    row, say = picture.row, language.say
    heads = [
        say("column.key"),
        "q · k",
        f"÷ {format_number(1 / row.scale)}",
        "exp",
        say("column.weight"),
        "v",
    ]
    assert row.v is not None and row.out is not None
    columns = [
        format_numbers(row.dots.tolist()),
        format_numbers(row.scores.tolist()),
        format_weights(row.exps.tolist()),
        format_weights(row.weights.tolist()),
    ]
    lines = ["".join(f"<th>{escape(head)}</th>" for head in heads)]
    for i, token in enumerate(picture.tokens):
        numbers = [column[i] for column in columns]
        cells = "".join(f"<td>{number}</td>" for number in numbers[:3])
        cells += _cell(numbers[3], float(row.weights[i]))
        cells += f"<td>[{', '.join(format_numbers(row.v[i].tolist()))}]</td>"
        lines.append(f"<th>{escape(token)}</th>{cells}")
    out = ", ".join(format_numbers(row.out.tolist()))
    lines.append(f'<th>{escape(say("step.sum"))}</th><td colspan="4"></td><td>[{out}]</td>')
    return f'<table class="numbers">{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


def _flow(flow: Flow) -> str:
    parts = []
    for stage in flow.stages:
        if stage.operation:
            parts.append(f'<div class="operation">↓ {escape(stage.operation)}</div>')
        shape = " × ".join(map(str, stage.shape))
        name = f"<b>{escape(stage.name)}</b> " if stage.name else ""
        letters = escape(", ".join(stage.letters.split()))
        parts.append(f'<div class="tensor">{name}<span>({letters})</span> {shape}</div>')
    return f'<div class="flow">{_title(flow.title)}{"".join(parts)}</div>'


def _bars(picture: Bars) -> str:
    most = picture.full or max(length for _, length, _ in picture.bars)
    lines = "".join(
        f'<tr><th>{escape(name)}</th><td><i style="width: {max(12 * length / most, 0):.2f}em"></i> '
        f"{escape(written_)}</td></tr>"
        for name, length, written_ in picture.bars
    )
    return f'<div>{_title(picture.title)}<table class="bars">{lines}</table></div>'


def _merges(picture: Merges, language: Language) -> str:
    lines = ["".join(f"<th>{escape(head)}</th>" for head in merge_heads(language))]
    lines.append(f"<td>0</td><td></td><td></td><td>{len(picture.text.encode())}</td>")
    for n, merge in enumerate(picture.merges, start=1):
        cells = (n, format_piece(merge.piece), merge.count, merge.n_tokens)
        lines.append("".join(f"<td>{escape(str(cell))}</td>" for cell in cells))
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    pieces = " ".join(f"<code>{escape(format_piece(piece))}</code>" for piece in picture.pieces)
    return f'<div><table class="numbers">{table}</table><p>{pieces}</p></div>'


def _choices(picture: Choices) -> str:
    heads, rows = tabulate_choices(picture)
    lines = ['<td class="corner"></td>' + "".join(f"<th>{escape(head)}</th>" for head in heads)]
    for token, row in zip(picture.tokens, rows, strict=True):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f"<th>{escape(token)}</th>{cells}")
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div>{_title(f"{picture.text} …")}<table class="numbers">{table}</table></div>'


def _title(title: str) -> str:
    return f'<div class="picture-title">{escape(title)}</div>' if title else ""
