"""The shipped workspace, planned from the lock: no network, no SGLang."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.locate import LOCK_FILE
from kunlun_adapt.plan import Plan, make_plan
from kunlun_adapt.source import Source, compile_plan, template_folder
from kunlun_adapt.upstream import LockFacts, read_lock

ROOT = Path(__file__).resolve().parents[2]

Compile = Callable[..., Source]


def plan_of(root: Path, release: str, profile: str) -> Plan:
    catalog = load_catalog(root)
    assert catalog.findings == ()
    return make_plan(catalog, LockFacts(read_lock(ROOT / LOCK_FILE), release), profile)


@pytest.fixture
def compiled() -> Compile:
    def compile_(release: str, profile: str, root: Path = ROOT) -> Source:
        return compile_plan(plan_of(root, release, profile), template_folder(root))

    return compile_
