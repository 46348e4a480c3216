"""How good translations of Multi30k's test2016 are: as published, and as people write.

    python benchmarks/multi30k.py --data DIR TRANSLATIONS [TRANSLATIONS …]

TRANSLATIONS are files that `glassformer evaluate … --remove "@@ " --write FILE` wrote, one for
each seed. DIR is Multi30k: tok/ holds its texts lower-cased and split by Moses, raw/ as they were
written. Needs the package sacremoses.

    tokenised      BLEU against tok/, as the figures of Wu et al. (2021) are
    detokenised    joined again by sacremoses, against raw/ by sacreBLEU's own splitting (13a),
                   without regard to case; not comparable with the former
"""

import argparse
import gzip
import statistics
import sys
from pathlib import Path

import sacrebleu
from sacremoses import MosesDetokenizer


def lines(path: Path) -> list[str]:
    """The lines of a text, which may be compressed."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode("utf-8").splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="Multi30k, with tok/ and raw/")
    parser.add_argument("--test", default="2016", help="which test set")
    parser.add_argument("--language", default="de")
    parser.add_argument("translations", type=Path, nargs="+")
    wish = parser.parse_args()
    name, ending = f"test_{wish.test}_flickr", f"{wish.language}.gz"
    split = lines(wish.data / "tok" / f"{name}.lc.norm.tok.{ending}")
    written = lines(wish.data / "raw" / f"{name}.{ending}")
    join = MosesDetokenizer(lang=wish.language).detokenize
    scores: dict[str, list[float]] = {"tokenised": [], "detokenised": []}
    for path in wish.translations:
        found = lines(path)
        if len(found) != len(split):
            sys.exit(f"{path} must have {len(split)} lines; it has {len(found)}.")
        one = sacrebleu.corpus_bleu(found, [split], tokenize="none", force=True)
        joined = [join(text.split()) for text in found]
        two = sacrebleu.corpus_bleu(joined, [written], lowercase=True)
        scores["tokenised"].append(one.score)
        scores["detokenised"].append(two.score)
        print(f"{path.name:24} tokenised {one}")
        print(f"{'':24} detokenised, without case {two}")
    for kind, values in scores.items():
        spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
        print(f"{kind:12} mean {statistics.mean(values):.2f}{spread} of {len(values)}")


if __name__ == "__main__":
    main()
