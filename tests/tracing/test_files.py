"""A trace as a file: what is saved comes back, and damage is told in a sentence."""

import json
import random
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import TraceError
from glassformer.tracing import Run, Trace, record, tensor_file, watch
from letter_models import letter_model


@pytest.fixture
def trace() -> Trace:
    both = letter_model("encoder_decoder")
    with watch(both, outputs=True) as seen:
        gf.translate(both, "hello", beams=2, max_new_tokens=4)
        gf.translate(both, "you", beams=1, max_new_tokens=3)
    return seen


def test_what_is_saved_comes_back(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "cat.trace")
    again = Trace.load(tmp_path / "cat.trace")
    assert [p.name for p in tmp_path.iterdir()] == ["cat.trace"]
    assert again.model == trace.model
    assert again.names == trace.names and len(again.runs) == 2
    for mine, other in zip(trace.runs, again.runs, strict=True):
        assert list(mine.sites) == list(other.sites)
        for name, site in mine.sites.items():
            copy = other.sites[name]
            for operand in ("q", "k", "v", "out"):
                assert_same(getattr(copy, operand), getattr(site, operand))
            assert (copy.queries, copy.keys, copy.scale) == (site.queries, site.keys, site.scale)
            # Kept operands are strided, read ones are not, and not every BLAS rounds both alike.
            assert_close(copy.weights(), site.weights(), 1e-6)
        for text, words in mine.texts.items():
            assert_same(other.texts[text].tokens, words.tokens)
            assert other.texts[text].labels == words.labels


@pytest.mark.parametrize("rows", ["last", [0, 2]])
def test_selected_rows_come_back(rows: object, tmp_path: Path) -> None:
    both = letter_model("encoder_decoder")
    with watch(both, rows=rows) as seen:
        gf.translate(both, "hello", beams=1, max_new_tokens=4)
    seen.save(tmp_path / "some.trace")
    again = Trace.load(tmp_path / "some.trace")
    for site, copy in zip(seen, again, strict=True):
        assert (copy.rows, copy.n_rows, copy.queries) == (site.rows, site.n_rows, site.queries)
        assert again.labels(copy.queries) == seen.labels(site.queries)


MASKS = [
    None,
    gf.Causal(),
    gf.Causal() & ~gf.Prefix(torch.tensor([1, 0])) | gf.Window(left=1, right=0),
    gf.Padding(torch.tensor([5, 2])),
    gf.Documents(torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 2, 2]])),
    gf.Explicit(torch.rand(5, 5) > 0.3),
]
BIASES = [
    None,
    gf.ALiBi.of_heads(2),
    gf.RelativeBuckets(torch.randn(8, 2), max_distance=9) + gf.ALiBi.of_heads(2),
    gf.ExplicitBias(torch.randn(5, 5)),
]


@pytest.mark.parametrize("mask", range(len(MASKS)))
@pytest.mark.parametrize("bias", range(len(BIASES)))
def test_every_mask_and_bias_comes_back(mask: int, bias: int, tmp_path: Path) -> None:
    q, k, v = torch.randn(3, 2, 2, 5, 4).unbind(0)
    site = record(q, k, v, mask=MASKS[mask], bias=BIASES[bias], softcap=3.0, scale=0.7)
    Trace([Run({"attention": site})]).save(tmp_path / "one.trace")
    copy = Trace.load(tmp_path / "one.trace")["attention"]
    for sequence in range(2):
        assert_same(copy.weights(sequence=sequence), site.weights(sequence=sequence))


def test_dtypes_are_kept(tmp_path: Path) -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).bfloat16().unbind(0)
    Trace([Run({"attention": record(q, k, v)})]).save(tmp_path / "one.trace")
    site = Trace.load(tmp_path / "one.trace")["attention"]
    assert site.q.dtype == torch.bfloat16
    assert_close(site.weights().sum(-1), torch.ones(2, 5), 1e-5)


def test_chosen_heads_and_rows_are_kept(tmp_path: Path) -> None:
    q, k, v = torch.randn(3, 1, 2, 5, 4).unbind(0)
    site = record(q, k, v, mask=gf.Causal())
    site.heads, site.rows, site.n_rows = (1, 6), (0, 2, 4, 6, 8), 9
    Trace([Run({"attention": site})]).save(tmp_path / "some.trace")
    copy = Trace.load(tmp_path / "some.trace")["attention"]
    assert (copy.heads, copy.rows, copy.n_rows) == (site.heads, site.rows, site.n_rows)
    assert_same(copy.weights(head=6), site.weights(head=6))
    assert_same(copy.distance(), site.distance())


def seen(family: str, text: str, **changes) -> Trace:
    model = letter_model(family, **changes)
    with watch(model, outputs=True) as trace:
        model(torch.tensor([model.tokenizer.encode(text)]))
    return trace


def test_runs_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "many.trace"
    texts = ["hello", "you", "there"]
    traces = [seen("decoder", text) for text in texts]
    for trace in traces:
        trace.append(path)
    assert [p.name for p in tmp_path.iterdir()] == ["many.trace"]
    again = Trace.load(path)
    assert [run.texts["tokens"].labels[0] for run in again.runs] == [[*text] for text in texts]
    for n, trace in enumerate(traces):
        for site in again.only(n):
            assert_same(site.q, trace[site.name].q)
            assert_same(site.weights(), trace[site.name].weights())
    assert again.names == traces[-1].names
    again.append(path)
    assert len(Trace.load(path).runs) == 6


def test_a_file_stays_as_it_is_where_appending_fails(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "many.trace"
    seen("decoder", "hello").save(path)
    before = path.read_bytes()
    with pytest.raises(TraceError, match=r"of n_layers=2, this trace of n_layers=3. Save it under"):
        seen("decoder", "you", n_layers=3).append(path)

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tensor_file, "save_file", full)
    with pytest.raises(TraceError, match=r"could not be written: .*No space left"):
        seen("decoder", "you").append(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["many.trace"]


@pytest.mark.plain
def test_a_header_changed_anywhere_is_a_sentence_or_a_trace(tmp_path: Path) -> None:
    """Whatever stands in the place of a value: nothing else than a TraceError comes out."""
    path = tmp_path / "cat.trace"
    seen("decoder", "hello").save(path)
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["glassformer.trace"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    refused = 0
    for place in places(header):
        for value in (None, 7, "x", [], {}, [[1]], {"kind": "Causal"}):
            changed = replaced(header, place, value)
            save_file(tensors, path, metadata={"glassformer.trace": json.dumps(changed)})
            try:
                trace = Trace.load(path)
            except TraceError as error:
                assert "\n" not in str(error)
                refused += 1
            else:
                assert isinstance(trace.model, dict) and repr(trace)
    assert refused > 100


def places(value, before=()):
    """Every place in a nest of dicts and lists; of a list, the first."""
    yield before
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else enumerate(value[:1])
        for key, each in inside:
            yield from places(each, (*before, key))


def replaced(value, place, new):
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = replaced(value[place[0]], place[1:], new)
    return copy


def test_truncation_anywhere_is_refused(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "cat.trace"
    trace.save(path)
    content = path.read_bytes()
    for offset in [0, *random.Random(0).sample(range(len(content) - 1), k=100)]:
        path.write_bytes(content[:offset])
        with pytest.raises(TraceError) as caught:
            Trace.load(path)
        assert "\n" not in str(caught.value)


@pytest.mark.plain
def test_refusals(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"must be a file; .*nowhere.trace is not there"):
        Trace.load(tmp_path / "nowhere.trace")
    save_file({"a": torch.zeros(1)}, tmp_path / "other.trace")
    with pytest.raises(TraceError, match=r"must be a trace of glassformer; it is another file"):
        Trace.load(tmp_path / "other.trace")
    save_file({}, tmp_path / "new.trace", metadata={"glassformer.trace": '{"version": 9}'})
    with pytest.raises(TraceError, match=r"version 9; this glassformer reads version 1"):
        Trace.load(tmp_path / "new.trace")
    save_file({}, tmp_path / "odd.trace", metadata={"glassformer.trace": '{"version": 1}'})
    with pytest.raises(
        TraceError, match=r"odd.trace is damaged: The header must have the setting model"
    ):
        Trace.load(tmp_path / "odd.trace")
    for name in ("other", "new", "odd"):
        before = (tmp_path / f"{name}.trace").read_bytes()
        with pytest.raises(TraceError, match=r"another file|version 9|damaged"):
            trace.append(tmp_path / f"{name}.trace")
        assert (tmp_path / f"{name}.trace").read_bytes() == before
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match=r"could not be written"):
        trace.save(tmp_path / "file" / "cat.trace")


def changed(path: Path, change) -> None:
    """The file with another header, its tensors as they were or changed, too."""
    with safe_open(path, "pt") as file:
        header = json.loads(file.metadata()["glassformer.trace"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(header, tensors)
    save_file(tensors, path, metadata={"glassformer.trace": json.dumps(header)})


def site_header(header: dict) -> dict:
    return header["runs"][0]["sites"][0]


@pytest.mark.plain
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda h, t: h.update(runs=3), r"runs\.0 must be a table of settings; got 3"),
        (lambda h, t: site_header(h).update(scale="x"), r"scale must be a number; got 'x'"),
        (lambda h, t: site_header(h).update(scale=float("nan")), r"scale must be a finite number"),
        (lambda h, t: site_header(h).update(name=3), r"sites\.0\.name must be a string; got 3"),
        (
            lambda h, t: site_header(h).update(heads=[0, 0]),
            r"heads of .* must name 2 of them, each",
        ),
        (
            lambda h, t: site_header(h).update(rows=[10**9, 1, 2, 3, 4]),
            r"rows of .* must lie among the",
        ),
        (lambda h, t: site_header(h).update(colour=1), r"has no setting runs\.0\.sites\.0\.colour"),
        (lambda h, t: site_header(h).update(mask={"kind": "Tea"}), r"'Tea' is no kind of mask"),
        (
            lambda h, t: site_header(h).update(mask={"kind": "Causal", "offset": "x"}),
            r"Causal\.offset cannot be 'x'",
        ),
        (
            lambda h, t: site_header(h).update(
                mask={"kind": "Explicit", "tensor": {"tensor": "no"}}
            ),
            r"Explicit\.tensor names the tensor 'no', which is missing",
        ),
        (lambda h, t: t.update({first(t, "/v"): torch.zeros(2, 2, 1, 4)}), r"k and v must have"),
        (lambda h, t: t.update({first(t, "/out"): torch.zeros(1)}), r"out must fit q and v"),
        (lambda h, t: t.pop(first(t, "/q")), r"the tensor '.*/q' is missing"),
        (lambda h, t: t.update({"0/tokens": torch.zeros(1, 1)}), r"must be whole numbers in rows"),
        (
            lambda h, t: h["runs"][0]["labels"].update(tokens=[["a"]]),
            r"'tokens' must have one label for each token",
        ),
        (lambda h, t: h["runs"][0]["refusals"].update(a=3), r"refusal of 'a' must be a text"),
    ],
)
def test_headers_that_do_not_fit(trace: Trace, tmp_path: Path, change, sentence: str) -> None:
    trace.save(tmp_path / "a.trace")
    changed(tmp_path / "a.trace", change)
    with pytest.raises(TraceError, match=rf"a.trace is damaged: .*{sentence}"):
        Trace.load(tmp_path / "a.trace")


def first(tensors: dict, end: str) -> str:
    return next(name for name in tensors if name.endswith(end))


@pytest.mark.plain
def test_a_header_that_is_nested_deeply(tmp_path: Path) -> None:
    deep = '{"version": 1, "model": ' + "[" * 5000 + "]" * 5000 + "}"
    save_file({}, tmp_path / "a.trace", metadata={"glassformer.trace": deep})
    with pytest.raises(TraceError, match=r"header of .*a.trace is not readable JSON: it is nested"):
        Trace.load(tmp_path / "a.trace")
