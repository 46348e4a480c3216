"""hf://ORG/NAME: a repository of the Hugging Face hub, fetched by its client into its cache.

The client's settings hold: HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_TOKEN.
"""

import re
from pathlib import Path

from glassformer.errors import CheckpointError
from glassformer.installation import install_command
from glassformer.storage import sha256

_ADDRESS = re.compile(
    r"hf://(?P<repo>[\w.-]+/[\w.-]+)(?:/(?P<file>[\w./-]+\.gguf))?(?:@(?P<revision>[\w./-]+))?"
)
# What a model folder of ours may need; pickled weights are not even fetched.
_WANTED = ["*.json", "*.safetensors", "*.txt", "*.spm", "*.jinja", "1_Pooling/*"]
_UNWANTED = ["onnx/*", "openvino/*", "original/*", "*/*.safetensors"]


def fetch(address: str) -> Path:
    """The folder, or the GGUF file, that an address names, on this machine."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise CheckpointError(
            "An address on the hub must read hf://ORG/NAME, hf://ORG/NAME@REVISION or "
            f"hf://ORG/NAME/FILE.gguf; got {address!r}."
        )
    try:
        import huggingface_hub
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ImportError:
        raise CheckpointError(
            f"{address} needs the package huggingface_hub; it is not installed. "
            f"Run: {install_command('hub')}"
        ) from None
    repo, file, revision = found["repo"], found["file"], found["revision"]
    try:
        if file is not None:
            path = Path(huggingface_hub.hf_hub_download(repo, file, revision=revision))
        else:
            path = Path(
                huggingface_hub.snapshot_download(
                    repo, revision=revision, allow_patterns=_WANTED, ignore_patterns=_UNWANTED
                )
            )
    except LocalEntryNotFoundError:
        raise CheckpointError(
            f"{address} is not in the local cache, and the hub cannot be asked: offline, or "
            "HF_HUB_OFFLINE is set. Go online once, or give the path of a folder."
        ) from None
    except (HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CheckpointError(f"{address} could not be fetched: {reason}") from None
    check_hashes(path)
    return path


def check_hashes(path: Path) -> None:
    """Large files in the hub's cache are named by their hash: a damaged one is noticed."""
    for each in [path] if path.is_file() else sorted(path.iterdir()):
        blob = each.resolve().name
        if each.is_symlink() and re.fullmatch(r"[0-9a-f]{64}", blob) and sha256(each) != blob:
            raise CheckpointError(
                f"{each} is damaged: its hash does not fit its name in the cache. Delete "
                f"{each.resolve()} and load again."
            )
