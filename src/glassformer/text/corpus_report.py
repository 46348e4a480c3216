"""What was wrong with a corpus, and where: problems are counted, never dropped silently."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from glassformer.errors import DataError

Kind = Literal[
    "bad UTF-8",
    "null character",
    "empty",
    "blank",  # between paragraphs of plain text: reported, but not wrong
    "too long",
    "missing column",
    "invalid JSON",
    "missing field",
    "unknown label",
]
SHOWN = 20  # locations listed per problem


@dataclass(kw_only=True, slots=True)
class Problem:
    """How often a problem occurred, and where it occurred first."""

    count: int = 0
    places: list[tuple[str, int]] = field(default_factory=list)

    def __str__(self) -> str:
        by_file: dict[str, list[str]] = {}
        for file, line in self.places:
            by_file.setdefault(file, []).append(str(line))
        shown = "; ".join(
            f"{file} line{'s' if len(lines) > 1 else ''} {', '.join(lines)}"
            for file, lines in by_file.items()
        )
        return shown + (", …" if self.count > len(self.places) else "")


@dataclass(kw_only=True, slots=True)
class CorpusReport:
    """The lines read, the examples kept, and the problems by kind.

    >>> report = CorpusReport(n_lines=3, n_kept=2)
    >>> report.reject(2, ("empty", Path("train.en")))
    >>> print(report)
    2 examples of 3 lines
    1 empty: train.en line 2
    """

    n_lines: int = 0
    n_kept: int = 0
    n_bad: int = 0  # lines with at least one problem; aligned files count as one
    problems: dict[str, Problem] = field(default_factory=dict)

    def note(self, kind: Kind, path: Path, line: int) -> None:
        """Count a problem at a line of a file."""
        problem = self.problems.setdefault(kind, Problem())
        problem.count += 1
        if len(problem.places) < SHOWN:
            problem.places.append((str(path), line))

    def reject(self, line: int, *problems: tuple[Kind, Path]) -> None:
        """Count a skipped line, with its problems in each of its files."""
        self.n_bad += 1
        for kind, path in problems:
            self.note(kind, path, line)

    def count(self, kind: Kind) -> int:
        """The number of occurrences of a problem."""
        return self.problems[kind].count if kind in self.problems else 0

    def check(self, most_bad: float) -> None:
        """Reject a corpus with too large a share of bad lines, or without examples."""
        if self.n_bad > most_bad * self.n_lines:
            found = "; ".join(f"{p.count} {kind} ({p})" for kind, p in self.problems.items())
            raise DataError(
                f"At most {most_bad:.0%} of the lines may be bad; {self.n_bad} of {self.n_lines} "
                f"are: {found}. Fix the files, or raise most_bad."
            )
        if not self.n_kept:
            raise DataError(
                f"A corpus must have at least one example; {self.n_lines} lines gave 0."
            )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; `from_dict` reads them back."""
        return {
            "lines": self.n_lines,
            "kept": self.n_kept,
            "bad": self.n_bad,
            "problems": {
                kind: {"count": p.count, "first": [list(place) for place in p.places]}
                for kind, p in self.problems.items()
            },
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "CorpusReport":
        problems = {
            kind: Problem(count=p["count"], places=[(file, line) for file, line in p["first"]])
            for kind, p in plain["problems"].items()
        }
        return cls(
            n_lines=plain["lines"], n_kept=plain["kept"], n_bad=plain["bad"], problems=problems
        )

    def __str__(self) -> str:
        s = "" if self.n_kept == 1 else "s"
        lines = [f"{self.n_kept:,} example{s} of {self.n_lines:,} lines"]
        lines += [f"{p.count:,} {kind}: {p}" for kind, p in self.problems.items()]
        return "\n".join(lines)
