"""Every claim of the chapters with what carries it: run `python docs/claims.py` after a change.

    python docs/claims.py           docs/claims/NN-name.toml ─→ docs/claims.md
    python docs/claims.py masks     brings a list in step with its chapter; fill in each `by = []`

A file of docs/claims lists every sentence of one English chapter, in order and word by word: of
paragraphs, items, captions, and rows of tables (their cells joined by " | "). A sentence that could
be false names in `by` what would fail or would have to be wrong too:

    test:tests/layers/test_norm.py::test_rms_norm_is_torchs     a test, by file and function
    snippet:3                       the third snippet of the chapter prints it
    experiment:scale.gradient       a check of an experiment
    exercise:causal_mask            the checks of an exercise
    reference:Vaswani 2017, §3.5    a work in the reading list of chapter 16

A sentence that states nothing that could be tested has a `kind` instead.
"""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from glassformer.languages import Language
from glassformer.school.learn import chapter_names, read_chapter
from glassformer.school.learn.blocks import (
    Items,
    Line,
    Prose,
    Reference,
    Snippet,
    Table,
    plain_text,
    read_line,
)

ROOT = Path(__file__).resolve().parents[1]
COURSE = ROOT / "src/glassformer/course"
LISTS = ROOT / "docs/claims"
ENGLISH = Language("en")
KINDS = {
    "definition": "says what a word or a sign means",
    "instruction": "tells the reader what to do",
    "advice": "says what is wise, not what is so",
    "question": "asks",
    "transition": "says what the text does next, or where it continues",
    "example": "is a made-up case or a picture in words",
    "entry": "is a line of the reading list",
}
CHAPTERS_WITHOUT_LIST: tuple[str, ...] = ()  # new chapters whose sentences are not yet listed

_FULL_STOP = "\ue000"  # in place of one that does not end a sentence
_ABBREVIATION = re.compile(r"\b(al|cf|e\.g|i\.e)\.(?=\s)")
_END = re.compile(r"(?<=[.?!])\s+|(?<=[.?!][\"”’)])\s+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it is listed: with what carries it, or with its kind."""

    says: str
    by: tuple[str, ...] = ()
    kind: str = ""


def read_sentences(chapter: str) -> list[str]:
    """The sentences of an English chapter, in order, without code and formulas of their own."""
    found: list[str] = []
    for block in read_chapter(chapter, ENGLISH).blocks:
        match block:
            case Prose(line):
                found += split_sentences(line)
            case Items(lines):
                for line in lines:
                    found += split_sentences(line)
            case Table(_, rows):
                found += [" | ".join(map(plain_text, row)) for row in rows]
            case Reference(_, _, caption) if caption:
                found += split_sentences(read_line(caption))
            case _:
                pass
    return found


def split_sentences(line: Line) -> list[str]:
    """The sentences of a line; code and formulas have no ends of sentences.

    >>> split_sentences(read_line("Use `a. b` (Ba et al. 2016). **Why?** See below:"))
    ['Use a. b (Ba et al. 2016).', 'Why?', 'See below:']
    """
    text = "".join(
        plain_text((piece,)).replace(".", _FULL_STOP)
        if piece.kind in ("code", "formula")
        else plain_text((piece,))
        for piece in line
    )
    text = _ABBREVIATION.sub(lambda found: found[0].replace(".", _FULL_STOP), text)
    return [part.replace(_FULL_STOP, ".") for part in _END.split(text.strip())]


def listed_chapters() -> dict[str, Path]:
    """The file of each chapter that has one."""
    files = {path.stem.partition("-")[2]: path for path in sorted(LISTS.glob("*.toml"))}
    return {name: files[name] for name in chapter_names() if name in files}


def read_list(file: Path) -> list[Sentence]:
    """The sentences of one file."""
    entries = tomllib.loads(file.read_text("utf-8"))["sentence"]
    return [
        Sentence(each["says"], tuple(each.get("by", ())), each.get("kind", "")) for each in entries
    ]


def write_list(chapter: str) -> Path:
    """Bring a chapter's list in step with its sentences; what was classed stays so.

    New sentences have nothing that carries them, which `find_problems` refuses.
    """
    file = LISTS / f"{read_chapter(chapter, ENGLISH).number:02}-{chapter}.toml"
    known = {each.says: each for each in read_list(file)} if file.exists() else {}
    entries = [_format_entry(known.get(says, Sentence(says))) for says in read_sentences(chapter)]
    file.write_text("\n".join(entries), "utf-8")
    return file


def _format_entry(sentence: Sentence) -> str:
    quoted = [json.dumps(carrier, ensure_ascii=False) for carrier in sentence.by]
    value = f"by = [{', '.join(quoted)}]"
    if len(value) > 100:
        value = "\n".join(["by = [", *(f"  {carrier}," for carrier in quoted), "]"])
    if sentence.kind:
        value = f'kind = "{sentence.kind}"'
    return f"[[sentence]]\nsays = {json.dumps(sentence.says, ensure_ascii=False)}\n{value}\n"


def find_problem(carrier: str, chapter: str) -> str:
    """Why a carrier does not carry: it does not exist. Empty where it does.

    >>> find_problem("snippet:99", "why")
    'chapter why has 4 snippets'
    """
    kind, _, name = carrier.partition(":")
    match kind:
        case "test":
            file, _, function = name.partition("::")
            if function not in _functions(file):
                return f"{file} has no function {function}"
        case "snippet":
            n = sum(isinstance(b, Snippet) for b in read_chapter(chapter, ENGLISH).blocks)
            if not 1 <= int(name) <= n:
                return f"chapter {chapter} has {n} snippets"
        case "experiment":
            experiment, _, check = name.partition(".")
            if check not in _checks(experiment):
                return f"experiment {experiment} has no check {check}"
        case "exercise":
            if not any(COURSE.glob(f"exercises/[0-9]*[0-9]_{name}/checks.py")):
                return f"there is no exercise {name} with checks"
        case "reference":
            if name.partition(",")[0] not in works():
                return f"{name.partition(',')[0]} is not in the reading list"
        case _:
            return "a carrier is a test, snippet, experiment, exercise or reference"
    return ""


@cache
def _functions(file: str) -> frozenset[str]:
    path = ROOT / file
    if not path.is_file() or not file.startswith("tests/"):
        return frozenset()
    body = ast.parse(path.read_text("utf-8")).body
    found = (node.name for node in body if isinstance(node, ast.FunctionDef))
    return frozenset(name for name in found if name.startswith("test_"))


@cache
def _checks(experiment: str) -> frozenset[str]:
    file = COURSE / "experiments" / f"{experiment.replace('-', '_')}.toml"
    if not file.is_file():
        return frozenset()
    return frozenset(tomllib.loads(file.read_text("utf-8"))["en"]["checks"])


@cache
def works() -> dict[str, str]:
    """The address of each work in the reading list, by first author and year."""
    tables = [b for b in read_chapter("mastery", ENGLISH).blocks if isinstance(b, Table)]
    found = {}
    for row in tables[-1].rows:
        words = plain_text(row[0])
        year = re.search(r"(?:19|20)\d\d[a-z]?", words)
        assert year is not None
        (address,) = [piece.target for piece in row[0] if piece.target]
        found[f"{words.split()[0].strip(',')} {year[0]}"] = address
    return found


def write_page() -> str:
    """The page docs/claims.md."""
    lists = {name: read_list(file) for name, file in listed_chapters().items()}
    n_claims = sum(bool(each.by) for sentences in lists.values() for each in sentences)
    n_all = sum(map(len, lists.values()))
    lines = [
        "# Claims of the chapters, and what carries them",
        "",
        "Made by `python docs/claims.py` from the files in `docs/claims/`, which class every",
        f"sentence of the English chapters: {n_all:,} sentences, of which {n_claims} state",
        "something that could be false. Each names a test that would fail, a snippet of the text",
        "whose output the tests compare, a check of an experiment, the checks of an exercise, or a",
        "cited work. The other sentences define, ask, instruct, advise, lead on, give a made-up",
        "example, or list a work.",
        "",
    ]
    number = 0
    for name, sentences in lists.items():
        chapter = read_chapter(name, ENGLISH)
        file = f"../src/glassformer/course/chapters/en/{listed_chapters()[name].stem}.md"
        lines += [f"## {chapter.number}. [{plain_text(chapter.title)}]({file})", ""]
        for each in sentences:
            if each.by:
                number += 1
                carriers = "; ".join(_link(carrier, file) for carrier in each.by)
                lines.append(f"{number}. {_escape(each.says)}  \n    – {carriers}")
        lines.append("")
    return "\n".join(lines)


def _link(carrier: str, chapter_file: str) -> str:
    kind, _, name = carrier.partition(":")
    match kind:
        case "test":
            file, _, function = name.partition("::")
            return f"test [`{function}`](../{file})"
        case "snippet":
            return f"[snippet {name}]({chapter_file})"
        case "experiment":
            experiment, _, check = name.partition(".")
            file = f"{experiment.replace('-', '_')}.py"
            place = f"../src/glassformer/school/lab/experiments/{file}"
            return f"experiment [{experiment}]({place}), check `{check}`"
        case "exercise":
            (folder,) = COURSE.glob(f"exercises/[0-9]*[0-9]_{name}")
            place = f"../src/glassformer/course/exercises/{folder.name}/checks.py"
            return f"exercise [`{name}`]({place})"
        case _:
            work, comma, place = name.partition(",")
            return f"[{work}]({works()[work]}){comma}{place}"


def _escape(text: str) -> str:
    return re.sub(r"([\\*_`\[\]<>|$])", r"\\\1", text)


def find_problems() -> Iterator[str]:
    """What is wrong with the lists, one sentence each."""
    files = listed_chapters()
    for name in chapter_names():
        if name not in files:
            if name not in CHAPTERS_WITHOUT_LIST:
                yield f"{name}: no file in docs/claims"
            continue
        sentences = read_list(files[name])
        listed, there = [each.says for each in sentences], read_sentences(name)
        yield from (f"{name}: not listed: {says}" for says in there if says not in listed)
        yield from (f"{name}: not in the chapter: {says}" for says in listed if says not in there)
        if sorted(listed) == sorted(there) and listed != there:
            yield f"{name}: sentences are not in the order of the chapter"
        for each in sentences:
            if bool(each.by) == bool(each.kind) or each.kind not in ("", *KINDS):
                yield f"{name}: needs either `by` or one of {', '.join(KINDS)}: {each.says}"
            for carrier in each.by:
                if problem := find_problem(carrier, name):
                    yield f"{name}: {carrier}: {problem}"


def main() -> None:
    """Write the page, or the lists of the chapters that are named."""
    if names := sys.argv[1:]:
        for name in names:
            write_list(name)
        return
    if problems := list(find_problems()):
        sys.exit("\n".join(problems))
    (ROOT / "docs/claims.md").write_text(write_page(), "utf-8")


if __name__ == "__main__":
    main()
