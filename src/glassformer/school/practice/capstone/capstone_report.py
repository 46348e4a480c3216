"""The result of a capstone run as data."""

from dataclasses import dataclass

from glassformer.school.practice.capstone.parts import Track
from glassformer.school.practice.report import Finding, GradingReport

YOURS, LENT, WRONG = "yours", "lent", "wrong"


@dataclass(frozen=True, kw_only=True, slots=True)
class PartResult:
    """One part: whose it is, and where it is the learner's, how it was graded."""

    part: str
    state: str  # YOURS, LENT or WRONG
    report: GradingReport | None = None


@dataclass(frozen=True, slots=True)
class Writing:
    """What a model wrote, as text and as tokens."""

    text: str
    tokens: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CapstoneReport:
    """What became of the parts, and what the model joined from them wrote.

    A wrong part is not in that model: the library lends it. `with_wrong` is what the model writes
    with the wrong parts in place, where it writes at all.
    """

    track: Track
    text: str
    model: str  # whose weights: the name of a shipped model, or a folder
    parts: tuple[PartResult, ...]
    library: Writing
    joined: Writing | None
    stop: Finding | None  # why there is no joined text
    with_wrong: Writing | None
    isolation: tuple[str, ...]
    seconds: float

    def select(self, state: str) -> list[str]:
        """The parts in a state, by name."""
        return [each.part for each in self.parts if each.state == state]

    @property
    def own_parts(self) -> list[str]:
        """The learner's own parts of a model that runs; none, where it does not."""
        return self.select(YOURS) if self.is_equal else []

    @property
    def is_equal(self) -> bool:
        """Whether the joined model wrote what the library's model wrote, token by token."""
        return self.joined is not None and self.joined.tokens == self.library.tokens

    @property
    def is_complete(self) -> bool:
        """Whether every part is the learner's own, and the model they make is right."""
        return self.is_equal and not self.select(LENT) and not self.select(WRONG)
