"""Error classes. A message says what is required, what was given, and what to do."""


class GlassformerError(Exception):
    """The base class of all errors that glassformer raises deliberately.

    >>> import glassformer as gf
    >>> try:
    ...     gf.Window(-1)
    ... except gf.GlassformerError as error:
    ...     print(type(error).__name__)
    ConfigError
    """


class ShapeError(GlassformerError, ValueError):
    """Tensors whose ranks, widths, lengths or head counts do not match."""


class DtypeError(GlassformerError, TypeError):
    """Tensors of the wrong dtype, of different dtypes, or on different devices."""


class ConfigError(GlassformerError, ValueError):
    """A setting with an invalid value."""


class BackendError(GlassformerError, RuntimeError):
    """A backend that was asked for something it cannot compute exactly."""


class CheckpointError(GlassformerError, ValueError):
    """Saved weights, configs or tokenizers that are missing, damaged or not supported."""


class TraceError(GlassformerError, ValueError):
    """A trace that cannot be recorded, read or shown as requested."""


class InterventionError(GlassformerError, ValueError):
    """An intervention that cannot be applied, or that contradicts another."""


class DataError(GlassformerError, ValueError):
    """Texts or token files that are missing, damaged, or have too many bad lines."""


class TrainingError(GlassformerError, RuntimeError):
    """A training run that cannot continue."""


class RecordingWarning(UserWarning):
    """Part of a run could not be recorded; the model's output is not affected.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warnings.warn("decoder.0.self: not recorded", RecordingWarning)
    >>> seen[0].category.__name__
    'RecordingWarning'
    """
