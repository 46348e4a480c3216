"""Pictures in the terminal."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.languages import Language
from glassformer.render.marks import SHADES
from glassformer.render.terminal.columns import Beside
from glassformer.render.terminal.heat_map import draw_heat
from glassformer.render.terminal.matrix import draw_scores, draw_weights
from glassformer.render.terminal.steps import draw_steps
from glassformer.school.learn.bars import Bars, draw_bars
from glassformer.school.learn.choices import Choices, draw_choices
from glassformer.school.learn.image_map import ImageMap, draw_image_map
from glassformer.school.learn.merges import Merges, draw_merges
from glassformer.school.learn.picture import Album, Flow, Matrix, Picture, Row, Stage, Steps
from glassformer.school.learn.timeline import Timeline, draw_timeline


def draw_picture(picture: Picture, *, language: Language) -> RenderableType:
    """A picture as something that rich can print."""
    match picture:
        case Row(pictures):
            return Beside(*(draw_picture(each, language=language) for each in pictures), gap=4)
        case Steps(row, tokens):
            return draw_steps(row, tokens, language=language)
        case Flow():
            return _flow(picture)
        case Bars():
            return draw_bars(picture)
        case Album(pictures):
            parts: list[RenderableType] = []
            for name, each in pictures:
                parts += ["", Text(name, style="bold cyan"), draw_picture(each, language=language)]
            return Group(*parts[1:])
        case Choices():
            return draw_choices(picture)
        case Merges():
            return draw_merges(picture, language=language)
        case ImageMap():
            return draw_image_map(picture)
        case Timeline():
            return draw_timeline(picture)
        case Matrix():
            return _matrix(picture)


def _matrix(picture: Matrix) -> RenderableType:
    match picture.kind:
        case "scores":
            return draw_scores(picture.values, picture.rows, picture.columns, title=picture.title)
        case "weights" if picture.columns:
            return draw_weights(picture.values, picture.rows, picture.columns, title=picture.title)
        case "weights":
            drawing: RenderableType = draw_heat(
                picture.values, picture.rows, [""] * picture.values.shape[1]
            )
        case "mask":
            lines = (" ".join("■" if cell else "·" for cell in row) for row in picture.values)
            drawing = Text("\n".join(lines), style="cyan", no_wrap=True)
        case "waves":
            lines = ("".join(_depth(cell) for cell in row) for row in picture.values.tolist())
            drawing = Text("\n".join(lines), style="cyan", no_wrap=True)
    return Group(Text(picture.title, style="bold"), drawing) if picture.title else drawing


def _depth(wave: float) -> str:
    shades = " " + SHADES
    return shades[min(int((wave + 1) / 2 * len(shades)), len(shades) - 1)] * 2


def _flow(flow: Flow) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        grid.add_column(no_wrap=True)
    for stage in flow.stages:
        arrow = f"→ {stage.operation}" if stage.operation else ""
        name = _stage_name(stage)
        grid.add_row(Text(arrow or name, style="" if arrow else "bold"), *_shape(stage))
    return Group(Text(flow.title, style="bold"), grid) if flow.title else grid


def _stage_name(stage: Stage) -> str:
    return stage.name


def _shape(stage: Stage) -> tuple[Text, Text]:
    letters = Text(f"({', '.join(stage.letters.split())})", style="dim")
    return letters, Text(f"({', '.join(map(str, stage.shape))})", style="cyan")
