"""The graphs of the attention suite: case files; the same graphs with longer sequences; scale, mask
and SoftMax without MatMuls; and a graph's operators before and after Maskwise's."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from worker import ROOT

CASES = ROOT.parent / "shared/onednn-cases"  # oneDNN's files; the folder may be missing
OWN_CASES = ROOT / "benchdnn_inputs/mha"
BYTES = {"f32": 4, "s32": 4, "bf16": 2, "f16": 2, "s8": 1, "u8": 1, "boolean": 1, "s64": 8}
UNKNOWN = -(1 << 63)
# Sources of the longer sequences: the file, its sequence length, and its number of heads.
SEQUENCES = {
    "causal": ("sdpa-plain-implicit-causal-mask-fp32-bs1", 384, 16),
    "padding": ("MHA-distill_bert-inf-fp32-bs1", 128, 12),
}
ALONE_COPIES = 6  # upper bound on the score matrices that oneDNN alone stores at the same time

Graph = dict[str, Any]


@dataclass(frozen=True)
class GraphCase:
    name: str
    file: Path
    needed_bytes: int = 0

    def load(self) -> Graph:
        """Reads the graph and fills in unknown shapes."""
        graph: Graph = json.loads(self.file.read_text())
        known: dict[int, list[int]] = {}
        for op in graph["graph"]:
            for tensor in op["inputs"]:
                known.setdefault(tensor["id"], tensor["shape"])
            for tensor in [*op["inputs"], *op["outputs"]]:
                if UNKNOWN in tensor["shape"]:
                    largest = max((known[t["id"]] for t in op["inputs"]), key=prod)
                    tensor["shape"] = known.get(tensor["id"], largest)
                    tensor["stride"] = dense_as_before(tensor["shape"], [])
                known[tensor["id"]] = tensor["shape"]
        return graph


def written(name: str, graph: Graph, folder: Path, needed_bytes: int = 0) -> GraphCase:
    path = folder / f"{name.replace(' ', '-')}.json"
    path.write_text(json.dumps(graph))
    return GraphCase(name, path, needed_bytes)


def tensors(graph: Graph) -> Iterator[dict[str, Any]]:
    for op in graph["graph"]:
        yield from op["inputs"]
        yield from op["outputs"]


def elements(tensor: dict[str, Any]) -> int:
    return prod(tensor["shape"])


def dense_as_before(shape: list[int], strides: list[int]) -> list[int]:
    """Returns dense strides with the dimension order of the old strides."""
    known = len(strides) == len(shape) and UNKNOWN not in strides
    # If strides are unknown or equal, the last dimension is innermost.
    order = sorted(range(len(shape)), key=lambda d: (strides[d] if known else 0, -d))
    result, step = [1] * len(shape), 1
    for d in order:
        result[d] = step
        step *= shape[d]
    return result


def resized(graph: Graph, extents: dict[int, int]) -> Graph:
    """Replaces sequence lengths and numbers of heads: `extents` maps old to new extents."""
    for tensor in tensors(graph):
        old = tensor["shape"]
        if not any(extent in extents for extent in old):
            continue
        tensor["shape"] = [extents.get(extent, extent) for extent in old]
        tensor["stride"] = dense_as_before(tensor["shape"], tensor["stride"])
    return graph


def files() -> list[GraphCase]:
    """Returns oneDNN's case files if the folder CASES exists, else the case files of OWN_CASES."""
    folder = CASES if CASES.is_dir() else OWN_CASES
    return [GraphCase(path.stem, path) for path in sorted(folder.glob("**/*.json"))]


def without_newer_attributes(case: GraphCase, folder: Path) -> GraphCase:
    """Returns the case without attributes that oneDNN 3.7 lacks. `mode` affects only rows of -inf.
    `accumulation_mode` affects only the precision of sums."""
    graph = json.loads(case.file.read_text())
    for op in graph["graph"]:
        for name in ("mode", "accumulation_mode"):
            op["attrs"].pop(name, None)
    return written(case.name, graph, folder)


def sequences(full: bool, folder: Path) -> list[GraphCase]:
    """Returns attention over longer sequences, built from oneDNN's files; nothing without them."""
    graph_cases: list[GraphCase] = []
    if not CASES.is_dir():
        return graph_cases
    for kind, (stem, sequence, heads) in SEQUENCES.items():
        file = next(case.file for case in files() if case.name == stem)
        for new_heads in (12, 32) if full else (12,):
            for length in (512, 1024, 2048, 4096) if full else (512, 1024, 2048):
                graph = json.loads(file.read_text())
                graph = resized(graph, {sequence: length, heads: new_heads})
                name = f"{kind} 1x{new_heads}x{length}x{length}"
                needed = ALONE_COPIES * 4 * new_heads * length * length
                graph_cases.append(written(name, graph, folder, needed))
    return graph_cases


MIDDLE = [1, 12, 1024, 1024]


def described(number: int, shape: list[int], dtype: str) -> dict[str, Any]:
    strides = dense_as_before(shape, [])
    tensor = {"id": number, "dtype": dtype, "shape": shape, "stride": strides}
    return {**tensor, "layout_type": "strided", "property_type": "variable"}


class Operators:
    """Builds a graph, operator by operator. By default, results have the shape of the scores."""

    def __init__(self, scores: list[int]) -> None:
        self.scores = scores
        self.ops: list[dict[str, Any]] = []

    def add(
        self,
        kind: str,
        inputs: list[Any],
        dtype: str = "f32",
        output: dict[str, Any] | None = None,
        **attributes: Any,
    ) -> Any:
        if kind in ("Divide", "Multiply", "GreaterEqual", "Select"):
            attributes["auto_broadcast"] = "numpy"
        types = {bool: "bool", int: "s64", str: "string"}
        attrs = {key: {"type": types[type(v)], "value": v} for key, v in attributes.items()}
        number = len(self.ops)
        output = output or described(100 + number, self.scores, dtype)
        head = {"id": number, "name": f"{kind}_{number}", "kind": kind, "attrs": attrs}
        self.ops.append({**head, "inputs": inputs, "outputs": [output]})
        return output

    def add_causal_mask(self, scores: Any) -> Any:
        indices = [self.add("GenIndex", [scores], "s32", axis=axis) for axis in (-2, -1)]
        return self.add("GreaterEqual", indices, "boolean")

    def graph(self) -> Graph:
        head = {"version": "3.8.0", "engine_kind": "cpu", "fpmath_mode": "strict"}
        ports: dict[str, Any] = {"input_ports": [], "output_ports": []}
        return {**head, "fpmath_mode_apply_to_int": "false", **ports, "graph": self.ops}


def middle(is_causal: bool) -> Graph:
    """Returns a graph of scale, mask and SoftMax without MatMuls. Maskwise merges the operators."""
    operators = Operators(MIDDLE)
    scores = operators.add("Divide", [described(0, MIDDLE, "f32"), described(1, [1], "f32")])
    mask: Any = described(2, [1, 1, *MIDDLE[2:]], "boolean")
    if is_causal:
        mask = operators.add_causal_mask(scores)
    kept = operators.add("Select", [mask, scores, described(3, [1], "f32")])
    operators.add("SoftMax", [kept], axis=-1)
    return operators.graph()


def middles(folder: Path) -> list[GraphCase]:
    """Returns the two graphs of middle(): with a mask from memory, and with a causal mask."""
    return [
        written(f"middle {kind} 1x12x1024x1024", middle(kind == "causal"), folder)
        for kind in ("mask", "causal")
    ]


def inputs_of(ops: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    output_ids = {tensor["id"] for op in ops for tensor in op["outputs"]}
    used = {tensor["id"]: tensor for op in ops for tensor in op["inputs"]}
    return {key: tensor for key, tensor in used.items() if key not in output_ids}


@dataclass
class Parts:
    """The operators that oneDNN runs before and after Maskwise's operators, and the bytes that
    Maskwise's operators must move."""

    before: Graph
    after: Graph
    row_bytes: int


def split(graph: Graph, own_ids: set[int]) -> Parts:
    """Cuts out the operators `own_ids`. `before` gets the operators that `own_ids` depend
    on. `after` gets all others."""
    ops = graph["graph"]
    own_ops = [op for op in ops if op["id"] in own_ids]
    needed = set(inputs_of(own_ops))
    before: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []
    for op in reversed([op for op in ops if op["id"] not in own_ids]):
        is_needed = any(tensor["id"] in needed for tensor in op["outputs"])
        if is_needed:
            needed |= {tensor["id"] for tensor in op["inputs"]}
        (before if is_needed else after).insert(0, op)
    return Parts(cut(graph, before), cut(graph, after), bytes_moved(ops, own_ops))


def bytes_moved(ops: list[dict[str, Any]], partition_ops: list[dict[str, Any]]) -> int:
    """Returns the bytes of the partition's inputs and outputs, each counted once."""
    own_ids = {op["id"] for op in partition_ops}
    outside = [op for op in ops if op["id"] not in own_ids]
    used = {tensor["id"] for op in outside for tensor in op["inputs"]}
    inside = {tensor["id"] for op in partition_ops for tensor in op["inputs"]}
    moved = list(inputs_of(partition_ops).values())
    for op in partition_ops:
        moved += [t for t in op["outputs"] if t["id"] in used or t["id"] not in inside]
    return sum(elements(tensor) * BYTES[tensor["dtype"]] for tensor in moved)


def cut(graph: Graph, ops: list[dict[str, Any]]) -> Graph:
    """Returns a graph of `ops`. Tensors of undefined layout become strided and dense."""
    part: Graph = json.loads(json.dumps({**graph, "graph": ops}))
    for op in part["graph"]:
        for tensor in [*op["inputs"], *op["outputs"]]:
            if tensor["layout_type"] == "undef":
                tensor["layout_type"] = "strided"
                tensor["stride"] = dense_as_before(tensor["shape"], [])
    return part
