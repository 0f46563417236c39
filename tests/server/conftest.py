"""What the server tests share: tiny models, made once per run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.models import TinyModel, make_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[TinyModel], Path]:
    """Makes a model on first use and returns its folder."""
    cache = tmp_path_factory.mktemp("models")
    return lambda model: make_model(model, cache)
