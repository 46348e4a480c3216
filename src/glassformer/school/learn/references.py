"""What chapters and questions refer to: experiments, exercises, pictures, questions, code.

Experiments and exercises live in places that this one does not import: whoever draws a chapter says
which of their names are known. A name that is not known is shown as plain text.
"""

import importlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from glassformer.languages import CODES, Language
from glassformer.school.learn.blocks import Reference
from glassformer.school.learn.chapters import chapter_names, read_chapters
from glassformer.school.learn.questions import read_questions

TITLES = {  # the key of what each kind is called
    "lab": "learn.reference.lab",
    "practice": "learn.reference.practice",
    "chapter": "learn.reference.chapter",
    "code": "learn.reference.code",
}
COMMANDS = {
    "lab": "glassformer lab {name}",
    "practice": "glassformer practice {name}",
    "chapter": "glassformer learn {name}",
    "code": "{name}",
}


@dataclass(frozen=True, slots=True)
class Known:
    """The names that can be called: of experiments and of exercises."""

    lab: Collection[str] = field(default_factory=frozenset)
    practice: Collection[str] = field(default_factory=frozenset)

    def has(self, kind: str, name: str) -> bool:
        """Whether something of this kind goes by the name.

        >>> Known(lab=["scale"]).has("lab", "scale"), Known().has("chapter", "masks")
        (True, True)
        """
        match kind:
            case "lab":
                return name in self.lab
            case "practice":
                return name in self.practice
            case "picture":
                from glassformer.school.learn.pictures import PICTURES  # needs torch

                return name in PICTURES
            case "quiz":
                return any(question.name == name for question in read_questions())
            case "chapter":
                return name in chapter_names()
            case "code":
                return _can_import(name)
        return False


def unknown_references(known: Known) -> list[str]:
    """Every reference of a chapter or a question to something that is not there, and where.

    Pass all names of experiments and exercises; the list must be empty.
    """
    return [
        f"{where}: {kind} {name}"
        for where, kind, name in _all_references()
        if not known.has(kind, name)
    ]


def format_reference(kind: str, names: Sequence[str], known: Known, language: Language) -> str:
    """How a reference reads: with the command where there is one, else the names alone.

    >>> known, english = Known(lab=["scale"], practice=["scores"]), Language("en")
    >>> format_reference("lab", ["scale"], known, english)
    'glassformer lab scale'
    >>> format_reference("practice", ["scores", "scaling"], known, english)
    'scores (glassformer practice scores), scaling'
    """
    shown = []
    for name in names:
        command = COMMANDS[kind].format(name=name) if known.has(kind, name) else ""
        if command and len(names) == 1:
            shown.append(command)
        else:
            shown.append(f"{name} ({command})" if command and not shown else name)
    return language.say("list.comma").join(shown)


def _all_references() -> Iterator[tuple[str, str, str]]:
    for code in CODES:
        for chapter in read_chapters(Language(code)):
            for block in chapter.blocks:
                if isinstance(block, Reference):
                    for name in block.names:
                        yield f"{code}/{chapter.name}", block.kind, name
    for question in read_questions():
        for kind, name in question.proofs:
            yield f"question {question.name}", kind, name


def _can_import(path: str) -> bool:
    """Whether `package.module.thing` can be imported and looked up."""
    parts = path.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False
