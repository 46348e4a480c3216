"""One model folder of transformers through its own tiny testers, watched: what was found.

A record is one model class with one attention implementation. It is exact if

- outputs with and without watching are equal to the bit, and
- at every site, the derived weights agree with those that the model's eager attention returns
  or, where it returns none, derived weights times v agree with what the model computed.

Rows in which nothing is open have no weights here and are left out of both comparisons.
"""

import copy
import importlib
import importlib.machinery
import re
import sys
import types
import unittest
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import glassformer as gf
from glassformer.errors import GlassformerError
from scanned_evidence import eager_weights, judge, relative_difference, same, tensors

NOT_THERE = "does not support an attention implementation through"
SEED = 0


def records(folder: str, tests: Path) -> Iterator[dict[str, Any]]:
    """What every tester of a folder shows, one record after the other."""
    found = 0
    for path in sorted((tests / "models" / folder).glob("test_modeling_*.py")):
        if path.stem.startswith(("test_modeling_tf_", "test_modeling_flax_")):
            continue
        try:
            module = import_test(f"tests.models.{folder}.{path.stem}")
        except Exception as error:
            yield _failed(folder, path.stem, "tester", error)
            found += 1
            continue
        for case in _cases(module):
            found += 1
            yield from _case_records(folder, case)
    if not found:
        yield from _own_records(folder)


def _own_records(folder: str) -> Iterator[dict[str, Any]]:
    """Of a folder without a tester: a tiny model of our own tests, where there is one."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    tiny = importlib.import_module("tracing.watched_architectures")
    names = [name for name in tiny.ARCHITECTURES if tiny.folder(name) == folder]
    if not names:
        yield {"folder": folder, "status": "untested", "reason": "no tiny tester"}
    for name in names:
        yield from _case_records(folder, partial(_OwnCase, tiny, name))


class _OwnCase:
    """A tiny model of our own, as testers show theirs."""

    def __init__(self, tiny: Any, name: str, _method: str) -> None:
        import transformers

        self.tiny, self.plan, self.model_tester = tiny, tiny.ARCHITECTURES[name], self
        self.config = getattr(transformers, self.plan.config)(**self.plan.fields)
        self.all_model_classes = [getattr(transformers, self.plan.model)]

    def setUp(self) -> None:
        pass

    def prepare_config_and_inputs_for_common(self) -> tuple[Any, dict[str, Any]]:
        model = types.SimpleNamespace(config=self.config)
        return self.config, self.tiny.inputs(model, self.plan.reads)

    def _prepare_for_class(self, given: dict[str, Any], _kind: type) -> dict[str, Any]:
        return given


def import_test(name: str) -> types.ModuleType:
    """A module of tests; what only its other tests need may be absent and is left empty."""
    empty: set[str] = set()
    for _ in range(60):
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            package = str(error.name)
            if package.startswith(("tests", "torch")):
                raise
            sys.modules[package] = _Empty(package)
            empty.add(package)
        except ImportError as error:
            missing = re.match(
                r"cannot import name '(\w+)' from '(transformers[\w.]*)'", str(error)
            )
            if missing is None:
                raise
            setattr(sys.modules[missing[2]], missing[1], None)
        else:
            for package in empty:
                del sys.modules[package]
            return module
    raise ImportError(f"{name} needs too many names that this transformers has not")


class _Empty(types.ModuleType):
    """A package that is not installed; tests that use it are not run."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: lambda function: function


def leave_out_pipelines() -> None:
    """Testers share a module with tests of pipelines, which need data sets and a second copy."""
    empty = types.ModuleType("tests.test_pipeline_mixin")
    empty.PipelineTesterMixin = type("PipelineTesterMixin", (), {})  # type: ignore[attr-defined]
    sys.modules[empty.__name__] = empty


def _cases(module: types.ModuleType) -> list[type]:
    common = sys.modules["tests.test_modeling_common"].ModelTesterMixin
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, common)
        and issubclass(value, unittest.TestCase)
        and value.__module__ == module.__name__
    ]


def _case_records(folder: str, kind: Any) -> Iterator[dict[str, Any]]:
    about = {"folder": folder, "tester": getattr(kind, "__name__", "our own")}
    try:
        case = kind("run")
        case.setUp()
        classes = _chosen(case.all_model_classes)
    except BaseException as error:
        yield about | _reason("tester", error)
        return
    if not classes:
        yield about | {"status": "untested", "reason": "its tester names no model class"}
    for model_class in classes:
        for implementation in ("sdpa", "eager"):
            _seed()
            yield about | {
                "model": model_class.__name__,
                "implementation": implementation,
                **_record(case, model_class, implementation),
            }


def _chosen(classes: Any) -> list[type]:
    """The first class that generates, or else the first, which is the bare model."""
    classes = list(classes or ())
    return ([c for c in classes if _generates(c)] or classes)[:1]


def _generates(kind: type) -> bool:
    return bool(getattr(kind, "can_generate", lambda: False)())


# Large random weights make every part of a model matter, and let some overflow or amplify rounding.
ATTEMPTS = (
    (torch.float32, 0.3),
    (torch.float32, 0.1),
    (torch.float64, 0.3),
    (torch.float64, 0.1),
    (torch.float32, None),
)


def _record(case: Any, model_class: type, implementation: str) -> dict[str, Any]:
    """What one model shows; where rounding blurs the comparison, it is made once more."""
    first = None
    for dtype, std in ATTEMPTS:
        found = _checked(case, model_class, implementation, dtype, std)
        first = first or found
        is_other = found["status"] == "refused" and dtype == torch.float32
        if found["status"] == "exact" or is_other:
            plain = (dtype, std) == ATTEMPTS[0]
            return found if plain else found | {"as": f"{dtype}, std {std}", "first": first}
        is_numeric = found["status"] == "wrong" or "finite" in found["reason"]
        if found is first and not is_numeric and "not enough memory" not in found["reason"]:
            return found
    assert first is not None
    return first


@torch.no_grad()
def _checked(
    case: Any, model_class: type, implementation: str, dtype: torch.dtype, std: float | None
) -> dict[str, Any]:
    try:
        _seed()
        config, given = case.model_tester.prepare_config_and_inputs_for_common()
        given = case._prepare_for_class(given, model_class)
        given = {n: _as(v, dtype) for n, v in given.items() if v is not None}
        model = _built(model_class, config, implementation, std)
        if model is None:
            return {"status": "absent", "reason": f"transformers has no {implementation} for it"}
        before = _passed(model.to(dtype), given)
        steady = same(before, _passed(model, given))
    except BaseException as error:
        return _reason("tester", error)
    if any(not t.isfinite().all() for t in tensors(before)[:1] if t.is_floating_point()):
        return {"status": "tester", "reason": "its output is not finite"}
    if not steady:
        return {"status": "untested", "reason": "two passes without watching differ"}
    try:
        with gf.watch(model, outputs=True) as trace:
            during = _passed(model, given)
        if not same(before, during):
            return {"status": "wrong", "reason": "outputs differ while it is watched"}
        if not same(before, _passed(model, given)):
            return {"status": "wrong", "reason": "outputs differ after it was watched"}
        eager = _built(model_class, config, "eager", None)
        eager.to(dtype).load_state_dict(model.state_dict())
        weights, out = eager_weights(eager, partial(_passed, eager, given))
        return judge(
            trace, weights, is_other=out is not None and relative_difference(before, out) > 1e-3
        )
    except GlassformerError as error:
        return {"status": "refused", "reason": str(error)}
    except BaseException as error:
        return _reason("raised", error)


def _as(value: Any, dtype: torch.dtype) -> Any:
    """Numbers of an input in the precision of the model."""
    is_plain = isinstance(value, Tensor) and value.dtype == torch.float32
    return value.to(dtype) if is_plain else value


def _built(model_class: type, config: Any, implementation: str, std: float | None) -> Any | None:
    """The tester's model with random weights, or as it comes."""
    config = copy.deepcopy(config)
    try:
        config._attn_implementation = implementation
        model = model_class(config).eval()
    except ValueError as error:
        if NOT_THERE not in str(error):
            raise
        config._attn_implementation = None  # transformers chooses for each part
        model = model_class(config).eval()
        if implementation not in _implementations(model):
            return None
    if std is not None:
        generator = torch.Generator().manual_seed(SEED)
        for path, part in model.named_parameters():
            if part.is_floating_point() and part.requires_grad:
                part.data.normal_(std=std, generator=generator)
                if "norm" in path.lower() and path.endswith("weight"):
                    part.data += 1
    return model


def _implementations(model: nn.Module) -> set[str]:
    configs = [getattr(module, "config", None) for module in model.modules()]
    return {str(getattr(config, "_attn_implementation", None)) for config in configs}


def _passed(model: nn.Module, given: dict[str, Any], **more: Any) -> Any:
    _seed()
    return model(**copy.deepcopy(given), **more)


def _seed() -> None:
    from transformers import set_seed

    set_seed(SEED)


def _failed(folder: str, tester: str, status: str, error: BaseException) -> dict[str, Any]:
    return {"folder": folder, "tester": tester, **_reason(status, error)}


def _reason(status: str, error: BaseException) -> dict[str, Any]:
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    import traceback

    where = traceback.extract_tb(error.__traceback__)
    ours = [f for f in where if "glassformer" in f.filename] or where
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    said = str(error).strip().splitlines()
    first = next((line for line in said if line.strip()), "")
    return {"status": status, "reason": f"{type(error).__name__}: {first[:300]}", "at": place}
