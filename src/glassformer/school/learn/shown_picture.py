"""A picture of a chapter inside a notebook."""

from importlib.resources import files

from rich.console import Console

from glassformer.languages import Language
from glassformer.school.learn.picture_html import picture_markup
from glassformer.school.learn.picture_terminal import draw_picture
from glassformer.school.learn.pictures import draw


class ShownPicture:
    """A picture, computed anew; a notebook draws it, elsewhere it is text."""

    def __init__(self, name: str, language: Language) -> None:
        self.picture, self.language = draw(name, language), language

    def _repr_html_(self) -> str:
        markup = picture_markup(self.picture, language=self.language)
        return f'<div class="glassformer-picture"><style>{_style()}</style>{markup}</div>'

    def __repr__(self) -> str:
        console = Console(width=100, no_color=True, legacy_windows=False, force_jupyter=False)
        with console.capture() as captured:
            console.print(draw_picture(self.picture, language=self.language))
        return captured.get().rstrip()


def show_picture(name: str, language: str = "en") -> ShownPicture:
    """The picture of a chapter by its name, as the last line of a cell.

    >>> show_picture("causal")
    ■ · · · · ·
    ■ ■ · · · ·
    ■ ■ ■ · · ·
    ■ ■ ■ ■ · ·
    ■ ■ ■ ■ ■ ·
    ■ ■ ■ ■ ■ ■
    """
    return ShownPicture(name, Language(language))


def _style() -> str:
    """The style of the book for this picture alone: nested, its root the picture's own element."""
    style = files("glassformer.school.learn").joinpath("book.css").read_text("utf-8")
    return f".glassformer-picture {{\n{style.replace(':root', '&')}\n}}"
