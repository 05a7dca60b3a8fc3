"""The summary counts every case of a program and each reason to skip.

The summary fails if a case failed, a lane is empty or a report is missing.
"""

import json
import sys
import unittest
from pathlib import Path

import pytest
import unittest_report
from summarize_tests import Program, read_report, summarize

LANES = ["3.13", "3.2"]
GOOD = {"3.13/a": "run", "3.2/a": "run", "unit.dims": "run"}
GTEST = """<testsuites tests="3"><testsuite name="s" tests="3">
<testcase name="one" status="run" result="completed" classname="s"/>
<testcase name="two" status="run" result="skipped" classname="s">
  <skipped message="../a.cpp:12&#x0A;no bf16 here"><![CDATA[../a.cpp:12 no bf16 here]]></skipped>
</testcase>
<testcase name="three" status="notrun" result="suppressed" classname="s"/>
</testsuite></testsuites>"""
PYTEST = """<testsuites><testsuite>
<testcase classname="" name=""><skipped message="collection skipped"
  >('/t.py', 2, "Skipped: could not import 'jax'")</skipped></testcase>
<testcase classname="t" name="one"/>
<testcase classname="t" name="two"><failure message="no"/></testcase>
</testsuite></testsuites>"""
BATCH = {
    "tests": [
        {"state": "PASSED", "reason": ""},
        {"state": "UNIMPLEMENTED", "reason": "no primitive"},
        {"state": "SKIPPED", "reason": "no f16"},
    ]
}


def report(root: Path, cases: dict[str, str], inside: str = "") -> Path:
    lines = [f'<testcase name="{k}" status="{v}">{inside}</testcase>' for k, v in cases.items()]
    path = root / "tests.xml"
    path.write_text(f"<testsuite>{''.join(lines)}</testsuite>")
    return path


def status_of(
    root: Path,
    cases: dict[str, str],
    lanes: list[str] = LANES,
    partial: bool = False,
    inside: str = "",
    **programs: Program,
) -> int:
    known = {name: Program() for name in cases} | {f"3.2/{k}": v for k, v in programs.items()}
    return summarize(report(root, cases, inside), known, lanes, partial)


def test_all_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(tmp_path, GOOD) == 0
    assert "3.13: 1 passed, 0 failed, 0 skipped, by 1 programs\n" in capsys.readouterr().out


@pytest.mark.parametrize("status", ["fail", "notrun", "disabled", "unknown"])
def test_a_program_that_did_not_pass_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: str
) -> None:
    assert status_of(tmp_path, {**GOOD, "3.2/b": status}, partial=True) == 1
    assert f"failed: 3.2/b: ctest says {status}\n" in capsys.readouterr().out


def test_an_empty_lane_fails_unless_the_run_is_partial(tmp_path: Path) -> None:
    assert status_of(tmp_path, GOOD, [*LANES, "3.7"]) == 1
    assert status_of(tmp_path, GOOD, [*LANES, "3.7"], partial=True) == 0


def test_a_lane_of_skipped_cases_is_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = '<skipped message="SKIP_RETURN_CODE=77"/><system-out>a\nno counter</system-out>'
    cases = {"3.2/a": "notrun"}
    assert status_of(tmp_path, cases, ["3.2"], partial=True, inside=inside) == 0
    assert "1 skipped: no counter\n" in capsys.readouterr().out
    assert status_of(tmp_path, cases, ["3.2"], inside=inside) == 1


def test_a_missing_program_fails(tmp_path: Path) -> None:
    inside = '<skipped message="Unable to find executable"/>'
    assert status_of(tmp_path, {"3.2/a": "notrun"}, partial=True, inside=inside) == 1


def test_cases_of_programs_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    for name in ("a.xml", "a_1.xml"):  # two processes of one program
        (folder / name).write_text(GTEST)
    (folder / "batch-0.json").write_text(json.dumps(BATCH))
    assert status_of(tmp_path, GOOD, a=Program(folder)) == 0
    assert (
        "     3.2: 3 passed, 0 failed, 4 skipped, by 1 programs\n"
        "          2 skipped: no bf16 here\n"
        "          1 skipped: unimplemented in a batch: no primitive\n"
        "          1 skipped: in a batch: no f16\n"
    ) in capsys.readouterr().out


def test_a_missing_report_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of(tmp_path, GOOD, a=Program(tmp_path / "gone")) == 1
    assert f"3.2/a: no case is reported in {tmp_path}/gone\n" in capsys.readouterr().out


@pytest.mark.parametrize("ctest_says", ["run", "fail"])
def test_a_failed_case_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ctest_says: str
) -> None:
    path = tmp_path / "pytest.xml"
    path.write_text(PYTEST)
    assert status_of(tmp_path, {**GOOD, "3.2/a": ctest_says}, a=Program(path)) == 1
    output = capsys.readouterr().out
    assert "3.2: 1 passed, 1 failed, 1 skipped" in output
    assert "failed: 3.2/a: t.two\n" in output
    assert "1 skipped: could not import 'jax'\n" in output


def test_a_program_that_fails_after_its_cases_fails(tmp_path: Path) -> None:
    path = tmp_path / "gtest.xml"
    path.write_text(GTEST)
    assert status_of(tmp_path, {**GOOD, "3.2/a": "fail"}, a=Program(path)) == 1


def example() -> type[unittest.TestCase]:
    class Example(unittest.TestCase):
        def test_passes(self) -> None:
            pass

        def test_skips(self) -> None:
            self.skipTest("a reason & another")

        def test_fails_in_two_parts(self) -> None:
            for part in range(3):
                with self.subTest(part):
                    self.assertEqual(part, 1)

    return Example


def test_unittest_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWISE_TEST_REPORT", str(tmp_path / "new"))
    monkeypatch.setattr(sys.modules["__main__"], "Example", example(), raising=False)
    with pytest.raises(SystemExit) as ended:
        unittest_report.main(argv=["program", "Example"])
    assert ended.value.code == 1
    cases = {case.name.rpartition(".")[2]: case for case in read_report(tmp_path / "new")}
    assert {name: case.state for name, case in cases.items()} == {
        "test_passes": "passed",
        "test_skips": "skipped",
        "test_fails_in_two_parts": "failed",
    }
    assert cases["test_skips"].reason == "a reason & another"
