"""Checks maskwise.Mask, and attention with a Mask, against a definition in NumPy."""

from __future__ import annotations

import copy
import pickle
from functools import reduce
from itertools import permutations
from operator import and_
from typing import Any

import definition
import maskwise
import numpy as np
import pytest
from arrays import Array
from hypothesis import given
from hypothesis import strategies as st
from maskwise import Mask

Part = tuple[Mask, Array]  # a mask, and its (sequences, rows, keys) array: True is unmasked


def indices(sequences: int, rows: int, keys: int) -> tuple[Array, Array, Array]:
    places = np.indices((sequences, rows, keys))
    return places[0], places[1], places[2]


@st.composite
def masks(draw: st.DrawFn, sequences: int, rows: int, keys: int) -> Part:
    """Draws a combination of rules. Windows are drawn with a causal rule, whose offset
    sets the rows' positions."""
    sequence, row, key = indices(sequences, rows, keys)
    some = draw(st.sampled_from([1, sequences]))

    def numbers(least: int, most: int) -> Array:
        drawn = draw(st.lists(st.integers(least, most), min_size=some, max_size=some))
        return np.asarray(drawn, dtype=draw(st.sampled_from([np.int64, np.int32])))

    def for_each_place(values: Array) -> Array:
        return values[sequence if some > 1 else np.zeros_like(sequence)].astype(np.int64)

    offset, start, length = numbers(-3, keys), numbers(0, keys), numbers(0, keys + 2)
    left, right = draw(st.integers(-1, keys)), draw(st.integers(-1, keys))
    ids = np.sort(draw(st.integers(0, 2**32).map(np.random.default_rng)).integers(0, 4, keys))
    row_ids = np.resize(ids, rows)
    position = row + for_each_place(offset)
    seen_left = key >= position - left if left >= 0 else True
    seen_right = key <= position + right if right >= 0 else True
    parts = {
        "causal": (Mask.causal(offset), key <= position),
        "window": (Mask.window(left, right), np.broadcast_to(seen_left & seen_right, key.shape)),
        "starts": (Mask.starts(start), key >= for_each_place(start)),
        "lengths": (Mask.lengths(length), key < for_each_place(length)),
        "documents": (Mask.documents(row_ids, ids), row_ids[row] == ids[key]),
        "dense": (Mask.dense(row_ids[:, None] <= ids), row_ids[row] <= ids[key]),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(parts)), min_size=1, unique=True))
    if "causal" not in chosen:
        parts["window"] = (Mask.causal(offset) & parts["window"][0], parts["window"][1])
        parts["window"] = (parts["window"][0], parts["window"][1] & (key <= position))
    rules, kept = Mask(), np.ones(key.shape, bool)
    for name in chosen:
        rules, kept = rules & parts[name][0], kept & parts[name][1]
    return rules, kept


def random_operands(*shapes: tuple[int, ...]) -> list[Array]:
    random = np.random.default_rng(5)
    return [random.standard_normal(shape, dtype=np.float32) for shape in shapes]


@given(st.data())
def test_rules_keep_by_their_definition(data: st.DataObject) -> None:
    sequences, rows, keys = (data.draw(st.integers(1, most)) for most in (3, 90, 90))
    mask, kept = data.draw(masks(sequences, rows, keys))
    np.testing.assert_array_equal(mask.to_dense(rows, keys, sequences), kept, repr(mask))
    q, k, v = random_operands(
        (sequences, 2, rows, 8), (sequences, 2, keys, 8), (sequences, 2, keys, 5)
    )
    expected = maskwise.attention(q, k, v, kept[:, None])
    np.testing.assert_array_equal(maskwise.attention(q, k, v, mask), expected, repr(mask))


def kept_keys(mask: Mask, row: int, rows: int, keys: int) -> list[int]:
    return np.flatnonzero(mask.to_dense(rows, keys)[0, row]).tolist()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_sliding_window_counts_as_in_transformers(size: int) -> None:
    rows = np.arange(9)
    expected = (rows > rows[:, None] - size) & (rows <= rows[:, None])
    np.testing.assert_array_equal(Mask.sliding(size).to_dense(9, 9)[0], expected)


def test_positions_of_causal_rows() -> None:
    assert kept_keys(Mask.causal(from_end=True), 0, 2, 6) == [0, 1, 2, 3, 4]
    assert kept_keys(Mask.causal(3), 0, 2, 6) == [0, 1, 2, 3]
    assert kept_keys(Mask.causal(from_end=True) & Mask.lengths(4), 1, 2, 6) == [0, 1, 2, 3]
    assert kept_keys(Mask.causal(from_end=True) & Mask.window(1, 0), 1, 2, 6) == [4, 5]
    packed = Mask.packed([0, 2, 3], [0, 3, 7]) & Mask.causal()
    assert [kept_keys(packed, row, 3, 7) for row in range(3)] == [[0, 1], [0, 1, 2], [3, 4, 5, 6]]


def test_exceptions_of_a_window() -> None:
    assert kept_keys(Mask.causal() & Mask.window(1, 0, first_keys=2), 5, 8, 8) == [0, 1, 4, 5]
    assert kept_keys(Mask.causal() & Mask.prefix(3), 0, 8, 8) == [0, 1, 2]
    assert kept_keys(Mask.chunks(4, 1), 5, 8, 8) == list(range(8))
    assert kept_keys(Mask.chunks(4), 5, 8, 8) == [4, 5, 6, 7]
    left_padded = Mask.chunks(4) & Mask.starts(1)
    assert kept_keys(left_padded, 5, 9, 9) == [5, 6, 7, 8]


def test_combining_narrows() -> None:
    both = Mask.window(5, -1) & Mask.window(-1, 2) & Mask.window(3, 7)
    assert kept_keys(both, 10, 20, 20) == list(range(7, 13))
    lengths = (Mask.lengths([5, 2]) & Mask.lengths(3)).to_dense(1, 9, 2)
    assert lengths.sum(axis=-1).tolist() == [[3], [2]]


def test_dense_copies_the_array_and_accepts_a_bias() -> None:
    q, k, v = random_operands((2, 70, 8), (2, 70, 8), (2, 70, 8))
    bias = np.where(np.tri(70, dtype=bool), 0.5, -np.inf).astype("f")
    mask = Mask.dense(bias)
    expected = maskwise.attention(q, k, v, bias)
    for _ in range(2):
        np.testing.assert_array_equal(maskwise.attention(q, k, v, mask), expected)
    bias[:] = 0
    np.testing.assert_array_equal(maskwise.attention(q, k, v, mask), expected)
    np.testing.assert_array_equal(mask.to_dense(70, 70)[0], np.tri(70, dtype=bool))
    huge = Mask.dense(np.broadcast_to(np.ones(70, bool), (2**40, 70)))
    assert "dense bool (1099511627776, 70)" in repr(huge)


def test_copies_and_pickles() -> None:
    mask = Mask.causal() & Mask.lengths([3, 4]) & Mask.dense(np.tri(5, dtype=bool))
    for _ in range(2):
        for twin in (copy.deepcopy(mask), pickle.loads(pickle.dumps(mask))):
            assert repr(twin) == repr(mask)
            np.testing.assert_array_equal(twin.to_dense(5, 5, 2), mask.to_dense(5, 5, 2))


def test_a_causal_bias_of_torch_becomes_rules() -> None:
    bias = pytest.importorskip("torch.nn.attention.bias")
    q, k, v = random_operands((2, 2, 5, 8), (2, 2, 9, 8), (2, 2, 9, 8))
    for rules, mask in (
        (bias.causal_lower_right(5, 9), Mask.causal(from_end=True)),
        (bias.causal_upper_left(5, 9), Mask.causal()),
    ):
        np.testing.assert_array_equal(
            maskwise.attention(q, k, v, rules), maskwise.attention(q, k, v, mask)
        )


def test_rows_of_a_document_need_not_be_adjacent() -> None:
    mask = Mask.causal() & Mask.documents([1, 1, 2, 2, 1, 1], [1, 1, 1, 1, 2, 2])
    assert kept_keys(mask, 4, 6, 6) == [0, 1, 2, 3]
    assert kept_keys(mask, 1, 6, 6) == [0, 1]


def test_sinks_soft_cap_window_and_statistics_together() -> None:
    q, k, v = random_operands((3, 100, 16), (3, 100, 16), (3, 100, 8))
    sinks = np.array([-1, 0.5, 2], "f")
    rows = np.arange(100)
    kept = (rows <= rows[:, None]) & (rows >= rows[:, None] - 9)
    for mask in (Mask.causal(), np.tri(100, dtype=bool)):
        got, statistics = maskwise.attention(
            q, k, v, mask, sinks=sinks, soft_cap=3, window=(9, 0), return_statistics=True
        )
        expected, logarithms = definition.attention(q, k, v, kept=kept, soft_cap=3, sinks=sinks)
        np.testing.assert_allclose(got, expected, atol=3e-6)
        np.testing.assert_allclose(statistics, logarithms, atol=3e-6)
    got = maskwise.attention(q, k, v, is_causal=True, sinks=sinks, soft_cap=3, window=(9, 0))
    np.testing.assert_allclose(got, expected, atol=3e-6)


def test_alibi() -> None:
    q, k, v = random_operands((2, 4, 70, 16), (2, 4, 90, 16), (2, 4, 90, 8))
    slopes = np.array([[0.5, 0.1, 2, 0], [1, -0.1, 0.01, 9]], "f")

    def distance_from(offset: int) -> Any:
        return abs(np.arange(70)[:, None] + offset - np.arange(90))

    distance = distance_from(20)
    for causal, kept in ((True, np.tri(70, 90, 20, bool)), (False, np.ones((70, 90), bool))):
        mask = Mask._from_rules(causal=causal, from_end=True) & Mask.alibi(slopes)
        mask = pickle.loads(pickle.dumps(mask))
        got, sums = maskwise.attention(q, k, v, mask, return_statistics=True)
        bias = -slopes[:, :, None, None] * distance
        expected, logarithms = definition.attention(q, k, v, kept=kept, bias=bias)
        np.testing.assert_allclose(got, expected, atol=3e-6)
        np.testing.assert_allclose(sums, logarithms, atol=6e-6)
        np.testing.assert_array_equal(mask.to_dense(70, 90)[0], kept)
    got = maskwise.attention(q[0, 0], k[0, 0], v[0, 0], Mask.causal() & Mask.alibi([0.5]))
    expected, _ = definition.attention(
        q[0, 0], k[0, 0], v[0, 0], kept=np.tri(70, 90, 0, bool), bias=-0.5 * distance_from(0)
    )
    np.testing.assert_allclose(got, expected, atol=3e-6)
    with pytest.raises(TypeError, match="expected floats of shape"):
        Mask.alibi([1, 2])
    for infinite in (np.inf, 1e39):
        with pytest.raises(ValueError, match="expected finite numbers"):
            Mask.alibi([infinite])


def test_out_and_statistics() -> None:
    q, k, v = random_operands((2, 9, 8), (2, 9, 8), (2, 9, 8))
    out = np.empty_like(q)
    got, statistics = maskwise.attention(q, k, v, Mask.causal(), return_statistics=True, out=out)
    assert got is out
    assert (statistics.shape, statistics.dtype) == ((2, 9), np.float32)
    jnp = pytest.importorskip("jax.numpy")
    pair = maskwise.attention(*map(jnp.asarray, (q, k, v)), Mask.causal(), return_statistics=True)
    assert all(isinstance(one, type(jnp.asarray(q))) for one in pair)
    np.testing.assert_array_equal(pair[0], out)


def test_few_queries_share_keys() -> None:
    q, k, v = random_operands((2, 8, 5, 16), (2, 2, 300, 16), (2, 2, 300, 16))
    mask = Mask.causal(from_end=True) & Mask.lengths([300, 211])
    expected = maskwise.attention(q, k, v, mask.to_dense(5, 300, 2)[:, None], enable_gqa=True)
    got = maskwise.attention(q, k, v, mask, enable_gqa=True)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_explain_counts_tiles() -> None:
    q, k, v = random_operands((1, 256, 8), (1, 256, 8), (1, 256, 8))
    text = maskwise.explain_attention(q, k, v, Mask.causal() & Mask.window(64, 0))
    assert text.startswith("16 tiles of scores: 0 kept as a whole, 7 in part, 9 skipped\n"), text
    assert "43.8% of the tiles are computed: 2.3 times less work" in text
    assert maskwise.explain_attention(q, k, v, None, is_causal=True).startswith(
        "16 tiles of scores: 6 kept"
    )
    arguments = {"query": q, "key": k, "value": v, "dropout_p": 0.0}
    for text in (
        maskwise.explain_attention(q, k, v, None, 0.0, True, 0.5, True),
        maskwise.explain_attention(q, k, v, is_causal=True),
        maskwise.explain_attention(**arguments, is_causal=True),
    ):
        assert text.startswith("16 tiles of scores: 6 kept"), text
    with pytest.raises(ValueError, match=r"dropout_p is 0\.5, expected 0"):
        maskwise.explain_attention(q, k, v, None, 0.5)
    masked = np.full((256, 256), np.finfo("f").min)
    masked[:, :10] = 0
    assert "4 in part, 0 skipped, 12 deferred because of a low" in maskwise.explain_attention(
        q, k, v, masked
    )


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Mask.causal("x"), TypeError, "offset is 'x', expected an integer, or one for"),
        (lambda: Mask.causal(1.5), TypeError, "offset is 1.5"),
        (lambda: Mask.window(-2, 0), ValueError, "left is -2, expected -1 or more"),
        (lambda: Mask.sliding(0), ValueError, "size is 0, expected 1 or more"),
        (lambda: Mask.chunks(0), ValueError, "size is 0, expected 1 or more"),
        (lambda: Mask.documents([0, 1, 0]), ValueError, "keys of document 0 begin at 0 and at 2"),
        (lambda: Mask.documents([[[0]]]), TypeError, "row_ids has shape (1, 1, 1)"),
        (lambda: Mask.packed([1, 2]), ValueError, "cu_seqlens_q is [1, 2], expected 0 and then"),
        (lambda: Mask.packed([0, 2], [0, 1, 2]), ValueError, "of 1 and of 2 documents"),
        (lambda: Mask.causal() & Mask.causal(2), ValueError, "different causal positions"),
        (lambda: Mask.causal() & Mask.causal(from_end=True), ValueError, "causal positions"),
        (lambda: Mask.window(1, 0) & Mask.window(2, 0, first_keys=2), ValueError, "first keys of"),
        (lambda: Mask.lengths(2**63), ValueError, "lengths is 9223372036854775808, expected 0"),
        (lambda: Mask.documents(np.zeros((0, 4), int)), TypeError, "row_ids has shape (0, 4)"),
        (lambda: Mask().to_dense(3.5, 4), TypeError, "rows is 3.5, expected an integer"),
        (lambda: np.zeros(2, bool) & Mask(), TypeError, "unsupported operand"),
        (lambda: Mask.chunks(2) & Mask.chunks(3), ValueError, "different chunks"),
        (lambda: Mask.lengths([1, 2]) & Mask.lengths([1, 2, 3]), ValueError, "2 and of 3"),
        (lambda: Mask.dense([True]) & Mask.dense([True]), ValueError, "two dense masks"),
        (lambda: Mask.lengths(-1).to_dense(2, 2), ValueError, "lengths is -1"),
        (lambda: Mask.lengths([1, 2]).to_dense(2, 2, 3), ValueError, "expected one or 3"),
    ],
)
def test_errors_name_the_value(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)


def test_attention_refuses_arguments_that_do_not_fit() -> None:
    q, k, v = random_operands((2, 4, 8, 8), (2, 4, 8, 8), (2, 4, 8, 8))
    for mask, others, error, text in (
        (Mask.lengths([1, 2, 3]), {}, ValueError, "lengths has 3 elements, expected one or 2"),
        (Mask.causal(), {"is_causal": True}, ValueError, "exclude each other"),
        (Mask.dense(np.ones((3, 8), bool)), {}, ValueError, "attn_mask of shape"),
        (np.ones((2, 8), int), {}, TypeError, "float32: .astype(bool) keeps nonzero elements"),
        (np.ones((2, 8), int).tolist(), {}, TypeError, "dtype int64, expected bool, float32 or"),
        (np.ones((2, 7), bool), {}, ValueError, "broadcast to the scores' shape {2,4,8,8}"),
        (Mask.alibi([0.5, 1.0, 2.0]), {}, ValueError, "slopes are of 3 heads, the result has 4"),
        (Mask.alibi(np.ones(8)), {}, ValueError, "slopes are of 8 heads, the result has 4"),
        (Mask.alibi(np.ones((4, 2))), {}, ValueError, "slopes are of 2 heads, the result has 4"),
        (Mask.alibi(np.ones((3, 4))), {}, ValueError, "slopes has 12 elements, expected one for"),
        (Mask.alibi([0.5] * 4) & Mask.dense(q[0, 0]), {}, ValueError, "slopes and a bias exclude"),
        (None, {"window": 3}, TypeError, "window is 3, expected (left, right)"),
        (None, {"sinks": np.zeros(3, "f")}, ValueError, "sinks"),
        (None, {"sinks": np.zeros(4, "d")}, TypeError, "sinks has dtype float64"),
        (None, {"soft_cap": 1e-40}, ValueError, "soft_cap is 1e-40, expected 0 for none"),
        (None, {"soft_cap": "x"}, TypeError, "soft_cap is 'x'"),
        (None, {"return_statistics": 2}, TypeError, "return_statistics is 2"),
    ):
        with pytest.raises(error) as caught:
            maskwise.attention(q, k, v, mask, **others)  # type: ignore[arg-type]
        assert text in str(caught.value), caught.value


def test_refusals_suggest_arguments_that_fit() -> None:
    q, k, v = random_operands((2, 4, 8, 8), (2, 2, 9, 8), (2, 2, 9, 8))
    for operands, error, hint in (
        ((q, k, v), ValueError, ": enable_gqa=True lets heads share keys"),
        ((q, q, q[:, :2]), ValueError, ": enable_gqa=True lets heads share keys"),
        ((q, k[:, :, :3], v), ValueError, "the numbers of keys differ"),
        (
            (q, q, q, np.ones((2, 8), bool)[:, :8]),
            ValueError,
            "; for a padding mask (batch, keys), pass attn_mask[:, None, None, :]",
        ),
        ((q.astype("d"), k, v), TypeError, "or bfloat16: .astype('float32')"),
    ):
        with pytest.raises(error) as caught:
            maskwise.attention(*operands)
        assert str(caught.value).endswith(hint), caught.value
    assert maskwise.attention(q, k, v, enable_gqa=True).shape == q.shape
    padding = np.array([[1] * 9, [1] * 5 + [0] * 4])
    got = maskwise.attention(q, k, v, padding.astype(bool)[:, None, None, :], enable_gqa=True)
    expected = maskwise.attention(q, k, v, Mask.lengths([9, 5]), enable_gqa=True)
    np.testing.assert_array_equal(got, expected)


def test_dense_accepts_a_list() -> None:
    q, k, v = random_operands((4, 8), (5, 8), (5, 8))
    bias = [[0.0, 0.5, float("-inf"), 0.0, 1.0]]
    expected = maskwise.attention(q, k, v, np.array(bias, "f"))
    np.testing.assert_array_equal(maskwise.attention(q, k, v, Mask.dense(bias)), expected)


def test_plot_draws_kept_keys() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    mask = Mask.causal() & Mask.starts([2, 0])
    axes = mask.plot(6, 8, sequence=0, sequences=2)
    np.testing.assert_array_equal(axes.images[0].get_array(), mask.to_dense(6, 8, 2)[0])
    assert axes.get_title() == "20.8% kept"
    assert mask.plot(6, 8, sequence=1, sequences=2, axes=axes) is axes


def test_repr_lists_the_rules_and_the_array() -> None:
    assert repr(Mask()) == "<Mask of every key>"
    assert repr(Mask.causal() & Mask.window(3, 0)) == "<Mask causal=True, window=(3, 0)>"
    assert "dense bool (2, 2)" in repr(Mask.dense(np.ones((2, 2), bool)))


@pytest.mark.parametrize("is_causal", [False, True])
def test_packed_documents_equal_separate_attentions(is_causal: bool) -> None:
    rows, keys = np.array([0, 40, 40, 150]), np.array([0, 90, 100, 210])
    q, k, v = random_operands((150, 4, 16), (210, 2, 16), (210, 2, 8))
    got, statistics = maskwise.packed_attention(
        q, k, v, rows, keys, is_causal=is_causal, return_statistics=True
    )
    assert got.flags.c_contiguous
    assert (got.shape, statistics.shape) == ((150, 4, 8), (4, 150))
    for first, last, key, key_end in zip(rows[:-1], rows[1:], keys[:-1], keys[1:], strict=True):
        one = [q[first:last], k[key:key_end], v[key:key_end]]
        mask = Mask.causal(from_end=True) if is_causal else None
        expected = maskwise.attention(*(x.swapaxes(0, 1) for x in one), mask, enable_gqa=True)
        np.testing.assert_allclose(got[first:last], expected.swapaxes(0, 1), atol=2e-6)
    out = np.empty_like(got)
    assert maskwise.packed_attention(q, k, v, rows, keys, is_causal=is_causal, out=out) is out
    np.testing.assert_array_equal(out, got)
    with pytest.raises(ValueError, match=r"query has shape \(150, 64\), expected 3 dimensions"):
        maskwise.packed_attention(q.reshape(150, 64), k, v, rows, keys)


def test_the_order_of_a_combination_does_not_matter() -> None:
    parts = [Mask.sliding(2), Mask.sliding(3), Mask.packed([0, 3, 7]), Mask.causal(0)]
    first = reduce(and_, parts).to_dense(7, 7)
    for order in permutations(parts):
        np.testing.assert_array_equal(reduce(and_, order).to_dense(7, 7), first)
    with pytest.raises(ValueError, match="causal positions"):
        Mask.causal(1) & Mask.causal()


def test_a_repeated_array_stays_small() -> None:
    mask = Mask.dense(np.broadcast_to(np.True_, (100_000, 100_000)))
    assert len(pickle.dumps(mask)) < 10_000
    assert copy.deepcopy(mask)._array.shape == (100_000, 100_000)


def test_a_dense_array_of_three_dimensions_is_ambiguous() -> None:
    kept = np.zeros((2, 4, 4), bool)
    kept[0] = True
    mask = Mask.dense(kept)
    assert mask.to_dense(4, 4).shape == (2, 4, 4)
    with pytest.raises(ValueError, match="four dimensions"):
        (mask & Mask.lengths([4, 2])).to_dense(4, 4, 2)
    four = (Mask.dense(kept[None]) & Mask.lengths([4, 2])).to_dense(4, 4, 2)
    assert four.sum(axis=(2, 3)).tolist() == [[16, 0], [8, 0]]


@pytest.mark.parametrize(
    "array",
    [None, np.zeros((5, 5), int), np.zeros(3, "O"), np.ma.masked_array(np.ones(3)), "text"],
)
def test_dense_refuses_other_types(array: Any) -> None:
    with pytest.raises(TypeError, match=r"expected booleans: .astype\(bool\); or floats"):
        Mask.dense(array)
