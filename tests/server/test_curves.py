"""How the soak judges a curve: by its trend, not by its noise."""

from __future__ import annotations

import random

import pytest

from tests.server.soak import Curves


def curve(rise: float, noise: float, spikes: int = 0) -> Curves:
    """Two thousand seconds around 100, rising by `rise` of it from start to end."""
    chance = random.Random(0)
    curves = Curves()
    for second in range(2000):
        curves.seconds.append(float(second))
        curves.latency.append(100 * (1 + rise * second / 2000 + chance.uniform(-noise, noise)))
    for second in chance.sample(range(2000), spikes):
        curves.latency[second] *= 50
    return curves


@pytest.mark.parametrize("spikes", [0, 100])
@pytest.mark.parametrize("rise", [0.0, 0.1, 1.0])
def test_the_growth_is_that_of_the_judged_part(rise: float, spikes: int) -> None:
    curves = curve(rise, 0.2, spikes)
    # Three quarters of the rise, over the middle of the judged part.
    expected = 0.75 * rise / (1 + rise * 0.625)
    assert curves.growth(curves.latency) == pytest.approx(expected, abs=0.03)


def test_what_happens_while_warming_up_is_no_growth() -> None:
    curves = curve(0.0, 0.05)
    curves.latency[:450] = [value * (1 + at / 100) for at, value in enumerate(curves.latency[:450])]
    assert curves.growth(curves.latency) == pytest.approx(0.0, abs=0.02)


def test_short_runs_are_judged_sample_by_sample() -> None:
    curves = Curves(seconds=[0.0, 1.0, 2.0, 3.0], latency=[9.0, 1.0, 1.5, 2.0])
    assert curves.growth(curves.latency) == pytest.approx(0.5 * 2 / 1.5)
