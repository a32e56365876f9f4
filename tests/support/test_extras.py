"""Packages of extras: loaded where they are needed, or named with what to install."""

import copy
import pickle
import sys

import pytest

from harmony_stream.errors import HarmonyError
from harmony_stream.support.extras import MissingExtraError, need

EXTRAS = [("numpy", "arrow"), ("pyarrow", "arrow"), ("pyarrow.parquet", "arrow"),
          ("zstandard", "zstd")]  # fmt: skip


@pytest.mark.parametrize("module", [module for module, _ in EXTRAS])
def test_what_is_installed_is_imported(module):
    assert need(module) is sys.modules[module]


@pytest.mark.parametrize(("module", "extra"), EXTRAS)
def test_what_is_missing_is_named_with_its_extra(module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)  # as Python notes that there is none

    with pytest.raises(MissingExtraError) as caught:
        need(module)

    assert (caught.value.module, caught.value.extra) == (module, extra)
    remedy = f"run pip install 'harmony-stream[{extra}]'"
    assert str(caught.value) == f"{module} is not installed; {remedy}"
    assert isinstance(caught.value.__cause__, ImportError)


def test_the_error_is_a_value_of_the_librarys_family():
    error = MissingExtraError("zstandard", "zstd")
    assert isinstance(error, HarmonyError)
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (type(twin), twin.module, twin.extra) == (MissingExtraError, "zstandard", "zstd")
