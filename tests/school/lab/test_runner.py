"""Running: a seed gives the same numbers, nothing is left changed, and wrong wishes are told."""

import pytest
import torch

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.models.checkpoints import save
from glassformer.school.lab import NAMES, SECONDS, ExperimentTexts, find_experiment
from glassformer.school.lab.measurement import fit_exponent, measure_peak_bytes, measure_seconds
from glassformer.school.lab.progress import iterate_with_progress, sub_progress
from glassformer.school.lab.runner import ExperimentReport, run_experiment
from letter_models import letter_model


@pytest.mark.parametrize("name", ["scale", "masks", "dropout", "errors", "positions-picture"])
def test_one_seed_gives_the_same_numbers_and_another_gives_others(name):
    first, again = (run_experiment(name, size="quick", seed=3).runs for _ in range(2))
    assert first == again
    if name != "positions-picture":  # where nothing is drawn at random
        assert run_experiment(name, size="quick", seed=4).runs != first


@pytest.mark.parametrize("name", ["scale", "masks", "low-precision", "dropout", "errors"])
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_a_verdict_does_not_hang_on_a_seed(name, seed):
    assert run_experiment(name, size="quick", seed=seed).verdict.outcome == "holds"


def test_seeds_threads_and_gradients_stay_as_they_were(monkeypatch):
    threads = torch.get_num_threads()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    with torch.no_grad():
        run_experiment("masks", size="quick")
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads


def test_an_interruption_leaves_nothing_changed():
    threads = torch.get_num_threads()
    state = torch.get_rng_state()

    def interrupt(share):
        if share > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_experiment("dropout", size="quick", progress=interrupt)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_progress_goes_from_nothing_to_all_and_never_back():
    for name in ("scale", "smoothing"):
        shares = []
        run_experiment(name, size="quick", progress=shares.append, n_seeds=1)
        assert shares == sorted(shares)
        assert shares[0] == 0 and shares[-1] == 1 and len(shares) > 3


def test_parts_of_progress():
    shares = []
    for thing, own in iterate_with_progress("ab", sub_progress(shares.append, 0.5, 1.0)):
        own(1.0)
        assert thing in "ab"
    assert shares == [0.5, 0.75, 0.75, 1.0]


def test_costs_are_counted():
    assert fit_exponent([1, 2, 4], [5, 40, 320]) == pytest.approx(3)
    x = torch.rand(1000)
    assert 4000 <= measure_peak_bytes(lambda: x + 1) < 4100  # the 1 needs a few, too
    # The first is there until the second is.
    assert 8000 <= measure_peak_bytes(lambda: (x + 1) * 2) < 8100
    assert measure_peak_bytes(lambda: None) == 0
    calls = []
    ways = {"one": lambda: calls.append(1), "two": lambda: calls.append(2)}
    taken = measure_seconds(ways, repeats=3)
    assert list(taken) == ["one", "two"] and min(taken.values()) >= 0
    assert calls == [1, 1, 2, 2, 1, 2, 1, 2, 1, 2]  # twice each beforehand, then in turns


@pytest.mark.plain
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("scales", r"one of linear, .*, errors, .*; got 'scales'\. Did you mean scale\?"),
        ("Masks", r"got 'Masks'\. Did you mean masks\?"),
        ("low precision", r"Did you mean low-precision\?"),
        ("kv-cache", r"Did you mean cache\?"),
        ("xyzzy", r"got 'xyzzy'\.$"),
    ],
)
def test_a_wrong_name_is_told_with_the_nearest(name, sentence):
    with pytest.raises(ConfigError, match=sentence):
        find_experiment(name)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({"size": "huge"}, "The size must be quick or full; got 'huge'"),
        ({"seed": -1}, "The seed must be at least 0 and below 2⁶³; got -1"),
        ({"n_seeds": 0}, "n_seeds must be at least 1; got 0"),
        ({"model": "folder"}, "Only the experiment heads takes a saved model; got model='folder'"),
    ],
)
def test_wrong_wishes_are_told(wish, sentence):
    with pytest.raises(ConfigError, match=sentence):
        run_experiment("scale", **wish)


@pytest.mark.plain
def test_heads_wants_a_decoder_of_moderate_size(tmp_path):
    save(letter_model("encoder"), tmp_path / "encoder")
    with pytest.raises(ConfigError, match=r"needs a decoder; .*encoder holds one of encoder"):
        run_experiment("heads", size="quick", model=str(tmp_path / "encoder"))
    save(letter_model("decoder", n_layers=33, n_heads=8, dim=16), tmp_path / "large")
    with pytest.raises(ConfigError, match=r"at most 256 heads; .*large has 264"):
        run_experiment("heads", size="quick", model=str(tmp_path / "large"))


def test_heads_of_a_saved_model(tmp_path):
    model = letter_model("decoder")
    save(model, tmp_path / "decoder")
    report = run_experiment("heads", size="quick", model=str(tmp_path / "decoder"))
    config = model.config
    (numbers,) = report.runs  # nothing is trained: one run
    assert len(numbers["heads"]) == config.n_layers * config.n_heads
    assert report.verdict.outcome == "fails"  # untrained: nothing repeats, nothing breaks
    assert report.chart(Language("zh")).panels


def test_every_experiment_states_its_time_and_its_texts():
    for name in NAMES:
        experiment = find_experiment(name)
        assert experiment.name == name
        assert 0 < SECONDS[name]["quick"] <= SECONDS[name]["full"] <= 180
        assert (
            ExperimentTexts(name, Language("en")).title
            != ExperimentTexts(name, Language("zh")).title
        )


def test_a_report_is_made_again_from_its_numbers():
    report = run_experiment("scale", size="quick")
    numbers = {**report.runs[0], "variance_plain": [1.0] * 5}
    doctored = ExperimentReport(
        experiment=report.experiment,
        size="quick",
        seeds=(0,),
        seconds=1.0,
        runs=(numbers,),
        verdict=report.experiment.judge(numbers),
    )
    assert doctored.verdict.outcome == "fails"
    assert doctored.as_dict(Language("en"))["outcome"] == "fails"
