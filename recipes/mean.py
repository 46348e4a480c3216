"""The mean of saved models of one shape: of a model, say, and of what fine-tuning made of it.

    python recipes/mean.py runs/a/model runs/b/model --shares 0.4 0.6 --half --out both

Between the two there are weights that still know what the first knew and know what the second
learned, often better than either (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").
The tokenizer is that of the first.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import glassformer as gf
from glassformer.errors import ConfigError, GlassformerError
from glassformer.training.averaging import mean_weights


def mean(models: Sequence[Any], shares: Sequence[float]) -> Any:
    """The first model with the mean of all weights."""
    if len(models) != len(shares) or abs(sum(shares) - 1) > 1e-6:
        raise ConfigError(
            f"Each model must have a share, and the shares must add up to 1; got {len(models)} "
            f"models and {' + '.join(map(str, shares))} = {sum(shares):g}."
        )
    states = [model.state_dict() for model in models]
    first = {name: tensor.shape for name, tensor in states[0].items()}
    for i, state in enumerate(states):
        if {name: tensor.shape for name, tensor in state.items()} != first:
            raise ConfigError(f"All models must have one shape; number {i + 1} has another.")
    models[0].load_state_dict(mean_weights(states, shares))
    return models[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL", help="whatever gf.load reads")
    parser.add_argument("--shares", type=float, nargs="+", required=True, help="one for each model")
    parser.add_argument("--out", required=True, help="the folder to write")
    parser.add_argument("--half", action="store_true", help="store float16")
    args = parser.parse_args()
    try:
        model = mean([gf.load(name).float() for name in args.models], args.shares)
        gf.save(model.half() if args.half else model, args.out)
    except GlassformerError as error:
        sys.stderr.write(f"mean.py: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
