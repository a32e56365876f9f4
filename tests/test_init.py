import importlib

import pytest

import harmony_stream


def test_public_names_are_sorted_and_unique():
    assert list(harmony_stream.__all__) == sorted(set(harmony_stream.__all__))


@pytest.mark.parametrize("name", harmony_stream.__all__)
def test_each_public_name_can_be_had(name):
    assert getattr(harmony_stream, name) is not None
    assert name in dir(harmony_stream)


def test_all_public_names_come_with_a_star():
    namespace = {}
    exec("from harmony_stream import *", namespace)
    assert set(harmony_stream.__all__) <= set(namespace)


def test_a_name_that_is_not_public_is_no_attribute():
    with pytest.raises(AttributeError, match="NoSuchName"):
        _ = harmony_stream.NoSuchName


LAZY = ("rendering", "drop_in", "history")


def test_a_name_of_the_writing_side_is_in_one_room():
    rooms = [importlib.import_module(f"harmony_stream.{room}").__all__ for room in LAZY]
    names = [name for room in rooms for name in room]
    assert len(names) == len(set(names))
    eager = importlib.import_module("harmony_stream")
    assert set(names) - {"Policy"} <= set(eager.__all__)  # an alias for annotations


@pytest.mark.parametrize("name", harmony_stream.__all__)
def test_each_public_name_is_what_its_module_has(name):
    value = getattr(harmony_stream, name)
    home = getattr(value, "__module__", "harmony_stream.values.events")  # `Event` is an alias
    home = home if home.startswith("harmony_stream.") else "harmony_stream.values.events"
    assert getattr(importlib.import_module(home), name) is value
