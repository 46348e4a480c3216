"""Which tokens of a target language are likely with each token of a source: a lexical shortlist.

    python recipes/data/translator_shortlist.py recipes/translator.toml --data DIR --model FOLDER

reads the pairs of a recipe, as translator_coverage.py does, and adds shortlist.safetensors to the
model's folder, with its hash in config.json; the weights are not touched. Then translations with
`shortlist=True` or --shortlist consider these tokens alone.

    always     the --always most frequent tokens of the language
    tokens     for each token of a source, the --best with the highest p(target | source)

The probabilities are those of IBM model 1 after five rounds of expectation maximization (Brown et
al. 1993, "The Mathematics of Statistical Machine Translation"). The language's tag, which stands
before every source, takes the place of its empty word.
"""

import argparse
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from translator_coverage import read_targets

from glassformer.errors import ConfigError, GlassformerError
from glassformer.models.checkpoints import load
from glassformer.models.checkpoints.own import add_file
from glassformer.text.shortlist import FILE, Shortlist, TargetShortlist

ROUNDS = 5
LEAST = 0.001  # p(target | source): what is less likely is left out


def align(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], vocab_size: int
) -> tuple[Int[np.ndarray, " n"], Int[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """p(target | source) by IBM model 1: source tokens in ascending order, targets, probabilities.

    >>> house, the, book, haus, das, buch = range(6)
    >>> found = align([[the, house], [the, book]], [[das, haus], [das, buch]], 6)
    >>> {(s, t) for s, t, p in zip(*found) if p > 0.5} == {(house, haus), (the, das), (book, buch)}
    True
    """
    n_source, n_target = (np.array([*map(len, texts)]) for texts in (sources, targets))
    source, target = (np.concatenate([*map(np.asarray, texts)]) for texts in (sources, targets))
    # A cell for each pair of tokens of a sentence: all sources of a target lie side by side.
    n_cells = np.repeat(n_source, n_target)
    place = np.repeat(np.arange(len(target)), n_cells)
    first = np.repeat(np.cumsum(n_source) - n_source, n_target)
    within = np.arange(len(place)) - np.repeat(np.cumsum(n_cells) - n_cells, n_cells)
    pairs = source[first[place] + within].astype(np.int64) * vocab_size + target[place]
    known, cell = np.unique(pairs, return_inverse=True)
    share = np.ones(len(known))
    for _ in range(ROUNDS):
        expected = share[cell]
        expected /= np.bincount(place, expected)[place]
        counts = np.bincount(cell, expected, len(known))
        share = counts / np.bincount(known // vocab_size, counts)[known // vocab_size]
    return known // vocab_size, known % vocab_size, share


def shorten(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    vocab_size: int,
    *,
    n_always: int,
    n_best: int,
) -> TargetShortlist:
    """The shortlist of one language from encoded pairs."""
    source, target, share = align(sources, targets, vocab_size)
    order = np.lexsort((target, -share, source))
    source, target, share = source[order], target[order], share[order]
    rank = np.arange(len(source)) - np.searchsorted(source, source)
    is_kept = (rank < n_best) & ((share >= LEAST) | (rank == 0))
    frequency = np.bincount(np.concatenate([*map(np.asarray, targets)]), minlength=vocab_size)
    often = np.argsort(-frequency, kind="stable")[:n_always]
    dtype = np.uint16 if vocab_size <= 1 << 16 else np.int32
    return TargetShortlist(
        always=np.sort(often[frequency[often] > 0]).astype(dtype),
        offsets=np.searchsorted(source[is_kept], np.arange(vocab_size + 1)).astype(np.int32),
        tokens=target[is_kept].astype(dtype),
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path, metavar="DIR", required=True)
    parser.add_argument("--model", type=Path, metavar="FOLDER", required=True)
    parser.add_argument("--always", type=int, metavar="N", help="default: a tenth of all tokens")
    parser.add_argument("--best", type=int, metavar="N", default=50)
    parser.add_argument(
        "--most", type=int, metavar="N", default=200_000, help="pairs of a language that are read"
    )
    args = parser.parse_args(arguments)
    found = dict[str, TargetShortlist]()
    try:
        if args.best < 1 or args.most < 1:
            raise ConfigError(
                f"--best and --most must be at least 1; got {args.best} and {args.most}."
            )
        recipe = tomllib.loads(args.recipe.read_text(encoding="utf-8"))
        tokenizer = load(args.model).tokenizer
        size = tokenizer.vocab_size
        n_always = size // 10 if args.always is None else args.always
        for code, pairs in read_targets(recipe, args.data, tokenizer).items():
            step = -(-len(pairs) // args.most)
            sources = tokenizer.encode_many([f"<{code}> {text}" for text, _ in pairs[::step]])
            targets = tokenizer.encode_many([text for _, text in pairs[::step]], add_special=False)
            found[code] = shorten(sources, targets, size, n_always=n_always, n_best=args.best)
        add_file(args.model, FILE, Shortlist(targets=found).as_bytes())
    except GlassformerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for code, target in found.items():
        n, m = len(target.always), len(target.tokens) / size
        sys.stdout.write(f"{code}: {n} frequent tokens, {m:.0f} for each token of a source\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
