"""The integrations with other libraries, and a check of each."""

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
# Largest allowed difference of results, by dtype.
FLOATS = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}


@dataclass(frozen=True)
class Integration:
    name: str
    module: str
    tested: tuple[str, ...]
    use: str  # what to type; the text that check() returns is appended
    check: Callable[[], str | None]  # raises if the integration fails


def reason_of(failure: BaseException) -> str:
    text = (str(failure).strip().splitlines() or [""])[0]
    says_it = isinstance(failure, ImportError | OSError | RuntimeError) and text
    return text if says_it else f"{type(failure).__name__}: {text}"


def version_of(module: str) -> str:
    """Returns the version up to the first + or -; empty if the package is not installed. Passes
    on the error of a failed import."""
    if module == ONEDNN:
        return version_of_onednn()
    if find_spec(module) is None:
        return ""
    version: str = import_module(module).__version__
    return version.partition("+")[0].partition("-")[0]


def version_of_onednn() -> str:
    """Returns the version of this environment's oneDNN, else of the system's; empty if none
    loads."""
    libraries = sorted(Path(sys.prefix, "lib").glob("libdnnl.so.*"))
    library = str(libraries[0]) if libraries else ctypes.util.find_library("dnnl")
    try:
        query = ctypes.CDLL(library or "libdnnl.so").dnnl_version
    except OSError:  # oneDNN, or one of its dependencies, is not on this process's library path
        return ""
    query.restype = ctypes.POINTER(ctypes.c_int * 3)
    return ".".join(map(str, query().contents))


def check_numpy() -> None:
    """Checks nothing: the checks of the installation cover NumPy."""


def check_torch() -> None:
    """Runs each function in each type of FLOATS. The sizes are large enough for Maskwise."""
    torch: Any = import_module("torch")
    integration: Any = import_module("maskwise.torch")
    flash, maskwise = import_module("maskwise.flash_attn"), import_module("maskwise")
    attend = torch.nn.functional.scaled_dot_product_attention
    for name, most in FLOATS.items():
        q = torch.rand(1, 4, 160, 64).to(getattr(torch, name))
        expected = attend(q.float(), q.float(), q.float(), is_causal=True)
        with integration.installed():
            results = {
                "attention": maskwise.attention(q, q, q, is_causal=True),
                "attention with out": maskwise.attention(
                    q, q, q, maskwise.Mask.causal(), out=torch.empty_like(q)
                ),
                "the operator": torch.ops.maskwise.attention(q, q, q, None, True),
                "flash_attn": flash.flash_attn_func(*(q.transpose(1, 2),) * 3, causal=True),
                "install()": attend(q, q, q, is_causal=True),
            }
        results["flash_attn"] = results["flash_attn"].transpose(1, 2)
        for function, result in results.items():
            require_close(f"{function} in {name}", result, expected, most)
        if not torch.equal(maskwise.where(q > 0.5, q, 0.0), torch.where(q > 0.5, q, 0.0)):
            raise RuntimeError(f"where in {name} differs from torch's")


def require_close(name: str, result: Any, expected: Any, most: float) -> None:
    apart = (result.float() - expected.float()).abs().max().item()
    if not apart <= most:
        raise RuntimeError(f"{name} differs from torch's by {apart:.2g}")


def check_transformers() -> None:
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
            result = model(words).last_hidden_state
        require_close(f"a model in {name}", result, expected, 4 * most)


def check_onnxruntime() -> None:
    if not import_module("maskwise.onnxruntime").register():
        raise RuntimeError("ONNX Runtime does not list the registered provider")


def check_openvino() -> None:
    np, ov = import_module("numpy"), import_module("openvino")
    ops, integration = import_module("openvino.opset13"), import_module("maskwise.openvino")
    q = np.random.default_rng(5).random((1, 4, 160, 64), "f")
    for name, most in FLOATS.items():
        parameter = ops.parameter(q.shape, ov.Type.f32)
        x = ops.convert(parameter, name.replace("float", "f"))
        attention = ops.scaled_dot_product_attention(x, x, x, causal=True)
        model = ov.Model([ops.convert(attention, "f32")], [parameter])
        stock, accelerated = (
            ov.Core().compile_model(one, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([q])[0]
            for one in (model, integration.accelerate(model, force=True))
        )
        apart = np.abs(stock - accelerated).max()
        if not apart <= most:
            raise RuntimeError(f"a model in {name} differs from OpenVINO's by {apart:.2g}")


def check_onednn() -> str:
    """Text on standard error is a failure, because the loader only warns if it cannot preload the
    plugin."""
    plugin: str = import_module("maskwise.onednn").library()
    ran = subprocess.run(
        [sys.executable, "-S", "-c", ""],
        env={**os.environ, "LD_PRELOAD": plugin, "MASKWISE_VERBOSE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode or ran.stderr:
        status = f"Python with the plugin exits with {ran.returncode}"
        raise RuntimeError(ran.stderr.strip() or status)
    return plugin


INTEGRATIONS = (
    Integration(
        "NumPy",
        "numpy",
        ("2.4.6",),
        "maskwise.where(mask, x, y); maskwise.attention(query, key, value, mask)",
        check_numpy,
    ),
    Integration(
        "PyTorch",
        "torch",
        ("2.15.0",),
        "import maskwise.torch; maskwise.torch.install()    or python -m maskwise run program.py",
        check_torch,
    ),
    Integration(
        "transformers",
        "transformers",
        ("5.23.0",),
        'import maskwise.transformers; from_pretrained(name, attn_implementation="maskwise")',
        check_transformers,
    ),
    Integration(
        "ONNX Runtime",
        "onnxruntime",
        ("1.24.4", "1.32.0"),
        'import maskwise.onnxruntime; maskwise.onnxruntime.session("model.onnx")',
        check_onnxruntime,
    ),
    Integration(
        "OpenVINO",
        "openvino",
        ("2026.0.0", "2026.4.1"),
        "import maskwise.openvino; core.compile_model(maskwise.openvino.accelerate(model))",
        check_openvino,
    ),
    Integration(
        "oneDNN", ONEDNN, ("3.2.0", "3.7.2", "3.12.1", "3.13.2"), "LD_PRELOAD=", check_onednn
    ),
)


def examine(integration: Integration) -> bool:
    """Prints the integration's state. Returns False if an installed package does not work with
    Maskwise.
    """
    # Flushed, because an import may end the process.
    print(f"{integration.name:<14} ", end="", flush=True)
    version = ""
    try:
        version = version_of(integration.module)
        if not version and integration.module != ONEDNN:  # a program may contain its own oneDNN
            print(f"absent  tested with {', '.join(integration.tested)}")
            return True
        use = integration.use + (integration.check() or "")
    except Exception as failure:
        reason = reason_of(failure)
        print(f"FAILS   {version}: {reason}" if version else f"FAILS   {reason}")
        return False
    known = (
        "tested"
        if version in integration.tested
        else f"not tested (tested: {', '.join(integration.tested)})"
    )
    print(f"works   {version}, {known}" if version else "works   for programs that contain oneDNN")
    print(f"{'':<23}{use}")
    return True
