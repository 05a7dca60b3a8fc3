"""Mask: which keys each row of attention keeps."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from maskwise import _arguments, _core
from maskwise._bfloat16 import is_bfloat16

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

MOST = 2**48
HIGHEST = 24  # maximum height of a picture in inches
Numbers = tuple[int, ...]  # one number, or one per sequence; empty if unset
Document = tuple[int, int, int, int]  # first row, rows, first key, keys


def _numbers(name: str, value: Any, least: int = 0) -> Numbers:
    """Converts an integer, or a list or one-dimensional array of integers, to a tuple. Raises
    ValueError if a number is below `least` or above MOST."""
    listed = value if type(value) in (list, tuple) else (value,)
    is_plain = len(listed) > 0 and all(type(one) is int for one in listed)
    numbers = tuple(listed) if is_plain else _numbers_of_array(name, value)
    if max(numbers) > MOST or min(numbers) < least:
        least_shown = "-2**48" if least else "0"
        shown = _arguments.shown(value)
        raise ValueError(f"{name} is {shown}, expected {least_shown} to 2**48")
    return numbers


def _numbers_of_array(name: str, value: Any) -> Numbers:
    from maskwise import _others

    array = np.asarray(_others.plain(value))
    if array.ndim > 1 or array.size == 0 or array.dtype.kind not in "iu":
        shown = _arguments.shown(value)
        raise TypeError(f"{name} is {shown}, expected an integer, or one for each sequence")
    return tuple(int(one) for one in array.ravel())


def _count(name: str, value: Any, least: int = 0) -> int:
    numbers = _numbers(name, value, -MOST)
    if len(numbers) != 1 or numbers[0] < least:
        raise ValueError(f"{name} is {_arguments.shown(value)}, expected {least} or more")
    return numbers[0]


def _joined(name: str, a: Numbers, b: Numbers, join: Any) -> Numbers:
    """Joins the values of two masks, sequence by sequence."""
    if not a or not b:
        return a or b
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise ValueError(f"{name} of {len(a)} and of {len(b)} sequences do not combine")
    return tuple(join(a[i % len(a)], b[i % len(b)]) for i in range(max(len(a), len(b))))


def _same(name: str, a: Any, b: Any) -> Any:
    """Returns the value that is set. Raises ValueError if both are set and differ."""
    if a and b:
        _require_equal(name, a, b)
    return a or b


def _require_equal(name: str, a: Any, b: Any) -> None:
    if a != b:
        raise ValueError(f"two masks with different {name} do not combine: {a} and {b}")


def _narrower(a: int, b: int) -> int:
    return max(a, b) if -1 in (a, b) else min(a, b)


@dataclass(frozen=True)
class _Rules:
    """The rules of a Mask: the fields of C++'s mask_rules."""

    causal: bool = False
    from_end: bool = False
    in_documents: bool = False
    offsets: Numbers = ()
    window: tuple[int, int] | None = None
    first_keys: int = 0
    chunks: tuple[int, int] | None = None
    prefixes: Numbers = ()
    starts: Numbers = ()
    lengths: Numbers = ()
    documents: tuple[tuple[Document, ...], ...] = ()
    slopes: tuple[tuple[float, ...], ...] = ()  # one tuple, or one per sequence
    numbers: ClassVar[NDArray[np.int64]]
    slope_bits: ClassVar[tuple[Numbers, ...]]

    def __and__(self, other: _Rules) -> _Rules:
        if self.causal and other.causal:
            self._require_same_position(other)
        window = self.window or other.window
        if self.window and other.window:
            _require_equal("first keys of a window", self.first_keys, other.first_keys)
            left, right = (_narrower(a, b) for a, b in zip(self.window, other.window, strict=True))
            window = (left, right)
        return _Rules(
            self.causal or other.causal,
            self.from_end or other.from_end,
            self.in_documents or other.in_documents,
            _same("offsets", self.offsets, other.offsets),
            window,
            self.first_keys or other.first_keys,
            _same("chunks", self.chunks, other.chunks),
            _joined("prefixes", self.prefixes, other.prefixes, min),
            _joined("starts", self.starts, other.starts, max),
            _joined("lengths", self.lengths, other.lengths, min),
            _same("documents", self.documents, other.documents),
            _same("slopes", self.slopes, other.slopes),
        )

    def _require_same_position(self, other: _Rules) -> None:
        """Ignores from_end if one mask is packed, because packed documents always align the last
        row with the last key."""
        in_documents = self.in_documents or other.in_documents
        pairs = ((one.offsets, in_documents or one.from_end) for one in (self, other))
        _require_equal("causal positions", *pairs)

    def __post_init__(self) -> None:
        """Sets `numbers`, the rules as one array. The array is an input of torch graphs, so new
        rules need no new graph. Sets `slope_bits`, which a strict export could not compute."""
        bits = (np.array(one, np.float32).view(np.int32).tolist() for one in self.slopes)
        object.__setattr__(self, "slope_bits", tuple(map(tuple, bits)))
        object.__setattr__(self, "numbers", np.array(self.listed(), np.int64))

    def listed(self) -> list[int]:
        """Encodes the rules as integers: flags and first_keys, then the length and the numbers of
        each other field. Slopes are float32 bits. of_numbers() decodes the list."""
        listed = [int(self.causal), int(self.from_end), int(self.in_documents), self.first_keys]
        pairs: tuple[Numbers, ...] = (self.window or (), self.chunks or ())
        for field in (*pairs, self.offsets, self.prefixes, self.starts, self.lengths):
            listed += [len(field), *field]
        listed.append(len(self.documents))
        for sequence in self.documents:
            listed.append(len(sequence))
            for document in sequence:
                listed += document
        listed.append(len(self.slope_bits))
        for bits in self.slope_bits:
            listed += [len(bits), *bits]
        return listed

    @classmethod
    def of_numbers(cls, numbers: Iterable[int]) -> _Rules:
        """Returns the rules that listed() encoded as `numbers`."""
        rest = iter(numbers)

        def field() -> tuple[int, ...]:
            return tuple(islice(rest, next(rest)))

        causal, from_end, in_documents = (bool(next(rest)) for _ in range(3))
        first_keys = next(rest)
        window, chunks = field() or None, field() or None
        offsets, prefixes, starts, lengths = (field() for _ in range(4))
        documents = tuple(
            tuple(tuple(islice(rest, 4)) for _ in range(next(rest))) for _ in range(next(rest))
        )
        bits = [np.array(field(), np.int32) for _ in range(next(rest))]
        slopes = tuple(tuple(one.view(np.float32).tolist()) for one in bits)
        fields_in_order: Any = (
            *(causal, from_end, in_documents, offsets, window, first_keys, chunks),
            *(prefixes, starts, lengths, documents, slopes),
        )
        return cls(*fields_in_order)

    @cached_property
    def native(self) -> _core.Rules:
        return _core.Rules(**{one.name: getattr(self, one.name) for one in fields(self)})


def _runs(ids: NDArray[Any]) -> list[tuple[int, int, int]]:
    """Returns (id, first index, count) of each run of equal ids."""
    if ids.size == 0:
        return []
    first = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
    counts = np.diff(np.r_[first, ids.size])
    return list(zip(ids[first].tolist(), first.tolist(), counts.tolist(), strict=True))


def _documents(rows: NDArray[Any], keys: NDArray[Any]) -> tuple[Document, ...]:
    key_runs: dict[int, tuple[int, int]] = {}
    for number, first, count in _runs(keys):
        if number in key_runs:
            raise ValueError(
                f"keys of document {number} begin at {key_runs[number][0]} and at {first}, "
                "expected adjacent keys: pass a boolean array instead"
            )
        key_runs[number] = (first, count)
    return tuple(
        (first, count, *key_runs.get(number, (0, 0))) for number, first, count in _runs(rows)
    )


def _ids(name: str, value: Any) -> NDArray[Any]:
    from maskwise import _others

    array = np.asarray(_others.plain(value))
    if array.ndim not in (1, 2) or array.dtype.kind not in "iu" or len(array) == 0:
        raise TypeError(
            f"{name} has shape {array.shape} and dtype {array.dtype}, expected integers of shape "
            "(length,) or (sequences, length)"
        )
    return np.atleast_2d(array)


def _bounds(name: str, value: Any) -> NDArray[Any]:
    bounds = _ids(name, value)[0] if np.ndim(value) == 1 else np.zeros(0, int)
    if bounds.size < 1 or bounds[0] != 0 or (np.diff(bounds.astype(np.int64)) < 0).any():
        raise ValueError(
            f"{name} is {_arguments.shown(value)}, expected 0 and then the end of each document"
        )
    return bounds.astype(np.int64)


class Mask:
    """The keys that each row of scores keeps. `a & b` has the rules of a and b.

        Mask.causal() & Mask.window(127, 0)            # the last 128 keys
        Mask.causal() & Mask.lengths([900, 1024])      # a batch, padded on the right
        Mask.causal() & Mask.packed(cu_seqlens)        # packed documents
        Mask.dense(array) & Mask.causal()              # any array, scanned once

    Rules need no array: the engine skips a tile of scores, computes it unmasked, or masks its
    scores in registers. Per-sequence arguments are one integer, or one per entry of the batch
    dimension.

    A row keeps a key if every rule keeps the key. prefix and first_keys override some rules.
    causal, window and chunks use the row's position: its index plus causal's offset. With
    `from_end`, positions are shifted so that the last row aligns with the last key. In packed
    documents, positions count within the document.
    """

    __array_ufunc__ = None  # so that `array & mask` raises TypeError
    __slots__ = ("_array", "_maps", "_rules")

    _rules: _Rules
    _array: NDArray[Any] | None
    _maps: _core.Maps | None

    def __init__(self) -> None:
        """Keeps every key."""
        self._rules, self._array, self._maps = _Rules(), None, None

    @classmethod
    def _from_rules(cls, **rules: Any) -> Mask:
        mask = cls()
        mask._rules = _Rules(**rules)
        return mask

    @classmethod
    def causal(cls, offset: Any = None, *, from_end: bool = False) -> Mask:
        """Keeps the keys up to the row's position.

        offset: position of row 0 among the keys, one integer or one per sequence.
        from_end: the last row aligns with the last key, as in flash_attn's causal and torch's
        causal_lower_right.
        """
        offsets = () if offset is None else _numbers("offset", offset, -MOST)
        offsets = offsets if any(offsets) else ()
        aligned = _arguments.flag("from_end", from_end)
        return cls._from_rules(causal=True, from_end=aligned, offsets=offsets)

    @classmethod
    def window(cls, left: int, right: int, *, first_keys: int = 0) -> Mask:
        """Keeps keys with position - left <= key <= position + right, like flash_attn's
        window_size. -1 removes a bound.

        first_keys: a sequence's first `first_keys` keys are always in the window, for example as
        attention sinks.
        """
        bounds = (_count("left", left, -1), _count("right", right, -1))
        return cls._from_rules(window=bounds, first_keys=_count("first_keys", first_keys))

    @classmethod
    def sliding(cls, size: int) -> Mask:
        """A causal window: a row keeps the key at its position and the `size - 1` keys before that
        key, like transformers' sliding_window."""
        return cls.causal() & cls.window(_count("size", size, 1) - 1, 0)

    @classmethod
    def chunks(cls, size: int, earlier: int = 0) -> Mask:
        """Keeps the keys in the row's chunk of `size` keys and in the previous `earlier` chunks."""
        return cls._from_rules(chunks=(_count("size", size, 1), _count("earlier", earlier)))

    @classmethod
    def prefix(cls, lengths: Any) -> Mask:
        """Every row keeps the first `lengths` keys, even if causal, window or chunks mask some."""
        return cls._from_rules(prefixes=_numbers("lengths", lengths))

    @classmethod
    def lengths(cls, lengths: Any) -> Mask:
        """Keeps the first `lengths` keys of a sequence, for padding on the right."""
        return cls._from_rules(lengths=_numbers("lengths", lengths))

    @classmethod
    def starts(cls, starts: Any) -> Mask:
        """Masks the first `starts` keys of a sequence, for padding on the left."""
        return cls._from_rules(starts=_numbers("starts", starts))

    @classmethod
    def documents(cls, row_ids: Any, key_ids: Any = None) -> Mask:
        """A row keeps the keys with the row's id. Keys with equal ids must be adjacent.

        row_ids, key_ids: integers of shape (length,) or (sequences, length).
        """
        rows = _ids("row_ids", row_ids)
        keys = rows if key_ids is None else _ids("key_ids", key_ids)
        if len(rows) != len(keys) and 1 not in (len(rows), len(keys)):
            both = f"row_ids of {len(rows)} and key_ids of {len(keys)} sequences"
            raise ValueError(f"{both} do not combine")
        count = max(len(rows), len(keys))
        pairs = ((rows[i % len(rows)], keys[i % len(keys)]) for i in range(count))
        return cls._from_rules(documents=tuple(_documents(*pair) for pair in pairs))

    @classmethod
    def packed(cls, cu_seqlens_q: Any, cu_seqlens_k: Any = None) -> Mask:
        """A row keeps the keys of its document. Arguments are flash_attn's cu_seqlens: 0, then the
        end of each document.

        Positions align a document's last row with its last key.
        """
        rows = _bounds("cu_seqlens_q", cu_seqlens_q)
        keys = rows if cu_seqlens_k is None else _bounds("cu_seqlens_k", cu_seqlens_k)
        if len(rows) != len(keys):
            both = f"cu_seqlens of {len(rows) - 1} and of {len(keys) - 1} documents"
            raise ValueError(f"{both} do not combine")
        lists = (rows[:-1], np.diff(rows), keys[:-1], np.diff(keys))
        documents = tuple(zip(*(one.tolist() for one in lists), strict=True))
        return cls._from_rules(from_end=True, in_documents=True, documents=(documents,))

    @classmethod
    def alibi(cls, slopes: Any) -> Mask:
        """Subtracts slope * |position - key| from each score; masks no key.

        slopes: one per head, or (sequences, heads). attention refuses slopes if the mask also has a
        float array.
        """
        from maskwise import _others

        array = np.asarray(_others.plain(slopes))
        if array.ndim not in (1, 2) or array.size == 0 or array.dtype.kind != "f":
            raise TypeError(
                f"slopes have shape {array.shape} and dtype {array.dtype}, expected floats of "
                "shape (heads,) or (sequences, heads)"
            )
        with np.errstate(over="ignore"):
            array = np.atleast_2d(array).astype(np.float32)
        if not np.isfinite(array).all():
            raise ValueError(f"slopes are {_arguments.shown(slopes)}, expected finite numbers")
        return cls._from_rules(slopes=tuple(map(tuple, array.tolist())))

    @classmethod
    def dense(cls, array: Any) -> Mask:
        """Copies an array as a mask. The first call of attention classifies the copy's tiles."""
        from maskwise import _others

        mask = cls()
        values = np.asarray(_others.plain(_others.unlisted(array)))
        is_added = values.dtype.kind == "f" or is_bfloat16(values)
        if isinstance(array, np.ma.MaskedArray) or not (is_added or values.dtype == np.bool_):
            kind = f"{type(array).__name__} of {values.dtype}"
            cast = ".bool()" if _others.is_tensor(array) else ".astype(bool)"
            expected = f"booleans: {cast}; or floats that are added"
            raise TypeError(f"a dense mask is {kind}, expected {expected}")
        mask._array, mask._maps = _repeated(_once(values).copy(), values.shape), _core.Maps()
        return mask

    def __reduce__(self) -> Any:
        values = tuple(getattr(self._rules, one.name) for one in fields(_Rules))
        array = self._array
        return _restored, (values, *((None, ()) if array is None else (_once(array), array.shape)))

    def __and__(self, other: Mask) -> Mask:
        if not isinstance(other, Mask):
            return NotImplemented
        if self._array is not None and other._array is not None:
            raise ValueError("two dense masks do not combine: combine the arrays")
        mask = Mask()
        mask._rules = self._rules & other._rules
        dense = self if self._array is not None else other
        mask._array, mask._maps = dense._array, dense._maps
        return mask

    def _beside(self, array: Any, maps: _core.Maps | None = None) -> Mask:
        """Combines this mask's rules with another array or tensor, which is not copied. `maps`
        caches the array's tiles, so with `maps` the array must not change."""
        mask = self._without_array()
        mask._array, mask._maps = array, maps
        return mask

    def _without_array(self) -> Mask:
        mask = Mask()
        mask._rules = self._rules
        return mask

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        """Raises, because NumPy would make an array of one object, which counts as True."""
        raise TypeError("a Mask has no shape of its own: mask.to_dense(rows, keys) makes an array")

    def to_dense(self, rows: int, keys: int, sequences: int = 1) -> NDArray[np.bool_]:
        """Returns a boolean array, True where a row keeps a key. The shape is (sequences, rows,
        keys), broadcast with the dense part's shape.

        In a dense part of floats, -infinity masks a key. With several sequences, a dense part of
        several heads or sequences needs four dimensions.
        """
        counts = (("sequences", sequences), ("rows", rows), ("keys", keys))
        kept: NDArray[np.bool_] = self._rules.native.written(*(_count(*one) for one in counts))
        if self._array is None:
            return kept
        if self._array.ndim == 3 and len(self._array) > 1 and sequences > 1:
            raise ValueError(
                f"a dense part has shape {self._array.shape}, of heads or of sequences: pass it "
                "with four dimensions"
            )
        array = _kept(self._array)
        if array.ndim > 3:  # (sequences, heads, rows, keys)
            kept = kept.reshape(sequences, *(1,) * (array.ndim - 3), rows, keys)
        both: NDArray[np.bool_] = kept & array
        return both

    def plot(
        self, rows: int, keys: int, *, sequence: int = 0, sequences: int = 1, axes: Any = None
    ) -> Any:
        """Draws the keys that a sequence keeps, for the first head of a dense part. A grid shows
        tiles of 64 x 64. Returns matplotlib's axes.
        """
        from importlib import import_module

        pyplot = import_module("matplotlib.pyplot")
        ticker = import_module("matplotlib.ticker")

        kept = self.to_dense(rows, keys, sequences)[sequence]
        while kept.ndim > 2:
            kept = kept[0]
        if kept.size == 0:
            raise ValueError(f"a mask of {rows} rows and {keys} keys has nothing to draw")
        height = min(6 * rows / keys + 1, HIGHEST)
        if axes is None:
            axes = pyplot.figure(figsize=(6, height)).add_subplot()
        aspect = "equal" if height < HIGHEST else "auto"
        axes.imshow(kept, cmap="Greys", vmin=0, vmax=1.6, extent=(0, keys, rows, 0), aspect=aspect)
        for axis, extent in ((axes.xaxis, keys), (axes.yaxis, rows)):
            if extent <= 64 * 500:  # matplotlib limits the lines of a grid
                axis.set_minor_locator(ticker.MultipleLocator(64))
        axes.grid(which="minor", color="tab:blue", alpha=0.3, linewidth=0.5)
        axes.set(xlabel="key", ylabel="row", title=f"{kept.mean():.1%} kept")
        return axes

    def __repr__(self) -> str:
        plain = _Rules()
        parts = [
            f"{one.name}={_arguments.shown(getattr(self._rules, one.name))}"
            for one in fields(_Rules)
            if getattr(self._rules, one.name) != getattr(plain, one.name)
        ]
        if self._array is not None:
            name = "bfloat16" if is_bfloat16(self._array) else self._array.dtype
            parts.append(f"dense {name} {self._array.shape}")
        return f"<Mask {', '.join(parts) or 'of every key'}>"


def _kept(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Converts a mask to booleans. A float keeps a key unless the float is -infinity."""
    if is_bfloat16(array):
        return np.asarray(array.view(np.uint16) != 0xFF80)
    return array if array.dtype == np.bool_ else np.asarray(array != -np.inf)


def _once(array: NDArray[Any]) -> NDArray[Any]:
    """Cuts broadcast dimensions (stride 0) to one element."""
    return array[tuple(slice(None) if stride else slice(1) for stride in array.strides)]


def _repeated(once: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The reverse of _once(). The result is read-only."""
    return np.broadcast_to(once, shape)


def _restored(rules: tuple[Any, ...], once: NDArray[Any] | None, shape: tuple[int, ...]) -> Mask:
    mask = Mask() if once is None else Mask.dense(_repeated(once, shape))
    mask._rules = _Rules(*rules)
    return mask
