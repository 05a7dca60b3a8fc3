"""Tests the claims, refusals and errors of Maskwise's provider in ONNX Runtime."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maskwise.onnxruntime
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from arrays import in_a_process, run_python
from fused_models import example
from onnx import TensorProto, helper, numpy_helper
from onnx_where import model_of, op, value, where_inputs, where_model
from where_models import REFUSED, options, providers_of, run, session_of

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
MASKWISE, CPU = maskwise.onnxruntime.PROVIDER, "CPUExecutionProvider"
LARGE = where_model(F32, [["a", "b"]] * 3)


def constant(name: str, content: Any) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(content), name)


def claims(model: bytes, capfd: Any) -> tuple[list[str], list[str]]:
    """Returns each Where's provider and the verbose lines. ONNX Runtime's fusions are off."""
    session_options = options(maskwise_verbose="1")
    session_options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session = maskwise.onnxruntime.session(model, session_options)
    return providers_of(session), capfd.readouterr().err.splitlines()


def test_a_claim_has_its_line(capfd: Any) -> None:
    assert claims(where_model(TensorProto.BFLOAT16, [["n"]] * 3), capfd) == (
        [MASKWISE],
        ["maskwise,claim,where,Where-16 bf16"],
    )


def test_lines_are_printed_on_demand(capfd: Any) -> None:
    maskwise.onnxruntime.session(LARGE, options(maskwise_verbose="0"))
    assert capfd.readouterr().err == ""
    with pytest.raises(REFUSED, match=r"maskwise.verbose is 'yes', expected 0 or 1"):
        maskwise.onnxruntime.session(LARGE, options(maskwise_verbose="yes"))


def quantized_model(domain: str) -> bytes:
    scale, zero = constant("s", np.float32(0.5)), constant("z", np.uint8(3))
    nodes = [
        op("DequantizeLinear", "x", "s", "z", "xf", domain=domain),
        op("DequantizeLinear", "y", "s", "z", "yf", domain=domain),
        op("Where", "c", "xf", "yf", "f", name="where"),
        op("QuantizeLinear", "f", "s", "z", "o", domain=domain),
    ]
    inputs = where_inputs(TensorProto.UINT8, [[64]] * 3)
    return model_of(nodes, inputs, [value("o", TensorProto.UINT8, [64])], [scale, zero])


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_a_quantized_where_is_left_to_fusion(domain: str, capfd: Any, tmp_path: Path) -> None:
    _, lines = claims(quantized_model(domain), capfd)
    reason = "between DequantizeLinear and QuantizeLinear"
    assert lines == [f"maskwise,refuse,where,Where-16 f32,{reason}"]
    session_options = options()
    session_options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    maskwise.onnxruntime.session(quantized_model(domain), session_options)
    fused = [
        node.op_type for node in onnx.load(session_options.optimized_model_filepath).graph.node
    ]
    assert fused == ["QLinearWhere"]


def shape_model(extent: int | None, reader: str) -> bytes:
    """A Where that replaces -1 in a shape. `reader` reads the Where's result."""
    nodes = [
        op("Equal", "shape", "minus", "c"),
        op("Where", "c", "y", "shape", "whole", name="where"),
        helper.make_node(reader, ["whole"] if reader == "Neg" else ["x", "whole"], ["o"]),
    ]
    inputs = [value("x", F32, None), value("shape", I64, [extent]), value("y", I64, [extent])]
    kind = I64 if reader == "Neg" else F32
    return model_of(nodes, inputs, [value("o", kind, None)], [constant("minus", [-1])])


@pytest.mark.parametrize(
    ("extent", "reader", "provider"),
    [
        (4, "Expand", CPU),
        (4, "Neg", CPU),
        (16, "Neg", CPU),
        (17, "Neg", MASKWISE),
        (None, "Reshape", CPU),
        (None, "Neg", MASKWISE),
    ],
)
def test_arithmetic_of_shapes_is_not_claimed(
    extent: int | None, reader: str, provider: str, capfd: Any
) -> None:
    claimed, lines = claims(shape_model(extent, reader), capfd)
    assert claimed == [provider], lines
    assert lines[0].endswith("Where-16 i64,arithmetic of a shape") == (provider == CPU)


@pytest.mark.parametrize(("copies", "verdict"), [(64, "claim"), (65, "refuse")])
def test_f16_values_that_pass_many_copies(copies: int, verdict: str, capfd: Any) -> None:
    nodes = [op("ScatterND", f"x{n}", "place", "one", f"x{n + 1}") for n in range(copies)]
    nodes.append(op("Where", "c", f"x{copies}", "one", "o", name="where"))
    inputs = [value("x0", TensorProto.FLOAT16, [64]), value("c", BOOL, [64])]
    constants = [constant("place", [[1]]), constant("one", np.ones(1, "e"))]
    outputs = [value("o", TensorProto.FLOAT16, None)]
    _, lines = claims(model_of(nodes, inputs, outputs, constants), capfd)
    assert lines[0].startswith(f"maskwise,{verdict},where"), lines


def gpt_model(opset: int, fill: float) -> bytes:
    """The causal mask of an old GPT-2, sliced from a larger mask at run time."""
    whole = np.tril(np.ones((1, 1, 8, 8), np.uint8))
    nodes = [
        op("MatMul", "q", "k", "products"),
        op("Div", "products", "root", "x"),
        op("Slice", "whole", "from", "to", "two", "rows"),
        op("Slice", "rows", "zero", "to", "three", "mask"),
        op("Cast", "mask", "c", to=BOOL),
        op("Where", "c", "x", "fill", "kept", name="where"),
        op("Softmax", "kept", "o", axis=3),
    ]
    inputs = [value(name, F32, [1, 2, "s", "s"]) for name in ("q", "k")]
    inputs += [value(name, I64, [1]) for name in ("from", "to")]
    constants = [constant("whole", whole), constant("root", np.float32(3))]
    constants += [constant("two", [2]), constant("zero", [0]), constant("three", [3])]
    constants += [constant("fill", np.float32(fill))]
    return model_of(nodes, inputs, [value("o", F32, None)], constants, opset)


def distilbert_model(fill: float) -> bytes:
    nodes = [
        op("Equal", "given", "zero", "padding"),
        op("Reshape", "padding", "wide", "reshaped"),
        op("MatMul", "q", "k", "y"),
        op("Shape", "y", "shape"),
        op("Expand", "reshaped", "shape", "c"),
        op("Where", "c", "fill", "y", "kept", name="where"),
        op("Softmax", "kept", "o", axis=3),
    ]
    inputs = [value(name, F32, [1, 2, "s", "s"]) for name in ("q", "k")]
    inputs += [value("given", I64, ["b", "s"]), value("wide", I64, [4])]
    constants = [constant("zero", 0), constant("fill", np.float32(fill))]
    return model_of(nodes, inputs, [value("o", F32, None)], constants, opset=13)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (gpt_model(13, -10000), "the causal mask of ONNX Runtime's attention fusion"),
        (gpt_model(13, -1), ""),
        (gpt_model(16, -10000), ""),
        (distilbert_model(-np.inf), "the padding mask of ONNX Runtime's attention fusion"),
        (distilbert_model(-1e9), ""),
    ],
)
def test_masks_of_attention_fusions_are_not_claimed(model: bytes, reason: str, capfd: Any) -> None:
    claimed, lines = claims(model, capfd)
    assert claimed == [CPU if reason else MASKWISE]
    assert lines[0].startswith("maskwise,refuse" if reason else "maskwise,claim")
    assert not reason or lines[0].endswith(reason)


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    session = session_of(LARGE)
    three = np.zeros((2, 3), np.float32)
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument) as refusal:
        session.run(None, {"c": three > 0, "x": np.zeros((4, 3), "f"), "y": np.zeros((4, 4), "f")})
    for part in ("onnx::Where-16", "condition is {2,3}", "X is {4,3}", "Y is {4,4}"):
        assert part in str(refusal.value)
    assert run(session, {"c": three == 0, "x": three, "y": three}, F32).shape == (2, 3)


def test_invalid_models_are_refused() -> None:
    node = op("Where", "c", "x", "y", "o")
    inputs = [value("c", BOOL, [2]), value("x", F32, [2]), value("y", TensorProto.DOUBLE, [2])]
    wrong = model_of([node], inputs, [value("o", F32, [2])])
    complex_one = where_model(TensorProto.COMPLEX64, [[2]] * 3)
    for model in (wrong, complex_one):
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            maskwise.onnxruntime.session(model, options())
    for model in (b"no model", LARGE[:-9]):
        with pytest.raises(ValueError, match=f"model is {len(model)} bytes, not an ONNX model: "):
            maskwise.onnxruntime.session(model, options())


BEGIN = """
import maskwise.onnxruntime, onnxruntime as ort, numpy as np
import fused_models as f, onnx_where as o, where_models as w
"""


KINDS = pytest.mark.parametrize("kind", ["where", "rows", "attention"])


@KINDS
def test_a_session_survives_a_failed_allocation(kind: str) -> None:
    ran = in_a_process(f"""{BEGIN}
import resource
model, small, large = f.example("{kind}")
session = w.session_of(model)
(before,) = session.run(None, small)
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
for _ in range(3):
    try:
        session.run(None, large)
        print("no error")
    except Exception as failure:
        print("allocate memory" in str(failure), repr(str(failure)))
print(np.array_equal(session.run(None, small)[0], before, equal_nan=True))
""")
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["True"] * 4, ran.stdout


def test_sessions_run_after_the_library_is_unregistered() -> None:
    ran = in_a_process(
        BEGIN
        + """
session = w.session_of(o.where_model(1, [["n"]] * 3))
ort.unregister_execution_provider_library(maskwise.onnxruntime.PROVIDER)
ones = np.ones(3, "f")
feeds = {"c": ones > 0, "x": ones, "y": ones}
session.run(None, feeds)
again = w.session_of(o.where_model(1, [["n"]] * 3))
del session
print(again.run(None, feeds)[0].tolist())
"""
    )
    assert ran.returncode == 0, ran.stderr
    assert "unregistered while in use; sessions that may still run: 1" in ran.stderr
    assert ran.stdout == "[1.0, 1.0, 1.0]\n"


@pytest.mark.parametrize(
    ("kind", "times"), [("where", 1 << 20), ("rows", 1 << 14), ("attention", 1 << 8)]
)
def test_runs_start_no_threads(kind: str, times: int) -> None:
    """A session starts one thread fewer than requested. Runs start no threads."""
    ran = in_a_process(f"""{BEGIN}
import os
model, small, _ = f.example("{kind}")
feeds = {{name: np.repeat(array, {times}, 0) for name, array in small.items()}}
def run(threads):
    session = w.session_of(model, threads)
    before = len(os.listdir("/proc/self/task"))
    for _ in range(5):
        session.run(None, feeds)
    return before, len(os.listdir("/proc/self/task"))
one, two = run(1), run(2)
print(one[0] == one[1], two[0] == two[1], two[0] - one[0])
""")
    assert ran.stdout == "True True 1\n", ran.stdout + ran.stderr


def growth(make: Callable[[], Any], count: int) -> int:
    """Returns how many bytes `count` sessions add to the process's resident memory."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(count):
        make()
    before = resident()
    for _ in range(count):
        make()
    return resident() - before


@KINDS
def test_sessions_come_and_go_without_growth(kind: str) -> None:
    model, small, _ = example(kind)

    def make() -> None:
        session_of(model).run(None, small)

    assert growth(make, 400) < 1 << 20


RETAINED = (
    BEGIN
    + """
import ctypes
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost").split()]
info = ctypes.CDLL(None).mallinfo2
info.restype = Info
def in_use():
    now = info()
    return now.uordblks + now.hblkhd
def retained(layers, threads, lengths):
    \"\"\"Bytes that the runs of a one-thread session leave allocated. `threads`: the provider's
    setting.\"\"\"
    model, feeds = f.layers(layers)
    session_options = w.options(maskwise_threads=str(threads))
    session_options.intra_op_num_threads = 1
    session_options.enable_cpu_mem_arena = False
    session_options.add_provider_for_devices(maskwise.onnxruntime.register()[:1], {})
    session = ort.InferenceSession(model, session_options)
    before = in_use()
    for length in lengths:
        session.run(None, {name: array[:, :, :length] for name, array in feeds.items()})
    return in_use() - before
retained(1, 1, [256])
"""
)
PLAN = 24 << 10  # upper bound on the bytes of one plan, without scratch


def test_memory_follows_threads_not_layers() -> None:
    """Nodes and plans share the worker threads' scratch memory."""
    calls = ("retained(1, 1, [256])", "retained(1, 64, [256])", "retained(12, 64, [256])")
    ran = in_a_process(f"{BEGIN}{RETAINED}print({', '.join(calls)})")
    assert ran.returncode == 0, ran.stderr
    one, many, layers = (int(text) for text in ran.stdout.split())
    assert one < 128 << 10 and many > 512 << 10, ran.stdout
    assert layers < many + PLAN * 11, ran.stdout


def test_shapes_share_scratch_memory() -> None:
    calls = ("retained(12, 2, [256])", "retained(12, 2, [256, 255, 254, 253])")
    ran = in_a_process(f"{BEGIN}{RETAINED}print({', '.join(calls)})")
    assert ran.returncode == 0, ran.stderr
    one, four = (int(text) for text in ran.stdout.split())
    assert four < one + PLAN * 36, ran.stdout


def test_session_passes_the_number_of_threads() -> None:
    """Options may be reused with a different thread count."""
    session_options = options()
    for threads in (3, 0, 2):
        session_options.intra_op_num_threads = threads
        maskwise.onnxruntime.session(LARGE, session_options)
        assert session_options.get_session_config_entry("maskwise.threads") == str(threads)
    for wrong in ("-1", "many", "", "4097", "2 "):
        bad = options(maskwise_threads=wrong)
        bad.add_provider_for_devices(maskwise.onnxruntime.register()[:1], {})
        with pytest.raises(REFUSED, match=rf"maskwise.threads is '{wrong}', expected a number"):
            ort.InferenceSession(LARGE, bad, enable_fallback=0)


class ApiBase(ctypes.Structure):
    _fields_ = (
        ("GetApi", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),
        ("GetVersionString", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    )


@pytest.mark.parametrize("has_the_first", [True, False])
def test_an_older_onnxruntime_is_refused(has_the_first: bool) -> None:
    """If the host lacks version 24 of the interface, the first function of version 1 creates the
    error status. A host without version 1 gets no status."""
    texts: list[bytes] = []

    def make_status(code: int, text: bytes) -> int:
        texts.append(text)
        return 77

    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)(make_status)
    table = (ctypes.c_void_p * 1)(ctypes.cast(create, ctypes.c_void_p))
    base = ApiBase()
    base.GetApi = ApiBase._fields_[0][1](
        lambda version: ctypes.addressof(table) if version == 1 and has_the_first else None
    )
    base.GetVersionString = ApiBase._fields_[1][1](lambda: b"1.23.2")
    library = ctypes.CDLL(maskwise.onnxruntime.library())
    library.CreateEpFactories.restype = ctypes.c_void_p
    factories, count = (ctypes.c_void_p * 1)(), ctypes.c_size_t(9)
    status = library.CreateEpFactories(
        b"name", ctypes.byref(base), None, factories, ctypes.c_size_t(1), ctypes.byref(count)
    )
    assert count.value == 0
    assert (status, texts) == (
        (77, [b"Maskwise needs ONNX Runtime 1.24 or newer, this is 1.23.2"])
        if has_the_first
        else (None, [])
    )


def test_a_model_may_be_bytes_or_a_path_or_a_proto(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(LARGE)
    path = tmp_path / "model.onnx"
    for model in (LARGE, path, str(path), onnx.load_model_from_string(LARGE)):
        session_options = options()
        for _ in range(2):  # options may be used again
            session = maskwise.onnxruntime.session(model, session_options)
            assert session.get_providers() == [MASKWISE, CPU]
    with pytest.raises(ValueError, match=r"providers is .*, expected none"):
        maskwise.onnxruntime.session(LARGE, providers=[CPU])


def test_registering_twice_gives_one_device() -> None:
    assert len(maskwise.onnxruntime.register()) == len(maskwise.onnxruntime.register()) == 1


def report(model: bytes, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "model.onnx").write_bytes(model)
    return run_python("-m", "maskwise.onnxruntime", str(folder / "model.onnx"), *arguments)


def test_the_report(tmp_path: Path) -> None:
    ran = report(LARGE, tmp_path, "--dim", "b=4", "--turns", "2")
    assert ran.returncode == 0, ran.stderr
    for part in (
        "given extents         b=4\nassumed extents       a=1\n",
        "Where    where  Maskwise\n1 of 1 Where by Maskwise",
        "x [1, 4]",
        "times as fast",
        "results               agree to the bit",
    ):
        assert part in ran.stdout, ran.stdout
    assert ran.stderr == "maskwise,claim,where,Where-16 f32\n"


def test_the_report_of_fused_nodes(tmp_path: Path) -> None:
    ran = report(example("attention")[0], tmp_path, "--turns", "2")
    for part in (
        "q[0]=1, q[1]=128",
        "results               agree; largest difference ",
        "Softmax  softmax    Maskwise",
        "1 of 1 Where by",
        "1 of 1 Softmax by",
    ):
        assert part in ran.stdout, ran.stdout
    assert ran.stderr == "maskwise,claim,softmax,attention f32 6 nodes\n"


def test_the_report_of_a_model_that_does_not_run(tmp_path: Path) -> None:
    """The report lists claims even if the model fails without Maskwise or with random inputs."""
    alone = report(where_model(TensorProto.INT16, [["n"]] * 3), tmp_path)
    assert alone.returncode == 0, alone.stderr
    assert "1 of 1" in alone.stdout and "ONNX Runtime alone does not run the model" in alone.stdout
    failed = report(where_model(F32, [["a"], ["b"], ["b"]]), tmp_path, "--dim", "a=3")
    assert failed.returncode == 1
    assert "1 of 1" in failed.stdout and "condition is {3}" in failed.stdout
    assert "--dim" in failed.stdout


def test_the_cpp_example_runs(tmp_path: Path) -> None:
    """Builds and runs the example with Debian's headers and the library of ONNX Runtime's wheel."""
    root = Path(__file__).resolve().parents[2]
    headers = root / ".deps/onnxruntime-headers/usr/include/onnxruntime"
    if not headers.is_dir():
        pytest.skip("Debian's libonnxruntime-dev is not installed")
    if ort.__version__.startswith("1.24."):
        pytest.skip("the headers are newer than this ONNX Runtime")
    (library,) = (Path(ort.__file__).parent / "capi").glob("libonnxruntime.so.*")
    (tmp_path / "libonnxruntime.so.1").symlink_to(library)  # the name that programs load
    program = tmp_path / "example"
    command = ["c++", "-std=c++17", "-isystem", str(headers), "-o", str(program)]
    command += [str(root / "examples/onnxruntime.cpp"), str(library)]
    subprocess.run([*command, f"-Wl,-rpath,{tmp_path}"], check=True)
    (tmp_path / "model.onnx").write_bytes(LARGE)
    ran = subprocess.run(
        [str(program), maskwise.onnxruntime.library(), str(tmp_path / "model.onnx")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "3 inputs\n"
    assert "maskwise,claim,where,Where-16 f32" in ran.stderr
