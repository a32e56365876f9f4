"""Counts that add up, batch by batch."""

from __future__ import annotations

from operator import add
from typing import Self

import attrs


@attrs.define
class Counts:
    """The base of counts whose fields are added one by one."""

    def __add__(self, other: Self) -> Self:
        fields = (attrs.astuple(each, recurse=False) for each in (self, other))
        return type(self)(*map(add, *fields))
