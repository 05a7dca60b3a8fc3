#!/usr/bin/env python3
"""Installs the wheel into a fresh environment, and runs its self-check.

With --build (`scripts/test`), the wheel contains the binaries of that build folder. With --install
(`scripts/release`), each wheel of a folder is installed into a fresh environment of each suitable
Python on this machine. pip downloads the dependencies. With neither option (`scripts/plain`),
`pip install .` compiles everything. Without --install, dependencies come from the tests'
environment, so no network is needed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIP = ["-m", "pip", "--disable-pip-version-check"]
INSTALL = [*PIP, "install", "--quiet", "--no-deps", "--no-index"]


def run(*command: str | Path) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(
        [*map(str, command)], cwd=ROOT, env=clean, text=True, capture_output=True, check=False
    )
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def fresh_environment(folder: Path, packages: Path | None = None) -> Path:
    """Creates an environment that sees the tests' packages and libtbb, but no maskwise."""
    run(sys.executable, "-m", "venv", folder)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "dependencies.pth").write_text(f"{packages or sysconfig.get_path('purelib')}\n")
    for library in Path(sys.prefix, "lib").glob("lib*.so.*"):
        (folder / "lib" / library.name).symlink_to(library)
    return folder / "bin/python"


def examine(python: Path) -> None:
    report = run(python, "-m", "maskwise")
    print(report)
    place = f"{python.parents[1]}/lib/"
    for line in ("where ok       yes", f"libmaskwise    {place}", f"LD_PRELOAD={place}"):
        if line not in report:
            sys.exit(f"the self-check does not say '{line}'")
    provider = run(python, "-c", "import maskwise.onnxruntime as o; print(o.library())")
    if not provider.startswith(place):
        sys.exit(f"maskwise.onnxruntime has a library outside the environment: {provider}")
    extension = run(python, "-c", "import maskwise.openvino as o; print(o.library())")
    if not extension.startswith(place):
        sys.exit(f"maskwise.openvino has a library outside the environment: {extension}")
    if "/usr/lib" in next(line for line in report.splitlines() if line.startswith("libtbb")):
        sys.exit("libtbb comes from /usr/lib, not from the environment")


def install(wheel: Path, environment: Path) -> None:
    python = fresh_environment(environment)
    run(python, *INSTALL, wheel)
    examine(python)


def install_beside_torch(wheel: Path, environment: Path) -> None:
    """Installs the wheel beside torch and NumPy, without ml_dtypes, as most users do."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = ROOT / ".deps/torch/lib" / version / "site-packages"
    if not packages.is_dir():
        print("no PyTorch: scripts/setup --torch")
        return
    python = fresh_environment(environment, packages)
    run(python, *INSTALL, wheel)
    report = run(python, "-m", "maskwise")
    if "PyTorch        works" not in report or "all fine" not in report:
        sys.exit(f"the self-check does not say that all is fine:\n{report}")
    missing = "import importlib.util as i; assert not i.find_spec('ml_dtypes')"
    print(run(python, "-c", missing + CALLS).strip())


def check_build(build: Path, folder: Path) -> None:
    """Packs and checks a wheel of compiled binaries. scikit-build-core compiles nothing."""
    package = folder / "project/python/maskwise"
    shutil.copytree(ROOT / "python/maskwise", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "project")
    shutil.copytree(ROOT / "include", folder / "project/include")  # has the package's version
    run("cmake", "--install", build, "--component", "python", "--prefix", package.parent)
    pack = [*PIP, "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    for setting in ("wheel.cmake=false", "wheel.platlib=true"):
        pack += ["--config-settings", setting]
    run(sys.executable, *pack, "--wheel-dir", folder, folder / "project")
    wheel = next(folder.glob("maskwise-*.whl"))
    install_beside_torch(wheel, folder / "with-torch")
    install(wheel, folder / "from-build")


def check_sources(folder: Path) -> None:
    shutil.rmtree(ROOT / "build/wheel", ignore_errors=True)
    python = fresh_environment(folder / "from-source")
    run(python, *INSTALL, "--no-build-isolation", "--config-settings=build-dir=build/wheel", ".")
    examine(python)


# Calls each integration whose package is installed, as a user would.
CALLS = """
import importlib.util as installed, numpy as np, maskwise
q = np.ones((1, 2, 64, 64), np.float32)
assert maskwise.attention(q, q, q, is_causal=True).shape == q.shape
assert maskwise.where(q > 0, q, 0).dtype == np.float32
if installed.find_spec("onnxruntime"):
    import maskwise.onnxruntime
    from onnx import TensorProto, helper
    kinds = {"c": TensorProto.BOOL, "x": TensorProto.FLOAT, "y": TensorProto.FLOAT}
    inputs = [helper.make_tensor_value_info(name, kind, [2, 3]) for name, kind in kinds.items()]
    output = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 3])
    node = helper.make_node("Where", list(kinds), ["z"])
    model = helper.make_model(helper.make_graph([node], "where", inputs, [output]),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    session = maskwise.onnxruntime.session(model.SerializeToString())
    assert "MaskwiseExecutionProvider" in session.get_providers()
    x = np.ones((2, 3), np.float32)
    assert (session.run(None, {"c": x > 0, "x": x, "y": 0 * x})[0] == x).all()
if installed.find_spec("openvino"):
    import maskwise.openvino, openvino
    openvino.Core().add_extension(maskwise.openvino.library())
if installed.find_spec("torch"):
    import maskwise.torch, torch
    from maskwise.flash_attn import flash_attn_func
    maskwise.torch.install()
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        t = torch.ones(1, 4, 160, 64, dtype=kind)
        torch.nn.functional.scaled_dot_product_attention(t, t, t, is_causal=True)
        maskwise.attention(t, t, t, maskwise.Mask.causal(), out=torch.empty_like(t))
        torch.ops.maskwise.attention(t, t, t, None, True)
        flash_attn_func(t, t, t, causal=True)
        assert maskwise.where(t > 0, t, 0.5).dtype == kind
print("integrations:", *(d for d in ("onnxruntime", "openvino", "torch") if installed.find_spec(d)))
"""
PYTHONS = [*(f"python3.{minor}" for minor in range(11, 16)), "python3.14t"]
HOSTS = ["onnx", "onnxruntime", "openvino"]


def fits(python: str, wheel: Path) -> bool:
    """Whether pip would install the wheel for this Python."""
    dry = [*PIP, "install", "--dry-run", "--quiet", "--no-deps", "--no-index", str(wheel)]
    return subprocess.run([python, *dry], capture_output=True, check=False).returncode == 0


def check_wheels(wheels: Path, folder: Path) -> None:
    for wheel in sorted(wheels.glob("maskwise-*.whl")):
        for name in PYTHONS:
            path = shutil.which(name)
            if not path or not fits(path, wheel):
                continue
            environment = folder / f"{wheel.stem}-{name}"
            run(path, "-m", "venv", environment)
            python = environment / "bin/python"
            run(python, *PIP, "install", "--quiet", wheel)
            for host in HOSTS:  # a package may have no wheel for this Python
                subprocess.run(
                    [python, *PIP, "install", "--quiet", host], capture_output=True, check=False
                )
            report = run(python, "-m", "maskwise")
            assert "where ok       yes" in report, report
            print(f"{wheel.name}: {name}: {run(python, '-c', CALLS).splitlines()[-1]}", flush=True)
            shutil.rmtree(environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--build", type=Path, help="a build folder that contains the Python package"
    )
    parser.add_argument("--install", type=Path, help="a folder that contains wheels")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if arguments.build:
            check_build(arguments.build, Path(name))
        elif arguments.install:
            check_wheels(arguments.install.resolve(), Path(name))
        else:
            check_sources(Path(name))


if __name__ == "__main__":
    main()
