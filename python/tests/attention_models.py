"""Generated models with one attention operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from arrays import Array
from onnx import helper
from onnx_where import model_of, value

INPUTS = {
    "Attention": ["Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"],
    "MultiHeadAttention": [
        "query",
        "key",
        "value",
        "bias",
        "key_padding_mask",
        "attention_bias",
        "past_key",
        "past_value",
    ],
    "GroupQueryAttention": [
        "query",
        "key",
        "value",
        "past_key",
        "past_value",
        "seqlens_k",
        "total_sequence_length",
        "cos_cache",
        "sin_cache",
        "position_ids",
        "attention_bias",
        "head_sink",
    ],
}
RESULTS = ["Y", "present_key", "present_value", "scores"]


@dataclass
class Case:
    """A model of one operator, and its inputs."""

    kind: str
    feeds: dict[str, Array]
    outputs: list[str]
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 24
    is_open: bool = False  # the model declares no input shapes

    def model(self) -> bytes:
        names = [name if name in self.feeds else "" for name in INPUTS[self.kind]]
        results = [name if name in self.outputs else "" for name in RESULTS]
        for listed in (names, results):
            while listed and not listed[-1]:
                listed.pop()
        domain = "" if self.kind == "Attention" else "com.microsoft"
        node = helper.make_node(self.kind, names, results, "it", domain=domain, **self.attributes)
        inputs = [
            value(name, element_of(array), None if self.is_open else array.shape)
            for name, array in self.feeds.items()
        ]
        element = element_of(next(iter(self.feeds.values())))
        outputs = [value(name, element, None) for name in self.outputs]
        return model_of([node], inputs, outputs, opset=self.opset)


def element_of(array: Array) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


def tolerance(case: Case) -> float:
    """Returns the allowed difference between two kernels. A large bias makes f32 scores less
    precise."""
    arrays = [array for array in case.feeds.values() if array.dtype.kind == "f"]
    if any(array.dtype == np.float16 for array in arrays):
        return 2e-2
    if "key_padding_mask" in case.feeds:
        arrays.append(np.array(case.attributes.get("mask_filter_value", -1e4)))
    finite = (np.abs(a[np.isfinite(a) & (np.abs(a) < 1e30)]) for a in arrays)
    return max(2e-5, 4e-7 * max((float(a.max(initial=0)) for a in finite), default=0))


def numbers(random: np.random.Generator, shape: Any, dtype: str) -> Array:
    return random.standard_normal(shape).astype(dtype)


def draw_mask(random: np.random.Generator, shape: Any, dtype: str) -> Array:
    """Draws a boolean mask, or numbers to add to the scores. Some rows may be fully masked."""
    kept = random.random(shape) < random.choice([0.1, 0.5, 0.9])
    if random.random() < 0.3:
        kept[..., : shape[-1] // 2] = False
    if random.random() < 0.3:
        kept[..., : shape[-2] // 2, :] = False
    if random.random() < 0.5:
        return np.asarray(kept)
    # No -1e4 in f16: ONNX Runtime would round a score plus -1e4 to a multiple of 8.
    finite = [float(np.finfo(dtype).min), -1e4][: 1 if dtype == "e" else 2]
    low = random.choice([-np.inf, *finite])
    bias = np.where(kept, random.choice([0, 1]) * random.standard_normal(shape), low)
    if random.random() < 0.2:
        bias = np.where(random.random(shape) < 0.5, bias, -np.inf)
    return bias.astype(dtype)


def draw_attention(random: np.random.Generator, dtype: str = "f") -> Case:
    """Draws a valid model of ONNX's Attention."""
    some = lambda *choices: int(random.choice(choices))  # noqa: E731
    batch, key_heads, depth, columns = (
        some(1, 2, 3),
        some(1, 2, 3),
        some(1, 8, 20, 64),
        some(1, 9, 64),
    )
    heads = key_heads * some(1, 2, 4)
    rows, keys, past = some(1, 2, 7, 65, 130), some(1, 5, 64, 129), 0
    feeds = {
        "Q": numbers(random, (batch, heads, rows, depth), dtype),
        "K": numbers(random, (batch, key_heads, keys, depth), dtype),
        "V": numbers(random, (batch, key_heads, keys, columns), dtype),
    }
    attributes: dict[str, Any] = {"is_causal": some(0, 1)}
    if random.random() < 0.5:
        feeds = {name: flat(array) for name, array in feeds.items()}
        attributes |= {"q_num_heads": heads, "kv_num_heads": key_heads}
    outputs = ["Y", "present_key", "present_value"][: some(1, 3)]
    if random.random() < 0.3:
        past, outputs = some(0, 3, 70), ["Y", "present_key", "present_value"]
        feeds["past_key"] = numbers(random, (batch, key_heads, past, depth), dtype)
        feeds["past_value"] = numbers(random, (batch, key_heads, past, columns), dtype)
    elif random.random() < 0.3:
        feeds["nonpad_kv_seqlen"] = random.integers(0, keys + 1, batch)
    if random.random() < 0.5:
        outer = [(), (some(1, heads),), (some(1, batch), some(1, heads))][some(0, 1, 2)]
        feeds["attn_mask"] = draw_mask(random, (*outer, rows, past + keys), dtype)
    if random.random() < 0.3:
        attributes["softcap"] = float(random.choice([0, 1, 20]))
    if random.random() < 0.3:
        attributes["scale"] = float(random.choice([0.1, 1]))
    opset = 24 if "nonpad_kv_seqlen" in feeds else some(23, 24)
    return Case("Attention", feeds, outputs, attributes, opset, random.random() < 0.3)


def flat(array: Array) -> Array:
    """Converts (batch, heads, rows, depth) to (batch, rows, heads * depth)."""
    batch, heads, rows, depth = array.shape
    return np.ascontiguousarray(array.swapaxes(1, 2)).reshape(batch, rows, heads * depth)


def draw_padding(random: np.random.Generator, batch: int, rows: int, keys: int) -> Array:
    """Draws a key_padding_mask: lengths, perhaps followed by zeros, or a mask that keeps keys where
    it is positive."""
    lengths = random.integers(0, keys + 1, batch)
    shapes = [(batch,), (3 * batch + 2,), (batch, keys), (batch, rows, keys)]
    shape = shapes[int(random.integers(4))]
    if len(shape) > 1:
        kept = random.random(shape) < random.choice([0.1, 0.5, 0.9])
        return np.where(kept, random.choice([1, 7]), random.choice([0, -1])).astype(np.int32)
    return np.concatenate([lengths, np.zeros(shape[0] - batch)]).astype(np.int32)


def draw_multi_head(random: np.random.Generator, dtype: str = "f") -> Case:
    some = lambda *choices: int(random.choice(choices))  # noqa: E731
    batch, heads, depth = some(1, 2, 3), some(1, 2, 4), some(1, 8, 20, 64)
    rows, keys, past = some(1, 2, 7, 65, 130), some(1, 5, 64, 129), 0
    keys = rows if random.random() < 0.5 else keys
    columns = depth
    feeds = {"query": numbers(random, (batch, rows, heads * depth), "f")}
    outputs = RESULTS[: some(1, 3)]
    if random.random() < 0.3:
        past, outputs = some(0, 3, 70), RESULTS[:3]
        feeds |= {
            f"past_{n}": numbers(random, (batch, heads, past, depth), "f") for n in ("key", "value")
        }
    else:
        columns = some(depth, 9)
    whole = [numbers(random, (batch, heads, keys, d), "f") for d in (depth, columns)]
    has_heads = random.random() < 0.2 and "past_key" not in feeds
    feeds["key"], feeds["value"] = whole if has_heads else map(flat, whole)
    if random.random() < 0.3 and not has_heads:
        feeds["bias"] = numbers(random, (heads * (2 * depth + columns),), "f")
    attributes: dict[str, Any] = {"num_heads": heads, "unidirectional": some(0, 1)}
    which = some(0, 1, 2, 3)
    if which == 1:
        feeds["key_padding_mask"] = draw_padding(random, batch, rows, past + keys)
    if which == 2 or (which == 3 and random.random() < 0.3):
        shape = (some(1, batch), some(1, heads), rows, past + keys)
        bias = draw_mask(random, shape, "f")
        feeds["attention_bias"] = (
            np.where(bias, 0, -1e4).astype("f") if bias.dtype == bool else bias
        )
    if random.random() < 0.3:
        attributes["mask_filter_value"] = float(random.choice([-np.inf, -1, np.finfo("f").min]))
    if random.random() < 0.3:
        attributes["scale"] = float(random.choice([0.1, 1]))
    return Case("MultiHeadAttention", feeds, outputs, attributes, 20, random.random() < 0.3)


def draw_rotary(
    random: np.random.Generator, queries: tuple[int, int, int], keys: int, has_past: bool
) -> dict[str, Array]:
    """Draws cosine and sine caches, and perhaps positions. Caches have at least `keys` positions.
    The rotation covers a whole head or its first elements."""
    batch, rows, depth = queries
    limit = keys + int(random.choice([0, 1, 40]))
    width = int(random.choice([8, depth // 16 * 8, depth // 32 * 8]))
    feeds = {name: numbers(random, (limit, width), "f") for name in ("cos_cache", "sin_cache")}
    if random.random() < 0.5:
        # More positions than rows are valid: ONNX Runtime reads position_ids as one flat array.
        shape = (batch, rows + int(random.choice([0, 0, 3])))
        ids = random.integers(0, limit, shape)
        if not has_past:  # ONNX Runtime reads only the first element, and counts up from it
            ids.flat[0] = random.integers(0, limit - rows + 1)
        feeds["position_ids"] = ids
    return feeds


def draw_group_query(random: np.random.Generator, dtype: str = "f") -> Case:
    """Draws a prompt, a decoding step (one new key per sequence), or a later prompt (more keys of
    one sequence). The past buffers may have room for more keys."""
    some = lambda *choices: int(random.choice(choices))  # noqa: E731
    is_rotary = random.random() < 0.6
    batch, key_heads = some(1, 2, 3), some(1, 2, 3)
    depth = some(16, 48, 128) if is_rotary else some(8, 24, 64)
    heads, rows, past, room = key_heads * some(1, 2, 4), some(2, 7, 65, 130), 0, 0
    way = some(0, 1, 2)  # a prompt, decoding, a later prompt
    if way > 0:
        past = some(1, 5, 100)
        rows, batch = (1, batch) if way == 1 else (rows, 1)
    feeds = {"query": numbers(random, (batch, rows, heads * depth), "f")}
    for name in ("key", "value"):
        feeds[name] = numbers(random, (batch, rows, key_heads * depth), "f")
    if way > 0 or random.random() < 0.3:
        room = past + some(0, rows, 200)
        for name in ("past_key", "past_value"):
            feeds[name] = numbers(random, (batch, key_heads, room, depth), "f")
    total = rows + past
    shortest = 1 if way < 2 else total
    lengths = random.integers(min(shortest, total), total + 1, batch)
    lengths[0] = total
    feeds["seqlens_k"] = (lengths - 1).astype(np.int32)
    feeds["total_sequence_length"] = np.array([total], np.int32).reshape([(), (1,)][some(0, 1)])
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": key_heads}
    if random.random() < 0.5:
        attributes["local_window_size"] = some(1, 2, 33, 1000)
    if random.random() < 0.3:
        attributes["softcap"] = float(random.choice([0, 1, 20]))
    if random.random() < 0.3:
        attributes["scale"] = float(random.choice([0.1, 1]))
    if is_rotary:
        attributes |= {"do_rotary": 1, "rotary_interleaved": some(0, 1)}
        feeds |= draw_rotary(random, (batch, rows, depth), max(total, room), way > 0)
    if random.random() < 0.5:
        parts = [feeds.pop("key"), feeds.pop("value")]
        feeds["query"] = np.concatenate([feeds["query"], *parts], -1)
    return Case("GroupQueryAttention", feeds, RESULTS[:3], attributes, 20, random.random() < 0.3)


DRAWS = {
    "Attention": draw_attention,
    "MultiHeadAttention": draw_multi_head,
    "GroupQueryAttention": draw_group_query,
}


def with_zeros_past_lengths(case: Case, result: Array) -> Array:
    """Returns the result with zeros past the end of each prompt, where ONNX Runtime writes
    nothing."""
    if (
        "seqlens_k" not in case.feeds
        or result.shape[1] != case.feeds["total_sequence_length"].item()
    ):
        return result
    is_row = np.arange(result.shape[1]) <= case.feeds["seqlens_k"].reshape(-1, 1)
    return np.where(is_row[..., None], result, 0)


ODD_NUMBERS: dict[str, list[Any]] = {
    "q_num_heads": [-1, 0, 3, 2**31, 2**40],
    "kv_num_heads": [-1, 0, 3, 2**31, 2**40],
    "num_heads": [-1, 0, 3, 2**31, 2**40],
    "scale": [0.0, -1.0, np.inf, np.nan],
    "softcap": [-1.0, np.inf, np.nan],
    "mask_filter_value": [3.0, np.inf, np.nan],
    "local_window_size": [0, -5, 2**40],
    "is_causal": [2, -1],
    "unidirectional": [2, -1],
    "do_rotary": [0, 1, 2],
    "rotary_interleaved": [2, -1],
}


def spoil_shape(random: np.random.Generator, array: Array) -> Array:
    shape = list(array.shape)
    way = int(random.integers(4))
    if way == 0 or not shape:
        return array[None]
    dimension = int(random.integers(len(shape)))
    if way == 1:
        del shape[dimension]
    else:
        shape[dimension] = max(0, shape[dimension] + int(random.choice([-1, 1, -1000])))
    return np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)


def spoil(random: np.random.Generator, case: Case) -> Case:
    """Makes the model invalid: changes an attribute, an integer or a shape, or removes an input."""
    case.is_open = True  # else ONNX Runtime refuses to load the model
    whole = [name for name, array in case.feeds.items() if array.dtype.kind == "i"]
    way = random.random()
    if way < 0.25:
        names = [n for n in ODD_NUMBERS if n in case.attributes or random.random() < 0.1]
        name = str(random.choice(names or ["scale"]))
        if case.kind == "Attention" or name not in ("q_num_heads", "is_causal"):
            case.attributes[name] = random.choice(ODD_NUMBERS[name]).item()
    elif way < 0.4 and whole:
        array = case.feeds[str(random.choice(whole))]
        if array.size:
            odd = [-1, -(2**31), 2**31 - 1, 99]
            array.flat[int(random.integers(array.size))] = random.choice(odd)
    elif way < 0.55:
        del case.feeds[str(random.choice(list(case.feeds)[1:]))]
    else:
        name = str(random.choice(list(case.feeds)))
        case.feeds[name] = spoil_shape(random, case.feeds[name])
    return case


def split(array: Array, heads: int) -> Array:
    """Converts (batch, rows, heads * depth) to (batch, heads, rows, depth)."""
    batch, rows, width = array.shape
    parted = array.reshape(batch, rows, heads, width // heads)
    return np.ascontiguousarray(parted.swapaxes(1, 2))


def reshape_numbers(random: np.random.Generator, case: Case) -> None:
    """Reshapes an integer input."""
    whole = [n for n, array in case.feeds.items() if array.dtype.kind == "i" and array.size]
    if not whole:
        return
    name = str(random.choice(whole))
    array = case.feeds[name]
    shapes = [(-1,), (-1, 1), (1, -1), (1, -1, 1), (*array.shape, 1), (1, *array.shape)]
    shape: tuple[int, ...] = shapes[int(random.integers(len(shapes)))]
    case.feeds[name] = array.reshape(() if array.size == 1 and random.random() < 0.2 else shape)


def lengthen(random: np.random.Generator, case: Case) -> None:
    """Adds elements along a dimension of one input, or of a key input and its value input."""
    name = str(random.choice(list(case.feeds)))
    twin = name.replace("key", "value") if "key" in name else name.replace("K", "V")
    more = int(random.choice([1, 8, 16]))
    axis = int(random.integers(max(case.feeds[name].ndim, 1)))
    for one in {name, twin} if random.random() < 0.5 else {name}:
        if one in case.feeds and axis < case.feeds[one].ndim:
            shape = list(case.feeds[one].shape)
            shape[axis] = more
            added = np.resize(case.feeds[one], shape).astype(case.feeds[one].dtype)
            case.feeds[one] = np.concatenate([case.feeds[one], added], axis)


def separate_key_heads(random: np.random.Generator, case: Case) -> None:
    """Gives key and value four dimensions, with separate heads, as in cross attention."""
    if case.kind != "MultiHeadAttention":
        return
    heads = case.attributes["num_heads"]
    for name in ("key", "value"):
        if case.feeds[name].ndim == 3 and case.feeds[name].shape[-1] % heads == 0:
            case.feeds[name] = split(case.feeds[name], heads)


def remove_keys(random: np.random.Generator, case: Case) -> None:
    """Removes all new keys, so that GroupQueryAttention reads only its past."""
    for name in ("key", "value", "K", "V"):
        if name in case.feeds:
            axis = case.feeds[name].ndim - 2
            case.feeds[name] = case.feeds[name].take([], axis)


def cut_masks(random: np.random.Generator, case: Case) -> None:
    """Cuts a dimension of each mask to one or a few elements."""
    for name in ("attn_mask", "attention_bias", "key_padding_mask"):
        if name in case.feeds and case.feeds[name].ndim > 0:
            array = case.feeds[name]
            axis = int(random.integers(array.ndim))
            size = 1 if random.random() < 0.6 else int(random.integers(1, array.shape[axis] + 1))
            case.feeds[name] = array.take(range(min(size, array.shape[axis])), axis)


LOOSE = [reshape_numbers, reshape_numbers, lengthen, separate_key_heads, remove_keys, cut_masks]


def loosen(random: np.random.Generator, case: Case) -> Case:
    """Changes one or two properties in ways that ONNX Runtime does not document but may accept."""
    case.is_open = random.random() < 0.8
    for _ in range(int(random.integers(1, 3))):
        LOOSE[int(random.integers(len(LOOSE)))](random, case)
    return case
