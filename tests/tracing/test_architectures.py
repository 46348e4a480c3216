"""The page of architectures: its counts are those of its rows, and tiny models bear it out."""

import re

import pytest

from tracing.watched_architectures import (
    ARCHITECTURES,
    NOT_THERE,
    OF_STEPS,
    PAGE,
    TOLERANCE,
    built,
    folder,
    forward_apart,
    generate_apart,
)

# Attention in bands: products are cut and moved, so that a row of scores is not one of keys.
REFUSED = {"led": {"encoder.0.self", "encoder.1.self"}}


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # theirs
def test_tiny_models_are_exact(name: str, implementation: str) -> None:
    """Outputs to the bit, and derived weights against those that eager attention returns."""
    try:
        model = built(name, implementation)
    except ValueError as error:
        assert NOT_THERE in str(error)
        assert _rows("Exact").get(folder(name), [""] * 3)[2] != "yes"
        return
    apart, trace = forward_apart(name, implementation)
    assert apart < TOLERANCE
    assert set(trace.run.refusals) == REFUSED.get(name, set())
    assert len(trace) > 0
    if model.can_generate():
        apart, trace = generate_apart(name, implementation)
        assert apart < OF_STEPS
    assert (folder(name) in _rows("Exact")) == (name not in REFUSED)


def test_counts_are_those_of_the_rows() -> None:
    counted = _counts()
    sections = {title: _rows(title) for title in _titles()}
    for title, rows in sections.items():
        kind = title[0].lower() + title[1:]
        assert counted[kind][0] == len(rows), title
        column = 4 if title == "Exact" else 2
        assert counted[kind][2] == sum(int(row[column]) for row in rows.values()), title
    assert counted["all"][0] == sum(len(rows) for rows in sections.values())
    assert counted["exact"][0] >= 200


def test_every_row_is_exact_or_has_a_reason() -> None:
    names = [name for title in _titles() for name in _rows(title)]
    assert len(names) == len(set(names))
    for title in _titles():
        for name, row in _rows(title).items():
            if title == "Exact":
                assert "yes" in row[2:4], name
                assert int(row[4]) == int(row[5]) + int(row[6]) > 0, name
            else:
                assert row[3], name


def _titles() -> list[str]:
    return re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE)


def _rows(title: str) -> dict[str, list[str]]:
    section = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    cells = [_cells(line) for line in section.splitlines() if line.startswith("| ")]
    return {row[0]: row for row in cells[1:]}


def _counts() -> dict[str, list[int]]:
    section = PAGE.read_text().partition("\n## ")[0]
    cells = [_cells(line) for line in section.splitlines() if line.startswith("| ")]
    return {row[0]: [int(cell) for cell in row[1:]] for row in cells[1:]}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
