"""Packages that readers of logs need and that only extras install, loaded where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import attrs

from harmony_stream.errors import HarmonyError

# By module: the extra of harmony-stream that installs it.
_EXTRAS = {"numpy": "arrow", "pyarrow": "arrow", "pyarrow.parquet": "arrow", "zstandard": "zstd"}


@attrs.frozen(auto_exc=True, slots=False, str=False)
class MissingExtraError(HarmonyError):
    """A package that an operation needs is not installed.

    Attributes:
        module: the module that could not be imported.
        extra: the extra of harmony-stream that installs it.

    >>> str(MissingExtraError("pyarrow", "arrow"))
    "pyarrow is not installed; run pip install 'harmony-stream[arrow]'"
    """

    module: str
    extra: str

    def __str__(self) -> str:
        return f"{self.module} is not installed; run pip install 'harmony-stream[{self.extra}]'"


def need(module: str) -> Any:  # noqa: ANN401 - a module
    """Import and return a module of an extra.

    Raises:
        MissingExtraError: if it is not installed.

    >>> need("numpy").int64.__name__
    'int64'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(module, _EXTRAS[module]) from error
