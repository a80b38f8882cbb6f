"""Every wrong call of everything public is answered by a sentence that a newcomer can use."""

from __future__ import annotations

import inspect
import re
import threading
import warnings
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import gpukern as gk
import wrong_calls
from gpukern.text.blocks import Block
from waiting import join_all
from wrong_calls import WRONG

# What raises nothing of its own: exceptions, and what compare() gives.
NOT_CALLED = {"Comparison", "CompileError", "CudaError", "DeviceLostError", "SimulatorWarning"}
RAISED = (TypeError, ValueError, OverflowError, BufferError)
# How a sentence says what was expected, or what to do.
EXPECTED = (
    *("has to", "have to", "is called as", "there are", "use ", "takes ", "convert", "pass "),
    *("and the result", "is a number", "is the number", "is made of", "is n ", "is n,", "asks for"),
    *("call record", "lengths are", "they are", "no axes", "names an axis twice", "the most are"),
    *("not the handle of", "by a copy", "names no stream", "comparison", "decorates"),
    *("reduce it", "for identity", "the result has", "copy it"),
)
# What NumPy's users know in its words, and what speaks for itself.
KNOWN = (
    *(
        "could not be broadcast",
        "does not broadcast",
        "out of bounds",
        "cannot reshape",
        "zero-size array",
        "empty sequence",
    ),
    *("not aligned", "Input operand", "not understood", "given twice", "has no length"),
    *("no JSON", "no device", "beyond what"),
)

PLACES = {"DeviceArray": "d", "Event": "event", "Stream": "stream", "Graph": "graph"}
# What no call makes right: types, and what takes any number of arguments.
NOT_COUNTED = (*PLACES, "DeviceArray.reshape", "DeviceArray.transpose", "check")


def methods() -> dict[str, Any]:
    """The methods of the types, bound, by type and name."""
    given = wrong_calls.names()
    found = {}
    for kind, instance in PLACES.items():
        for name in dir(getattr(gk, kind)):
            special = name.startswith("_") and name not in ("__array__", "__dlpack__")
            vector = name == "dot"
            method = getattr(given[instance][0] if vector else given[instance], name)
            if not special and callable(method):
                found[f"{kind}.{name}"] = method
    return found


def said(name: str) -> str:
    """What the sentences of a function or method begin with."""
    return name.removeprefix("DeviceArray.")


def functions() -> dict[str, Any]:
    """Everything public that takes arguments, by its name."""
    public = {name: getattr(gk, name) for name in gk.__all__ if name not in NOT_CALLED}
    return {**public, **methods()}


def arguments(function: Any) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)


def test_everything_public_has_its_wrong_calls():
    missing = {said(name) for name in functions()} - set(WRONG)
    assert not missing, f"tests/wrong_calls.py has none of {sorted(missing)}"


@pytest.mark.parametrize("call", [call for calls in WRONG.values() for call in calls])
def test_the_sentence_of_a_wrong_call(call):
    name = next(name for name, calls in WRONG.items() if call in calls)
    error = wrong_calls.refusal(call)
    assert isinstance(error, RAISED)
    assert_sentence(name, str(error))


def assert_sentence(name: str, text: str) -> None:
    assert text.startswith(f"{name}: "), text
    assert "\n" not in text
    assert not text.endswith("."), text
    assert any(words in text for words in (*EXPECTED, *KNOWN)), text


def test_the_page_of_sentences_is_true(monkeypatch):
    # Without the contenders that other tests may have added.
    monkeypatch.setattr("gpukern.bench.contenders.registry.REGISTERED", {})
    assert wrong_calls.PAGE.read_text() == wrong_calls.page(), "run python tests/wrong_calls.py"


# ---- counts and names of arguments ---------------------------------------------------------------

NOBODY = "nobody_takes_this"


def refused(name: str, /, *given: Any, **named: Any) -> str:
    """The sentence of a call that has to fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gk.SimulatorWarning)
        with pytest.raises(RAISED) as raised:
            functions()[name](*given, **named)
    text = str(raised.value)
    assert_sentence(said(name), text)
    return text


def needed(name: str) -> dict[str, Any]:
    """Right values for the arguments without which a call is none."""
    right = {"ordinal": 0, "op": "add", "shape": 3, "earlier": gk.Event(), "x": gk.empty(3)}
    right |= {"dtype": "float32", "start": 3, "fill_value": 1.0, "value": 1.0}
    right |= {"parameters": "T x, T z", "operation": "z = x", "expression": "x", "map": "x"}
    right |= {"in_params": "T x", "out_params": "T z", "map_expr": "x", "reduce_expr": "a + b"}
    right |= {"post_map_expr": "z = a", "identity": "0", "code": "x", "name": "f"}
    found = {}
    for argument, parameter in arguments(functions()[name]).items():
        optional = parameter.default is not parameter.empty
        if name in ("as_torch_op", "as_jax"):
            right |= {"operation": gk.add, "name": "mine::add"}
        if not optional and parameter.kind is not parameter.VAR_POSITIONAL:
            found[argument] = right.get(argument, np.ones((2, 2), np.float32))
            if name in ("scale_add", "dot", "DeviceArray.dot"):
                found[argument] = np.ones(3, np.float32)
    return found


COUNTED = [name for name in functions() if name not in NOT_COUNTED]


@pytest.mark.parametrize("name", COUNTED)
def test_an_argument_that_it_does_not_have(name):
    text = refused(name, *needed(name).values(), **{NOBODY: 1})
    assert NOBODY in text
    assert "it is called as" in text


@pytest.mark.parametrize("name", COUNTED)
def test_too_many_arguments(name):
    text = refused(name, *[None] * 20)
    assert "positional arguments" in text
    assert "it is called as" in text


@pytest.mark.parametrize("name", [name for name in COUNTED if needed(name)])
def test_an_argument_that_is_missing(name):
    right = needed(name)
    for count, argument in enumerate(right):
        text = refused(name, *list(right.values())[:count])
        assert f"'{argument}'" in text
        assert f"it is called as {said(name)}(" in text


# ---- values of another kind ----------------------------------------------------------------------

KINDS: dict[str, Any] = {
    "list": [0.5],
    "str": "nonsense",
    "None": None,
    "float": 1.5,
    "complex": 1j,
    "object": object(),
    "class": RuntimeError,
    "dict": {},
    "objects": np.array([1, None], object),
    "texts": np.array(["a"]),
    "records": np.zeros(3, [("a", "f4")]),
}
# Where a kind is no mistake.
TAKEN = {
    "None": "out axis axes dtype variant stream min max copy max_version dl_device op sizes "
    "stop contenders baseline seed rounds pinned_memory device_memory mapped_call name wrap "
    "budget on_table operands source path code name_expressions identity reduce_type result "
    "kernel grid block args given backward",
    "float": "min max start stop step value patience budget identity",
    "str": "",
    "class": "wrap on_table backward",
    "dict": "given",
}
# Names of printed things and of what is only looked at, which may be anything.
ANYTHING = {"Timer": "name quiet"}
# And what NumPy itself is asked for, in whose words it answers.
ANYTHING |= {"DeviceArray.__array__": "dtype"}
# And what has a str(), and what a kernel refuses when it is called.
ANYTHING |= {"compile": "source", "In": "array", "Out": "array", "InOut": "array"}
ANYTHING |= dict.fromkeys(("RawKernel", "RawModule"), "code")
# And where a text is one that nobody can tell to be wrong.
TEXTS = {("contender", "name"), ("compile", "name"), ("compile", "path"), ("RawModule", "path")}
# And in CUDA C++, of which the compiler says what is wrong.
IN_CUDA = "operation preamble loop_prep after_loop name expression map reduce post map_expr"
IN_CUDA += " reduce_expr post_map_expr reduce_type identity"
MADE_OF_TEXTS = "ElementwiseKernel ReductionKernel RawKernel vectorize reduction elementwise"
TEXTS |= {(name, text) for name in MADE_OF_TEXTS.split() for text in IN_CUDA.split()}
TEXTS -= {("elementwise", "operation")}  # which has to assign something
# And where numbers and sequences of them are right.
VALUES = {"full": "fill_value", "full_like": "a fill_value", "asarray": "a"}
VALUES |= dict.fromkeys(("empty_like", "zeros_like", "ones_like"), "a")
# Other words for an argument in a sentence about it.
SAID_AS = {"sizes": "size", "contenders": "contender", "op": "operation", "stream": "stream"}


def mistakes() -> list[tuple[str, str, str]]:
    found = []
    for name, function in functions().items():
        if name in NOT_COUNTED:
            continue
        for argument in arguments(function):
            for kind, value in KINDS.items():
                right = argument in TAKEN.get(kind, "").split()
                scalar = kind == "float" and argument in ("a", "b", "x", "y")
                both = scalar and (len(needed(name)) > 1 or name.startswith("DeviceArray."))
                theirs = name == "from_dlpack" and isinstance(value, np.ndarray)
                anything = argument in ANYTHING.get(name, "").split()
                named = (name, argument) in TEXTS and kind == "str"
                values = argument in VALUES.get(name, "").split() and kind in ("list", "float")
                if not (right or both or theirs or anything or named or values):
                    found.append((name, argument, kind))
    return found


def came(value: Any, text: str) -> bool:
    """Whether the sentence shows the value, its type, or the dtype or shape of an array."""
    shown = [repr(value), str(type(value)), str(value)]
    if isinstance(value, np.ndarray | list):
        shown += [repr(element) for element in value]
    if isinstance(value, np.ndarray):
        shown += [str(value.dtype), str(value.shape)]
    return any(one in text for one in shown)


@pytest.mark.costly(4)
@pytest.mark.parametrize(("name", "argument", "kind"), mistakes())
def test_an_argument_of_another_kind(name, argument, kind):
    value, takes = KINDS[kind], arguments(functions()[name])
    given = {**needed(name), argument: value}
    unnamed = [each for each in given if takes[each].kind is inspect.Parameter.POSITIONAL_ONLY]
    named = {each: given[each] for each in given if each not in unnamed}
    text = refused(name, *(given[each] for each in unnamed), **named)
    assert came(value, text), text
    words = (argument, SAID_AS.get(argument, argument))
    assert any(re.search(rf"\b{word}\b", text) for word in words), text


# ---- blocks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["device(0)", "profile()", "strict()"])
def test_a_block_that_nobody_enters_says_so(call):
    name = call.partition("(")[0]
    with pytest.warns(RuntimeWarning, match=f"^{name}: .*{re.escape(call)}:' and indent"):
        eval(f"gk.{call}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with eval(f"gk.{call}"):
            pass
        kept = eval(f"gk.{call}")
        for _ in range(2):
            with kept:
                gk.add(np.ones(3, np.float32), 1.0)
        assert repr(kept) == f"<gpukern.{call}, for a with statement>"


def test_a_block_serves_several_threads():
    inside, left, strangers = threading.Event(), threading.Event(), []

    @contextmanager
    def opened():
        mine = threading.get_ident()
        yield
        if threading.get_ident() != mine:
            strangers.append(mine)

    block = Block("mine()", opened)

    def enter():
        with block:
            inside.set()
            assert left.wait(60)

    thread = threading.Thread(target=enter)
    with block:
        thread.start()
        assert inside.wait(60)
    left.set()
    join_all(thread)
    assert not strangers


def test_a_block_decorates_a_function():
    @gk.strict()
    def doubled(a):
        return gk.add(a, a)

    assert doubled(np.ones(2, np.float32)).tolist() == [2, 2]


def test_an_error_of_the_block_goes_through():
    with pytest.raises(KeyError, match="mine"), gk.profile() as p:
        gk.add(np.ones(3, np.float32), 1.0)
        raise KeyError("mine")
    assert len(p.calls) == 1
    with gk.profile():
        pass


def test_a_wrong_device_is_said_at_once():
    with pytest.raises(ValueError, match=r"^device: there is no device 99"):
        gk.device(99)


# ---- the environment -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["THREADS", "MEMORY", "SEED"])
@pytest.mark.parametrize("value", ["many", "-1", "1.5", "1 GiB"])
def test_a_setting_of_the_simulator_that_is_none(script, name, value):
    changes = {"GPUKERN_DEVICE": "sim", f"GPUKERN_SIM_{name}": value}
    last = script("import gpukern; gpukern.empty(3)", **changes).stderr.splitlines()[-1]
    want = f"ValueError: empty: GPUKERN_SIM_{name} is '{value}', not a number of 0 or more"
    assert last == want


def test_a_device_that_is_empty_is_none(script):
    assert script("import gpukern; gpukern.empty(3)", GPUKERN_DEVICE="").returncode == 0


@pytest.mark.parametrize("value", ["nonsense", "CUDA", "0"])
def test_a_device_that_nobody_knows(script, value):
    last = script("import gpukern; gpukern.empty(3)", GPUKERN_DEVICE=value).stderr.splitlines()[-1]
    assert last.startswith(f'ValueError: empty: GPUKERN_DEVICE is "{value}"; it takes "cuda"'), last
