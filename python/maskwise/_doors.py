"""The doors to other libraries, each tried as a user would."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ONEDNN = "libdnnl"  # a library, not a module
FLOATS = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}  # what results differ by at most


@dataclass(frozen=True)
class Door:
    name: str
    module: str
    tested: tuple[str, ...]
    use: str  # what to type, and behind it what enter() returns
    enter: Callable[[], str | None]  # raises where the door is closed


def reason_of(failure: BaseException) -> str:
    text = (str(failure).strip().splitlines() or [""])[0]
    says_it = isinstance(failure, ImportError | OSError | RuntimeError) and text
    return text if says_it else f"{type(failure).__name__}: {text}"


def version_of(module: str) -> str:
    """Without what follows a + or -; nothing where it is not installed. Raises what it raises."""
    if module == ONEDNN:
        return version_of_onednn()
    if find_spec(module) is None:
        return ""
    version: str = import_module(module).__version__
    return version.partition("+")[0].partition("-")[0]


def version_of_onednn() -> str:
    """Of this environment, or of the machine."""
    own = sorted(Path(sys.prefix, "lib").glob("libdnnl.so.*"))
    library = str(own[0]) if own else ctypes.util.find_library("dnnl")
    try:
        query = ctypes.CDLL(library or "libdnnl.so").dnnl_version
    except OSError:  # none, or its programs find what it needs by a path of their own
        return ""
    query.restype = ctypes.POINTER(ctypes.c_int * 3)
    return ".".join(map(str, query().contents))


def enter_numpy() -> None:
    """The doctor's checks do."""


def enter_torch() -> None:
    """Every function of the door, in every type; large enough for install()."""
    torch: Any = import_module("torch")
    door: Any = import_module("maskwise.torch")
    flash, maskwise = import_module("maskwise.flash_attn"), import_module("maskwise")
    attend = torch.nn.functional.scaled_dot_product_attention
    for name, most in FLOATS.items():
        q = torch.rand(1, 4, 160, 64).to(getattr(torch, name))
        expected = attend(q.float(), q.float(), q.float(), is_causal=True)
        with door.installed():
            made = {
                "attention": maskwise.attention(q, q, q, is_causal=True),
                "attention of out": maskwise.attention(
                    q, q, q, maskwise.Mask.causal(), out=torch.empty_like(q)
                ),
                "the operator": torch.ops.maskwise.attention(q, q, q, None, True),
                "flash_attn": flash.flash_attn_func(*(q.transpose(1, 2),) * 3, causal=True),
                "install()": attend(q, q, q, is_causal=True),
            }
        made["flash_attn"] = made["flash_attn"].transpose(1, 2)
        for what, one in made.items():
            require_close(f"{what} in {name}", one, expected, most)
        if not torch.equal(maskwise.where(q > 0.5, q, 0.0), torch.where(q > 0.5, q, 0.0)):
            raise RuntimeError(f"where in {name} differs from torch's")


def require_close(what: str, made: Any, expected: Any, most: float) -> None:
    apart = (made.float() - expected.float()).abs().max().item()
    if not apart <= most:
        raise RuntimeError(f"{what} differs from torch's by {apart:.2g}")


def enter_transformers() -> None:
    """A model in every type."""
    import_module("maskwise.transformers")
    transformers: Any = import_module("transformers")
    torch: Any = import_module("torch")
    sizes = {"hidden_size": 64, "intermediate_size": 64, "vocab_size": 99}
    config = transformers.BertConfig(num_hidden_layers=1, num_attention_heads=2, **sizes)
    words = torch.arange(320).reshape(2, 160) % 99
    for name, most in FLOATS.items():
        model = transformers.BertModel(config).eval().to(getattr(torch, name))
        with torch.no_grad():
            expected = model(words).last_hidden_state
            model.set_attn_implementation("maskwise")
            made = model(words).last_hidden_state
        require_close(f"a model in {name}", made, expected, 4 * most)


def enter_onnxruntime() -> None:
    if not import_module("maskwise.onnxruntime").register():
        raise RuntimeError("ONNX Runtime does not list the registered provider")


def enter_openvino() -> None:
    """A model of attention in every type."""
    np, ov = import_module("numpy"), import_module("openvino")
    ops, door = import_module("openvino.opset13"), import_module("maskwise.openvino")
    q = np.random.default_rng(5).random((1, 4, 160, 64), "f")
    for name, most in FLOATS.items():
        given = ops.parameter(q.shape, ov.Type.f32)
        x = ops.convert(given, name.replace("float", "f"))
        attention = ops.scaled_dot_product_attention(x, x, x, causal=True)
        model = ov.Model([ops.convert(attention, "f32")], [given])
        stock, own = (
            ov.Core().compile_model(one, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([q])[0]
            for one in (model, door.accelerate(model, force=True))
        )
        apart = np.abs(stock - own).max()
        if not apart <= most:
            raise RuntimeError(f"a model in {name} differs from OpenVINO's by {apart:.2g}")


def enter_onednn() -> str:
    """The loader goes on without a library that it cannot preload, and says so."""
    plugin: str = import_module("maskwise.onednn").library()
    ran = subprocess.run(
        [sys.executable, "-S", "-c", ""],
        env={**os.environ, "LD_PRELOAD": plugin, "MASKWISE_VERBOSE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode or ran.stderr:
        raise RuntimeError(ran.stderr.strip() or f"a program with it ends with {ran.returncode}")
    return plugin


DOORS = (
    Door(
        "NumPy",
        "numpy",
        ("2.4.6",),
        "maskwise.where(mask, x, y); maskwise.attention(query, key, value, mask)",
        enter_numpy,
    ),
    Door(
        "PyTorch",
        "torch",
        ("2.15.0",),
        "import maskwise.torch; maskwise.torch.install()    or python -m maskwise run program.py",
        enter_torch,
    ),
    Door(
        "transformers",
        "transformers",
        ("5.23.0",),
        'import maskwise.transformers; from_pretrained(name, attn_implementation="maskwise")',
        enter_transformers,
    ),
    Door(
        "ONNX Runtime",
        "onnxruntime",
        ("1.24.4", "1.32.0"),
        'import maskwise.onnxruntime; maskwise.onnxruntime.session("model.onnx")',
        enter_onnxruntime,
    ),
    Door(
        "OpenVINO",
        "openvino",
        ("2026.0.0", "2026.4.1"),
        "import maskwise.openvino; core.compile_model(maskwise.openvino.accelerate(model))",
        enter_openvino,
    ),
    Door("oneDNN", ONEDNN, ("3.2.0", "3.7.2", "3.12.1", "3.13.2"), "LD_PRELOAD=", enter_onednn),
)


def examine(door: Door) -> bool:
    """Prints how it is; False where what is installed does not open it."""
    print(f"{door.name:<14} ", end="", flush=True)  # before an import that may end the process
    version = ""
    try:
        version = version_of(door.module)
        if not version and door.module != ONEDNN:  # which programs bring along
            print(f"absent  tested with {', '.join(door.tested)}")
            return True
        use = door.use + (door.enter() or "")
    except Exception as failure:
        reason = reason_of(failure)
        print(f"CLOSED  {version}: {reason}" if version else f"CLOSED  {reason}")
        return False
    known = "tested" if version in door.tested else f"not tested ({', '.join(door.tested)})"
    print(f"open    {version}, {known}" if version else "open    for programs that bring it")
    print(f"{'':<23}{use}")
    return True
