"""What `watch` takes for an engine."""

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Engine(Protocol):
    """A program that serves a model, such as `vllm.LLM`: its workers run what it asks them to."""

    def collective_rpc(
        self,
        method: Any,
        timeout: float | None = None,
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call a method of every worker; a list of their answers."""
        ...
