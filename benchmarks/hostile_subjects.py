"""Every kind of file that glassformer reads: a small sample of it, how it is read, what must hold.

`load` raises a GlassformerError or returns a value; `check` says whether that is the value of the
undamaged sample ("equal") or another valid one ("other"), and raises AssertionError for neither.
"""

import bz2
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import math
import random
import re
import struct
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import glassformer as gf
from glassformer.analysis.affine_lens import AffineLens, Fingerprint
from glassformer.models.checkpoints import load
from glassformer.text import Corpus, CorpusReport, TokenTable, learn_tokenizer
from glassformer.text.store import write_table
from hostile_models import (
    LINES,
    TEXT,
    check_model,
    check_tokenizer,
    load_model,
    load_tokenizer,
    make_bert,
    make_llama,
    make_t5,
    saving,
    sign_own,
    write_byte_pairs,
    write_gguf,
    write_marian,
    write_shards,
    write_tokenizer,
    write_word_pieces,
)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A kind of file; `weight` is its share of the cases."""

    make: Callable[[Path], None]
    load: Callable[[Path], Any]
    check: Callable[[Any, Any, int | None], str]
    sign: Callable[[dict[str, Any]], dict[str, Any]] | None = None  # hashes made right again
    weight: int = 10
    writes: bool = False  # whether reading may change the folder


# ── traces, tokens, texts, recipes ──


def _make_trace(folder: Path) -> None:
    model = make_llama()
    with gf.watch(model, outputs=True) as trace, torch.no_grad():
        model(torch.tensor([model.tokenizer.encode(TEXT)]))
    trace.save(folder / "a.trace")


def _load_trace(folder: Path) -> Any:
    trace = gf.Trace.load(folder / "a.trace")
    found = []
    for run in trace.runs:
        for site in run.sites.values():
            found.append((site.name, site.weights(sequence=0).shape, site.entropy().shape))
            site.arithmetic(site.head_numbers[0], 0, 0)
    with contextlib.redirect_stdout(io.StringIO()):
        trace.show()
    return found, hashlib.sha256((folder / "a.trace").read_bytes()).hexdigest()


def _check_trace(value: Any, expected: Any, _: int | None) -> str:
    for name, shape, entropy in value[0]:
        assert len(shape) == 3 and entropy == shape[:2], f"{name} has weights of {shape}"
    return "equal" if value == expected else "other"


def _make_lens(folder: Path) -> None:
    random_state = torch.Generator().manual_seed(0)
    lens = AffineLens(
        kind="tuned",
        stack="decoder",
        borders=["decoder.0.mlp", "decoder.1.mlp"],
        matrices=torch.randn(2, 6, 6, generator=random_state),
        biases=torch.randn(2, 6, generator=random_state),
        fingerprint=Fingerprint(n_layers=2, dim=6, vocab_size=40, unembedding="0" * 64),
        plain=[2.0, 1.0],
        mapped=[1.0, 0.5],
    )
    lens.save(folder / "a.lens")


def _load_lens(folder: Path) -> Any:
    lens = AffineLens.load(folder / "a.lens")
    maps = [lens.map(border, torch.ones(3, lens.matrices.shape[-1])) for border in lens.borders]
    return str(lens), repr(lens), [each.tolist() for each in maps]


def _check_lens(value: Any, expected: Any, _: int | None) -> str:
    assert all(len(rows) == 3 for rows in value[2]), "a map of another shape"
    return "equal" if value == expected else "other"


def _make_changes(folder: Path) -> None:
    model = make_llama()
    with gf.watch(model, residual=True) as trace, torch.no_grad():
        model(torch.tensor([model.tokenizer.encode(TEXT)]))
    width = trace.residual().start.shape[-1]
    changes = [
        gf.Ablate("decoder.0.self", head=1),
        gf.Patch("decoder.0.mlp", trace, positions=[0, 2]),
        gf.Patch("decoder.0.self", trace, head=0),
        gf.Steer("decoder.0.mlp", torch.ones(width), factor=2.0),
        gf.Swap("decoder.0.self", mask=gf.Causal() & gf.Explicit(torch.ones(1, 1).bool())),
    ]
    gf.save_changes(changes, folder / "a.changes")


def _load_changes(folder: Path) -> Any:
    """What it reads, and the run that it changes, where it can be applied."""
    changes = gf.load_changes(folder / "a.changes")
    found = [str(changes), [hash(each) for each in changes] == [hash(each) for each in changes]]
    model = make_llama()
    with contextlib.suppress(gf.GlassformerError), gf.change(model, changes), torch.no_grad():
        found.append(model(torch.tensor([[3, 4, 5]])).shape)
    gf.save_changes(changes, folder.parent / "again.changes")
    assert str(gf.load_changes(folder.parent / "again.changes")) == str(changes)
    return found


def _make_store(folder: Path) -> None:
    rows = [([i % 50] * (i % 7), [i % 40, 3]) for i in range(30)]
    notes = {"origin": {}, "report": CorpusReport(n_lines=30, n_kept=30).as_dict(), "labels": []}
    write_table(
        folder / "t.safetensors", rows, {"source": 50, "target": 70_000}, notes=lambda: notes
    )


def _load_store(folder: Path) -> Any:
    table = TokenTable.open(folder / "t.safetensors")
    return [tuple(column.tolist() for column in table[i]) for i in range(len(table))]


def _check_rows(value: Any, expected: Any, _: int | None) -> str:
    assert all(len(row) == len(value[0]) for row in value), "rows of different lengths"
    return "equal" if value == expected else "other"


def _sign_store(files: dict[str, Any]) -> dict[str, Any]:
    content = files.get("t.safetensors")
    try:
        (size,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + size])
        meta, spans = header["__metadata__"], {k: v for k, v in header.items() if k[0] != "_"}
        rest = json.dumps([spans, {k: v for k, v in meta.items() if k != "sha256"}]).encode()
        meta["sha256"] = hashlib.sha256(content[8 + size :] + rest).hexdigest()
        text = json.dumps(header).encode()
    except (
        TypeError,
        KeyError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RuntimeError,
        struct.error,
    ):
        return files
    return {"t.safetensors": struct.pack("<Q", len(text)) + text + content[8 + size :]}


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress,
}  # fmt: skip


def _make_corpus(name: str, *, bomb: bool = False) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        lines = LINES
        if "jsonl" in name:
            lines = [json.dumps({"text": line, "label": i % 2}) for i, line in enumerate(LINES)]
        elif "tsv" in name:
            lines = [f"{line}\t{i % 2}" for i, line in enumerate(LINES)]
        raw = ("\n".join(lines) + "\n").encode()
        pack = BOMBS.get(Path(name).suffix, bytes)
        bombs = pack(b"a" * (1 << 24)) * 128 if bomb else b""
        (folder / name).write_bytes(pack(raw) + bombs)

    return make


def _load_corpus(folder: Path) -> Any:
    path = next((p for p in sorted(folder.iterdir())), folder / "none.txt")
    form: Any = {"jsonl": "jsonl", "tsv": "tsv"}.get(path.name.split(".")[1], "lines")
    columns = {"jsonl": ("text",), "tsv": (1,)}.get(form, ())
    report = CorpusReport()
    texts = [e.texts for e in Corpus(files=path, format=form, columns=columns).examples(report)]
    assert report.n_kept == len(texts)
    learn_tokenizer((text for each in texts for text in each), "byte-bpe", 300)
    return texts


def _check_corpus(value: Any, expected: Any, _: int | None) -> str:
    for texts in value:
        for text in texts:
            assert "\0" not in text, "a null character in a text"
            text.encode()
    return "equal" if value == expected else "other"


def _make_recipe(folder: Path) -> None:
    recipes = Path(__file__).parents[1] / "recipes"
    (folder / "r.toml").write_bytes((recipes / "multi30k.toml").read_bytes())


def _load_recipe(folder: Path) -> Any:
    from glassformer.training import Recipe
    from glassformer.training.model_building import model_config

    recipe = Recipe.from_toml(folder / "r.toml")
    config = model_config(recipe, vocab_size=100)
    for step in (0, 1, 1000, 10**6):
        rate = recipe.full_schedule.rate(step)
        assert 0 <= rate < math.inf, f"a learning rate of {rate}"
    again = folder.parent / "again.toml"
    again.write_text(recipe.as_toml(), encoding="utf-8")
    assert Recipe.from_toml(again) == recipe, "its own file reads differently"
    return recipe, config


def _check_recipe(value: Any, expected: Any, _: int | None) -> str:
    return "equal" if value == expected else "other"


# ── the command line ──

COMMANDS = [
    ["shapes", "x"], ["look", "--trace", "x"], ["generate", "a", "--model", "x"],
    ["train", "x"], ["convert", "x", "y"], ["train", "--text", "x", "--set", "until.steps=1"],
    ["train", "--source", "x", "--target", "x"], ["embed", "a", "--model", "x"],
]  # fmt: skip


def _make_words(folder: Path) -> None:
    for i, words in enumerate(COMMANDS):
        (folder / f"{i}.json").write_text(json.dumps(words))


def _load_words(folder: Path) -> Any:
    """Run the commands that are no longer as they were; each must end in one line and a 2."""
    from glassformer.cli import main

    codes = []
    for i, words in enumerate(COMMANDS):
        path = folder / f"{i}.json"
        try:
            given = json.loads(path.read_bytes()) if path.is_file() else words
        except (ValueError, RecursionError):  # no words, no command
            continue
        fits = isinstance(given, list) and all(isinstance(word, str) for word in given)
        if given == words or not fits or any("\0" in word for word in given):
            continue
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            codes.append(main(given))
    return codes


def _check_words(value: Any, _expected: Any, _: int | None) -> str:
    assert set(value) <= {0, 2}, f"exit codes {value}"
    return "other" if value else "equal"


# ── learners' files and runs ──


def _make_learn(folder: Path) -> None:
    plain = {"version": 1, "read": {"attention": "2026-01-02"}, "cards": {}}
    (folder / "learning.json").write_text(json.dumps(plain))


def _load_learn(folder: Path) -> Any:
    from glassformer.school.progress import load_progress

    found = load_progress(folder / "learning.json")
    found.save()
    return found.read, found.cards


def _make_practice(folder: Path) -> None:
    plain = {"version": 1, "current": "scaling", "passed": ["dot_product_scores"],
             "hints": {"scaling": 1}}  # fmt: skip
    (folder / "progress.json").write_text(json.dumps(plain))


def _load_practice(folder: Path) -> Any:
    from glassformer.school.progress import FILE, load_progress

    found = load_progress(folder / FILE)
    found.save()
    return found.current, sorted(found.passed), found.hints


def _run_recipe(folder: Path, steps: int) -> Any:
    from glassformer.training import Recipe

    shape = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 24, "max_len": 32}
    return Recipe.from_dict({
        "task": "language",
        "data": {"train": [{"files": [str(folder / "alphabet.txt")]}], "valid_share": 0.1},
        "tokenizer": {"kind": "characters"},
        "model": {**shape, "positions": {"kind": "rotary"}},
        "batches": {"length": 8, "rows": 4},
        "schedule": {"kind": "constant", "warmup": 1},
        "save": {"every_steps": 2},
        "until": {"steps": steps},
    })  # fmt: skip


def _make_run(folder: Path) -> None:
    from glassformer.training import train

    (folder / "alphabet.txt").write_text("abcdefghij" * 60 + "\n")
    with contextlib.redirect_stderr(io.StringIO()):
        train(_run_recipe(folder, 4), out=folder / "run", device="cpu")


def _load_run(folder: Path) -> Any:
    """Two steps more; the same weights as if nothing had been, also from an older checkpoint."""
    from glassformer.training import train

    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what was lost may be said in a warning
        result = train(_run_recipe(folder, 6), out=folder / "run", resume=True, device="cpu")
    return load(result.model).state_dict()


def _check_run(value: Any, expected: Any, _: int | None) -> str:
    assert all(bool(torch.isfinite(tensor).all()) for tensor in value.values()), "not finite"
    same = value.keys() == expected.keys()
    return (
        "equal" if same and all(torch.equal(t, expected[n]) for n, t in value.items()) else "other"
    )


def _check_unsigned_run(value: Any, expected: Any, n_bytes: int | None) -> str:
    assert _check_run(value, expected, n_bytes) == "equal", "resumed to another model"
    return "equal"


def _sign_run(files: dict[str, Any]) -> dict[str, Any]:
    """Every SHA256SUMS, made to fit what its folder holds now."""
    signed = dict(files)
    for name, sums in files.items():
        if name.endswith("/SHA256SUMS") and isinstance(sums, bytes):
            place = name.removesuffix("SHA256SUMS")
            listed = re.findall(r"^[0-9a-f]{64}  (.+)$", sums.decode(errors="replace"), re.M)
            there = {file: files.get(place + file) for file in listed}
            signed[name] = "".join(
                f"{hashlib.sha256(content).hexdigest()}  {file}\n"
                for file, content in there.items()
                if isinstance(content, bytes)
            ).encode()
    return signed


def _check_plain(value: Any, expected: Any, _: int | None) -> str:
    return "equal" if value == expected else "other"


SUBJECTS: dict[str, Subject] = {
    "own": Subject(make=saving(make_llama, "glassformer"), load=load_model, check=check_model),
    "own, signed": Subject(make=saving(make_llama, "glassformer"), load=load_model,
                           check=check_model, sign=sign_own, weight=20),
    "llama": Subject(make=saving(make_llama, "llama"), load=load_model, check=check_model),
    "gpt2, shards": Subject(make=write_shards, load=load_model, check=check_model, weight=12),
    "bert": Subject(make=saving(make_bert, "bert"), load=load_model, check=check_model),
    "t5": Subject(make=saving(make_t5, "t5"), load=load_model, check=check_model),
    "gguf": Subject(make=write_gguf, load=load_model, check=check_model, weight=25),
    **{f"tokenizer, {kind}": Subject(make=write_tokenizer(kind), load=load_tokenizer,
                                     check=check_tokenizer, weight=6)
       for kind in ("byte-bpe", "bpe", "wordpiece", "characters", "words")},
    "vocab.txt": Subject(make=write_word_pieces, load=load_tokenizer, check=check_tokenizer,
                         weight=3),
    "merges.txt": Subject(make=write_byte_pairs, load=load_tokenizer, check=check_tokenizer,
                          weight=4),
    "marian": Subject(make=write_marian, load=load_tokenizer, check=check_tokenizer, weight=6),
    "trace": Subject(make=_make_trace, load=_load_trace, check=_check_trace, weight=25),
    "lens": Subject(make=_make_lens, load=_load_lens, check=_check_lens, weight=10),
    "changes": Subject(make=_make_changes, load=_load_changes, check=_check_plain, weight=15),
    "tokens": Subject(make=_make_store, load=_load_store, check=_check_rows, weight=4),
    "tokens, signed": Subject(make=_make_store, load=_load_store, check=_check_rows,
                              sign=_sign_store, weight=10),
    **{f"text, {name}": Subject(make=_make_corpus(f"a.{name}"), load=_load_corpus,
                                check=_check_corpus, weight=4)
       for name in ("txt", "jsonl", "tsv", "txt.gz", "txt.bz2", "txt.xz")},
    **{f"bomb, {name}": Subject(make=_make_corpus(f"a.{name}", bomb=True), load=_load_corpus,
                                check=_check_corpus, weight=1)
       for name in ("txt.gz", "txt.bz2", "txt.xz")},
    "recipe": Subject(make=_make_recipe, load=_load_recipe, check=_check_recipe, weight=25,
                      writes=True),
    "words": Subject(make=_make_words, load=_load_words, check=_check_words, weight=8,
                     writes=True),  # `look … --trace x` writes the file it is asked for
    "run": Subject(make=_make_run, load=_load_run, check=_check_unsigned_run, weight=6,
                   writes=True),
    "run, signed": Subject(make=_make_run, load=_load_run, check=_check_run, sign=_sign_run,
                           weight=6, writes=True),
    "learn": Subject(make=_make_learn, load=_load_learn, check=_check_plain, weight=5, writes=True),
    "practice": Subject(make=_make_practice, load=_load_practice, check=_check_plain, weight=5,
                        writes=True),
}  # fmt: skip


def choose(rng: random.Random, only: str | None) -> str:
    """A subject, by weight."""
    names = [name for name in SUBJECTS if only is None or name.startswith(only)]
    return rng.choices(names, [SUBJECTS[name].weight for name in names])[0]
