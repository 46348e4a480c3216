"""Every snippet of every chapter runs, from top to bottom, and prints what the chapter shows.

Without the import hook: some snippets show the sentences of errors.
"""

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


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("name", chapter_names())
def test_a_chapter_prints_what_it_shows(name, code):
    namespace = {}
    snippets = [b for b in read_chapter(name, Language(code)).blocks if isinstance(b, Snippet)]
    assert snippets
    for snippet in snippets:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(snippet.code, name, "exec"), namespace)
        assert printed.getvalue().rstrip("\n") == snippet.output, snippet.code
