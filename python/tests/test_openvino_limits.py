"""Tests which Selects of OpenVINO models Maskwise takes, and which errors it raises."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import maskwise.openvino
import numpy as np
import openvino as ov
import pytest
from arrays import in_a_process, run_python
from openvino import opset13 as ops
from select_models import Node, accelerate, compile_model, count_taken, run, select_model

LARGE = [16, 8, 256, 256]  # 32 MiB of f32
F32, BOOLEAN = ov.Type.f32, ov.Type.boolean


def is_left(model: ov.Model) -> bool:
    return count_taken(accelerate(model)) == 0


def joined(then: Callable[[Node], Node], shape: list[int] = LARGE) -> ov.Model:
    return select_model([[256, 256], shape, []], then=then)


def computed(operand: int, operation: Callable[..., Node], cond: list[int] = LARGE) -> ov.Model:
    """A Select with one operand computed from two parameters."""
    shapes = [cond, LARGE, LARGE]
    kinds = [BOOLEAN, F32, F32]
    inputs = [ops.parameter(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    sides = [ops.parameter(shapes[operand], F32) for _ in "ab"]
    operands: list[Node] = list(inputs)
    operands[operand] = operation(*sides)
    inputs[operand : operand + 1] = sides
    return ov.Model([ops.select(*operands)], inputs)


@pytest.mark.parametrize(
    "model",
    [
        select_model([LARGE] * 3),
        select_model([[256, 256], LARGE, LARGE]),
        select_model([[16, 1, 1, 256], LARGE, []]),
        select_model([LARGE] * 3, ov.Type.i32),
        # OpenVINO's Select would copy the condition.
        select_model([[128, 128]] * 3),
        select_model([[128, 128], [16, 128, 128], []], ov.Type.u8),
        joined(lambda node: ops.reshape(node, ops.constant([64, -1]), False)),
        joined(lambda node: ops.gather(node, ops.constant([1]), ops.constant(0))),
        # OpenVINO would fuse the comparison, but it is much smaller than the result.
        computed(0, ops.greater, [256, 256]),
    ],
)
def test_selects_that_gain_are_taken(model: ov.Model) -> None:
    assert not is_left(model)


@pytest.mark.parametrize(
    "model",
    [
        select_model([[128, 127]] * 3),
        select_model([[128, 128], [17, 128, 128], []], ov.Type.u8),
        select_model([[256], [16, 8, 255, 256], []]),
        select_model([[-1, 8, 256, 256]] * 3),
        select_model([[-1, 256], LARGE, LARGE]),
        *(select_model([LARGE] * 3, kind) for kind in (ov.Type.i64, ov.Type.f16, ov.Type.f64)),
        select_model([[256], LARGE, LARGE], ov.Type.u8),
        joined(ops.relu),
        joined(lambda node: ops.softmax(node, 1)),
        joined(lambda node: ops.unsqueeze(ops.relu(node), ops.constant([0]))),
        joined(lambda node: ops.relu(ops.reshape(node, ops.constant([64, -1]), False))),
        joined(lambda node: ops.convert(node, "i32")),
        computed(1, ops.add),
        computed(2, lambda a, b: ops.matmul(a, b, False, True)),
        computed(0, ops.greater),
    ],
)
def test_other_selects_are_left_to_openvino(model: ov.Model) -> None:
    assert is_left(model)
    assert count_taken(accelerate(model, force=True)) == 1


def attention(build_scores: Callable[[Node, Node], Node]) -> ov.Model:
    inputs = [ops.parameter([1, 16, 512, 64], F32) for _ in "qkv"]
    mask = ops.constant(np.tril(np.ones((512, 512), bool)))
    masked = ops.select(mask, build_scores(*inputs[:2]), ops.constant(np.float32(-1e9)))
    return ov.Model([ops.matmul(ops.softmax(masked, -1), inputs[2], False, False)], inputs)


def test_attention_includes_its_select() -> None:
    def products(q: Node, k: Node) -> Node:
        return ops.matmul(q, k, False, True)

    assert count_taken(accelerate(attention(products))) == 1
    scaled = attention(lambda q, k: ops.multiply(products(q, k), ops.constant(np.float32(8))))
    assert count_taken(accelerate(scaled)) == 1


def test_verbose_lines_name_operations_and_reasons() -> None:
    ran = in_a_process(
        """
import maskwise.openvino, openvino as ov
from openvino import opset13 as ops
from select_models import select_model
large = [16, 8, 256, 256]
maskwise.openvino.accelerate(select_model([large] * 3))
maskwise.openvino.accelerate(select_model([large] * 3, then=ops.relu))
maskwise.openvino.accelerate(select_model([[4]] * 3))
maskwise.openvino.accelerate(select_model([[-1]] * 3))
maskwise.openvino.accelerate(select_model([large] * 3, ov.Type.i64))
maskwise.openvino.accelerate(select_model([[4]] * 3, ov.Type.u8), force=True)
chain = select_model([[256, 256], [4, 256, 256], []], then=lambda node: ops.softmax(node, -1))
chain.get_results()[0].input_value(0).get_node().set_friendly_name("softmax")
maskwise.openvino.accelerate(chain)
maskwise.openvino.accelerate(select_model([[4]] * 3, broadcast="pdpd"), force=True)
maskwise.openvino.accelerate(select_model([[3, 0, -1]] * 3), force=True)
""",
        MASKWISE_VERBOSE="1",
    )
    assert ran.stderr.splitlines() == [
        "maskwise,claim,select,Select-1 f32",
        "maskwise,refuse,select,Select-1 f32,OpenVINO fuses it with Relu",
        "maskwise,refuse,select,Select-1 f32,it is small",
        "maskwise,refuse,select,Select-1 f32,its size is not known",
        "maskwise,refuse,select,Select-1 i64,the CPU plugin converts i64",
        "maskwise,claim,select,Select-1 u8",
        "maskwise,claim,softmax,rows f32 2 nodes",
        "maskwise,refuse,select,Select-1 f32,auto_broadcast is pdpd",
        "maskwise,refuse,select,Select-1 f32,it has no elements",
    ]


def in_a_body(element: ov.Type, extent: int = 2) -> ov.Model:
    cond, x = ops.parameter([], BOOLEAN), ops.parameter([extent], element)
    branch = ops.if_op(cond)
    inner = select_model([[extent]] * 3, element)
    branch.set_then_body(inner)
    branch.set_else_body(inner.clone())
    mask = ops.parameter([extent], BOOLEAN)
    bodies = [branch.get_function(i) for i in range(2)]
    for number, outer in enumerate((mask, x, x)):
        branch.set_input(outer.output(0), *(body.get_parameters()[number] for body in bodies))
    branch.set_output(*(body.get_results()[0] for body in bodies))
    return ov.Model([branch.output(0)], [cond, mask, x])


def test_models_that_do_not_type_check() -> None:
    wrong = """<net name="wrong" version="11"><layers>
<layer id="0" name="c" type="Parameter" version="opset1"><data element_type="{}" shape="2"/>
<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="1" name="x" type="Parameter" version="opset1"><data element_type="f32" shape="{}"/>
<output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="2" name="select" type="Select" version="maskwise"><data auto_broadcast="{}"/>
<input><port id="0"><dim>2</dim></port><port id="1"><dim>2</dim></port><port id="2"><dim>2</dim>
</port></input><output><port id="3" precision="FP32"><dim>2</dim></port></output></layer>
<layer id="3" name="result" type="Result" version="opset1"><input><port id="0"><dim>2</dim></port>
</input></layer></layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="{}" from-port="0" to-layer="2" to-port="2"/>
<edge from-layer="2" from-port="3" to-layer="3" to-port="0"/></edges></net>"""
    core = ov.Core()
    core.add_extension(maskwise.openvino.library())
    assert core.read_model(wrong.format("boolean", "2", "numpy", 1).encode()).outputs
    for values, reason in (
        (("f32", "2", "numpy", 1), "Maskwise: cond is f32, expected boolean"),
        (("boolean", "2", "numpy", 0), "Maskwise: then is f32, else is boolean"),
        (("boolean", "2", "pdpd", 1), "Maskwise: auto_broadcast is pdpd, expected none or numpy"),
        (("boolean", "3", "numpy", 1), r"cond is \[2\], then is \[3\], else is \[3\]"),
    ):
        with pytest.raises(RuntimeError, match=reason):
            core.read_model(wrong.format(*values).encode())


def test_shapes_that_do_not_broadcast_at_run_time() -> None:
    compiled = compile_model(accelerate(select_model([[-1, -1]] * 3), force=True))
    three = np.zeros((2, 3), np.float32)
    message = r"Maskwise: shapes do not broadcast: cond is \[4,4\], then is \[2,3\]"
    for _ in range(2):
        with pytest.raises(RuntimeError, match=message):
            run(compiled, [np.ones((4, 4), bool), three, three])
        assert run(compiled, [three == 0, three, three]).shape == (2, 3)


def test_a_model_without_results() -> None:
    """The model writes its only value to a state."""
    inputs = [ops.parameter([2, 130, 16], F32) for _ in "qkv"]
    attention = ops.scaled_dot_product_attention(*inputs)
    sink = ops.assign(ops.read_value(attention, "variable"), "variable")
    model = ov.Model([], [sink], inputs, "stateful")
    assert maskwise.openvino.taken(accelerate(model)) == [attention.get_friendly_name()]
    assert maskwise.openvino.taken(accelerate(ov.Model([], [], inputs))) == []


def test_a_package_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    with pytest.raises(FileNotFoundError, match="the extension of OpenVINO is not in this"):
        maskwise.openvino.library()


@pytest.mark.parametrize(
    ("name", "slots"), [("N2ov4NodeE", 23), ("N2ov16AttributeVisitorE", 36)], ids=str
)
def test_another_layout_is_refused(name: str, slots: int, tmp_path: Path) -> None:
    """Simulates a future release: the loader sees a class with one more virtual function."""
    source = tmp_path / "later.s"
    vtable = f"_ZTV{name}"
    source.write_text(f"""
.globl {vtable}
.type {vtable}, @object
.size {vtable}, {8 * (2 + slots + 1)}
.section .data.rel.ro, "aw"
{vtable}: .fill {2 + slots + 1}, 8, 0
.section .note.GNU-stack
""")
    later = tmp_path / "later.so"
    subprocess.run(["cc", "-shared", "-o", later, source], check=True)
    ran = in_a_process(
        f"""
import ctypes, maskwise.openvino as mo, openvino as ov
ctypes.CDLL({str(later)!r}, ctypes.RTLD_GLOBAL)
ov.Core().add_extension(mo.library())
"""
    )
    assert ran.returncode == 1
    reason = f"Maskwise: does not run in OpenVINO {ov.get_version()}, whose classes differ"
    assert reason in ran.stderr, ran.stderr


def test_no_openvino_is_an_error() -> None:
    """Without OpenVINO, the library loads, but create_extensions() raises an error."""
    code = """
import ctypes, sys
ctypes.CDLL(sys.argv[1]).create_extensions(None)
"""
    ran = run_python("-c", code, maskwise.openvino.library())
    assert "it needs OpenVINO 2026.0 or newer" in ran.stderr, ran.stderr


def test_a_select_without_elements_is_left_in_place() -> None:
    """The CPU plugin compiles a MatMul without rows only if the next operator is fused with it."""
    shapes = ([2, 0, 16], [2, 40, 16], [2, 40, 8])
    query, key, value = (ops.parameter(shape, F32) for shape in shapes)
    cond = ops.parameter([2, 1, 1], BOOLEAN)
    scores = ops.matmul(query, key, False, True)
    weights = ops.softmax(ops.select(cond, scores, ops.constant(np.float32(-1e9))), 2)
    model = ov.Model(
        [ops.matmul(weights, value, False, False)], [cond, query, key, value], "no queries"
    )
    compiled = compile_model(accelerate(model, force=True))
    arrays = [np.ones([2, 1, 1], bool), *(np.ones(shape, np.float32) for shape in shapes)]
    assert run(compiled, arrays).shape == (2, 0, 8)


@pytest.mark.parametrize("first", ["openvino", "maskwise"])
def test_there_is_one_onetbb(first: str) -> None:
    ran = in_a_process(f"""
import {first}
import maskwise.openvino as mo, numpy as np
from select_models import compile_model, run, select_model
compiled = compile_model(mo.accelerate(select_model([[1 << 20]] * 3), force=True))
ones = np.ones(1 << 20, np.float32)
run(compiled, [ones > 0, ones, ones])
files = {{line.split()[-1] for line in open("/proc/self/maps") if "libtbb.so" in line}}
print(len(files))
""")
    assert ran.stdout == "1\n", ran.stdout + ran.stderr


def test_one_thread_runs_if_one_is_set() -> None:
    """Counts the threads that use processor time."""
    ran = in_a_process("""
import os, pathlib, time
import maskwise.openvino as mo, numpy as np
from select_models import compile_model, select_model
def busy():
    stats = (path.joinpath("stat") for path in pathlib.Path("/proc/self/task").iterdir())
    fields = {path: path.read_text().rsplit(") ", 1)[1].split() for path in stats}
    return {path: int(words[11]) + int(words[12]) for path, words in fields.items()}
def threads(count, seconds):
    model = mo.accelerate(select_model([[1, 4096], [1024, 4096], []]), force=True)
    request = compile_model(model, INFERENCE_NUM_THREADS=count).create_infer_request()
    request.infer(share_outputs=True)
    before, begin, busy_threads = busy(), time.monotonic(), 0
    while time.monotonic() < begin + seconds and busy_threads < 2:
        request.infer(share_outputs=True)
        busy_threads = sum(ticks - before.get(path, 0) > 10 for path, ticks in busy().items())
    return busy_threads
print(threads(1, 1), threads(2, 60) if len(os.sched_getaffinity(0)) > 1 else 2)
""")
    assert ran.stdout == "1 2\n", ran.stdout + ran.stderr


def test_models_come_and_go_without_growth() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def make(force: bool) -> Any:
        return accelerate(select_model([[64, 64]] * 3), force=force)

    for _ in range(300):
        make(True)
    before = resident()
    for _ in range(300):
        make(True)
    assert resident() - before < 2 << 20
    compiled = compile_model(make(True))
    arrays = [np.ones((64, 64), dtype) for dtype in (bool, np.float32, np.float32)]
    for _ in range(300):
        run(compiled, arrays)
    before = resident()
    for _ in range(300):
        run(compiled, arrays)
    assert resident() - before < 2 << 20
