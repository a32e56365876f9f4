"""Sources of an asynchronous kind that are closed where they stand."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def closing(iterable: object) -> AsyncIterator[None]:
    """Close an async generator behind its reader, also where that goes away early."""
    try:
        yield
    finally:
        if (aclose := getattr(iterable, "aclose", None)) is not None:
            await aclose()
