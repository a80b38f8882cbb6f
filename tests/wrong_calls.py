"""Wrong calls of everything public, as users write them, and the page that shows their sentences.

Run as a script it writes ``docs/errors.md`` again.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import gpukern as gk

PAGE = Path(__file__).resolve().parent.parent / "docs" / "errors.md"

# What the calls below name.
GIVEN = """\
a = np.ones((2, 3), np.float32)
four = np.ones(4, np.float32)
whole = np.ones((2, 3), np.int32)
flags = np.ones((2, 3), bool)
fixed = np.ones((2, 3), np.float32)
fixed.setflags(write=False)
masked = np.ma.array(np.ones(3, np.float32), mask=[0, 1, 0])
records = np.zeros(3, [("x", "f4"), ("y", "i4")])
d = gk.to_device(a)
scalar = gk.to_device(np.ones((), np.float32))
event = gk.Event()
stream = gk.Stream()
stream.begin_capture()
gk.add(d, d, stream=stream)
graph = stream.end_capture()
"""

# By the name that the sentence begins with.
WRONG: dict[str, tuple[str, ...]] = {
    "add": (
        "gk.add(a)",
        "gk.add(a, b=a)",
        "gk.add(a, a, None, None)",
        "gk.add(a, a, where=True)",
        "gk.add(a, a, a, out=a)",
        "gk.add([1, 2], [3, 4])",
        "gk.add(a, None)",
        "gk.add(1.0, 2.0)",
        "gk.add(a, masked)",
        "gk.add(a, whole)",
        "gk.add(whole, 1.5)",
        "gk.add(a, 1j)",
        "gk.add(whole, 1 << 31)",
        "gk.add(a, 10**400)",
        "gk.add(a, four)",
        "gk.add(records, records)",
        "gk.add(np.array(['a']), np.array(['b']))",
        "gk.add(np.array([1, None]), np.array([1, None]))",
        "gk.add(np.ones(3, complex), 1.0)",
        "gk.add(a, a, out=[0.0])",
        "gk.add(a, a, out=four)",
        "gk.add(a, a, out=whole)",
        "gk.add(a, a, out=fixed)",
        "gk.add(a[0], a[0], out=np.broadcast_to(np.float32(0), (3,)))",
        "gk.add(a, a, variant=3)",
        "gk.add(a, a, stream='x')",
        "gk.add(a, a, stream=-1)",
        "d += four",
    ),
    "subtract": ("gk.subtract(flags, flags)", "d -= a.astype(np.float64)"),
    "multiply": ("gk.multiply(a, [2.0])",),
    "divide": ("gk.divide(whole, whole)", "scalar /= d"),
    "maximum": ("gk.maximum(a, 'x')",),
    "minimum": ("gk.minimum(a, {})",),
    "less": ("gk.less(flags, 1)", "d < 1j"),
    "less_equal": ("gk.less_equal(a, [1.0])",),
    "greater": ("gk.greater(a, four)", "d > d.astype('int32')"),
    "greater_equal": ("gk.greater_equal(a, 1.0, out=a)",),
    "equal": ("d == [1.0]", "gk.equal(whole, 0.5)"),
    "not_equal": ("d != 'x'",),
    "scale_add": ("gk.scale_add(2.0, a)", "gk.scale_add(2.0, a, four)"),
    "clip": (
        "gk.clip(a, '0', 1)",
        "gk.clip(a, [0.0], 1.0)",
        "gk.clip(whole, 0.5, 1)",
        "gk.clip(a, max=np.float64(1))",
        "gk.clip(whole, 1 << 40)",
    ),
    "negative": ("gk.negative(flags)",),
    "abs": ("gk.abs([-1.0])",),
    "sqrt": ("gk.sqrt(whole)",),
    "exp": ("gk.exp(whole)",),
    "sum": (
        "gk.sum([1.0])",
        "gk.sum(a, axis='x')",
        "gk.sum(a, axis=7)",
        "gk.sum(a, axis=(0, 0))",
        "gk.sum(scalar, axis=1)",
        "gk.sum(a, dtype='floaty')",
        "gk.sum(a, dtype='int8')",
        "gk.sum(a, dtype=complex)",
        "gk.sum(a, keepdims='yes')",
        "gk.sum(a, out=a)",
    ),
    "mean": ("gk.mean(whole, dtype='int64')",),
    "prod": ("gk.prod(a, axis=1.5)",),
    "max": ("gk.max(a[:0])",),
    "min": ("gk.min(a, axis=(0, 2))",),
    "norm": ("gk.norm(a, axis=[0])",),
    "argmax": ("gk.argmax(a, axis=(0, 1))",),
    "argmin": ("gk.argmin(a[:0])",),
    "dot": ("gk.dot(a, a)", "gk.dot(four, four[:2])"),
    "matmul": (
        "gk.matmul(a, a)",
        "gk.matmul(a, 2.0)",
        "gk.matmul(np.ones((2, 1, 4), np.float32), np.ones((3, 4, 5), np.float32))",
        "gk.matmul(whole, a.T)",
        "gk.matmul(a, a.T, dtype='float64')",
        "gk.matmul(a, a.T, dtype='floaty')",
        "gk.matmul(whole.astype('int8'), whole.T.astype('int8'), dtype='int64')",
    ),
    "transpose": (
        "gk.transpose(a, 1, 0)",
        "gk.transpose(a, (0, 0))",
        "gk.transpose(a, (0, 1, 2))",
        "gk.transpose(a, (0.0, 1.0))",
        "gk.transpose(a, 'x')",
        "d.transpose(0, 0)",
        "d.transpose(1.5)",
        "d.transpose(axes=(1, 0))",
    ),
    "matrix_transpose": ("gk.matrix_transpose(four)",),
    "to_device": (
        "gk.to_device([1, 2])",
        "gk.to_device(np.array(['text']))",
        "gk.to_device(records)",
        "gk.to_device(a, dtype='float64')",
        "gk.to_device(a, stream=[])",
    ),
    "from_dlpack": (
        "gk.from_dlpack([1, 2])",
        "gk.from_dlpack(object())",
        "gk.from_dlpack(d, copy='yes')",
        "gk.from_dlpack(d, True)",
    ),
    "empty": (
        "gk.empty()",
        "gk.empty(-1)",
        "gk.empty('x')",
        "gk.empty((1.5,))",
        "gk.empty(10**25)",
        "gk.empty((1,) * 65)",
        "gk.empty(3, 'floaty')",
        "gk.empty(3, object)",
        "gk.empty(3, '>f4')",
    ),
    "full": (
        "gk.full(3)",
        "gk.full('x', 1)",
        "gk.full(2, [1.0, 2.0, 3.0])",
        "gk.full(3, 'x')",
        "gk.full(3, None)",
        "gk.full(3, 300, 'uint8')",
        "gk.full(3, float('nan'), 'int32')",
        "gk.full(3, 1, 'complex64')",
        "gk.full(3, masked)",
    ),
    "full_like": ("gk.full_like(d, 'x')",),
    "zeros": ("gk.zeros()", "gk.zeros(-1)", "gk.zeros(3, 'floaty')", "gk.zeros(3, stream='x')"),
    "ones": ("gk.ones(2, 3)", "gk.ones(1.5)"),
    "empty_pinned": (
        "gk.empty_pinned()",
        "gk.empty_pinned(-1)",
        "gk.empty_pinned('x')",
        "gk.empty_pinned(3, object)",
        "gk.empty_pinned(3, 'float32', 4)",
    ),
    "pin": ("gk.pin()", "gk.pin([1.0])", "gk.pin(d)", "gk.pin(masked)", "gk.pin(four, four)"),
    "empty_like": ("gk.empty_like('x')", "gk.empty_like(d, object)"),
    "zeros_like": ("gk.zeros_like(records)",),
    "ones_like": ("gk.ones_like(d, shape=3)",),
    "arange": (
        "gk.arange()",
        "gk.arange('x')",
        "gk.arange(0, [3])",
        "gk.arange(0, 3, 0)",
        "gk.arange(float('nan'))",
        "gk.arange(3, dtype='complex64')",
    ),
    "asarray": (
        "gk.asarray('text')",
        "gk.asarray([[1], [1, 2]])",
        "gk.asarray([300], 'uint8')",
        "gk.asarray([1, 'x'], 'float32')",
        "gk.asarray(masked)",
        "gk.asarray(d, 'floaty')",
    ),
    "synchronize": ("gk.synchronize(stream='x')", "gk.synchronize(0, 1)"),
    "release_memory": ("gk.release_memory(1)", "gk.release_memory(all=True)"),
    "DeviceArray": ("gk.DeviceArray()", "gk.DeviceArray([1.0])"),
    "to_host": (
        "d.to_host([0.0])",
        "d.to_host(out=four)",
        "d.to_host(out=whole)",
        "d.to_host(out=fixed)",
        "d.to_host(out=d)",
        "d.to_host(dtype='int32')",
    ),
    "reshape": (
        "d.reshape(4, 2)",
        "d.reshape(-1, -1)",
        "d.reshape(10**25)",
        "d.reshape('x')",
        "d.reshape(2.0, 3)",
        "d.reshape(None)",
        "d.reshape(shape=(3, 2))",
    ),
    "ravel": ("d.ravel('C')",),
    "flatten": ("d.flatten(order='C')",),
    "tolist": ("d.tolist(1)",),
    "astype": (
        "d.astype()",
        "d.astype('floaty')",
        "d.astype('complex64')",
        "d.astype('int32', copy='no')",
        "d.astype('int32', 'C')",
    ),
    "copy": ("d.copy('C')", "d.copy(stream='x')"),
    "fill": (
        "d.fill()",
        "d.fill('x')",
        "d.fill(four)",
        "d.fill(a.astype(np.float64) * 1j)",
        "d.astype('int32').fill(0.5)",
        "d.astype('int32').fill(a)",
    ),
    "setitem": ("d[0] = 'x'", "d[0] = four", "d[...] = 1j"),
    "delitem": ("del d[0]",),
    "item": ("d.item()", "d.item(0)"),
    "float": ("float(d)",),
    "int": ("int(d)",),
    "complex": ("complex(d)",),
    "round": ("round(d)",),
    "format": ("f'{d:.2f}'",),
    "index": ("[1, 2][d]", "[1, 2][scalar]"),
    "bool": ("bool(d)",),
    "len": ("len(scalar)",),
    "iter": ("list(scalar)",),
    "numpy.median": ("np.median(d)",),
    "__array__": ("np.asarray(d, copy=False)", "d.__array__('floaty')", "d.__array__(copy='no')"),
    "__dlpack__": (
        "d.__dlpack__(stream=0)",
        "d.__dlpack__(stream='x')",
        "d.__dlpack__(max_version=1)",
        "d.__dlpack__(dl_device=(99, 0))",
        "d.__dlpack__(dl_device='cpu')",
        "d.__dlpack__(copy=[])",
    ),
    "Event": ("gk.Event(0)", "gk.Event(stream=0)"),
    "Event.record": ("event.record('x')", "event.record(0, 1)"),
    "Event.synchronize": ("event.synchronize()", "event.synchronize(0)"),
    "Event.seconds_since": (
        "event.seconds_since()",
        "event.seconds_since(0)",
        "event.seconds_since(event)",
    ),
    "Stream": ("gk.Stream(0)",),
    "Stream.synchronize": ("stream.synchronize(0)",),
    "Stream.begin_capture": ("stream.begin_capture('global')",),
    "Stream.end_capture": ("stream.end_capture(graph)",),
    "Graph": ("gk.Graph()",),
    "Graph.launch": ("graph.launch('x')", "graph.launch(stream, 2)"),
    "device": ("gk.device()", "gk.device('cuda:0')", "gk.device(-1)", "gk.device(99)"),
    "device_info": ("gk.device_info(0)",),
    "limits": (
        "gk.limits(memory=1)",
        "gk.limits(pinned_memory=-1)",
        "gk.limits(device_memory='x')",
        "gk.limits(mapped_call=1.5)",
    ),
    "profile": ("gk.profile('table')",),
    "strict": ("gk.strict(True)",),
    "Timer": ("gk.Timer(quietly=True)",),
    "variants": (
        "gk.variants('nonsense')",
        "gk.variants('add', 'floaty')",
        "gk.variants(o='add')",
        "gk.variants('matmul', operands=a)",
        "gk.variants('add', operands=(a, a))",
        "gk.variants('matmul', operands=(a, a))",
    ),
    "compile": (
        "gk.compile()",
        "gk.compile(source='x')",
        "gk.compile('x', path='kernels.cu')",
        "gk.compile('x', '-G')",
        "gk.compile('x', 3)",
        "gk.compile('x', [3])",
        "gk.compile('x', name=3)",
        "gk.compile('x', names='add<float>')",
    ),
    "check": (
        "gk.check(len)",
        "gk.check(len, 1, 32)",
    ),
    "elementwise": (
        "gk.elementwise('float x')",
        "gk.elementwise(3, 'x = 1')",
        "gk.elementwise('float *x', 'x[i] = 1')",
        "gk.elementwise('foo x', 'x = 1')",
        "gk.elementwise('float', 'x = 1')",
        "gk.elementwise('float i', 'i = 1')",
        "gk.elementwise('float x, float x', 'x = 1')",
        "gk.elementwise('float x, float y', 'x == y')",
        "gk.elementwise('float x', 3)",
        "gk.elementwise('float x', 'x = 1', name='two words')",
    ),
    "as_torch_op": (
        "gk.as_torch_op(gk.add)",
        "gk.as_torch_op(gk.add, 'add')",
        "gk.as_torch_op(gk.add, 3)",
        "gk.as_torch_op(len, 'mine::len')",
        "gk.as_torch_op(gk.add, 'mine::add', numbers=['c'])",
        "gk.as_torch_op(gk.abs, 'mine::abs', numbers=['a'])",
        "gk.as_torch_op(gk.sum, 'mine::sum', given={'axes': 1})",
        "gk.as_torch_op(gk.sum, 'mine::sum', given=1)",
        "gk.as_torch_op(gk.max, 'mine::max', backward='max')",
    ),
    "as_jax": (
        "gk.as_jax(len)",
        "gk.as_jax(gk.add, numbers='a')",
        "gk.as_jax(gk.sum, given={'axes': 1})",
        "gk.as_jax(gk.max, backward='max')",
    ),
    "vectorize": (
        "gk.vectorize()",
        "gk.vectorize(len)",
        "gk.vectorize('1 + 2')",
        "gk.vectorize('z = x + y')",
        "gk.vectorize('x + y', result='foo')",
    ),
    "reduction": (
        "gk.reduction('T x')",
        "gk.reduction('', '1')",
        "gk.reduction('T x', 3)",
        "gk.reduction('T x', 'x', result='foo')",
        "gk.reduction('T x', 'x', name='two words')",
    ),
    "ElementwiseKernel": (
        "gk.ElementwiseKernel('T x', 'T y')",
        "gk.ElementwiseKernel('T x', '', 'x = 1')",
        "gk.ElementwiseKernel('T *x', 'T y', 'y = x[i]')",
    ),
    "ReductionKernel": (
        "gk.ReductionKernel('T x', 'T y', 'x', 'a + b')",
        "gk.ReductionKernel('', 'T y', '1', 'a + b', 'y = a', '0')",
        "gk.ReductionKernel('T x', 'raw T y', 'x', 'a + b', 'y[0] = a', '0')",
    ),
    "RawKernel": (
        "gk.RawKernel('x')",
        "gk.RawKernel('x', 3)",
        "gk.RawKernel('x', 'add', backend='hip')",
        "gk.RawKernel('x', 'add', jitify=True)",
    ),
    "RawModule": (
        "gk.RawModule('x')",
        "gk.RawModule()",
        "gk.RawModule(code='x', path='kernels.cu')",
    ),
    "In": ("gk.In()", "gk.In(a, a)"),
    "Out": ("gk.Out()", "gk.Out(array=a)"),
    "InOut": ("gk.InOut()",),
    "contender": (
        "gk.contender()",
        "gk.contender('nonsense')",
        "gk.contender('add', 3)",
        "gk.contender('add', device='yes')",
        "gk.contender('add', wrap='cupy')",
        "gk.contender('add', grid=1)",
        "gk.contender('add', kernel=len)",
        "gk.contender('add')(3)",
        "gk.contender('add', 'NumPy')(len)",
    ),
    "compare": (
        "gk.compare('nonsense')",
        "gk.compare(3)",
        "gk.compare('add', size=[8])",
        "gk.compare('add', sizes=['x'])",
        "gk.compare('add', sizes=8)",
        "gk.compare('add', sizes=[-1])",
        "gk.compare('transpose', sizes=[(1, 2, 3)])",
        "gk.compare('add', sizes=[])",
        "gk.compare('matmul', sizes=[(1, 2, 3, 4)])",
        "gk.compare('dot', sizes=[(1, 2)])",
        "gk.compare('sum', sizes=[1.5])",
        "gk.compare('add', dtype='floaty')",
        "gk.compare('matmul', dtype='int8')",
        "gk.compare('add', contenders='numpy')",
        "gk.compare('add', contenders=['matlab'])",
        "gk.compare('add', contenders=[3])",
        "gk.compare('add', contenders=[])",
        "gk.compare('add', mode='fast')",
        "gk.compare('add', protocol='x')",
        "gk.compare('add', baseline='matlab')",
        "gk.compare('add', baseline=3)",
        "gk.compare('add', baseline='gpukern:fast')",
        "gk.compare('add', contenders=['gpukern:fast'])",
        "gk.compare('add', margin=2)",
        "gk.compare('add', on_table='show')",
        "gk.compare('add', seed=-1)",
        "gk.compare('add', seed='x')",
        "gk.compare('add', rounds=0)",
        "gk.compare('add', rounds='x')",
        "gk.compare('add', simulated='yes')",
    ),
    "from_json": (
        "gk.Comparison.from_json(3)",
        "gk.Comparison.from_json('{}')",
        "gk.Comparison.from_json('{')",
        "gk.Comparison.from_json('{\"schema\": 2}')",
    ),
    "plot": ("gk.Comparison(1, {}).plot('pie')",),
}

# What differs from machine to machine or from one NumPy to the next is left out of the page.
UNSTABLE = ("gk.device(-1)", "gk.device(99)", "d.__dlpack__(dl_device=(99, 0))")
UNSTABLE += ("d.__dlpack__(dl_device='cpu')", "d.__array__('floaty')")


def names() -> dict[str, Any]:
    """Fresh arrays for one call."""
    found: dict[str, Any] = {"gk": gk, "np": np}
    exec(GIVEN, found)
    return found


def refusal(call: str) -> BaseException:
    """What a wrong call raises."""
    around = names()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gk.SimulatorWarning)
        try:
            exec(call, around)
        except Exception as error:
            return error
    raise AssertionError(f"{call} raised nothing")


def _entries() -> list[str]:
    lines = []
    for calls in WRONG.values():
        for call in calls:
            if call not in UNSTABLE:
                error = refusal(call)
                lines += [f">>> {call}", f"{type(error).__name__}: {error}", ""]
    return lines


def page() -> str:
    """The page of sentences."""
    return "\n".join(
        [
            "# Wrong calls and what they are answered",
            "",
            "Each wrong call raises an exception whose sentence begins with the operation and says",
            "what came, what was expected and, where that helps, what to do. No output is changed,",
            "and the next call works. This page is written by `python tests/wrong_calls.py`, and",
            "`tests/test_sentences.py` keeps it true.",
            "",
            "The calls are made with these:",
            "",
            "```python",
            "import gpukern as gk",
            "import numpy as np",
            "",
            *GIVEN.splitlines(),
            "```",
            "",
            "```text",
            *_entries()[:-1],
            "```",
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
