import contextlib
import io
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READMES = ["README.md", "README.zh.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(name):
    return (ROOT / name).read_text("utf-8")


def blocks(name, kind):
    return [body for language, body in BLOCK.findall(text_of(name)) if language == kind]


def paths(name):
    """The files and folders in the map, from its indentation."""
    (folder_map,) = blocks(name, "")
    parents = []
    for line in folder_map.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [line.split()[0]]
        yield Path(*parents)


@pytest.mark.parametrize("name", READMES)
def test_the_code_prints_what_is_shown(name):
    (snippet,), (shown,) = blocks(name, "python"), blocks(name, "text")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(snippet, name, "exec"), {})
    assert printed.getvalue() == shown


def test_the_code_needs_only_what_the_readme_installs():
    """`pip install -e .` has no extras: none of their packages may be imported by the code."""
    (snippet,) = blocks("README.md", "python")
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    packages = {
        re.split("[^A-Za-z0-9_-]", each)[0].replace("-", "_")
        for extra in project["optional-dependencies"].values()
        for each in extra
    }
    optional = sorted(packages - {"glassformer", "numpy"})
    # An import of one of these fails, as it would where it was never installed.
    block = f"import sys\nfor name in {optional!r}: sys.modules[name] = None\n"
    subprocess.run([sys.executable, "-c", block + snippet], check=True, capture_output=True)


def test_the_picture_is_what_the_program_prints():
    script = runpy.run_path(str(ROOT / "docs/readme_picture.py"))
    drawn = (ROOT / "docs/pictures/look.svg").read_text("utf-8")
    assert drawn == script["draw"](script["printed_lines"]())
    assert len(drawn) < 300_000
    for name in READMES:
        assert "](docs/pictures/look.svg)" in text_of(name)


def test_the_map_is_the_tree():
    named = list(paths("CONTRIBUTING.md"))
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
    assert len(text_of(name).splitlines()) <= 60


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
