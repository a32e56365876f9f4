"""The three layouts are data."""

import attrs
import pytest

from harmony_stream.rendering.profiles import GUIDE, PROFILES, get_profile


@pytest.mark.parametrize("name", ["openai-0.0.8", "oss-0.0.11", "guide"])
def test_a_profile_is_found_by_its_name(name):
    assert get_profile(name) is PROFILES[name]
    assert get_profile(name).name == name


def test_a_profile_of_ones_own_is_taken_as_it_is():
    mine = attrs.evolve(GUIDE, name="mine", constrained=None)

    assert get_profile(mine) is mine


def test_an_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'guided'; expected one of openai-0.0.8, oss-0.0.11, g"):
        get_profile("guided")


def test_profiles_are_frozen():
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        GUIDE.name = "mine"
