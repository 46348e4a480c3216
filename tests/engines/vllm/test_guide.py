"""The guide to engines runs as it is written."""

import re
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from engines.vllm.served_models import V, close_engine
from glassformer.tracing import Trace

GUIDE = Path(__file__).parents[3] / "docs" / "engines.md"


def test_first_example(
    folders: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")  # GiB, instead of nearly all memory
    words = ["the", "cat", "sat", "on", "The", "Once", "upon", "a", "time"]
    names = words + [f"w{i}" for i in range(V - len(words))]
    backend = Tokenizer(models.WordLevel({n: i for i, n in enumerate(names)}, unk_token="w0"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    (tmp_path / "my-model").mkdir()
    for file in folders["llama"].iterdir():
        (tmp_path / "my-model" / file.name).write_bytes(file.read_bytes())
    PreTrainedTokenizerFast(tokenizer_object=backend).save_pretrained(tmp_path / "my-model")
    first, _, asking = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    # Otherwise bfloat16, for which vLLM's kernels use instructions that not every processor has.
    code = (first + asking).replace('LLM("my-model")', 'LLM("my-model", dtype="float32")')
    names_there: dict = {}
    exec(code, names_there)
    close_engine(names_there.pop("llm"))
    shown = capsys.readouterr().out
    assert "'The', 'cat', 'sat', 'on', 'the'" in shown
    assert "'Once', 'upon', 'a', 'time'" in shown
    assert len(Trace.load(tmp_path / "served.trace").runs) == 2
