"""The overhead test decides by the median of its turns, despite noise in some turns."""

from random import Random

import compare_overhead as overhead

BOUND = 3000.0  # ns that the plugin may add to 100 microseconds of oneDNN alone


def judged(added: list[float]) -> tuple[bool | None, int]:
    """Returns the decision and the number of turns."""
    decided, turns = overhead.judge(lambda n: overhead.Turn(100e3, 100e3 + added[n]))
    return decided, len(turns)


def test_a_clear_result_needs_ten_turns() -> None:
    assert judged([0.9 * BOUND] * 60) == (True, 10)
    assert judged([1.1 * BOUND] * 60) == (False, 10)


def test_one_fast_turn_does_not_change_the_result() -> None:
    assert judged([2 * BOUND, 2 * BOUND, -9e3] + [2 * BOUND] * 57)[0] is False


def test_noise_in_a_fifth_of_the_turns_does_not_change_the_result() -> None:
    for seed in range(20):
        random = Random(seed)
        noise = [random.choice((0, 0, 0, 0, random.uniform(-9e5, 9e5))) for _ in range(60)]
        assert judged([0.5 * BOUND + value for value in noise])[0] is True
        assert judged([2.0 * BOUND + value for value in noise])[0] is False
