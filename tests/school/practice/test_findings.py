"""Which sentence fits a difference: names that are missing, and a list of another length."""

import pytest

from glassformer.languages import Language
from glassformer.school.practice.comparison import find_difference
from glassformer.school.practice.findings import difference_finding
from glassformer.school.practice.plain_values import to_plain


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ({"a": 1, "b": 2}, {}, "result must contain a, b; yours is empty."),
        ({"a": 1, "b": 2}, {"a": 1}, "result must contain a, b; yours contains a."),
        ([1, 2, 3], [1, 2], "result must have 3 entries; yours has 2."),
        ([1, 2], [], "result must have 2 entries; yours has 0."),
    ],
)
def test_what_is_missing_is_said_in_a_whole_sentence(right, wrong, said):
    found = find_difference(to_plain(right), to_plain(wrong))
    assert found is not None
    finding = difference_finding(found, hidden=False)
    assert Language("en").say(finding.key, **finding.values) == said
    assert "{" not in Language("zh").say(finding.key, **finding.values)
