"""Inputs that carry the proof: one right answer in every order, another one in lower precision."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gpukern.bench.cases import answers
from gpukern.bench.cases.trials import Trial, make_trials
from gpukern.bench.cases.wide import wide_product
from gpukern.bench.model.case import DTYPES_OF, OPERATIONS, make_case
from gpukern.bench.model.dtypes import widened

SEED = 20260103
FLOATS = ("float32", "float64", "float16", "bfloat16")


def changed(op: str, size: object, dtype: str = "float32", times: int = 40) -> Trial:
    """A proof after some changes."""
    trial = make_trials(make_case(op, size, dtype), SEED)[0]
    rng = np.random.default_rng(SEED)
    for _ in range(times):
        for change in trial.draw(rng):
            trial.apply(change)
    return trial


def accumulator(dtype: str) -> type:
    return np.float64 if dtype == "float64" else np.float32


def terms_of(op: str, inputs: list[np.ndarray]) -> np.ndarray:
    if op == "dot":
        return inputs[0] * inputs[1]
    return np.square(inputs[0]) if op == "norm" else inputs[0]


def narrowings(dtype: str) -> list:
    if dtype == "float64":
        return [lambda x: x.astype("f4").astype("f8")]
    masks = [np.uint32(0xFFFFE000), np.uint32(0xFFFF0000)]
    cut = [lambda x, m=m: (x.view(np.uint32) & m).view(np.float32) for m in masks]
    near = [
        lambda x, m=m: ((x.view(np.uint32) + (~m >> np.uint32(1)) + np.uint32(1)) & m).view("f4")
        for m in masks
    ]
    return cut + near


@pytest.mark.parametrize("op", ["sum", "dot", "norm"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 2, 3, 10, 5000, 2**20])
def test_every_order_is_exact(op, dtype, count):
    trial = changed(op, count, dtype)
    carried = accumulator(dtype)
    terms = terms_of(op, [widened(one) for one in trial.inputs])
    exact = float(np.sum(terms.astype(np.longdouble)))
    terms = terms.astype(carried)
    rng = np.random.default_rng(1)
    by_size = terms[np.argsort(np.abs(terms), kind="stable")]
    for order in (terms, terms[::-1], np.sort(terms), by_size, rng.permutation(terms)):
        assert float(np.add.accumulate(order)[-1]) == exact
    assert exact != 0
    root = np.sqrt(exact) if op == "norm" else exact
    assert float(trial.expected.exact) == pytest.approx(root, rel=1e-15)


@pytest.mark.parametrize("op", ["sum", "dot", "norm"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [1, 2, 3, 100, 2**16 + 1, 2**22])
def test_lower_precision_is_another_result(op, dtype, count):
    trial = changed(op, count, dtype)
    for narrow in narrowings(dtype):
        terms = terms_of(op, [narrow(one).astype("f8") for one in trial.inputs])
        got = np.sqrt(terms.sum()) if op == "norm" else terms.sum()
        assert np.dtype(dtype).type(got) != trial.expected.nearest


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("inner", [1, 2, 3, 17, 300, 2**14])
def test_a_product_is_exact_and_takes_its_precision(dtype, inner):
    trial = changed("matmul", (6, inner, 5), dtype)
    a, b = (widened(one).astype(accumulator(dtype)) for one in trial.inputs)
    for order in (np.arange(inner), np.arange(inner)[::-1]):
        total = np.zeros((6, 5), a.dtype)
        for k in order:
            total += a[:, k, None] * b[None, k]
        assert np.array_equal(total, trial.expected.exact)
    if dtype in ("float32", "float64"):
        for narrow in narrowings(dtype):
            for one, other in ((narrow(a), b), (a, narrow(b))):
                product = one.astype("f8") @ other.astype("f8")
                assert np.any(product.astype(dtype) != trial.expected.nearest)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_over_an_axis_are_exact(axis, dtype):
    trial = changed(f"sum axis={axis}", (300, 200), dtype)
    values = widened(trial.inputs[0]).astype(accumulator(dtype))
    for order in (values, np.sort(values, axis=axis)):
        total = np.add.accumulate(order, axis=axis).take(-1, axis=axis)
        assert np.array_equal(total, trial.expected.exact)


@pytest.mark.parametrize("op", OPERATIONS)
def test_the_answer_follows_the_changes(op):
    for dtype in DTYPES_OF[op]:
        size = (30, 20) if "axis" in op or op not in ("dot", "norm", "sum") else 600
        size = 600 if op in ("max", "min", "argmax", "argmin") else size
        case = make_case(op, size, dtype)
        for trial in make_trials(case, SEED):
            rng = np.random.default_rng(3)
            for _ in range(50):
                for change in trial.draw(rng):
                    trial.apply(change)
            places = np.arange(600) if case.kind == "selection" else None
            afresh = answers.answer(case, trial.inputs, trial.name == "proof", places)
            mine, theirs = (
                x.exact if x.exact.dtype == np.longdouble else widened(x.exact)
                for x in (trial.expected, afresh)
            )
            assert np.allclose(mine, theirs, rtol=1e-12, atol=1e-12 * np.max(np.abs(theirs)))
            if case.kind == "selection":
                looked = np.asarray(getattr(np, op)(trial.inputs[0]))
                assert np.array_equal(trial.expected.nearest, looked)
            if trial.name == "proof":
                assert np.array_equal(trial.expected.nearest, afresh.nearest)


@pytest.mark.parametrize("op", ["sum", "matmul", "argmax", "add"])
def test_changes_matter(op):
    """A result kept from before the changes of one call is mostly a wrong one."""
    trial = make_trials(make_case(op, 2000 if op in ("sum", "argmax") else 20), SEED)[0]
    rng, other = np.random.default_rng(5), 0
    for _ in range(100):
        before = trial.expected.nearest.copy()
        for change in trial.draw(rng):
            trial.apply(change)
        other += not np.array_equal(before, trial.expected.nearest)
    assert other >= (40 if op == "argmax" else 85)


@pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "int32"])
def test_what_is_selected_moves_away_from_the_first_candidates(op, dtype):
    trial = make_trials(make_case(op, 5000, dtype), SEED, only_proof=True)[0]
    first, rng, moved = set(trial.drawn.candidates.tolist()), np.random.default_rng(SEED), 0
    for _ in range(300):
        for change in trial.draw(rng):
            trial.apply(change)
        assert getattr(np, op)(trial.inputs[0]) == trial.expected.nearest
        where = getattr(np, "arg" + op.removeprefix("arg"))(trial.inputs[0])
        moved += int(where) not in first
    assert moved > 3


def test_ordinary_inputs_end_in_zeros_as_those_of_a_proof_do():
    proof, normal, positive = make_trials(make_case("sum", 2**14), SEED)
    shares = [np.mean(one.inputs[0].view(np.uint32) & 0xFFF == 0) for one in (proof, normal)]
    assert min(shares) > 0.4
    assert positive.inputs[0].min() > 0 and normal.inputs[0].min() < 0


def test_the_oracle_of_float64_is_wider():
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((20, 300)), rng.standard_normal((300, 20))

    def error(product: np.ndarray) -> float:
        found = Fraction(0)
        for i, j in np.ndindex(product.shape):
            pairs = zip(a[i], b[:, j], strict=True)
            exact = sum(Fraction(x) * Fraction(y) for x, y in pairs)
            found = max(found, abs(Fraction(*product[i, j].as_integer_ratio()) - exact))
        return float(found)

    assert error(wide_product(a, b)) < 2.0**-56
    assert error(a @ b) > 2.0**-52
    trial = make_trials(make_case("sum", 10_000, "float64"), SEED)[1]
    assert trial.expected.exact.dtype == np.longdouble
