"""Async sources that are closed at once when their reader ends."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def closing(iterable: object) -> AsyncIterator[None]:
    """Close an async generator after its reader, even if the reader ends early."""
    try:
        yield
    finally:
        if (aclose := getattr(iterable, "aclose", None)) is not None:
            await aclose()
