"""Rows as they come: buffers, means over windows, products, each against its plain version."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from vace_ad.signals.row_buffer import (
    InStep,
    RowBuffer,
    WindowMeans,
    blocked_matmul,
    fill_skipped,
    patch_means_to_points,
)


@given(
    scores=st.lists(st.floats(0, 1e6), min_size=1, max_size=40),
    length=st.integers(1, 30),
)
def test_points_are_means_of_covering_patches(scores, length):
    got = patch_means_to_points(np.array(scores), length)
    np.testing.assert_allclose(got, naive.points(scores, length), rtol=1e-12, atol=1e-9)


def test_a_point_does_not_depend_on_what_lies_far_before(rng):
    scores = rng.normal(size=500)
    whole = patch_means_to_points(scores, 20)
    part = patch_means_to_points(scores[200:], 20)
    np.testing.assert_array_equal(whole[219:], part[19:])


@given(
    scores=st.lists(st.floats(0, 1e6), min_size=1, max_size=20),
    stride=st.integers(1, 9),
    rest=st.integers(0, 8),
)
def test_skipped_patches_lie_between_their_neighbours(scores, stride, rest):
    n_patches = (len(scores) - 1) * stride + 1 + min(rest, stride - 1)
    got = fill_skipped(np.array(scores), stride, n_patches)
    expected = naive.between(scores, stride, n_patches)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.integers(1, 9), st.integers(0, 60), st.lists(st.integers(0, 40)))
def test_window_means_are_those_of_a_whole_stretch(window, stride, more, cuts):
    rng = np.random.default_rng(window * stride)
    n_windows = more + 1
    n_rows = n_windows + window - 1
    values = rng.normal(size=(2, (n_windows - 1) // stride + 1))
    means = WindowMeans(window, stride, 2)
    parts = np.split(values, sorted(min(cut, values.shape[1]) for cut in cuts), axis=1)
    done = [means.add(part) for part in parts if part.shape[1]]
    found = np.concatenate([*done, means.finish(n_rows)], axis=1)
    wanted = [
        patch_means_to_points(fill_skipped(line, stride, n_windows), window) for line in values
    ]
    assert np.array_equal(found, np.stack(wanted))


def test_a_buffer_may_skip_rows_to_come():
    buffer = RowBuffer(1)
    buffer.add(np.arange(3.0)[:, None])
    buffer.drop(5)
    buffer.add(np.arange(3.0, 4.0)[:, None])
    again = RowBuffer(1)
    again.resume(buffer.state())
    for each in (buffer, again):
        each.add(np.arange(4.0, 8.0)[:, None])
        assert each.first(9)[:, 0].tolist() == [5, 6, 7]
        assert len(each) == 3


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "drop", "keep", "resume"]), st.integers(0, 700)),
        max_size=30,
    )
)
def test_a_buffer_is_a_list_of_rows(steps):
    buffer, rows, skip, at = RowBuffer(2), [], 0, 0
    for what, n in steps:
        if what == "add":
            new = np.arange(at, at + 2.0 * n).reshape(n, 2)
            buffer.add(new)
            rows += new[skip:].tolist()
            skip, at = max(0, skip - n), at + 2 * n
        elif what == "drop":
            view, before = buffer.all, buffer.all.tolist()
            buffer.drop(n)
            assert view.tolist() == before  # until rows are added
            skip += max(0, n - len(rows))
            rows = rows[n:]
        elif what == "keep":
            buffer.keep(n)
            rows = rows[max(0, len(rows) - n) :]
        else:
            again = RowBuffer(2)
            again.resume(buffer.state())
            buffer = again
        assert len(buffer) == len(rows)
        assert buffer.all.tolist() == rows
        assert buffer.first(3).tolist() == rows[:3]
        assert buffer.last(3).tolist() == rows[-3:]


def test_a_buffer_gives_back_the_room_of_many_rows():
    buffer = RowBuffer(2)
    buffer.add(np.zeros((5000, 2)))
    buffer.drop(4990)
    assert len(buffer._space) < 100


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12), st.integers(0, 11))
def test_lines_in_step_are_given_out_as_far_as_all_reach(steps, kept):
    lines = [np.arange(100.0).reshape(1, -1), -np.arange(200.0).reshape(2, -1)]
    in_step, at, given_out = InStep(2), [0, 0], 0
    for i, more in enumerate(steps):
        if i == kept:
            state, in_step = in_step.state(), InStep(2)
            in_step.resume(state)
        parts = [line[:, a : a + n] for line, a, n in zip(lines, at, more, strict=True)]
        at = [a + n for a, n in zip(at, more, strict=True)]
        found = in_step.add(parts)
        for line, part in zip(lines, found, strict=True):
            np.testing.assert_array_equal(part, line[:, given_out : min(at)])
        given_out = min(at)


@given(st.integers(0, 40), st.integers(1, 20), st.integers(1, 9))
def test_a_product_has_the_same_bits_in_every_company(n, width, n_out):
    rng = np.random.default_rng(n)
    rows, matrix = rng.normal(size=(n, width)), rng.normal(size=(width, n_out))
    whole = blocked_matmul(rows, matrix)
    np.testing.assert_allclose(whole, rows @ matrix, atol=1e-12)
    for k in range(n):
        assert np.array_equal(blocked_matmul(rows[k : k + 1], matrix)[0], whole[k])
