"""Profiles: the layouts that can be written, as data.

The format leaves some freedom: the place of a recipient, the spelling of a type, the TypeScript of
a JSON schema. Each profile is one consistent choice.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from harmony_stream.values.messages import Role


class TypeScript(StrEnum):
    """The printing of the schema of a tool's parameters."""

    REFERENCE = "reference"
    """Printed as in openai_harmony's wheels, faults included."""
    CORRECT = "correct"
    """TypeScript that means the same as the schema, as in the wheels wherever theirs does."""


@attrs.frozen
class Profile:
    """One layout of prompts.

    Attributes:
        name: the name that `Renderer` and `load_harmony_encoding` accept.
        recipient_in_channel: the roles whose recipient is after the channel instead of after the
            role ...
        on_channels: ... on these channels; None: on any.
        constrained: the types that get a `<|constrain|>` if they have none; None: all do.
        tidies: true if headers are completed and spelled as in the format guide: one spelling of
            `<|constrain|>json`, tool results ` to=assistant`, `<|call|>` after calls only.
        drops_by_turns: true to drop the reasoning of each finished turn, as in the format guide;
            false to drop what openai_harmony drops. Nothing is dropped from a normalised history
            in either case.
        typescript: the printing of tool schemas.
        exponent_sign: the sign before a positive exponent in a default such as 1e30.
    """

    name: str
    recipient_in_channel: frozenset[Role]
    on_channels: frozenset[str] | None
    constrained: frozenset[str] | None
    tidies: bool
    drops_by_turns: bool
    typescript: TypeScript
    exponent_sign: str


OPENAI_0_0_8 = Profile(
    name="openai-0.0.8",
    recipient_in_channel=frozenset(),
    on_channels=None,
    constrained=frozenset(),
    tidies=False,
    drops_by_turns=False,
    typescript=TypeScript.REFERENCE,
    exponent_sign="",
)
OSS_0_0_11 = Profile(
    name="oss-0.0.11",
    recipient_in_channel=frozenset(Role),
    on_channels=frozenset({"commentary"}),
    constrained=None,
    tidies=False,
    drops_by_turns=False,
    typescript=TypeScript.REFERENCE,
    exponent_sign="+",
)
# The layout of the format guide's examples, which is also that of the model's samples. A bare
# `code`, which the model samples in calls of python, stays bare.
GUIDE = Profile(
    name="guide",
    recipient_in_channel=frozenset({Role.ASSISTANT}),
    on_channels=None,
    constrained=frozenset({"json"}),
    tidies=True,
    drops_by_turns=True,
    typescript=TypeScript.CORRECT,
    exponent_sign="",
)

PROFILES = {profile.name: profile for profile in (OPENAI_0_0_8, OSS_0_0_11, GUIDE)}


def get_profile(profile: Profile | str) -> Profile:
    """Return the profile of that name. A profile is returned unchanged.

    >>> get_profile("guide").tidies
    True

    Raises:
        ValueError: if there is no such profile.
    """
    if isinstance(profile, Profile):
        return profile
    if profile not in PROFILES:
        raise ValueError(f"unknown profile {profile!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[profile]
