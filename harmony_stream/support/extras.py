"""What the reader of a log may lack: packages that come with extras, loaded where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import attrs

from harmony_stream.errors import HarmonyError

# By module: the extra of harmony-stream that brings it.
_EXTRAS = {"numpy": "arrow", "pyarrow": "arrow", "pyarrow.parquet": "arrow", "zstandard": "zstd"}


@attrs.frozen(auto_exc=True, slots=False, str=False)
class MissingExtraError(HarmonyError):
    """Something needs a package that is not installed.

    Attributes:
        module: what could not be imported.
        extra: which extra of harmony-stream brings it.

    >>> str(MissingExtraError("pyarrow", "arrow"))
    "this needs pyarrow: pip install 'harmony-stream[arrow]'"
    """

    module: str
    extra: str

    def __str__(self) -> str:
        return f"this needs {self.module}: pip install 'harmony-stream[{self.extra}]'"


def need(module: str) -> Any:  # noqa: ANN401 - a module
    """Import a module of an extra.

    Raises:
        MissingExtraError: it is not installed.

    >>> need("numpy").int64.__name__
    'int64'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(module, _EXTRAS[module]) from error
