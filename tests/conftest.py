"""Every test runs with the shapes and types of all signatures checked, and keeps its caches to itself."""

import os
from pathlib import Path

import hypothesis
import pytest
from jaxtyping import install_import_hook

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch comes: tests run side by side

install_import_hook("twofold", "beartype.beartype")

hypothesis.settings.register_profile("twofold", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("twofold")


@pytest.fixture(scope="session", autouse=True)
def own_caches(tmp_path_factory):
    """Keep what the program caches out of the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TWOFOLD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def in_empty_folder(tmp_path, monkeypatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
