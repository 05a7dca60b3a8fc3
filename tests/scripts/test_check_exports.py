"""The export check names the fault planted in each small library."""

import subprocess
from pathlib import Path

import check_exports
import pytest

LIST = "// a list\nFORWARD(one, 300, (int a), (a))\nHOOK(two, 306, (int a), (a))\n"
ONE = "int dnnl_graph_one(int a) { return a; }\n"
MAP = "{\n global:\n  dnnl_graph_*;\n  # why\n  owns;\n local:\n  *;\n};\n"
OWNS = "int owns(void) { return 1; }\n"
TWO = "int dnnl_graph_two(int a) { return a; }\n"


def faults(root: Path, code: str, *flags: str) -> list[str]:
    (root / "functions.inc").write_text(LIST)
    (root / "exports.map").write_text(MAP)
    (root / "plugin.c").write_text(OWNS + code)
    library = root / "libplugin.so"
    command = ["gcc", "-shared", "-fPIC", "-o", str(library), str(root / "plugin.c"), *flags]
    subprocess.run(command, check=True)
    return check_exports.check(library, root)


EXTRA = "int dnnl_graph_three(int a) { return a; }\n"
ELSEWHERE = "int elsewhere(int);\nint dnnl_graph_two(int a) { return elsewhere(a); }\n"


@pytest.mark.parametrize(
    ("code", "faults_found"),
    [
        (ONE + TWO + "static int hidden(void) { return 1; }\n", []),
        (ONE, ["does not export dnnl_graph_two"]),
        (ONE + TWO + EXTRA, ["exports dnnl_graph_three, which is not listed"]),
        (ONE + TWO + "int helper(void) { return 1; }\n", ["exports helper, which is not listed"]),
        (ONE + ELSEWHERE, ["cannot resolve elsewhere"]),
    ],
    ids=["no fault", "missing function", "extra function", "exported helper", "undefined symbol"],
)
def test_a_missing_or_unlisted_symbol_is_a_fault(
    tmp_path: Path, code: str, faults_found: list[str]
) -> None:
    assert faults(tmp_path, code) == faults_found


@pytest.mark.parametrize("tags", ["--enable-new-dtags", "--disable-new-dtags"])
def test_a_search_path_is_a_fault(tmp_path: Path, tags: str) -> None:
    faults_found = faults(tmp_path, ONE + TWO, f"-Wl,{tags},-rpath,/opt/lib")
    kind = "RUNPATH" if tags == "--enable-new-dtags" else "RPATH"
    assert faults_found == [f"has the {kind} /opt/lib"]


def test_a_symbol_that_is_too_new_is_a_fault(tmp_path: Path) -> None:
    code = "unsigned arc4random(void);\nint dnnl_graph_two(int a) { return a + arc4random(); }\n"
    assert faults(tmp_path, ONE + code) == ["wants GLIBC_2.36"]


@pytest.mark.parametrize("name", ["libdnnl.so.3", "libtbb.so.12"])
def test_a_needed_libdnnl_or_libtbb_is_a_fault(tmp_path: Path, name: str) -> None:
    (tmp_path / "other.c").write_text("int other(void) { return 1; }\n")
    other = tmp_path / name
    build = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(other)]
    subprocess.run([*build, str(tmp_path / "other.c")], check=True)
    faults_found = faults(tmp_path, ONE + TWO, "-Wl,--no-as-needed", str(other))
    assert f"needs {name}" in faults_found


def test_an_empty_list_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "functions.inc").write_text("// nothing\n")
    (tmp_path / "exports.map").write_text("{ local: *; };\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "a.so"), "-xc", "/dev/null"])
    faults_found = check_exports.check(tmp_path / "a.so", tmp_path)
    assert len(faults_found) == 1
    assert "no function is listed" in faults_found[0]


HEADER = """
namespace maskwise {
inline namespace v1 {
class MASKWISE_API plan {
public:
    int rank() const;
};
MASKWISE_API int compile(plan);
MASKWISE_API int compile();
int of_the_library();
} // namespace v1
} // namespace maskwise
"""
API = '#define MASKWISE_API __attribute__((visibility("default")))\n' + HEADER
BODY = """int maskwise::plan::rank() const { return 1; }
int maskwise::compile(plan) { return 1; }
int maskwise::of_the_library() { return 1; }
"""
OTHER_COMPILE = "int maskwise::compile() { return 2; }\n"


def api_faults(root: Path, code: str) -> list[str]:
    (root / "api.hpp").write_text(HEADER)
    (root / "api.cpp").write_text(API + code)
    library = root / "libapi.so"
    command = ["g++", "-shared", "-fPIC", "-fvisibility=hidden", "-o", str(library)]
    subprocess.run([*command, str(root / "api.cpp")], check=True)
    return check_exports.check_api(library, root / "api.hpp")


def test_an_api_as_declared_passes(tmp_path: Path) -> None:
    assert api_faults(tmp_path, BODY + OTHER_COMPILE) == []


def test_an_extra_export_of_the_api_is_a_fault(tmp_path: Path) -> None:
    extra = "namespace maskwise { MASKWISE_API int more() { return 1; } }\nMASKWISE_API int x;\n"
    faults_found = api_faults(tmp_path, BODY + OTHER_COMPILE + extra)
    assert faults_found == ["exports more, which is not listed", "exports x, which is not listed"]


def test_a_missing_export_of_the_api_is_a_fault(tmp_path: Path) -> None:
    assert api_faults(tmp_path, "int maskwise::plan::rank() const { return 1; }\n") == [
        "does not export compile"
    ]


@pytest.mark.parametrize(
    ("more", "faults_found"),
    [
        ("", []),
        ("int helper() { return 1; }", ["exports helper(), which is not listed"]),
        ("int elsewhere(); int accelerate = elsewhere();", ["cannot resolve _Z9elsewherev"]),
        (
            "namespace ov::Any { template <class T> struct Impl { virtual void read() {} }; }\n"
            "static ov::Any::Impl<int> any; auto* used = &any;",
            ["contains code of ov::Any"],
        ),
    ],
    ids=["no fault", "exported helper", "symbol that OpenVINO lacks", "code of ov::Any"],
)
def test_an_openvino_extension_exports_only_its_api(
    more: str, faults_found: list[str], tmp_path: Path
) -> None:
    (tmp_path / "o.cpp").write_text("int of_openvino() { return 1; }\n")
    other, library = tmp_path / "libopenvino.so.2641", tmp_path / "e.so"
    build = ["g++", "-shared", "-fPIC", "-fvisibility=hidden", "-o"]
    public = '__attribute__((visibility("default")))'
    subprocess.run([*build, other, "-fvisibility=default", tmp_path / "o.cpp"], check=True)
    (tmp_path / "e.cpp").write_text(
        "namespace maskwise::openvino::inline v1 {\n"
        f"{public} void accelerate(int) {{}} }}\n"
        f'int of_openvino(); extern "C" {public} int create_extensions();\n'
        "int create_extensions() { return of_openvino(); }\n"
        + more.replace("int helper", f"{public} int helper")
    )
    subprocess.run([*build, library, tmp_path / "e.cpp"], check=True)
    assert check_exports.check_extension(library, other) == faults_found
