"""A learner's folder: one file per exercise, a README, solutions once they are earned."""

import errno
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from rich.cells import cell_len

from glassformer.errors import ConfigError
from glassformer.languages import CODES, Language, flag
from glassformer.render.paragraph import wrap_text
from glassformer.school.practice.exercise import Exercise
from glassformer.storage import special_kind, write_atomically

_WIDTH = 88  # of the comment at the top of a file
_MOST_READ = 1 << 20  # bytes of a file
DEFAULT = Path("glassformer-practice")


class Workspace:
    """The folder of a learner's exercises."""

    def __init__(self, folder: Path, language: Language, class_folder: Path | None = None) -> None:
        self.folder, self.language, self.class_folder = folder, language, class_folder

    def file(self, exercise: Exercise) -> Path:
        """The learner's file for an exercise, whether it is there or not."""
        return self.folder / exercise.file_name

    def solution_file(self, exercise: Exercise) -> Path:
        return self.folder / "solutions" / exercise.file_name

    @property
    def command(self) -> str:
        """What to type to come back here."""
        return f"glassformer practice{self.options}"

    @property
    def options(self) -> str:
        """What must be said again: folders, and a language that the surroundings do not say."""
        elsewhere = "" if self.folder == DEFAULT else f" --dir {quote(str(self.folder))}"
        if self.class_folder is not None:
            elsewhere += f" --class {quote(str(self.class_folder))}"
        return elsewhere + flag(self.language, os.environ)

    def create(self, exercises: Sequence[Exercise]) -> None:
        """Write what is not there yet; nothing that is there is touched."""
        say = self.language.say
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            readme = self.folder / "README.md"
            if not os.path.lexists(readme):
                text = say("practice.readme", total=len(exercises), command=self.command)
                write_atomically(readme, text)
            for exercise in exercises:
                if not os.path.lexists(self.file(exercise)):
                    write_atomically(self.file(exercise), self.initial_text(exercise))
        except OSError as error:
            reason = error.strerror or str(error)
            message = say("practice.error.folder", folder=self.folder, reason=reason)
            raise ConfigError(message) from None

    def initial_text(self, exercise: Exercise) -> str:
        """An exercise as it starts: the task as a comment, then the stub."""
        brief = exercise.brief(self.language.code)
        lines = [brief.title, ""]
        for paragraph in brief.text.split("\n\n"):
            lines += [*_wrap_paragraph(paragraph), ""]
        comment = "\n".join(f"# {line}".rstrip() for line in lines[:-1])
        return f"{comment}\n\n{exercise.stub}"

    def read(self, exercise: Exercise) -> str | None:
        """What the learner's file says; None where there is no file that can be read as text."""
        file = self.file(exercise)
        try:
            if special_kind(file) is not None or file.stat().st_size > _MOST_READ:
                return None
            return file.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            return None

    def save(self, exercise: Exercise, text: str, *, was: str | None) -> Path | None:
        """Write the learner's text; `was` is what its writer believes is in the file.

        Where the file says something else, it was changed elsewhere: that version moves to old/,
        and its path is returned.
        """
        file, kept = self.file(exercise), None
        found = self.read(exercise)
        if os.path.lexists(file) and (found is None or found not in (was, text)):
            kept = self._move_to_old(file)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text)
        return kept

    def has_try(self, exercise: Exercise) -> bool:
        """Whether the learner has changed what the exercise started from, in either language."""
        text = self.read(exercise)
        initial = [Workspace(self.folder, Language(code)).initial_text(exercise) for code in CODES]
        return text is not None and text not in initial

    def reset(self, exercise: Exercise) -> Path | None:
        """Write an exercise again; moves the learner's version to old/ and returns its path."""
        file, kept = self.file(exercise), None
        if os.path.lexists(file):
            kept = self._move_to_old(file)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(file, self.initial_text(exercise))
        return kept

    def reveal(self, exercise: Exercise) -> Path:
        """Write the solution beside the exercises; a file that was changed there goes to old/."""
        path = self.solution_file(exercise)
        path.parent.mkdir(exist_ok=True)
        if os.path.lexists(path) and not _contains(path, exercise.solution):
            self._move_to_old(path)
        write_atomically(path, exercise.solution)
        return path

    def _move_to_old(self, file: Path) -> Path:
        """Move a file to old/; what is no file stays where it is."""
        kind = special_kind(file)
        if kind is not None:
            raise OSError(errno.EEXIST, f"it is {kind}, not a regular file")
        kept = _free_path(self.folder / "old" / file.name)
        kept.parent.mkdir(exist_ok=True)
        return file.replace(kept)


def _contains(file: Path, text: str) -> bool:
    return special_kind(file) is None and file.exists() and file.read_bytes() == text.encode()


def _wrap_paragraph(paragraph: str) -> list[str]:
    """A paragraph in lines; what is indented stays as it is."""
    if paragraph.startswith("    "):
        return textwrap.dedent(paragraph).splitlines()
    if paragraph.startswith(("- ", "* ")):
        return [line for item in paragraph.splitlines() for line in wrap_text(item, _WIDTH)]
    text = paragraph.replace("\n", "" if cell_len(paragraph[-1:]) == 2 else " ")
    return wrap_text(text, _WIDTH)


def _free_path(path: Path) -> Path:
    """This path, or the first like it that nothing has yet."""
    n, found = 1, path
    while os.path.lexists(found):
        n += 1
        found = path.with_stem(f"{path.stem}-{n}")
    return found
