"""What goes wrong, by kind. A message says what must hold, what came, and what to do."""


class GlassformerError(Exception):
    """The parent of every error that glassformer raises on purpose.

    >>> import glassformer as gf
    >>> try:
    ...     gf.Window(-1)
    ... except gf.GlassformerError as error:
    ...     print(type(error).__name__)
    ConfigError
    """


class ShapeError(GlassformerError, ValueError):
    """Tensors whose ranks, widths, lengths or head counts do not fit together."""


class DtypeError(GlassformerError, TypeError):
    """Tensors of the wrong dtype, of different dtypes, or on different devices."""


class ConfigError(GlassformerError, ValueError):
    """A setting outside of what it may be."""


class BackendError(GlassformerError, RuntimeError):
    """A backend that was asked for something it cannot compute exactly."""


class CheckpointError(GlassformerError, ValueError):
    """Saved weights, configs or tokenizers that are missing, damaged or of an unknown kind."""


class TraceError(GlassformerError, ValueError):
    """A trace that cannot be made, read or looked at in the way that was asked for."""


class DataError(GlassformerError, ValueError):
    """Texts or token files that are missing, damaged, or wrong in too many places."""


class TrainingError(GlassformerError, RuntimeError):
    """A run that cannot go on as it is."""


class RecordingWarning(UserWarning):
    """Something of a run could not be recorded; what the model computed is not affected.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     warnings.warn("decoder.0.self: not recorded", RecordingWarning)
    >>> seen[0].category.__name__
    'RecordingWarning'
    """
