"""The soak finds steady growth of memory and handles, and ignores fluctuation."""

import io
from collections.abc import Callable
from random import Random

import soak

CASES_A_SECOND = 100


def watched(
    resident: Callable[[int], float],
    seconds: int = 600,
    handles: Callable[[int], float] = lambda _: 3,
) -> list[str]:
    samples = [
        soak.Sample(second, second * CASES_A_SECOND, int(resident(second)), 3, int(handles(second)))
        for second in range(seconds)
    ]
    return soak.growth(samples)


def noisy(random: Random, start: float, a_second: float, noise: float) -> Callable[[int], float]:
    return lambda s: start + a_second * s + random.uniform(-noise, noise)


def test_fluctuating_memory_is_no_leak() -> None:
    for seed in range(20):
        assert watched(noisy(Random(seed), 15e6, 0, 4e6)) == []
    assert watched(lambda s: 15e6 + 3e6 * (s % 37)) == []


def test_a_steady_leak_is_reported_by_case_and_hour() -> None:
    for bytes_a_second in (15e6, 20e3):
        assert watched(noisy(Random(1), 15e6, bytes_a_second, 0)) == [
            f"resident_bytes grow by {bytes_a_second / CASES_A_SECOND:,.2f} a case, "
            f"{bytes_a_second * 3600:,.2f} an hour"
        ]


def test_a_leak_below_the_noise_is_found_with_more_samples() -> None:
    assert watched(noisy(Random(1), 15e6, 1000, 2e6), 100) == []
    assert len(watched(noisy(Random(1), 15e6, 1000, 2e6), 3600)) == 1


def test_a_handle_a_minute_is_found() -> None:
    assert watched(lambda _: 15e6, handles=lambda s: 3 + s // 60) != []
    assert watched(lambda _: 15e6, handles=lambda s: 3 + s % 2) == []


def test_too_few_samples_fail() -> None:
    assert watched(lambda _: 15e6, 10) == ["7 samples after the warm-up, 20 are needed"]
    assert soak.growth([]) != []


def test_every_failing_verdict_is_counted() -> None:
    log = b"0:PASSED (1 ms) __REPRO: a\n1:ABORTED (it was killed) (1 ms) __REPRO: b\n2:MISTRU"
    verdicts = soak.Verdicts(
        io.BytesIO(log + b"STED (2 ms) __REPRO: c\n3:SKIPPED (1 ms) __REPRO: d\n")
    )
    assert verdicts.read() == 4
    assert verdicts.faults() == [
        "1 ABORTED, 1 MISTRUSTED",
        "1:ABORTED (it was killed) (1 ms) __REPRO: b",
        "2:MISTRUSTED (2 ms) __REPRO: c",
    ]
    assert soak.Verdicts(io.BytesIO(b"")).faults() == ["no case passed"]
