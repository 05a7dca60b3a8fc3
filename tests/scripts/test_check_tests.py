"""The check of tests named in documents finds planted faults."""

from pathlib import Path

import check_tests

HEAD = "| what | how | tests |\n|---|---|---|\n"


def faults(root: Path, rows: str, code: str = "TEST_P(suite, one) {\n}\n") -> list[str]:
    (root / "page.md").write_text(HEAD + rows)
    (root / "some_test.cpp").write_text(code)
    return check_tests.check(root / "page.md", root)


def test_a_page_whose_tests_exist_passes(tmp_path: Path) -> None:
    assert faults(tmp_path, "| a | `no.test` | `suite.one` |\n") == []


def test_a_test_that_does_not_exist_is_a_fault(tmp_path: Path) -> None:
    lines = faults(tmp_path, "| a | b | `suite.one` `suite.two` |\n")
    assert lines == ["page.md:3: no test suite.two"]


def test_a_row_without_a_test_is_a_fault(tmp_path: Path) -> None:
    assert faults(tmp_path, "| a | b | c |\n") == ["page.md:3: no test is named for 'a'"]


def test_a_page_without_a_table_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("words\n")
    assert check_tests.check(tmp_path / "page.md", tmp_path) == ["page.md: no table"]
