"""Heads made to play a role are recognised, with and without a sink beside it."""

import pytest
import torch

import glassformer as gf
from glassformer.analysis.head_roles import roles
from glassformer.tracing import record

L = 40
BIG = 40.0


def build_site(scores: torch.Tensor, *, causal: bool = True):
    """A site whose scores are these: q picks rows of the identity, k is the matrix itself."""
    H = len(scores)
    q = torch.eye(L).expand(1, H, L, L)
    return record(
        q,
        scores.transpose(1, 2)[None],
        torch.zeros(1, H, L, 3),
        mask=gf.Causal() if causal else None,
        scale=1.0,
    )


def pattern(name: str, tokens: torch.Tensor) -> torch.Tensor:
    scores = torch.zeros(L, L)
    ahead = torch.arange(L) - torch.arange(L)[:, None]
    same = tokens[None] == tokens[:, None]
    after = torch.zeros(L, L, dtype=torch.bool)
    after[:, 1:] = same[:, :-1]
    where = {
        "previous": ahead == -1,
        "next": ahead == 1,
        "self": ahead == 0,
        "duplicate": same & (ahead < 0),
        "induction": after & (ahead <= 0),
        "delimiter": (tokens == 7).expand(L, L),
        "distant": ahead < -18,
        "sink": (torch.arange(L) == 0).expand(L, L),
        "broad": torch.zeros(L, L, dtype=torch.bool),
    }
    return scores + BIG * where[name]


def text() -> torch.Tensor:
    """A text that says everything twice, with a mark after every tenth word."""
    tokens = torch.arange(100, 100 + L // 2).repeat(2)
    tokens[9::10] = 7
    return tokens


@pytest.mark.parametrize(
    "name", ["previous", "self", "duplicate", "induction", "delimiter", "broad", "sink"]
)
def test_a_head_made_for_a_role_is_named_by_it(name: str) -> None:
    tokens = text()
    (role,) = roles(build_site(pattern(name, tokens)[None]), tokens, delimiters=[7])
    assert role.role == name, role
    assert role.score > 0.5


def test_looking_ahead_needs_no_causal_mask() -> None:
    tokens = text()
    (role,) = roles(build_site(pattern("next", tokens)[None], causal=False), tokens)
    assert role.role == "next"


@pytest.mark.parametrize("name", ["previous", "duplicate", "induction"])
def test_a_sink_hides_no_role(name: str) -> None:
    """Four fifths of the attention rest on the first token; the rest still has a role."""
    tokens = text()
    scores = pattern(name, tokens)
    scores[:, 0] = BIG + 1.5
    (role,) = roles(build_site(scores[None]), tokens, delimiters=[7])
    assert role.sink > 0.6
    assert role.role == name, role


def test_noise_has_no_role() -> None:
    torch.manual_seed(0)
    (role,) = roles(build_site(3 * torch.randn(1, L, L)), text(), delimiters=[7])
    assert role.role == "mixed", role


def test_every_head_gets_its_own() -> None:
    tokens = text()
    names = ["previous", "self", "duplicate"]
    found = roles(build_site(torch.stack([pattern(n, tokens) for n in names])), tokens)
    assert [role.role for role in found] == names
    assert [role.layer_head for role in found] == [("attention", h) for h in range(3)]


def test_without_tokens_nothing_is_said_of_words() -> None:
    (role,) = roles(build_site(pattern("previous", text())[None]))
    assert role.role == "previous"
    assert not {"duplicate", "induction", "delimiter"} & set(role.scores)


def test_a_long_text_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores do not depend on the parts, and whoever waits can give up between them."""
    tokens = text()
    torch.manual_seed(1)
    made = [pattern(name, tokens) for name in ("previous", "induction", "broad")]
    site = build_site(torch.stack([*made, torch.randn(L, L)]))
    at_once = roles(site, tokens, delimiters=[7])
    monkeypatch.setattr("glassformer.analysis.head_roles._PART_CELLS", 3 * 4 * L)
    shares: list[float] = []
    in_parts = roles(site, tokens, delimiters=[7], report=shares.append)
    assert len(shares) == 13 and shares == sorted(shares) and shares[-1] == 1.0
    for one, other in zip(at_once, in_parts, strict=True):
        assert one.role == other.role
        assert other.scores == pytest.approx(one.scores, rel=1e-5, abs=1e-6)
