"""The wheel holds what users need, and nothing else."""

import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


@pytest.mark.parametrize("name", ["py.typed", "o200k_harmony.bin", "parsing/states.py"])
def test_the_wheel_holds_code_data_and_the_mark_of_types(names, name):
    assert f"harmony_stream/{name}" in names


def test_the_wheel_holds_each_module_of_the_package(names):
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "harmony_stream").rglob("*.py")}
    assert modules <= set(names)


def test_the_wheel_holds_nothing_but_the_package_and_its_metadata(names):
    folders = {name.split("/")[0] for name in names}
    assert folders == {"harmony_stream", "harmony_stream-0.1.0.dist-info"}
