import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from glassformer.cli import main

ROOT = Path(__file__).parent.parent
READMES = ["README.md", "README.zh.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(name):
    return (ROOT / name).read_text("utf-8")


def blocks(name, kind):
    return [body for language, body in BLOCK.findall(text_of(name)) if language == kind]


def sessions(name):
    """Each command of the console blocks, with the pieces of output shown for it."""
    for block in blocks(name, "console"):
        for session in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = session.partition("\n")
            yield command, [piece.strip("\n") for piece in shown.split("\n…\n")]


def paths(name):
    """The files and folders in the map, from its indentation."""
    (folder_map,) = blocks(name, "")
    parents = []
    for line in folder_map.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [line.split()[0]]
        yield Path(*parents)


@pytest.mark.parametrize("name", READMES)
def test_every_snippet_runs(name):
    snippets = blocks(name, "python")
    assert snippets
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for snippet in snippets:
            exec(compile(snippet, name, "exec"), {})
    assert "head 3, query 999, key 900" in printed.getvalue()


@pytest.mark.parametrize("name", READMES)
def test_the_output_is_what_the_program_prints(name, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("GLASSFORMER_LANG", "en")
    found = list(sessions(name))
    assert found
    for command, pieces in found:
        program, *words = shlex.split(command)
        assert program == "glassformer"
        assert main(words) == 0
        printed = capsys.readouterr().out
        for piece in pieces:
            assert f"\n{piece}\n" in f"\n{printed}", piece


@pytest.mark.parametrize("name", READMES)
def test_the_map_is_the_tree(name):
    named = list(paths(name))
    for path in named:
        assert (ROOT / path).exists(), path
    packages = {file.parent for file in (ROOT / "src/glassformer").glob("*/__init__.py")}
    assert packages == {
        ROOT / path
        for path in named
        if path.parent == Path("src/glassformer") and (ROOT / path).is_dir()
    }


@pytest.mark.parametrize("name", READMES)
def test_it_fits_on_a_screen(name):
    assert len(text_of(name).splitlines()) <= 80


@pytest.mark.parametrize("name", [*READMES, "CONTRIBUTING.md"])
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\(([^)]+)\)", text_of(name)):
        assert (ROOT / target).exists(), target


def test_both_languages_have_the_same_parts():
    english, chinese = (text_of(name) for name in READMES)

    def shape(text):
        return re.findall(r"^(#+ |- |```\w*)", text, re.MULTILINE)

    assert shape(english) == shape(chinese)
    ours, theirs = (
        [re.sub(" *#.*", "", snippet) for snippet in blocks(name, "python")] for name in READMES
    )
    assert ours == theirs


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_every_make_target_exists(name):
    targets = set(re.findall(r"\bmake (\w+)", "".join(blocks(name, "sh"))))
    assert targets
    makefile = text_of("Makefile")
    assert all(f"\n{target}:" in makefile for target in targets)
