"""Beam search against exhaustive search, greedy search, and itself one prompt at a time."""

import itertools

import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.generation import beam_search, generate_tokens
from glassformer.models import Config, Decoder, Output, Positions, build

V, STOP = 5, 4


def model(family: str = "decoder", kind: str = "rotary") -> torch.nn.Module:
    config = Config(
        family=family,
        vocab_size=V,
        dim=8,
        n_layers=1,
        n_heads=2,
        max_len=16,
        positions=Positions(kind=kind),
        output=Output(tied=False),
    )
    built = build(config).double().eval()
    for parameter in built.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.7)
    return built


def exhaustive(decoder, prompt: list[int], max_new_tokens: int, penalty: float) -> list[tuple]:
    """Every text that ends in the stop token within max_new_tokens, scored one by one."""
    found = []
    for n in range(max_new_tokens):
        for text in itertools.product(range(STOP), repeat=n):
            whole = torch.tensor([[*prompt, *text, STOP]])
            with torch.no_grad():
                log_p = decoder(whole[:, :-1]).log_softmax(-1)[0, len(prompt) - 1 :]
            total = log_p.gather(1, whole[0, len(prompt) :, None]).sum().item()
            found.append((total / (n + 1) ** penalty, text))
    return sorted(found, reverse=True)


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_full_beam_finds_the_best_of_all(penalty: float, seed: int) -> None:
    torch.manual_seed(seed)
    decoder = model()
    best = exhaustive(decoder, [1, 2], 4, penalty)[:3]
    (found,) = beam_search(
        decoder,
        [[1, 2]],
        max_new_tokens=4,
        beams=V**4,
        stop=[STOP],
        length_penalty=penalty,
        n_best=3,
        early=False,
    )
    assert [text.tokens for text in found] == [text for _, text in best]
    assert [text.score for text in found] == pytest.approx([score for score, _ in best], abs=1e-9)


@pytest.mark.parametrize("kind", ["learned", "rotary", "relative"])
def test_one_beam_is_greedy(kind: str) -> None:
    decoder, prompts = model(kind=kind), [[1, 2, 3], [0], [3, 1]]
    for stop in ((), (STOP,)):
        found = beam_search(decoder, prompts, max_new_tokens=8, beams=1, stop=stop)
        greedy = generate_tokens(decoder, prompts, max_new_tokens=8, stop=stop)
        assert [list(texts[0].tokens) for texts in found] == greedy


@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_unequal_prompts_as_one_by_one(family: str) -> None:
    written = model(family)
    prompts, sources = [[1, 2, 3], [0], [3, 1]], [[1, 2], [3, 0, 1, 2], [2]]
    options = {"max_new_tokens": 6, "beams": 3, "stop": [STOP], "n_best": 2}
    both = family == "encoder_decoder"
    together = beam_search(written, prompts, **options, source=sources if both else None)
    for prompt, source, found in zip(prompts, sources, together, strict=True):
        (alone,) = beam_search(written, [prompt], **options, source=[source] if both else None)
        assert [t.tokens for t in alone] == [t.tokens for t in found]
        assert [t.score for t in alone] == pytest.approx([t.score for t in found], abs=1e-9)


def test_log_probabilities_are_the_models() -> None:
    decoder = model()
    (found,) = beam_search(decoder, [[2]], max_new_tokens=5, beams=4, n_best=4)
    assert found == sorted(found, reverse=True)
    for text in found:
        whole = torch.tensor([[2, *text.tokens]])
        with torch.no_grad():
            log_p = decoder(whole[:, :-1]).log_softmax(-1)[0]
        total = log_p.gather(1, whole[0, 1:, None]).sum().item()
        assert text.log_probability == pytest.approx(total, abs=1e-9)


def test_more_beams_than_tokens_are_no_trouble() -> None:
    (found,) = beam_search(model(), [[2]], max_new_tokens=2, beams=40, n_best=25)
    assert len({text.tokens for text in found}) == len(found) == V**2


@pytest.mark.plain
def test_refusals() -> None:
    for beams, n_best in ((0, 1), (2, 3), (2, 0)):
        with pytest.raises(ConfigError, match=f"got beams={beams}, n_best={n_best}"):
            beam_search(model(), [[1]], max_new_tokens=2, beams=beams, n_best=n_best)


def test_an_ended_search_finds_nothing_more_while_its_neighbours_go_on() -> None:
    """Even where a far better text comes later: `early` ended it."""

    class Scripted(Decoder):
        """Token 3 stops; row 0's prompt ends at once, row 1's never does."""

        def forward(self, tokens, **_):
            logits = torch.full((*tokens.shape, 5), -9.0)
            logits[..., 4] = 0.0
            logits[..., 3] = torch.where(tokens == 0, 0.1, -30.0)
            logits[..., 1] = torch.where(tokens == 4, 9.0, -9.0)
            logits[..., 3] = torch.where(tokens == 1, 9.0, logits[..., 3])
            return logits

    scripted = Scripted(
        Config(family="decoder", vocab_size=5, dim=4, n_layers=1, n_heads=1, max_len=9)
    )
    options = {"max_new_tokens": 6, "beams": 1, "stop": [3]}
    (alone,) = beam_search(scripted, [[0]], **options)
    together = beam_search(scripted, [[0], [2]], **options)
    assert [text.tokens for text in alone] == [text.tokens for text in together[0]] == [()]
    assert together[1][0].tokens == (4, 1)


def plain_beams(read, beams: int, max_new_tokens: int, n_best: int) -> list[tuple[float, tuple]]:
    """The same search without any cache: every text is read anew at every step."""
    live, finished = [(0.0, ())], []
    for _ in range(max_new_tokens):
        longer = [
            (score + float(log_p), (*text, token))
            for score, text in live
            for token, log_p in enumerate(read(text).log_softmax(-1))
        ]
        longer.sort(reverse=True)
        best = longer[: 2 * beams]
        finished += [(s / len(t), t[:-1]) for s, t in best[:beams] if t[-1] == STOP]
        live = [(s, t) for s, t in best if t[-1] != STOP][:beams]
        if len(finished) >= beams:
            break
    else:
        if len(finished) < n_best:
            finished += [(s / len(t), t) for s, t in live]
    return sorted(finished, reverse=True)[:n_best]


@pytest.mark.parametrize("kind", ["learned", "rotary", "alibi", "relative"])
@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
@pytest.mark.parametrize("seed", [1, 2])
def test_beams_over_a_cache_are_beams_without(family: str, kind: str, seed: int) -> None:
    torch.manual_seed(seed)
    written, prompt, source = model(family, kind), [1, 3], [2, 0, 3]

    @torch.no_grad()
    def read(text: tuple) -> torch.Tensor:
        tokens = torch.tensor([[*prompt, *text]])
        if family == "decoder":
            return written(tokens)[0, -1]
        return written(torch.tensor([source]), tokens)[0, -1]

    for beams in (2, 3):
        expected = plain_beams(read, beams, 9, 2)
        (found,) = beam_search(
            written,
            [prompt],
            source=[source] if family == "encoder_decoder" else None,
            max_new_tokens=9,
            beams=beams,
            stop=[STOP],
            n_best=2,
        )
        assert [text.tokens for text in found] == [text for _, text in expected]
        assert [text.score for text in found] == pytest.approx([s for s, _ in expected], abs=1e-9)


def test_what_must_never_be_written_is_not() -> None:
    (found,) = beam_search(model(), [[1]], max_new_tokens=5, beams=3, n_best=3, never=[0, 2, STOP])
    assert {token for text in found for token in text.tokens} <= {1, 3}


@pytest.mark.parametrize("family", ["decoder", "encoder_decoder"])
def test_an_observer_sees_every_candidate_and_changes_nothing(family: str) -> None:
    built = model(family)
    source = None if family == "decoder" else [[1, 2, 3], [2]]
    options = {"max_new_tokens": 5, "beams": 3, "n_best": 3, "stop": [STOP], "source": source}
    plain = beam_search(built, [[1], [2]], **options)
    steps: list[list] = []
    assert beam_search(built, [[1], [2]], **options, observe=steps.append) == plain
    for b, best in enumerate(plain):
        beams: list[tuple[tuple[int, ...], float]] = [((), 0.0)]  # as the candidates tell them
        finished = []
        for step in steps:
            mine = [each for each in step if each.prompt == b]
            scores = [each.log_probability for each in mine]
            assert scores == sorted(scores, reverse=True)
            kept = [each for each in mine if each.fate == "kept"]
            assert [each.beam for each in kept] == list(range(len(kept)))
            worst = min((each.log_probability for each in kept), default=0.0)
            pruned = [each for each in mine if each.fate == "pruned"]
            assert all(each.log_probability <= worst or each.token == STOP for each in pruned)
            finished += [
                (beams[each.parent][0], each.log_probability)
                for each in mine
                if each.fate == "finished" and each.token == STOP
            ]
            beams = [((*beams[e.parent][0], e.token), e.log_probability) for e in kept]
        for text in best:
            assert (text.tokens, text.log_probability) in [*finished, *beams]
