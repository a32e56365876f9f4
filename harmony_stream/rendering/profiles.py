"""What differs between the layouts that can be written, as data.

The format leaves some freedom: where a recipient stands, how a type is spelled, how a JSON schema
becomes TypeScript. Each profile is one consistent choice.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from harmony_stream.values.messages import Role


class TypeScript(StrEnum):
    """How the schema of a tool's parameters is printed."""

    REFERENCE = "reference"
    """As the wheels print it, faults included."""
    CORRECT = "correct"
    """TypeScript that says what the schema says; as the wheels print it wherever they do."""


@attrs.frozen
class Profile:
    """One layout of prompts.

    Attributes:
        name: as given to `Renderer` and `load_harmony_encoding`.
        recipient_in_channel: whether the recipient stands behind the channel rather than behind
            the role, for these roles ...
        on_channels: ... and on these channels; None: on any.
        constrained: types that get a `<|constrain|>` if they have none; None: all do.
        tidies: whether headers are completed and spelled as the format guide has them: one
            spelling of `<|constrain|>json`, tool results ` to=assistant`, `<|call|>` after calls
            only.
        drops_by_turns: whether the reasoning of each finished turn is dropped, as the format guide
            has it, rather than what openai_harmony drops. Of a history that was normalised before
            nothing is dropped in either case.
        typescript: how tool schemas are printed.
        exponent_sign: what stands before a positive exponent in a default such as 1e30.
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
# The examples of the format guide, which are also what the model samples. A bare `code`, which it
# samples in calls of python, stays bare.
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
    """The profile of that name; a profile is returned as it is.

    >>> get_profile("guide").tidies
    True

    Raises:
        ValueError: there is no such profile.
    """
    if isinstance(profile, Profile):
        return profile
    if profile not in PROFILES:
        raise ValueError(f"unknown profile {profile!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[profile]
