"""The plugin's names for oneDNN's enumerators match oneDNN's headers."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / ".deps/onednn-3.13/include/oneapi/dnnl"
NAMES = (ROOT / "src/onednn/record/names.cpp").read_text()
ENDS = ("_last_symbol", "_type_max", "_undef", "_attr_end")

pytestmark = pytest.mark.skipif(not HEADERS.is_dir(), reason="oneDNN 3.13 is not installed")


def enumerators(header: str, prefix: str, enumeration: str) -> dict[int, str]:
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", (HEADERS / header).read_text(), flags=re.S)
    match = re.search(rf"typedef enum \{{([^}}]*)\}} {enumeration};", text)
    assert match, enumeration
    names: dict[int, str] = {}
    for entry in match[1].split(","):
        name, _, number = entry.strip().partition("=")
        if name:
            value = int(number, 0) if number else max(names, default=-1) + 1
            names[value] = name.strip()
    return {
        value: name.removeprefix(prefix) for value, name in names.items() if not name.endswith(ENDS)
    }


def listed(array: str) -> dict[int, str]:
    match = re.search(rf" {array}\[\] = \{{(.*?)\}};", NAMES, re.S)
    assert match, array
    names = dict(enumerate(re.findall(r'"(\w+)"', match[1])))
    return {number: name for number, name in names.items() if name != "undef"}


def test_operators() -> None:
    expected = enumerators("dnnl_graph_types.h", "dnnl_graph_op_", "dnnl_graph_op_kind_t")
    expected[5] = "batch_norm_training_backward"  # the name in graph files
    names = {number: name.lower() for number, name in listed("operators").items()}
    assert names == {number: name.replace("_", "") for number, name in expected.items()}


@pytest.mark.parametrize(
    ("array", "header", "prefix"),
    [
        ("data_types", "dnnl_common_types.h", "dnnl_data_type_"),
        ("properties", "dnnl_graph_types.h", "dnnl_graph_tensor_property_"),
        ("fpmath_modes", "dnnl_common_types.h", "dnnl_fpmath_mode_"),
    ],
)
def test_enumerations(array: str, header: str, prefix: str) -> None:
    names = enumerators(header, prefix, prefix + "t")
    assert listed(array) == {number: name.removeprefix("dnnl_") for number, name in names.items()}


def test_attributes() -> None:
    rows = re.findall(r"\{(0x\w+),\s*(?:true|false),\s*\{(.*?)\}\}", NAMES, re.S)
    names = {
        int(first, 16) + index: name
        for first, words in rows
        for index, name in enumerate(re.findall(r'"(\w+)"', words))
    }
    expected = enumerators("dnnl_graph_types.h", "dnnl_graph_op_attr_", "dnnl_graph_op_attr_t")
    assert names == expected
