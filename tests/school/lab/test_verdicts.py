"""Verdicts follow the numbers: doctored ones are found out, by the check that they concern."""

import copy
import math

import pytest

from glassformer.school.lab import NAMES, Check, Verdict, find_experiment


def by_path(numbers, path):
    *way, last = path
    for key in way:
        numbers = numbers[key]
    return numbers, last


WIDTHS = [4, 16, 64, 256, 1024]
LENGTHS = [64, 128, 256, 512, 1024]
TIED_OR_NOT = ("untied", "tied", "unscaled", "small_positions")
# Recorded or made by the formulas: what each judge takes for a claim that holds.
GOOD = {
    "scale": {
        "widths": WIDTHS,
        "variance_plain": [float(w) for w in WIDTHS],
        "variance_scaled": [1.0] * 5,
        "largest_plain": [0.27, 0.59, 0.77, 0.9, 0.95],
        "largest_scaled": [0.11] * 5,
        "gradient_plain": [0.2, 0.19, 0.14, 0.01, 7e-5],
        "gradient_scaled": [0.15, 0.14, 0.17, 0.19, 0.18],
    },
    "linear": {
        "widths": [4, 64],
        "token_float32": [2.0, 4.0],
        "token_float64": [2.0, 4.0],
        "flattened_bits": [True, True],
        "leak": 0.0,
        "seconds": {"whole": [1e-5, 1e-5], "token": [1e-4, 2e-4]},
    },
    "batched": {
        "counts": [4, 16, 64],
        "apart": {"loop": [0.0], "big": [1e-15]},
        "heads": 1e-15,
        "broadcast": {"(2, 1, 1, 7)": True},
        "seconds": {"loop": [1e-5, 4e-5, 2e-4], "batched": [4e-6] * 3, "big": [1e-6, 3e-5, 1e-3]},
    },
    "low-precision": {
        "largest": [8, 10, 40, 92],
        "plain_float16": [0.0, 0.9, 1.0, 1.0],
        "plain_bfloat16": [0.0, 0.0, 0.0, 1.0],
        "plain_float32": [0.0, 0.0, 0.0, 1.0],
        "shifted_float16": [0.0] * 4,
        "shifted_bfloat16": [0.0] * 4,
        "shifted_float32": [0.0] * 4,
        "error": {
            "bfloat16": 0.015,
            "bfloat16_by_float32": 0.004,
            "float16": 0.002,
            "float16_by_float32": 5e-4,
            "float32": 3e-7,
        },
        "filled": {
            "float16": {"refused": True, "nan": True, "even": False},
            "bfloat16": {"refused": False, "nan": False, "even": True},
            "float32": {"refused": False, "nan": False, "even": True},
        },
    },
    "masks": {
        "leaks": {
            "library": 0.0,
            "infinity": 0.0,
            "billion": 0.0,
            "none": 2.8,
            "shifted": 1.8,
            "after": 0.2,
        },
        "apart": 0.0,
        "empty": {
            "infinity": {"nan": True, "nan_gradient": True, "zero": False, "mean": False},
            "billion": {"nan": False, "nan_gradient": False, "zero": False, "mean": True},
            "library": {"nan": False, "nan_gradient": False, "zero": True, "mean": False},
        },
    },
    "dropout": {
        "shares": [0.1, 0.5],
        "draws": 1500,
        "off": [1.0, 1.1],
        "variance": [0.01, 0.087],
        "theory": [0.01, 0.087],
        "sum": [0.1, 0.3],
    },
    "order": {
        "lengths": [32, 64, 128],
        "heads": [4, 8],
        "trained": 32,
        "chance": 1 / 12,
        "shuffled": {
            "none": 7e-16,
            "sinusoidal": 1.8,
            "learned": 0.1,
            "rotary": 0.14,
            "alibi": 0.18,
        },
        "right": {
            "none": [[0.12, 0.12, 0.1], [0.15, 0.12, 0.11]],
            "sinusoidal": [[0.95, 0.08, 0.09], [0.93, 0.08, 0.1]],
            "learned": [[0.75, 0.09, 0.09], [0.8, 0.09, 0.09]],
            "rotary": [[1.0, 0.53, 0.18], [1.0, 0.09, 0.09]],
            "alibi": [[0.56, 0.56, 0.55], [0.85, 0.85, 0.86]],
        },
    },
    "positions-picture": {
        "places": 4,
        "far": 2000,
        "similarity": [1.0, 0.96, 0.6, 0.7],
        "spread": 3e-16,
        "forward_back": 0.0,
        "shift_errors": {"1": 2e-13},
        "fitted": {"1": 1e-14},
    },
    "residual": {
        "depth": 6,
        "gradients": {
            "plain": [4e-8, 0.4],
            "norm": [0.015, 0.035],
            "residual": [0.04, 0.03],
            "post": [0.04, 0.035],
            "pre": [0.04, 0.03],
        },
        "losses": {
            "plain": [2.49],
            "norm": [2.49],
            "residual": [1.78],
            "post": [1.76],
            "pre": [1.7],
        },
    },
    "warmup": {
        "curves": {
            "post_cold": [2.49] * 10,
            "post_warm": [0.8] * 10,
            "pre_cold": [0.04] * 10,
            "pre_warm": [0.04] * 10,
        }
    },
    "smoothing": {
        "smoothings": [0.0, 0.2],
        "true_entropy": 1.29,
        "entropy": [0.69, 1.25],
        "confidence": [0.79, 0.6],
        "right": [0.47, 0.47],
        "calibration": [0.32, 0.18],
        "loss": [2.4, 2.0],
    },
    "heads": {
        "whole": 0.94,
        "heads": [
            {"layer": 0, "head": 0, "right": 0.23, "induction": 0.0},
            {"layer": 0, "head": 1, "right": 0.9, "induction": 0.02},
            {"layer": 1, "head": 0, "right": 0.92, "induction": 0.1},
            {"layer": 1, "head": 1, "right": 0.85, "induction": 0.66},
        ],
    },
    "grouped": {
        "groups": [8, 2, 1],
        "heads": 8,
        "apart": [0.0, 0.0, 0.0],
        "bytes": [1024.0, 256.0, 128.0],
        "right": [1.0, 0.99, 0.98],
    },
    "lstm": {
        "right": {
            "transformer": [1.0, 1.0],
            "lstm": [0.5, 0.3],
            "lstm_attention": [0.98, 0.96],
        },
        "parameters": {"transformer": 57696, "lstm": 57602, "lstm_attention": 57320},
        "lengths": [32, 128],
        "seconds": {"transformer": [1e-3, 2e-3], "lstm": [2e-3, 8e-3], "lstm_attention": [1, 1]},
    },
    "complexity": {
        "lengths": LENGTHS,
        "bytes_attention": [L**2 * 48.0 for L in LENGTHS],
        "bytes_linear": [L * 4096.0 for L in LENGTHS],
        "seconds_attention": [L**2 * 1e-8 for L in LENGTHS],
        "seconds_linear": [L * 1e-6 for L in LENGTHS],
    },
    "fused": {
        "lengths": LENGTHS,
        "bytes_written": [L**2 * 48.0 for L in LENGTHS],
        "bytes_fused": [L * 1000.0 for L in LENGTHS],
        "seconds_written": [L**2 * 1e-8 for L in LENGTHS],
        "seconds_fused": [L**2 * 2e-9 for L in LENGTHS],
        "error_written": [7e-7] * 5,
        "error_fused": [5e-7] * 5,
    },
    "cache": {
        "lengths": LENGTHS,
        "without": [L * 1e-5 for L in LENGTHS],
        "with": [1e-3] * 5,
        "apart": [4e-7] * 5,
        "bytes": [L * 2048 for L in LENGTHS],
    },
    "errors": {
        "errors": {
            "averaged": {"raised": False, "wrong": 0.13, "right": 2e-16},
            "viewed": {"raised": True, "wrong": None, "right": 0.0},
        }
    },
    "tokenization": {
        "vocabularies": [512, 1024, 2048],
        "held": 4,
        "bytes": {"en": 14000, "zh": 13900},
        "damaged": 0,
        "tokens": {
            "english": {"en": [7600, 6000, 5100], "zh": [14000, 13800, 13700]},
            "chinese": {"en": [13200, 10400, 8600], "zh": [7900, 6000, 5000]},
            "both": {"en": [8700, 6800, 5700], "zh": [9100, 6800, 5500]},
        },
    },
    "embeddings": {
        "steps": 20,
        "table": 1536,
        "parameters": {"untied": 28416, "tied": 26880, "unscaled": 26880, "small_positions": 28416},
        "losses": {
            "untied": [2.3] * 20,
            "tied": [2.32] * 20,
            "unscaled": [3.18] * 20,
            "small_positions": [2.3] * 20,
        },
        "before": {name: {"same": -0.05, "other": -0.04} for name in TIED_OR_NOT},
        "alike": {
            "untied": {"same": 0.38, "other": -0.16},
            "tied": {"same": 0.36, "other": -0.16},
            "unscaled": {"same": -0.13, "other": -0.02},
            "small_positions": {"same": 0.94, "other": -0.32},
        },
    },
    "sampling": {
        "prompts": 6,
        "length": 60,
        "ways": {
            "beam": {"surprise": 1.0, "entropy": 1.7, "repeated": 0.6},
            "greedy": {"surprise": 1.2, "entropy": 1.9, "repeated": 0.5},
            "penalty": {"surprise": 1.5, "entropy": 2.2, "repeated": 0.05},
            "nucleus": {"surprise": 3.0, "entropy": 3.3, "repeated": 0.01},
            "pure": {"surprise": 3.5, "entropy": 3.5, "repeated": 0.0},
            "hot": {"surprise": 5.8, "entropy": 4.4, "repeated": 0.0},
            "hot_min_p": {"surprise": 2.9, "entropy": 3.3, "repeated": 0.0},
        },
    },
    "induction": {
        "places": [20, 40, 60],
        "chance": 1 / 16,
        "losses": {"one": [2.5, 2.1, 1.7], "two": [2.5, 1.5, 0.3]},
        "scores": {"one": [0.0, 0.02, 0.03], "two": [0.0, 0.3, 0.6]},
        "right": {"one": 0.43, "two": 0.92},
        "removed": {"n": 2, "induction": 0.45, "others": 0.88},
    },
    "long-context": {
        "lengths": [32, 64, 128],
        "trained": 32,
        "chance": 1 / 12,
        "tuning": 20,
        "right": {
            "plain": [1.0, 0.53, 0.16],
            "linear": [0.16, 0.15, 0.17],
            "ntk": [1.0, 0.95, 0.28],
            "yarn": [0.95, 0.92, 0.93],
        },
        "tuned": {"plain": 0.4, "linear": 0.26, "ntk": 0.84, "yarn": 1.0},
        "writer": {"window": 6.74, "plain": 6.95, "linear": 6.81, "yarn": 6.72},
    },
    "latent": {
        "steps": 180,
        "cached": {"mha": 128, "mqa": 16, "latent": 16, "narrow": 5},
        "right": {"mha": 0.98, "latent": 0.96, "narrow": 0.3},
        "curves": {"mha": [2.0, 0.1], "latent": [2.0, 0.2]},
        "by_heads": {"4": 16, "8": 16, "16": 16},
        "latent": 16,
        "apart": 1e-15,
    },
    "experts": {
        "steps": 3,
        "experts": 4,
        "losses": {name: [3.0, 2.0, 1.0] for name in ("none", "loss", "bias")},
        "shares": {
            "none": [0.6, 0.3, 0.1, 0.0],
            "loss": [0.3, 0.25, 0.25, 0.2],
            "bias": [0.26, 0.25, 0.25, 0.24],
        },
        "final": {"none": 0.4, "loss": 0.42, "bias": 0.38},
        "dropped": {"none": 0.3, "loss": 0.04, "bias": 0.01},
        "agree": {name: {"word": 0.5, "dialect": 0.1} for name in ("none", "loss", "bias")},
    },
    "traffic": {
        "lengths": [128, 256, 512],
        "rows": [16, 32, 64],
        "width": 64,
        "difference": 1e-14,
        "moved_written": [280_000, 900_000, 3_300_000],
        "moved_tiled": [100_000, 300_000, 1_000_000],
        "kept_written": [128**2, 256**2, 512**2],
        "kept_tiled": [128 * 65, 256 * 65, 512 * 65],
        "operations_written": [6, 24, 96],
        "operations_tiled": [7, 28, 112],
        "moved_by_rows": [2_100_000, 1_100_000, 580_000],
        "fast": [20_000, 24_000, 33_000],
    },
    "speculative": {
        "drafted": 4,
        "overlap": {"unigram": 0.5, "small": 0.65},
        "distance": {
            "unigram": {"right": 1e-9, "resampled": 0.2, "trusting": 0.5},
            "small": {"right": 1e-9, "resampled": 0.15, "trusting": 0.35},
        },
        "runs": {
            "unigram": {"accepted": 0.52, "tokens_per_pass": 1.8},
            "small": {"accepted": 0.66, "tokens_per_pass": 2.4},
        },
        "excess": {
            "target": {"mean": 0.01, "error": 0.06},
            "unigram": {"mean": -0.05, "error": 0.06},
            "small": {"mean": 0.08, "error": 0.06},
            "trusting": {"mean": 0.9, "error": 0.1},
        },
        "parameters": {"target": 100000, "small": 5000},
    },
    "forgetting": {
        "places": [0, 10, 20],
        "best": 0.81,
        "before": {"old": 0.8, "new": 0.1},
        "right": {
            "full": {"old": [0.8, 0.4, 0.2], "new": [0.1, 0.7, 0.8]},
            "replay": {"old": [0.8, 0.78, 0.79], "new": [0.1, 0.6, 0.79]},
            "lora": {"old": [0.8, 0.5, 0.3], "new": [0.1, 0.5, 0.75]},
        },
        "trained": {"full": 20000, "replay": 20000, "lora": 4000},
        "removed": 0.8,
    },
    "power-law": {
        "steps": 100,
        "parameters": [483, 723, 1203, 2163, 4083, 7923],
        "losses": [2.469, 2.362, 2.213, 2.111, 1.986, 1.885],
        "training": {},
    },
    "vision": {
        "steps": 100,
        "chance": 0.25,
        "losses": {},
        "right": {"what": 0.97, "where": 1.0, "where_bag": 0.27},
        "attention": 0.6,
        "area": 0.17,
        "hidden": {"attended": 0.35, "random": 0.75, "least": 0.96},
    },
    "patching": {
        "heads": ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1"],
        "found": {
            "patched": [0.5, 0.3, 0.12, 0.01, 0.0, 0.02],
            "ablated": [0.01, 0.06, 0.02, 0.03, 0.04, 0.01],
            "weight": [0.7, 0.6, 0.2, 0.3, 0.3, 0.1],
        },
        "chosen": {
            "patched": ["0.0", "0.1", "1.0"],
            "ablated": ["0.1", "2.0", "1.1"],
            "weight": ["0.0", "0.1", "1.1"],
        },
        "tested": {"patched": 0.85, "ablated": 0.4, "weight": 0.72, "random": 0.2},
        "alone": [0.3, 0.2, 0.0],
        "together": 0.77,
        "before_ablated": 0.12,
        "before_patched": 0.0,
    },
    "retrieval": {
        "blind": 0.94,
        "curves": {"mean": [0.0, 0.88, 0.9, 0.91, 0.91]},
        "recall": {"untrained": 0.0, "masked": 0.3, "mean": 0.9, "first": 0.89, "hard": 1.0},
        "roles": {"masked": 0.5, "mean": 0.6, "first": 0.53, "chance": 1.0, "hard": 1.0},
    },
    "bottleneck": {
        "lengths": [2, 20],
        "right": {"attention": [1.0, 1.0], "vector": [1.0, 0.43], "narrow": [1.0, 0.25]},
        "chance": 1 / 24,
        "parameters": {"attention": 37312, "vector": 36925, "narrow": 9367},
        "widths": {"attention": 32, "vector": 35, "narrow": 17},
        "aligned": [1.0, 1.0],
        "averaged": [1.0, 0.08],
    },
}
# One number made wrong, and the check that must notice.
DOCTORED = [
    ("scale", ["variance_plain"], [1.0] * 5, "variance"),
    ("scale", ["variance_scaled"], [1.0, 1, 1, 1, 3], "steady"),
    ("scale", ["largest_plain"], [0.2] * 5, "saturated"),
    ("scale", ["gradient_plain"], [0.2] * 5, "gradient"),
    ("linear", ["token_float64"], [2.0, 1e6], "token"),
    ("linear", ["flattened_bits"], [True, False], "flattened"),
    ("linear", ["leak"], 1e-9, "leak"),
    ("linear", ["seconds", "token"], [1e-6, 1e-6], "slower"),
    ("batched", ["apart", "big"], [1e-3], "equal"),
    ("batched", ["heads"], 0.1, "heads"),
    ("batched", ["broadcast"], {"x": False}, "broadcast"),
    ("batched", ["seconds", "loop"], [1e-7] * 3, "quicker"),
    ("batched", ["seconds", "big"], [1e-6, 4e-6, 1.6e-5], "wasteful"),
    ("low-precision", ["plain_float16"], [0.0] * 4, "overflow"),
    ("low-precision", ["shifted_float16"], [0.0, 0, 0, 0.1], "shifted"),
    ("low-precision", ["filled", "float16", "refused"], False, "refused"),
    ("low-precision", ["filled", "float32", "even"], False, "even"),
    ("low-precision", ["error", "float16_by_float32"], 1.0, "float32"),
    ("masks", ["leaks", "library"], 1e-12, "right"),
    ("masks", ["leaks", "after"], 0.0, "wrong"),
    ("masks", ["apart"], 1e-6, "billion"),
    ("masks", ["empty", "infinity", "nan"], False, "empty"),
    ("masks", ["empty", "library", "zero"], False, "ours"),
    ("dropout", ["off"], [1.0, 9.0], "mean"),
    ("dropout", ["variance"], [0.01, 0.06], "variance"),
    ("dropout", ["sum"], [0.0, 0.0], "sum"),
    ("order", ["shuffled", "none"], 0.1, "equivariant"),
    ("order", ["right", "rotary", 0, 0], 0.2, "inside"),
    ("order", ["right", "learned", 1, 2], 0.8, "absolute"),
    ("order", ["right", "sinusoidal", 0, 2], 0.9, "absolute"),
    ("order", ["right", "alibi", 1, 2], 0.1, "alibi_kept"),
    ("order", ["right", "alibi", 0], [0.86, 0.86, 0.86], "alibi_slopes"),
    ("order", ["right", "rotary", 1, 1], 0.5, "rotary_width"),
    ("positions-picture", ["shift_errors", "1"], 1e-3, "shift"),
    ("positions-picture", ["fitted", "1"], 1e-3, "fitted"),
    ("positions-picture", ["spread"], 0.1, "distance"),
    ("positions-picture", ["similarity"], [1.0, 0.9, 0.9, 0.9], "decay"),
    ("positions-picture", ["forward_back"], 0.1, "symmetric"),
    ("residual", ["gradients", "plain"], [0.3, 0.4], "gradient"),
    ("residual", ["losses", "norm"], [0.3], "stuck"),
    ("residual", ["losses", "residual"], [2.49], "learns"),
    ("residual", ["losses", "pre"], [2.2], "pre"),
    ("warmup", ["curves", "post_cold"], [0.8] * 10, "post"),
    ("warmup", ["curves", "post_warm"], [2.4] * 10, "stuck"),
    ("warmup", ["curves", "pre_cold"], [2.4] * 10, "pre"),
    ("smoothing", ["entropy"], [1.2, 0.7], "entropy"),
    ("smoothing", ["confidence"], [0.4, 0.4], "sure"),
    ("smoothing", ["calibration"], [0.32, 0.31], "calibration"),
    ("smoothing", ["loss"], [2.0, 2.4], "loss"),
    ("smoothing", ["right"], [0.47, 0.3], "right"),
    ("heads", ["heads", 3, "induction"], 0.1, "induction"),
    ("heads", ["whole"], 0.5, "learned"),
    ("heads", ["heads", 0, "right"], 0.93, "unequal"),
    ("grouped", ["apart"], [0.0, 0.0, 1e-3], "equal"),
    ("grouped", ["bytes"], [1024.0, 512.0, 128.0], "bytes"),
    ("grouped", ["right"], [1.0, 0.99, 0.5], "quality"),
    ("lstm", ["right", "lstm"], [1.0, 1.0], "recall"),
    ("lstm", ["right", "lstm_attention"], [0.5, 0.5], "attention"),
    ("lstm", ["parameters", "lstm"], 90000, "matched"),
    ("lstm", ["seconds", "transformer"], [1.0, 1.0], "speed"),
    ("complexity", ["bytes_attention"], [L * 48.0 for L in LENGTHS], "bytes"),
    ("complexity", ["bytes_linear"], [L**2 * 48.0 for L in LENGTHS], "linear_bytes"),
    ("complexity", ["seconds_attention"], [L * 1e-5 for L in LENGTHS], "seconds"),
    ("complexity", ["seconds_linear"], [L**2 * 1e-9 for L in LENGTHS], "linear_seconds"),
    ("complexity", ["seconds_linear"], [L * 1e-3 for L in LENGTHS], "crossing"),
    ("fused", ["error_fused"], [1e-3] * 5, "equal"),
    ("fused", ["bytes_fused"], [L**2 * 40.0 for L in LENGTHS], "memory"),
    ("fused", ["seconds_fused"], [1.0] * 5, "quicker"),
    ("cache", ["apart"], [0.1] * 5, "same"),
    ("cache", ["with"], [L * 1e-6 for L in LENGTHS], "growth"),
    ("cache", ["with"], [6e-3] * 5, "quicker"),
    ("cache", ["bytes"], [L * 1024 for L in LENGTHS], "bytes"),
    ("errors", ["errors", "averaged", "wrong"], 0.0, "averaged"),
    ("errors", ["errors", "averaged", "right"], 0.1, "averaged"),
    ("errors", ["errors", "viewed", "raised"], False, "viewed"),
    ("tokenization", ["tokens", "english", "zh"], [9000, 8000, 7000], "english"),
    ("tokenization", ["tokens", "both", "zh"], [14000, 13000, 12000], "both"),
    ("tokenization", ["tokens", "chinese", "zh"], [9000, 8800, 8600], "chinese"),
    ("tokenization", ["damaged"], 1, "lossless"),
    ("tokenization", ["tokens", "both", "en"], [8700, 8000, 5700], "diminishing"),
    ("embeddings", ["alike", "tied", "same"], 0.1, "alike"),
    ("embeddings", ["before", "tied"], {"same": 0.3, "other": 0.0}, "alike"),
    ("embeddings", ["losses", "tied"], [2.6] * 20, "tied"),
    ("embeddings", ["parameters", "tied"], 28416, "tied"),
    ("embeddings", ["losses", "unscaled"], [2.4] * 20, "drowned"),
    ("embeddings", ["losses", "small_positions"], [3.1] * 20, "small_positions"),
    ("sampling", ["ways", "beam", "repeated"], 0.1, "loops"),
    ("sampling", ["ways", "pure", "repeated"], 0.3, "loops"),
    ("sampling", ["ways", "beam", "surprise"], 1.3, "likely"),
    ("sampling", ["ways", "pure", "entropy"], 2.9, "typical"),
    ("sampling", ["ways", "penalty", "repeated"], 0.4, "penalty"),
    ("sampling", ["ways", "hot_min_p", "surprise"], 5.0, "filters"),
    ("sampling", ["ways", "nucleus", "repeated"], 0.5, "filters"),
    ("induction", ["right", "one"], 0.9, "two"),
    ("induction", ["right", "two"], 0.5, "two"),
    ("induction", ["scores", "one"], [0.0, 0.2, 0.5], "formed"),
    ("induction", ["scores", "two"], [0.0, 0.3, 0.2], "formed"),
    ("induction", ["losses", "two"], [0.3, 1.5, 2.5], "together"),
    ("induction", ["removed", "induction"], 0.9, "needed"),
    ("induction", ["removed", "others"], 0.3, "needed"),
    ("long-context", ["right", "plain", 2], 0.9, "fails"),
    ("long-context", ["right", "linear", 0], 0.9, "blurred"),
    ("long-context", ["right", "ntk", 1], 0.4, "ntk"),
    ("long-context", ["right", "yarn", 2], 0.4, "yarn"),
    ("long-context", ["tuned", "linear"], 0.9, "tuned"),
    ("long-context", ["writer", "plain"], 6.75, "writer"),
    ("long-context", ["writer", "yarn"], 6.9, "writer"),
    ("latent", ["right", "latent"], 0.7, "quality"),
    ("latent", ["cached", "latent"], 20, "quality"),
    ("latent", ["by_heads", "16"], 32, "heads"),
    ("latent", ["apart"], 1e-3, "absorbed"),
    ("latent", ["right", "narrow"], 0.9, "narrow"),
    ("experts", ["shares", "none"], [0.3, 0.25, 0.25, 0.2], "load"),
    ("experts", ["shares", "loss"], [0.5, 0.3, 0.2, 0.0], "load"),
    ("experts", ["shares", "bias"], [0.5, 0.3, 0.2, 0.0], "load"),
    ("experts", ["dropped", "none"], 0.04, "dropped"),
    ("experts", ["dropped", "loss"], 0.2, "dropped"),
    ("experts", ["final", "bias"], 0.6, "price"),
    ("experts", ["agree", "loss", "dialect"], 0.4, "special"),
    ("traffic", ["moved_tiled"], [100_000, 400_000, 1_900_000], "traffic"),
    ("traffic", ["difference"], 0.01, "traffic"),
    ("traffic", ["kept_tiled"], [128**2, 256**2, 512**2], "kept"),
    ("traffic", ["kept_written"], [128, 256, 512], "kept"),
    ("traffic", ["operations_tiled"], [6, 24, 96], "arithmetic"),
    ("traffic", ["moved_by_rows"], [2_100_000, 2_000_000, 1_900_000], "tiles"),
    ("speculative", ["distance", "unigram", "right"], 0.01, "unchanged"),
    ("speculative", ["excess", "small", "mean"], 0.5, "unchanged"),
    ("speculative", ["distance", "small", "resampled"], 0.0, "wrong"),
    ("speculative", ["excess", "trusting", "mean"], 0.1, "wrong"),
    ("speculative", ["runs", "unigram", "accepted"], 0.8, "overlap"),
    ("speculative", ["runs", "small", "tokens_per_pass"], 1.5, "passes"),
    ("speculative", ["parameters", "small"], 60000, "reads"),
    ("forgetting", ["right", "full", "old", 2], 0.7, "forgotten"),
    ("forgetting", ["right", "full", "new", 2], 0.5, "forgotten"),
    ("forgetting", ["right", "replay", "old", 2], 0.6, "replay"),
    ("forgetting", ["right", "lora", "new", 2], 0.3, "lora"),
    ("forgetting", ["trained", "lora"], 15000, "lora"),
    ("forgetting", ["removed"], 0.79, "removed"),
    ("power-law", ["losses", 5], 1.98, "predicts"),
    ("power-law", ["losses", 1], 2.2, "falls"),
    ("power-law", ["losses"], [2.5, 2.25, 2.13, 2.07, 2.04, 2.0], "loose"),
    ("vision", ["right", "where"], 0.6, "learns"),
    ("vision", ["right", "where_bag"], 0.6, "bag"),
    ("vision", ["attention"], 0.2, "looks"),
    ("vision", ["hidden", "attended"], 0.9, "needs"),
    ("vision", ["hidden", "least"], 0.6, "needs"),
    ("patching", ["tested", "patched"], 0.5, "carried"),
    ("patching", ["tested", "random"], 0.6, "carried"),
    ("patching", ["tested", "ablated"], 0.8, "ablation"),
    ("patching", ["found", "patched"], [0.5, 0.3, 0.2, 0.2, 0.2, 0.2], "weight"),
    ("patching", ["together"], 0.5, "backup"),
    ("patching", ["before_ablated"], 0.0, "before"),
    ("patching", ["before_patched"], 0.1, "before"),
    ("retrieval", ["roles", "mean"], 0.8, "negatives"),
    ("retrieval", ["roles", "hard"], 0.7, "negatives"),
    ("retrieval", ["recall", "masked"], 0.95, "pairs"),
    ("retrieval", ["recall", "first"], 0.7, "pooling"),
    ("retrieval", ["blind"], 0.98, "ceiling"),
    ("bottleneck", ["right", "attention"], [1.0, 0.7], "length"),
    ("bottleneck", ["right", "vector"], [1.0, 0.9], "length"),
    ("bottleneck", ["right", "narrow"], [1.0, 0.42], "width"),
    ("bottleneck", ["aligned"], [1.0, 0.4], "aligned"),
    ("bottleneck", ["averaged"], [1.0, 0.9], "aligned"),
    ("bottleneck", ["parameters", "vector"], 30000, "matched"),
]


def test_every_experiment_is_here():
    assert set(GOOD) == set(NAMES) == {name for name, *_ in DOCTORED}


@pytest.mark.parametrize("name", NAMES)
def test_good_numbers_hold(name):
    verdict = find_experiment(name).judge(GOOD[name])
    assert verdict.outcome == "holds", [c for c in verdict.checks if not c.holds]


@pytest.mark.parametrize("name", NAMES)
def test_every_check_can_fail(name):
    keys = {check.key for check in find_experiment(name).judge(GOOD[name]).checks} - {"all"}
    assert keys == {key for doctored, _, _, key in DOCTORED if doctored == name}


@pytest.mark.parametrize(("name", "path", "value", "key"), DOCTORED)
def test_doctored_numbers_are_noticed(name, path, value, key):
    numbers = copy.deepcopy(GOOD[name])
    place, last = by_path(numbers, path)
    place[last] = value
    verdict = find_experiment(name).judge(numbers)
    failed = {check.key for check in verdict.checks if not check.holds}
    assert key in failed
    heart = verdict.checks[0].key
    assert verdict.outcome == ("fails" if heart in failed else "partly")


def test_the_first_check_is_the_heart():
    good, bad = Check("a", True), Check("b", False)
    assert Verdict.of(good, good).outcome == "holds"
    assert Verdict.of(good, bad).outcome == "partly"
    assert Verdict.of(bad, good).outcome == "fails"
    assert Verdict.of(bad).checks == (bad,)


@pytest.mark.parametrize("name", NAMES)
def test_sentences_take_whatever_was_measured(name):
    """A verdict on broken numbers is still told: nothing in a sentence depends on good ones."""
    from glassformer.languages import CODES, Language
    from glassformer.school.lab import ExperimentTexts

    for check in find_experiment(name).judge(GOOD[name]).checks:
        for code in CODES:
            texts = ExperimentTexts(name, Language(code))
            values = dict.fromkeys(check.values, math.nan)
            assert texts.check_sentence(check.key, check.values)
            assert "{" not in texts.check_sentence(check.key, values)
