"""Objects with __cuda_array_interface__: what is taken, what is refused, and the real libraries."""

from __future__ import annotations

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, DeviceView, OnDevice, on_device, on_gpu, places, random
from gpukern import _core

SHAPE = (4, 6)


def there(name="aligned", shape=SHAPE, dtype="float32", readonly=False) -> OnDevice:
    place = dict(places(shape, DTYPES[dtype]))[name]
    return on_device(place, random(shape, DTYPES[dtype], 1), readonly)


def changed(holder: OnDevice, **changes) -> DeviceView:
    return DeviceView(holder.parent, holder.place, **changes)


class Only:
    """An object with an interface and nothing else."""

    def __init__(self, interface):
        self.__cuda_array_interface__ = interface


REFUSED = {
    "no version": ({"version": None}, ValueError, "version"),
    "version 0": ({"version": 0}, ValueError, "version"),
    "version 1": ({"version": 1}, ValueError, "version"),
    "version a text": ({"version": "3"}, ValueError, "version"),
    "no shape": ({"shape": None}, ValueError, "shape"),
    "shape a list": ({"shape": [4, 6]}, ValueError, "shape"),
    "shape a number": ({"shape": 24}, ValueError, "shape"),
    "shape of floats": ({"shape": (4.0, 6.0)}, (ValueError, TypeError), "shape|float"),
    "a negative shape": ({"shape": (4, -6)}, ValueError, "negative"),
    "a shape beyond any memory": ({"shape": (1 << 62, 4)}, ValueError, "bytes"),
    "no typestr": ({"typestr": None}, TypeError, "typestr"),
    "typestr of complex": ({"typestr": "<c8"}, TypeError, "<c8"),
    "typestr of wide bool": ({"typestr": "|b2"}, TypeError, "b2"),
    "typestr of integers of three bytes": ({"typestr": "<u3"}, TypeError, "u3"),
    "typestr of the other byte order": ({"typestr": ">f4"}, TypeError, ">f4"),
    "typestr of objects": ({"typestr": "|O"}, TypeError, "O"),
    "typestr no text": ({"typestr": 4}, TypeError, "typestr"),
    "no data": ({"data": None}, ValueError, "data"),
    "data a number": ({"data": 4096}, ValueError, "data"),
    "data of three": ({"data": (4096, False, 0)}, ValueError, "data"),
    "a pointer that is no number": ({"data": ("x", False)}, (ValueError, TypeError), "data|int"),
    "a null pointer": ({"data": (0, False)}, ValueError, "null"),
    "strides a list": ({"strides": [24, 4]}, ValueError, "strides"),
    "too few strides": ({"strides": (4,)}, ValueError, "strides"),
    "a mask": ({"mask": object()}, ValueError, "mask"),
    "stream 0": ({"stream": 0}, ValueError, "stream"),
    "stream a text": ({"stream": "1"}, (ValueError, TypeError), "stream"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("role", ["operand", "out"])
def test_a_broken_interface_is_refused(case, role, balanced):
    changes, exception, word = REFUSED[case]
    holder = there()
    block = holder.parent.to_host()
    view = changed(holder, **changes)
    a = random(SHAPE, DTYPES["float32"], 2)
    with pytest.raises(exception, match=word) as raised:
        gk.add(view, a) if role == "operand" else gk.add(a, a, out=view)
    assert str(raised.value).startswith("add: ")
    assert holder.unchanged(block)
    oracle.assert_same(gk.add(a, a), oracle.add(a, a), "the next call")


def test_an_interface_that_is_no_dict():
    with pytest.raises(ValueError, match=r"add: .*dict"):
        gk.add(Only([1, 2]), np.ones(3, np.float32))


@pytest.mark.parametrize("role", ["operand", "out"])
def test_host_memory_is_refused(role):
    """A pointer from a library that does not know what device memory is would end the process."""
    a = random(SHAPE, DTYPES["float32"], 2)
    kept = a.copy()
    interface = {**a.__array_interface__, "version": 3, "strides": None}
    with pytest.raises(ValueError, match=r"add: .*(not device memory|not memory of)"):
        gk.add(Only(interface), a) if role == "operand" else gk.add(a, a, out=Only(interface))
    oracle.assert_same(a, kept, "unchanged")


@pytest.mark.parametrize("pointer", [1, 4096, (1 << 64) - 16])
def test_a_pointer_to_nowhere_is_refused(pointer):
    view = changed(there(), data=(pointer, False))
    with pytest.raises((ValueError, gk.CudaError), match="add: "):
        gk.add(view, 1.0)
    with pytest.raises((ValueError, gk.CudaError), match="add: "):
        gk.add(np.ones(SHAPE, np.float32), 1.0, out=view)
    assert (gk.add(np.ones(3, np.float32), 1.0) == 2).all()


def test_memory_that_was_given_back_is_refused_or_whole():
    """On the simulator a stale pointer is known; on a GPU it may belong to the pool."""
    if on_gpu():
        pytest.skip("the driver knows the pool's memory, not the arrays in it")
    holder = there()
    interface = holder.view.__cuda_array_interface__
    del holder
    gk.synchronize()
    with pytest.raises((ValueError, gk.CudaError), match="add: "):
        gk.add(Only(interface), 1.0)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_versions_that_are_taken(version):
    holder = there()
    a = random(SHAPE, DTYPES["float32"], 1)
    got = gk.add(changed(holder, version=version), 1.0)
    oracle.assert_same(got.to_host(), oracle.add(a, np.float32(1)), f"version {version}")


@pytest.mark.parametrize(
    "changes",
    [
        {"strides": None},
        {"mask": None},
        {"stream": None},
        {"stream": 1},
        {"descr": [("", "<f4")]},
        {"owner": "anybody"},
    ],
)
def test_keys_that_may_be_there_or_not(changes):
    holder = there()
    got = gk.transpose(changed(holder, **changes))
    a = random(SHAPE, DTYPES["float32"], 1)
    oracle.assert_same(got.to_host(), np.ascontiguousarray(a.T), f"{changes}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_repeated_rows_and_columns_are_read_as_they_are(dtype):
    """As torch's expand and cupy's broadcast_to hand them over: stride 0."""
    holder = there(dtype=dtype)
    a, size = random(SHAPE, DTYPES[dtype], 1), DTYPES[dtype].itemsize
    row, rows = a[:1], changed(holder, strides=(0, size))
    want = np.broadcast_to(row, SHAPE)
    oracle.assert_same(gk.to_device(rows).to_host(), want, "to_device")
    oracle.assert_same(gk.add(rows, rows).to_host(), oracle.add(want, want), "add")
    oracle.assert_same(gk.transpose(rows).to_host(), want.T.copy(), "transpose")
    oracle.assert_sum(gk.sum(rows).to_host(), want, "default", "sum")
    one = changed(holder, strides=(0, 0))
    oracle.assert_sum(gk.sum(one).to_host(), np.full(SHAPE, a[0, 0]), "default", "one element")
    columns = changed(holder, shape=SHAPE[::-1], strides=(size, 0))
    got = gk.matmul(rows, columns).to_host()
    oracle.assert_matmul(got, want, want.T, "cublas", "matmul")
    assert holder.holds(a)


def test_nothing_may_have_any_strides_and_pointer():
    holder = there()
    nothing = changed(holder, shape=(0, 5), strides=(10**15, 8), data=(12345, False))
    assert gk.to_device(nothing).shape == (0, 5)
    assert gk.add(nothing, 1.0, out=nothing) is nothing
    assert gk.sum(nothing).to_host() == 0


# Shapes and strides that lead far away; on the simulator one byte is enough to be refused.
FAR = [
    *({"strides": (1 << 62, 1 << 62)}, {"strides": (-(1 << 62), 4)}, {"strides": (1 << 50, 4)}),
    *({"strides": (4, -(1 << 50))}, {"shape": (1, 6), "strides": (0, 1 << 60)}),
]
NEAR = [{"strides": (-24, 4)}, {"strides": (60, 5)}, {"shape": (4, 24), "strides": (96, 4)}]

LEAVING = """
import sys
sys.path.insert(0, sys.argv[1])
import gpukern as gk, numpy as np
from test_interop import SHAPE, changed, there
changes, role = eval(sys.argv[2]), sys.argv[3]
holder = there()
block = holder.parent.to_host()
view = changed(holder, **changes)
a = np.ones(changes.get("shape", SHAPE), np.float32)
try:
    gk.add(view, a) if role == "operand" else gk.add(a, 1.0, out=view)
except (ValueError, gk.CudaError) as error:
    print(error)
assert holder.unchanged(block)
"""


@pytest.mark.costly(2)
@pytest.mark.parametrize("changes", FAR if on_gpu() else FAR + NEAR)
@pytest.mark.parametrize("role", ["operand", "out"])
def test_a_view_that_leaves_its_memory(changes, role, script, request):
    """In a process of its own: what is not refused may end it."""
    run = script(LEAVING, str(request.path.parent), repr(changes), role)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("add: ")


def test_keys_that_are_none():
    holder = there()
    nothing = {"strides": None, "mask": None, "stream": None, "descr": None}
    interface = {**holder.view.__cuda_array_interface__, **nothing}
    a = random(SHAPE, DTYPES["float32"], 1)
    oracle.assert_same(gk.to_device(Only(interface)).to_host(), a, "None")


@pytest.mark.parametrize("dtype", DTYPES)
def test_our_own_interface_in_other_hands(dtype):
    a = random(SHAPE, DTYPES[dtype], 1)
    device = gk.to_device(a)
    other = Only(device.__cuda_array_interface__)
    oracle.assert_same(gk.add(other, device).to_host(), oracle.add(a, a), "operand")
    assert gk.add(a, a, out=other) is other
    oracle.assert_same(device.to_host(), oracle.add(a, a), "out")


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_nothing_with_a_null_pointer(shape):
    interface = {"shape": shape, "typestr": "<f4", "data": (0, False), "version": 3}
    assert gk.to_device(Only(interface)).shape == shape
    assert gk.add(Only(interface), Only(interface)).shape == shape
    assert gk.sum(Only(interface)).to_host() == 0
    out = Only(interface)
    assert gk.add(np.zeros(shape, np.float32), 1.0, out=out) is out


def test_read_only_arrays_are_operands_and_no_out():
    holder = there(readonly=True)
    a = random(SHAPE, DTYPES["float32"], 1)
    oracle.assert_same(gk.add(holder.view, 0.0).to_host(), a, "operand")
    with pytest.raises(ValueError, match="add: out is read-only"):
        gk.add(a, a, out=holder.view)
    assert holder.holds(a)


def test_the_owner_lives_as_long_as_the_call_and_no_longer(balanced):
    holder = there()
    view = changed(holder)
    del holder
    got = gk.add(view, 1.0)
    del view, got


@pytest.mark.skipif(on_gpu(), reason="a GPU has streams")
@pytest.mark.parametrize("call", ["add", "to_device", "synchronize"])
def test_the_simulator_has_one_stream(call):
    a = np.ones(3, np.float32)
    with pytest.raises(ValueError, match="stream"):
        gk.add(a, a, stream=77) if call == "add" else (
            gk.to_device(a, 77) if call == "to_device" else gk.synchronize(77)
        )
    assert (gk.add(a, a, stream=1) == 2).all(), "1 names the legacy default stream"


@pytest.mark.parametrize("needed", [True, False, None])
def test_an_array_that_requires_gradients_is_refused(needed):
    """As PyTorch's own interface does it; what cannot be asked is refused with what was raised."""

    class Tensor(DeviceView):
        @property
        def requires_grad(self):
            if needed is None:
                raise AttributeError("nobody knows")
            return needed

    holder = there()
    tensor = Tensor(holder.parent, holder.place)
    if needed is False:
        values = random(SHAPE, DTYPES["float32"], 1)
        assert (gk.add(tensor, tensor).to_host() == values + values).all()
        return
    exception, words = (
        (AttributeError, "nobody knows") if needed is None else (RuntimeError, "grad")
    )
    with pytest.raises(exception, match=words):
        gk.add(tensor, 1.0)


@pytest.mark.parametrize(("offset", "stride"), [(1, 4), (0, 7), (3, 9), (2, 5)])
def test_elements_at_any_address(offset, stride):
    """They are copied byte by byte, to and fro."""
    block = np.frombuffer(np.random.default_rng(1).bytes(100), np.uint8)
    parent = gk.to_device(block)
    interface = dict(
        parent.__cuda_array_interface__, shape=(2, 5), typestr="<f4", strides=(45, stride)
    )
    first = interface["data"][0] + offset
    view = Only({**interface, "data": (first, False)})
    want = np.ndarray((2, 5), "<f4", block.tobytes(), offset, (45, stride))
    got = gk.transpose(view).to_host()
    assert got.tobytes() == np.ascontiguousarray(want.T).tobytes()
    values = np.arange(10, dtype=np.float32).reshape(2, 5)
    gk.add(gk.to_device(values), values, out=view)
    written = np.ndarray((2, 5), "<f4", parent.to_host().tobytes(), offset, (45, stride))
    assert (written == 2 * values).all()


# --- the real libraries -----------------------------------------------------------------------

GPU = pytest.mark.skipif(not on_gpu(), reason="other libraries' device arrays need a GPU")


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch sees no GPU")
    return torch


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy", reason="CuPy is not installed")


@pytest.fixture
def cuda():
    pytest.importorskip("numba", reason="Numba is not installed")
    cuda = pytest.importorskip("numba.cuda", reason="Numba has no CUDA target here")
    if not cuda.is_available():
        pytest.skip("this Numba sees no GPU")
    return cuda


def allocations(call):
    """The device bytes that a call needs for itself, and its result."""
    _core.profile_start()
    try:
        result = call()
    finally:
        record = _core.profile_stop()[-1]
    return record["bytes_in"], record["bytes_out"], result


@GPU
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int64", "uint8"])
def test_torch_tensors(torch, dtype):
    a, b = random(SHAPE, DTYPES[dtype], 1), random(SHAPE, DTYPES[dtype], 2)
    x, y, out = torch.tensor(a).cuda(), torch.tensor(b).cuda(), torch.zeros(SHAPE).cuda()
    out = out.to(x.dtype)
    moved_in, moved_out, got = allocations(lambda: gk.add(x, y, out=out))
    assert (moved_in, moved_out) == (0, 0)
    assert got is out
    oracle.assert_same(out.cpu().numpy(), oracle.add(a, b), "out")
    oracle.assert_same(gk.add(x.T, y.T).to_host(), oracle.add(a, b).T.copy(), "strided")
    oracle.assert_same(gk.add(x[1:, ::2], 0).to_host(), a[1:, ::2].copy(), "sliced")
    oracle.assert_same(x.cpu().numpy(), a, "unchanged")


@GPU
def test_torch_reads_our_arrays_without_a_copy(torch):
    a = random(SHAPE, DTYPES["float32"], 1)
    device = gk.to_device(a)
    tensor = torch.as_tensor(device, device="cuda")
    assert tensor.data_ptr() == device.__cuda_array_interface__["data"][0]
    tensor += 1
    torch.cuda.synchronize()
    oracle.assert_same(device.to_host(), oracle.add(a, np.float32(1)), "the same memory")


@GPU
def test_torch_on_a_side_stream(torch):
    side = torch.cuda.Stream()
    count = 1 << 24
    with torch.cuda.stream(side):
        for turn in range(20):
            x = torch.full((count,), float(turn), device="cuda")
            torch.cuda._sleep(1_000_000)
            x += 1
            out = torch.empty_like(x)
            gk.add(x, x, out=out, stream=side.cuda_stream)
            total = (out == 2 * (turn + 1)).all()
            assert bool(total), turn


@GPU
def test_torch_refuses_gradients_and_so_do_we(torch):
    x = torch.ones(3, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="grad"):
        gk.add(x, 1.0)


@GPU
def test_cupy_arrays(cupy):
    for dtype in ("float32", "float64", "float16", "int32", "int64", "int8", "uint8"):
        a, b = random(SHAPE, DTYPES[dtype], 1), random(SHAPE, DTYPES[dtype], 2)
        x, y, out = cupy.asarray(a), cupy.asarray(b), cupy.zeros(SHAPE, dtype)
        moved_in, moved_out, got = allocations(lambda x=x, y=y, out=out: gk.add(x, y, out=out))
        assert (moved_in, moved_out) == (0, 0)
        assert got is out
        oracle.assert_same(cupy.asnumpy(out), oracle.add(a, b), dtype)
        oracle.assert_same(gk.add(x[::-1, ::2], 0).to_host(), a[::-1, ::2].copy(), "sliced")
        back = cupy.asarray(gk.add(x, y))
        oracle.assert_same(cupy.asnumpy(back), oracle.add(a, b), f"{dtype} back")


@GPU
def test_cupy_on_a_side_stream(cupy):
    count = 1 << 24
    for non_blocking in (False, True):
        with cupy.cuda.Stream(non_blocking=non_blocking) as side:
            for turn in range(20):
                x = cupy.full((count,), turn, cupy.float32)
                x += 1
                got = gk.add(x, x)  # the interface names the stream: no stream= is needed
                assert (got.to_host()[:: count // 97] == 2 * (turn + 1)).all()
                out = cupy.empty_like(x)
                gk.add(x, x, out=out, stream=side.ptr)
                assert bool((out == 2 * (turn + 1)).all())


@GPU
def test_numba_arrays(cuda):
    a, b = random(SHAPE, DTYPES["float32"], 1), random(SHAPE, DTYPES["float32"], 2)
    x, y, out = cuda.to_device(a), cuda.to_device(b), cuda.device_array(SHAPE, np.float32)
    moved_in, moved_out, got = allocations(lambda: gk.add(x, y, out=out))
    assert (moved_in, moved_out) == (0, 0)
    assert got is out
    oracle.assert_same(out.copy_to_host(), oracle.add(a, b), "out")
    back = cuda.as_cuda_array(gk.add(x, y))
    oracle.assert_same(back.copy_to_host(), oracle.add(a, b), "back")


@GPU
def test_numba_on_a_side_stream(cuda):
    stream = cuda.stream()
    a = np.ones(1 << 22, np.float32)
    for _ in range(20):
        x = cuda.to_device(a, stream=stream)
        got = gk.add(x, x)
        assert (got.to_host()[::4097] == 2).all()
