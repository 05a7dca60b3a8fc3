"""Tests the driver suite: repeated measurements, case states, and a batch's table row."""

from pathlib import Path
from typing import Any

import driver
import pytest

PASSED = {"state": "PASSED", "library": "oneDNN, Maskwise 1", "compile_ms": 1.0, "partitions": []}
ASKED = {
    **PASSED,
    "perf": {"first_ms": 2.0, "median_ms": 1.0},
    "partitions": [{"owner": "maskwise"}],
}


class Planted:
    """A client. Calls of process n take times[n]; calls of later processes take times[-1]."""

    process = None

    def __init__(self, times: list[float], result: dict[str, Any]) -> None:
        self.times, self.result, self.closed = times, result, 0

    def run_flags(self, mode: str, flags: list[str]) -> dict[str, Any]:
        return self.result

    def samples(self, count: int, most_ms: float) -> list[float]:
        time = self.times[min(self.closed, len(self.times) - 1)]
        return [9.0, time, time]

    def close(self) -> None:
        self.closed += 1


def measured(times: list[float], maskwise: dict[str, Any] = ASKED) -> driver.Case:
    suite = driver.Suite(Path(), "3.13", 0.1)
    clients: Any = {"onednn": Planted([1.0], ASKED), "maskwise": Planted(times, maskwise)}
    suite.clients = clients
    case = driver.Case("batch", ["--dt=f16", "--case=op/select.json"])
    suite.measure(case)
    return case


def test_a_slower_case_is_measured_in_fresh_processes_until_it_is_not_slower() -> None:
    case = measured([2.0, 1.0, 0.5, 0.1])
    assert case.pairs == [0.5, 1.0, 2.0]
    assert not case.is_slower()


def test_a_case_that_stays_slower_is_reported() -> None:
    case = measured([1.25])
    assert case.pairs == [0.8] * driver.PAIRS
    assert case.is_slower()


def test_a_case_without_a_claim_is_not_timed() -> None:
    case = measured([2.0], {**ASKED, "partitions": [{"owner": "onednn"}]})
    assert (case.ratio, case.state) == (None, driver.LEFT)


def test_a_case_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MOST_TIMES", 1)
    suite = driver.Suite(Path(), "3.13", 0.2)
    for client in suite.clients.values():
        client.command, client.log = ["sleep", "60"], Path("/dev/null")
    case = driver.Case("batch", ["--case=op/select.json"])
    suite.measure(case)
    assert (case.ratio, case.state) == (None, "stopped after 0.2 s")
    assert all(client.process is None for client in suite.clients.values())


def test_a_case_that_fails_only_with_the_plugin_has_no_ratio() -> None:
    case = measured([1.0], {**PASSED, "state": "UNIMPLEMENTED"})
    assert (case.ratio, case.state) == (None, "maskwise unimplemented")


def test_the_row_of_a_batch_has_the_least_ratio_and_both_sums() -> None:
    row = driver.batch_row(
        "b", [measured([0.5]), measured([0.25])], {"onednn": 10**6, "maskwise": 2}
    )
    assert row == [
        "b",
        "2",
        "0",
        "2.00",
        "3.00",
        "4.00",
        "2 ms / 2 ms",
        "4 ms / 4 ms",
        "1 MB / 0 MB",
    ]


def test_maskwise_onednn_source_names_a_source_or_build_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = tmp_path / "source/tests/benchdnn/inputs/graph"
    inputs.mkdir(parents=True)
    (tmp_path / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={tmp_path}/source\n")
    for folder in (tmp_path, tmp_path / "source"):
        monkeypatch.setenv("MASKWISE_ONEDNN_SOURCE", str(folder))
        assert driver.source_inputs() == inputs
    monkeypatch.setenv("MASKWISE_ONEDNN_SOURCE", str(inputs))
    with pytest.raises(SystemExit):
        driver.source_inputs()
