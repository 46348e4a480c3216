"""Every snippet of every chapter runs, from top to bottom, and prints what the chapter shows.

Without the import hook: some snippets show the sentences of errors.
"""

import ast
import contextlib
import io

import pytest
import torch

from glassformer.languages import CODES, Language
from glassformer.school.learn import chapter_names, read_chapter
from glassformer.school.learn.blocks import Snippet

pytestmark = pytest.mark.plain


@pytest.fixture(autouse=True)
def one_thread():
    """The tensors are tiny: several threads would only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


PRINTED = {}  # by syntax: snippets of two languages that differ in comments alone run once


def run_all(codes):
    """What each snippet prints, one after the other."""
    key = tuple(ast.dump(ast.parse(code)) for code in codes)
    if key not in PRINTED:
        namespace, printed = {}, []
        for code in codes:
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(code, "snippet", "exec"), namespace)
            printed.append(out.getvalue().rstrip("\n"))
        PRINTED[key] = printed
    return PRINTED[key]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", chapter_names())
def test_a_chapter_prints_what_it_shows(name, code):
    snippets = [b for b in read_chapter(name, Language(code)).blocks if isinstance(b, Snippet)]
    assert snippets
    printed = run_all([snippet.code for snippet in snippets])
    for snippet, out in zip(snippets, printed, strict=True):
        assert out == snippet.output, snippet.code
