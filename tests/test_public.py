"""The public surface is a tested list, and asking for none of it costs nothing."""

import subprocess
import sys

import pytest

import twofold


def test_the_names_are_these():
    assert sorted(twofold.__all__) == ["Method", "Run", "load", "method", "methods", "runs", "train"]
    assert all(getattr(twofold, name) for name in twofold.__all__)
    assert dir(twofold) == sorted(twofold.__all__)


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        twofold.trian  # noqa: B018


@pytest.mark.parametrize("program", ["import twofold", "import twofold.cli; twofold.cli.main(['--help'])"])
def test_nothing_heavy_is_imported_before_it_is_needed(program):
    heavy = "{'torch', 'numpy', 'sklearn', 'scipy', 'pydantic', 'rich', 'plotly', 'tyro'}"
    check = f"{program}\nimport sys\nassert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True, stdout=subprocess.DEVNULL)
