#!/usr/bin/env python3
"""usage: fuzz_models.py onnxruntime|openvino|openvino_attention COUNT [SEED]

Runs COUNT models of python/tests/generated_models.py or sdpa_models.py, with and without Maskwise.
SEED (default 0) selects the first model. A model that runs without Maskwise must also run with it.
Results must be bit-exact if nothing rounds; else they may differ by the effect of rounding errors
(model_values.py). Models run in child processes. Prints the share of models with each kind of
claim, and the command to reproduce each difference. Fails if there is a difference.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import maskwise.onnxruntime
import maskwise.openvino
import numpy as np
import onnx
import onnxruntime as ort
import openvino as ov

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python/tests"))
from arrays import Array  # noqa: E402
from generated_models import Case, generate  # noqa: E402
from model_builder import NOT_RUN  # noqa: E402
from model_values import LARGEST, LEAST, UNITS, Evaluator, Pair, Values  # noqa: E402
from sdpa_models import arrays_of as attention_arrays  # noqa: E402
from sdpa_models import attention_model, drawn  # noqa: E402

BATCH = 50  # models per child
SECONDS = 600  # limit for a batch
SLACK = 64  # allowed error, as a multiple of the effect of one rounding error
COMPILATIONS = 6  # compilations by OpenVINO alone, to see whether its results repeat
DRAWS = 16  # draws of rounding noise that may explain a difference
Run = Callable[[], list[Array]]


def tolerance(pair: Pair, element: int) -> Array:
    """Returns the allowed error of each element, from the largest error of all elements, because an
    element's errors may cancel by chance. Infinite in rows where rounding may make an element
    infinite or NaN."""
    exact, shaken = pair
    if exact is shaken:
        return np.zeros(exact.shape)
    with np.errstate(invalid="ignore"):
        off = np.asarray(abs(exact.astype(float) - shaken.astype(float)))
    off[(exact == shaken) | (np.isnan(exact) & np.isnan(shaken))] = 0
    is_finite = off <= LARGEST[element]
    most = np.where(is_finite.all(-1, keepdims=True), off.max(where=is_finite, initial=0), np.inf)
    size = np.nan_to_num(abs(exact), posinf=0)
    return SLACK * most + 4 * (size * UNITS[element] + LEAST[element])


def difference(got: Array, wanted: Array, pair: Pair | None, element: int) -> str | None:
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return f"{got.dtype} {got.shape}, wanted {wanted.dtype} {wanted.shape}"
    allowed: Array = np.full(wanted.shape, np.inf)
    is_lost: Array = np.zeros(wanted.shape, bool)
    # If a model declares wrong shapes, the host alone may compute a shape other than NumPy's.
    if pair is not None and wanted.shape == pair[0].shape:
        allowed = tolerance(pair, element)
        exact = pair[0].astype(float)
        # Some of OpenVINO's reductions ignore NaNs. ONNX Runtime's Where turns -0.0 into 0.0. A
        # later division by this 0.0 gives the opposite infinity.
        is_lost = np.isnan(exact) & (got != got)
        is_lost |= np.isinf(exact) & (got == exact) & (wanted == -exact)
    most = LARGEST[element]
    with np.errstate(invalid="ignore", over="ignore"):
        # Infinity counts as the largest finite number.
        off = abs(np.subtract(*(np.clip(one.astype(float), -most, most) for one in (got, wanted))))
        is_right = (got == wanted) | ((got != got) & (wanted != wanted))
        is_right |= ((off <= allowed) & (allowed > 0)) | np.isinf(allowed) | is_lost
    if is_right.all():
        return None
    place = np.unravel_index(np.argmin(is_right), is_right.shape)
    return f"{np.sum(~is_right)} elements: {got[place]} at {place}, wanted {wanted[place]}"


def run(call: Run) -> list[Array] | str:
    """Returns the outputs, or the error text."""
    try:
        return call()
    except Exception as error:  # hosts raise many types of exceptions
        return f"{type(error).__name__}: {error}"[:400]


def drawn_again(case: Case) -> Iterator[Values]:
    """Yields all values of the model DRAWS times, each time with new rounding noise."""
    model = onnx.load_from_string(case.model)
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    arguments = {
        name: (array.astype(float) if array.dtype.kind == "f" else array,) * 2
        for name, array in {**constants, **case.feeds}.items()
    }
    for seed in range(DRAWS):
        random = np.random.default_rng(seed)
        evaluator = Evaluator(model.opset_import[0].version, case.element, random)
        values: Values = dict(arguments)
        for node in model.graph.node:
            with suppress(*NOT_RUN):
                evaluator.run([node], values)
        yield values


def is_within_another_draw(got: Array, wanted: Array, name: str, case: Case) -> bool:
    """Whether the difference is allowed in another draw: noise may cancel in a single draw."""
    pair = case.outputs[name]
    if pair is None or pair[0] is pair[1]:
        return False
    others = (values[name] for values in drawn_again(case) if name in values)
    return any(
        np.array_equal(other[0], pair[0], equal_nan=True)
        and difference(got, wanted, other, case.element) is None
        for other in others
    )


def fault_of(
    got: list[Array] | str, wanted: Sequence[Array | None] | str, case: Case
) -> str | None:
    """Compares the outputs of one or more inferences. Skips outputs whose wanted value is None."""
    if isinstance(wanted, str):
        return None
    if isinstance(got, str):
        return got
    outputs = [*case.outputs.items()] * (len(wanted) // len(case.outputs))
    for one, right, (name, pair) in zip(got, wanted, outputs, strict=True):
        why = None if right is None else difference(one, right, pair, case.element)
        if right is not None and why and not is_within_another_draw(one, right, name, case):
            return f"{name}: {why}"
    return None


def steady(outputs: list[Array] | str) -> list[Array | None] | str:
    """`outputs` are from two inferences of OpenVINO alone. If an output of the first inference
    differs in the second, replaces it by None. OpenVINO may return unset memory for an If of
    dynamic shape."""
    if isinstance(outputs, str):
        return outputs
    half = len(outputs) // 2
    both = zip(outputs[:half], outputs[half:], strict=True)
    are_same = [(one.shape, one.tobytes()) == (other.shape, other.tobytes()) for one, other in both]
    return [
        *(one if same else None for one, same in zip(outputs[:half], are_same, strict=True)),
        *outputs[half:],
    ]


def exact(wanted: list[Array | None] | str, case: Case) -> list[Array | None] | str:
    """Replaces OpenVINO's outputs by NumPy's if the shapes are equal. By IEEE rules, a SoftMax row
    with +infinity is NaN. In OpenVINO, only the infinite element is NaN, and the others are 0.
    After an IsNaN or a comparison, finite numbers differ.
    """
    if isinstance(wanted, str):
        return wanted
    pairs = [*case.outputs.values()] * (len(wanted) // len(case.outputs))
    return [
        pair[0].astype(right.dtype)
        if right is not None and pair is not None and pair[0].shape == right.shape
        else right
        for right, pair in zip(wanted, pairs, strict=True)
    ]


class Lines:
    """Captures this process's standard error."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115, open as long as the process
        os.dup2(self.file.fileno(), 2)

    def claims(self) -> list[str]:
        """Returns the kinds in Maskwise's claim lines since the last call."""
        self.file.seek(0)
        lines = [line.split(",") for line in self.file.read().decode().splitlines()]
        self.file.truncate(0)
        self.file.seek(0)
        return [line[3].split(" ")[0] for line in lines if line[:2] == ["maskwise", "claim"]]


def verdict_of(alone: list[Array] | str, fault: str | None, lines: Lines) -> dict[str, Any]:
    verdict = "refused" if isinstance(alone, str) else "ran"
    return {"verdict": verdict, "difference": fault, "claims": lines.claims()}


def changed_alone(case: Case) -> bytes:
    """Adds nodes that ONNX Runtime folds. After folding, ONNX Runtime infers shapes again, and
    changes or refuses wrong shapes. It does the same after Maskwise takes nodes.
    """
    model = onnx.load_from_string(case.model)
    one = onnx.helper.make_tensor("one", onnx.TensorProto.FLOAT, [], [1.0])
    constant = onnx.helper.make_node("Constant", [], ["one"], value=one)
    model.graph.node.extend([constant, onnx.helper.make_node("Neg", ["one"], ["minus_one"])])
    result = onnx.helper.make_tensor_value_info("minus_one", onnx.TensorProto.FLOAT, None)
    model.graph.output.append(result)
    return bytes(model.SerializeToString())


class OnnxRuntime:
    def __init__(self, is_alone: bool) -> None:
        self.is_alone = is_alone
        self.lines = Lines()

    def session(
        self, case: Case, seed: int, is_alone: bool, optimizes: bool
    ) -> ort.InferenceSession:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 2 if seed % 16 == 0 else 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if not optimizes:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if is_alone:
            return ort.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
        options.add_session_config_entry("maskwise.verbose", "1")
        options.add_session_config_entry("maskwise.fuse", "0" if seed % 16 == 1 else "1")
        return maskwise.onnxruntime.session(case.model, options)

    def run(self, case: Case, seed: int, is_alone: bool, optimizes: bool = True) -> list[Array]:
        session = self.session(case, seed, is_alone or self.is_alone, optimizes)
        # An output that occurs twice in the graph is requested once.
        return [np.asarray(one) for one in session.run(list(case.outputs), case.feeds)]

    def check_seed(self, seed: int) -> dict[str, Any]:
        return self.check(generate(seed), seed)

    def excuse(self, case: Case, seed: int) -> str | None:
        """Names a changed form of the model that ONNX Runtime alone refuses. Maskwise may refuse
        such a model. Returns None if ONNX Runtime alone runs both forms."""
        changed = replace(case, model=changed_alone(case))
        forms: dict[str, Run] = {
            "wrong shapes, inferred again": lambda: self.run(changed, seed, True),
            # By joining two Transposes, an optimization may remove a wrong perm.
            "a wrong perm": lambda: self.run(case, seed, True, optimizes=False),
        }
        return next((why for why, call in forms.items() if isinstance(run(call), str)), None)

    def check(self, case: Case, seed: int) -> dict[str, Any]:
        alone, got = (run(lambda one=one: self.run(case, seed, one)) for one in (True, False))
        verdict = verdict_of(alone, fault_of(got, alone, case), self.lines)
        if isinstance(got, str) and not isinstance(alone, str):
            why = self.excuse(case, seed)
            verdict |= {"verdict": f"excused ({why})", "difference": None} if why else {}
        return verdict


# With one thread, OpenVINO drops run-time errors, so a refusal by Maskwise would not be seen.
OPENVINO = {"INFERENCE_NUM_THREADS": 2, "INFERENCE_PRECISION_HINT": "f32"}


class OpenVino:
    """Runs accelerated models: as returned, with force=True, cloned, and saved and read."""

    def __init__(self, is_alone: bool) -> None:
        os.environ["MASKWISE_VERBOSE"] = "1"
        self.lines = Lines()
        self.core, self.extended = ov.Core(), ov.Core()
        if not is_alone:
            self.extended.add_extension(maskwise.openvino.library())
        self.is_alone = is_alone

    def accelerate(self, model: ov.Model, force: bool = False) -> ov.Model:
        if self.is_alone:
            return model
        return maskwise.openvino.accelerate(model, force=force, precision="f32")

    def saved(self, model: ov.Model) -> ov.Model:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            ov.save_model(model, path, compress_to_fp16=False)
            return self.extended.read_model(path)

    def run(self, model: ov.Model, case: Case) -> list[Array]:
        compiled = self.core.compile_model(model, "CPU", OPENVINO)
        inferences = [compiled(case.feeds) for _ in range(2)]
        return [results[name] for results in inferences for name in case.outputs]

    def alone(self, case: Case) -> list[Array] | str:
        return run(lambda: self.run(self.core.read_model(case.model), case))

    def repeats_itself(self, outputs: list[Array] | str, case: Case) -> bool:
        """Whether OpenVINO alone computes the same outputs in each of several compilations."""
        wanted = steady(outputs)
        return all(fault_of(self.alone(case), wanted, case) is None for _ in range(COMPILATIONS))

    def check_seed(self, seed: int) -> dict[str, Any]:
        case = generate(seed)
        alone = self.alone(case)
        if isinstance(alone, str):
            return verdict_of(alone, None, self.lines)
        forms: dict[str, Callable[[ov.Model], ov.Model]] = {
            "accelerated": self.accelerate,
            "cloned": lambda model: self.accelerate(model).clone(),
            "saved": lambda model: self.saved(self.accelerate(model)),
            "forced": lambda model: self.accelerate(model, force=True),
        }
        faults = []
        for name, change in forms.items():
            got = run(
                lambda change=change: self.run(change(self.core.read_model(case.model)), case)
            )
            wanted = steady(alone)
            is_exact = name == "forced" and fault_of(got, exact(wanted, case), case) is None
            if (why := fault_of(got, wanted, case)) and not is_exact:
                faults.append(f"{name}: {why}")
        if faults and not self.repeats_itself(alone, case):
            return verdict_of("other results each time", None, self.lines)
        return verdict_of(alone, "; ".join(faults) or None, self.lines)


class OpenVinoAttention(OpenVino):
    """Attention by OpenVINO's own operations."""

    def check_seed(self, seed: int) -> dict[str, Any]:
        problem = drawn(seed)
        arrays, model = attention_arrays(problem), attention_model(problem)
        forms: dict[str, Callable[[], ov.Model]] = {
            "forced": lambda: self.accelerate(model, force=True),
            "saved": lambda: self.saved(self.accelerate(model)),
        }
        alone = run(lambda: self.infer(model, arrays))
        faults = []
        for name, make in {} if isinstance(alone, str) else forms.items():
            got = run(lambda make=make: self.infer(make(), arrays))
            if isinstance(got, str):
                faults.append(f"{name}: {got}")
            elif not np.allclose(got[0], alone[0], rtol=0, atol=3e-5, equal_nan=True):
                faults.append(f"{name}: {np.nanmax(abs(got[0] - alone[0]))} apart, {problem}")
        return verdict_of(alone, "; ".join(faults) or None, self.lines)

    def infer(self, model: ov.Model, arrays: list[Array]) -> list[Array]:
        compiled = self.core.compile_model(model, "CPU", OPENVINO)
        return [np.array(compiled(arrays)[0])]


HOSTS: dict[str, type] = {
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "openvino_attention": OpenVinoAttention,
}


def run_child(host: str, first: int, count: int, is_alone: bool, path: str) -> None:
    checker = HOSTS[host](is_alone)
    with Path(path).open("w") as lines:
        for seed in range(first, first + count):
            print(json.dumps({"seed": seed}), file=lines, flush=True)
            results = {"seed": seed, **checker.check_seed(seed)}
            print(json.dumps(results), file=lines, flush=True)


def run_batch(host: str, first: int, count: int, is_alone: bool = False) -> list[dict[str, Any]]:
    """Returns the verdicts of the models that were started. If the child failed, the last verdict
    is "died"."""
    with tempfile.NamedTemporaryFile("r") as output:
        arguments = (host, first, count, is_alone, output.name)
        process = multiprocessing.get_context("fork").Process(target=run_child, args=arguments)
        process.start()
        process.join(SECONDS)
        status = process.exitcode
        process.kill()
        lines = [json.loads(line) for line in output]
    results = list({line["seed"]: line for line in lines}.values()) or [{"seed": first}]
    if status != 0:
        why = f"exit status {status}" if status is not None else f"not done after {SECONDS} s"
        results[-1] |= {"verdict": "died", "claims": [], "difference": why}
    return results


def narrow_down(host: str, dead: dict[str, Any], first: int) -> None:
    """Runs only the model that ended a child, with and without Maskwise. Adjusts its verdict."""
    seed = dead["seed"]
    if run_batch(host, seed, 1)[0]["verdict"] != "died":
        dead["difference"] += f", only after the models from {first} on"
    elif run_batch(host, seed, 1, is_alone=True)[0]["verdict"] == "died":
        dead |= {"verdict": "refused", "difference": None}


def run_models(host: str, first: int, count: int) -> Iterator[dict[str, Any]]:
    end = first + count
    while first < end:
        results = run_batch(host, first, min(BATCH, end - first))
        if results[-1]["verdict"] == "died":
            narrow_down(host, results[-1], first)
        yield from results
        first = results[-1]["seed"] + 1


def summarize(results: list[dict[str, Any]]) -> str:
    verdicts = Counter(one["verdict"].split(":")[0] for one in results)
    claims = Counter(kind.split("-")[0] for one in results for kind in set(one["claims"]))
    shares = [f"{100 * n / len(results):.0f} % with {kind}" for kind, n in sorted(claims.items())]
    return ", ".join([*(f"{n} {verdict}" for verdict, n in sorted(verdicts.items())), *shares])


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3) or arguments[0] not in HOSTS:
        print(__doc__, file=sys.stderr)
        return 2
    host, count, *seed = arguments
    results = []
    for one in run_models(host, int(seed[0]) if seed else 0, int(count)):
        results.append(one)
        if one["difference"]:
            print(f"{one['seed']}: {one['difference']}\n    fuzz_models.py {host} 1 {one['seed']}")
    wrong = sum(one["difference"] is not None for one in results)
    print(f"{host}: {len(results)} models, {summarize(results)}, {wrong} different")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
