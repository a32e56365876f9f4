import importlib
import pkgutil

import pytest

import harmony_stream
from harmony_stream import parsing


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


@pytest.mark.parametrize(
    "name",
    [
        *("EventParser", "Event", "MessageStart", "ContentDelta", "MessageEnd", "Malformed"),
        *("EndKind", "State", "join_deltas", "iter_events", "aiter_events", "parse"),
        *("Completion", "MessageCollector", "ToolCall", "Header"),
    ],
)
def test_the_names_of_parsing_are_public(name):
    modules = [
        importlib.import_module(f"harmony_stream.{where}")
        for where in [
            "header",
            *(f"parsing.{m.name}" for m in pkgutil.iter_modules(parsing.__path__)),
        ]
    ]
    assert name in harmony_stream.__all__
    homes = [module for module in modules if getattr(module, name, None) is not None]
    assert getattr(harmony_stream, name) in [getattr(module, name) for module in homes]
