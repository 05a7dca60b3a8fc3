"""The size check finds functions and files above the limits. Exceptions need reasons."""

import subprocess
from pathlib import Path

import check_sizes
import pytest


def repository(root: Path, files: dict[str, str]) -> int:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return check_sizes.check(root)


def cpp_function(lines: int) -> str:
    body = "    value += 1;\n" * (lines - 3)
    return f"template <class T>\nauto grow(T value) -> T {{\n{body}    return value;\n}}\n"


def python_function(lines: int) -> str:
    return (
        "def grow(value: int) -> int:\n" + "    value += 1\n" * (lines - 2) + "    return value\n"
    )


@pytest.mark.parametrize(("lines", "status"), [(70, 0), (71, 1)])
@pytest.mark.parametrize("name", ["src/plan/grow.cpp", "src/plan/grow.hpp", "scripts/grow.py"])
def test_a_function_above_70_lines_is_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, lines: int, status: int
) -> None:
    make = python_function if name.endswith(".py") else cpp_function
    assert repository(tmp_path, {name: make(lines)}) == status
    assert ("grow: 71 lines, limit 70" in capsys.readouterr().out) == bool(status)


@pytest.mark.parametrize(("lines", "status"), [(500, 0), (501, 1)])
@pytest.mark.parametrize("name", ["src/a.hpp", "scripts/lane", "cmake/a.cmake", "CMakeLists.txt"])
def test_a_file_above_500_lines_is_a_fault(
    tmp_path: Path, name: str, lines: int, status: int
) -> None:
    assert repository(tmp_path, {name: "\n" * lines}) == status


def test_an_exception_names_a_function_and_a_reason(tmp_path: Path) -> None:
    listed = {
        "src/a.cpp": cpp_function(90),
        "scripts/size_exceptions.txt": "src/a.cpp grow one table, read as a whole\n",
    }
    assert repository(tmp_path, listed) == 0
    listed["scripts/size_exceptions.txt"] = "src/a.cpp grow\n"
    with pytest.raises(SystemExit, match="needs a reason"):
        repository(tmp_path, listed)


def test_an_unneeded_exception_is_a_fault(tmp_path: Path) -> None:
    files = {
        "src/a.cpp": cpp_function(20),
        "scripts/size_exceptions.txt": "src/a.cpp grow it was long once\n",
    }
    assert repository(tmp_path, files) == 1


def test_an_empty_tree_is_a_fault(tmp_path: Path) -> None:
    assert repository(tmp_path, {}) == 1
