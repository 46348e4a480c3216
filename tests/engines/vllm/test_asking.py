"""Requests that ask are recorded, each as it asks; those beside them are not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import glassformer as gf
from closeness import assert_close
from engines.vllm.served_models import build_engine, close_engine, make_prompts
from glassformer.errors import RecordingWarning, TraceError
from glassformer.tracing.engines.vllm.recorder import EngineRecorder

PROMPTS = make_prompts()[4:10]  # the last two begin alike
N_TOKENS = 5


@pytest.fixture(scope="module")
def engine(folders: dict[str, Path]) -> Iterator[Any]:
    built = build_engine(folders["llama"], enforce_eager=True)
    yield built
    close_engine(built)


def serve(engine: Any, asked: list[dict[str, Any] | None]) -> list[list[int]]:
    from vllm import SamplingParams

    given = [{"prompt_token_ids": prompt} for prompt in PROMPTS]
    params = [
        SamplingParams(
            max_tokens=N_TOKENS,
            temperature=0.0,
            ignore_eos=True,
            detokenize=False,
            extra_args=each,
        )
        for each in asked
    ]
    engine.reset_prefix_cache()
    found = engine.generate(given, params, use_tqdm=False)
    return [list(each.outputs[0].token_ids) for each in found]


def ask(**options: Any) -> dict[str, Any]:
    return {"glassformer": "trace", **{f"glassformer_{n}": v for n, v in options.items()}}


def test_each_is_recorded_as_it_asks(
    engine: Any, folders: dict[str, Path], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = serve(engine, [None] * 6)
    heard: list[str | None] = []
    keep = EngineRecorder._keep

    def count(self: EngineRecorder, *args: Any) -> None:
        heard.append(self.request)
        keep(self, *args)

    monkeypatch.setattr(EngineRecorder, "_keep", count)
    asked = [None, ask(), {"other": 1}, ask(layers=[1], heads=[2], rows="last"), None, ask()]
    with gf.watch(engine, requests="asking") as trace:
        assert serve(engine, asked) == bare
    assert len(set(heard)) == 3 and None not in heard  # nothing else was copied
    runs = {tuple(run.texts["tokens"].tokens[0].tolist()): run for run in trace.runs}
    texts = [PROMPTS[i] + bare[i][:-1] for i in (1, 3, 5)]
    assert runs.keys() == set(map(tuple, texts))
    found = expected(folders["llama"], texts)
    for text, layers in zip(texts, found, strict=True):
        run = runs[tuple(text)]
        for name, site in run.sites.items():
            weights = layers[int(name.split(".")[1])][list(site.head_numbers)]
            assert_close(site.weights(), weights[:, site.query_positions], 1e-5)
    some = runs[tuple(texts[1])]
    assert list(some.sites) == ["decoder.1.self"]
    assert some.sites["decoder.1.self"].heads == (2,)
    assert some.sites["decoder.1.self"].shape[2] == N_TOKENS


def test_budget_ends_the_recording_and_not_the_request(engine: Any) -> None:
    bare = serve(engine, [None] * 6)
    # A token of one layer: q of 4 heads, k and v of 2, 64 numbers of 4 bytes each.
    room = (4 + 2 + 2) * 64 * 4 * (len(PROMPTS[0]) + 2)
    asked = [ask(budget=room, layers=[0]), ask(budget=100), None, None, None, ask()]
    with (
        pytest.warns(RecordingWarning, match="budget of 100 bytes"),
        gf.watch(engine, requests="asking") as trace,
    ):
        assert serve(engine, asked) == bare
    cut, empty, whole = trace.runs
    stop = len(PROMPTS[0]) + 2
    assert cut.sites["decoder.0.self"].shape[2:] == (stop, stop)
    assert cut.refusals == {f"tokens from {stop} on": f"the budget of {room} bytes was reached"}
    assert not empty.sites and "budget of 100 bytes" in str(empty.refusals)
    assert not whole.refusals


def test_bad_options_cost_the_recording_alone(engine: Any) -> None:
    asked = [ask(layers=[7]), ask(speed=3), {"glassformer": "all"}, None, None, ask(heads="1")]
    bare = serve(engine, [None] * 6)
    with (
        pytest.warns(RecordingWarning, match="could not record"),
        gf.watch(engine, requests="asking") as trace,
    ):
        assert serve(engine, asked) == bare
    reasons = sorted(why for run in trace.runs for why in run.refusals.values())
    assert [why.partition(" (")[0][:43] for why in reasons] == [
        "Layers, heads and rows must be lists of num",
        "Options of a recorded request are glassform",
        "This model has layers 0 … 1; got layers=[7]",
        'glassformer must be "trace" or "statistics"',
    ]


def test_requests_must_be_known(engine: Any) -> None:
    message = 'requests must be "all" or "asking"; got \'some\''
    with pytest.raises(TraceError, match=message), gf.watch(engine, requests="some"):  # type: ignore[arg-type]
        pass
