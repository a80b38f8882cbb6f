"""DLPack: memory lent to and by other libraries, and tensors that are broken.

The simulator's memory is the host's, so there NumPy is a consumer and a producer of its own; every
broken tensor is made by hand.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from ctypes import c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

import numpy as np
import pytest

import gpukern as gk
import oracle
from arrays import DTYPES, on_gpu, random
from gpukern import _core
from waiting import join_all

SHAPE = (4, 6)
HERE = gk.empty(1).__dlpack_device__()
NUMPY = pytest.mark.skipif(on_gpu(), reason="NumPy takes host memory, which a GPU's is not")
CODES = {"f": 2, "i": 0, "u": 1, "V": 4, "b": 6}


class Tensor(ctypes.Structure):
    _fields_ = [
        *(("data", c_void_p), ("kind", c_int32), ("ordinal", c_int32), ("ndim", c_int32)),
        *(("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)),
        *(("shape", ctypes.POINTER(c_int64)), ("strides", ctypes.POINTER(c_int64))),
        ("byte_offset", c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        *(("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", DELETER)),
        *(("flags", c_uint64), ("tensor", Tensor)),
    ]


def python(name, result, *arguments):
    function = ctypes.PYFUNCTYPE(result, *arguments)
    return function((name, ctypes.pythonapi))


new_capsule = python("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
capsule_pointer = python("PyCapsule_GetPointer", c_void_p, ctypes.py_object, c_char_p)
capsule_name = python("PyCapsule_GetName", c_char_p, ctypes.py_object)
set_name = python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, c_char_p)


def lengths(values):
    return None if values is None else (c_int64 * max(len(values), 1))(*values)


class Producer:
    """Lends the memory of a DeviceArray as a tensor that is changed by hand."""

    def __init__(self, array, version=(1, 0), flags=0, name=None, deleter=True, **changes):
        self.array, self.version, self.ended, self.asked = array, version, 0, []
        strides = [int(np.prod(array.shape[i + 1 :])) for i in range(array.ndim)]
        fields = {
            "data": array.__cuda_array_interface__["data"][0],
            **dict(zip(("kind", "ordinal"), HERE, strict=True)),
            "ndim": array.ndim,
            "code": CODES[array.dtype.kind],
            "lanes": 1,
            "bits": 8 * array.itemsize,
            "shape": array.shape,
            "strides": strides,
            **changes,
        }
        self.kept = [fields["shape"], fields["strides"]] = (
            lengths(fields["shape"]),
            lengths(fields["strides"]),
        )
        tensor = Tensor(**{k: v for k, v in fields.items() if v is not None})
        self.deleter = DELETER(self.end) if deleter else DELETER()
        if version:
            self.lent = Versioned(*version, None, self.deleter, flags, tensor)
        else:
            self.lent = Managed(tensor, None, self.deleter)
        self.name = name or (b"dltensor_versioned" if version else b"dltensor")

    def end(self, pointer):
        assert pointer == ctypes.addressof(self.lent)
        self.ended += 1

    def __dlpack_device__(self):
        tensor = self.lent.tensor
        return tensor.kind, tensor.ordinal

    def __dlpack__(self, **named):
        self.asked.append(named)
        return new_capsule(ctypes.addressof(self.lent), self.name, None)


class Old(Producer):
    """A producer from before there were versions."""

    def __init__(self, array, **changes):
        super().__init__(array, version=None, **changes)

    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


def there(dtype="float32", shape=SHAPE):
    return gk.to_device(random(shape, DTYPES[dtype], 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (2, 3, 4), (0,), (3, 0)])
@pytest.mark.parametrize("producer", [Producer, Old])
def test_memory_is_borrowed_without_a_copy(dtype, shape, producer, balanced):
    array = there(dtype, shape)
    live = _core.live_bytes()
    lender = producer(array)
    got = gk.from_dlpack(lender)
    assert _core.live_bytes() == live
    assert (got.shape, got.dtype) == (array.shape, array.dtype)
    interfaces = [d.__cuda_array_interface__["data"] for d in (got, array)]
    assert interfaces[0] == interfaces[1]
    oracle.assert_same(got.to_host(), array.to_host(), dtype)
    assert lender.ended == 0
    del got
    gc.collect()
    assert lender.ended == 1


def test_an_operation_takes_what_has_nothing_but_dlpack():
    lender, other, out = (Producer(there()) for _ in range(3))
    want = oracle.add(lender.array.to_host(), other.array.to_host())
    assert gk.add(lender, other, out=out) is out
    oracle.assert_same(out.array.to_host(), want, "out")
    oracle.assert_same((lender.array + other).to_host(), want, "operator")
    assert (lender.ended, other.ended, out.ended) == (1, 2, 1)


def test_the_producer_is_told_of_our_stream_and_version():
    lender = Producer(there())
    gk.from_dlpack(lender)
    gk.add(lender, lender, stream=1)
    stream = {"stream": 1} if on_gpu() else {}
    assert lender.asked == [{"max_version": (1, 0), **stream}] * 3


class Exchange(ctypes.Structure):
    _fields_ = [
        *(("major", c_uint32), ("minor", c_uint32), ("older", c_void_p), ("allocate", c_void_p)),
        *(("lend", c_void_p), ("take", c_void_p), ("show", c_void_p), ("stream", c_void_p)),
    ]


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
def show(lender, tensor):
    """The tensor, as long as the object lives."""
    lender.asked.append("show")
    tensor[0] = lender.lent.tensor
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(c_void_p))
def lend(lender, lent):
    """The tensor to keep."""
    lender.asked.append("lend")
    lent[0] = ctypes.addressof(lender.lent)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, c_int32, c_int32, ctypes.POINTER(c_void_p))
def current_stream(kind, ordinal, stream):
    """The legacy default stream."""
    stream[0] = None
    return 0


def address(function):
    return ctypes.cast(function, c_void_p).value


TABLE = Exchange(1, 2, None, None, address(lend), None, address(show), address(current_stream))
NEWER = Exchange(2, 0, ctypes.addressof(TABLE), *[None] * 5)
UNKNOWN = Exchange(2, 0, None, *[None] * 5)


def tabled(table):
    class Tabled(Producer):
        __dlpack_c_exchange_api__ = new_capsule(
            ctypes.addressof(table), b"dlpack_exchange_api", None
        )

    return Tabled


@pytest.mark.parametrize(("table", "known"), [(TABLE, True), (NEWER, True), (UNKNOWN, False)])
def test_a_types_table_is_used_where_its_version_is_known(table, known):
    lender = tabled(table)(there())
    a = lender.array.to_host()
    oracle.assert_same(gk.add(lender, lender).to_host(), oracle.add(a, a), "operands")
    assert gk.add(lender, lender, out=lender) is lender
    oracle.assert_same(lender.array.to_host(), oracle.add(a, a), "out")
    assert all(asked == "show" for asked in lender.asked) is known
    assert lender.ended == (0 if known else 5)
    got = gk.from_dlpack(lender)
    assert (lender.asked[-1] == "lend") is known
    before = lender.ended
    del got
    gc.collect()
    assert lender.ended == before + 1


def test_a_table_that_shows_what_is_refused():
    lender = tabled(TABLE)(there(), code=10, bits=8)
    with pytest.raises(TypeError, match="add: a has a DLPack dtype of code 10"):
        gk.add(lender, 1)
    with pytest.raises(TypeError, match="from_dlpack: x has a DLPack dtype of code 10"):
        gk.from_dlpack(lender)
    gc.collect()
    assert lender.ended == 1


def test_layouts_that_are_taken():
    array = there()
    a = array.to_host()
    size = array.itemsize
    for changes, want in (
        ({"strides": None}, a),
        ({"byte_offset": 6 * size, "shape": (3, 6)}, a[1:]),
        ({"shape": (4, 3), "strides": (6, 2)}, a[:, ::2]),
        ({"shape": (6, 4), "strides": (1, 6)}, a.T),
        ({"shape": (3, 4, 6), "ndim": 3, "strides": (0, 6, 1)}, np.broadcast_to(a, (3, 4, 6))),
        ({"byte_offset": 23 * size, "strides": (-6, -1)}, a[::-1, ::-1]),
        ({"ndim": 0, "shape": None, "strides": None}, a[0, 0]),
    ):
        lender = Producer(array, **changes)
        oracle.assert_same(gk.from_dlpack(lender).to_host(), np.array(want), f"{changes}")
        oracle.assert_same(gk.add(lender, 0).to_host(), np.array(want), f"{changes}")


def test_any_layout_is_lent():
    turned = Producer(there(), shape=(6, 4), strides=(1, 6))
    lent = gk.from_dlpack(turned, copy=False)
    view = lent[1:, ::2]
    assert turned.ended == 0
    del lent
    gc.collect()
    assert view.shape == (5, 2)
    assert turned.ended == 0, "the view needs the memory"
    del view
    gc.collect()
    assert turned.ended == 1


def test_a_copy_that_is_asked_for():
    lender = Producer(there())
    got = gk.from_dlpack(lender, copy=True)
    assert lender.ended == 1
    gk.add(lender.array, 1, out=lender.array)
    oracle.assert_same(got.to_host(), random(SHAPE, DTYPES["float32"], 1), "its own")
    array = there()
    assert gk.from_dlpack(array) is array
    assert gk.from_dlpack(array, copy=True) is not array


def test_read_only_memory_stays_so():
    array = gk.from_dlpack(Producer(there(), flags=1))
    assert array.__cuda_array_interface__["data"][1] is True
    for out in (array, Producer(there(), flags=1)):
        with pytest.raises(ValueError, match="add: out is read-only"):
            gk.add(array, 1, out=out)
    before = array.to_host()
    with pytest.raises(ValueError, match="add: the array on the left is read-only"):
        array += 1
    copied = array.T.reshape(-1)
    copied += 1
    assert array.to_host().tolist() == before.tolist()
    with pytest.raises(ValueError, match="add: out is read-only"):
        gk.add(array.reshape(-1), 1, out=array.reshape(-1))
    for write in (lambda: array.__setitem__(0, 1), lambda: array.fill(1)):
        with pytest.raises(ValueError, match="the array is read-only"):
            write()
    oracle.assert_same(array.to_host(), before, "in place")
    with pytest.raises(BufferError, match="max_version"):
        array.__dlpack__()
    again = array.__dlpack__(max_version=(1, 1))
    lent = Versioned.from_address(capsule_pointer(again, b"dltensor_versioned"))
    assert lent.flags == 1
    assert gk.add(array, 0).__dlpack__() is not None


def test_a_broadcast_view_is_not_assigned_to():
    shown = gk.from_dlpack(Producer(there(), shape=(3, 4, 6), ndim=3, strides=(0, 6, 1)))
    with pytest.raises(ValueError, match="setitem: the array is a broadcast view"):
        shown[1:] = 3
    with pytest.raises(ValueError, match="add: the array on the left is a broadcast view"):
        shown += 1
    shown[1] = 3
    assert not (shown != 3).max()


BROKEN = {
    "the next major version": ({"version": (2, 0)}, ValueError, "major version"),
    "another name": ({"name": b"tensor"}, TypeError, "dltensor"),
    "a name that says it is used": ({"name": b"used_dltensor_versioned"}, TypeError, "dltensor"),
    "another number of the device": ({"ordinal": 7}, BufferError, "device 7"),
    "OpenCL": ({"kind": 4}, BufferError, "kind 4"),
    "pinned memory": ({"kind": 3}, BufferError, "kind 3"),
    "complex": ({"code": 5, "bits": 64}, TypeError, "code 5"),
    "bool of a bit": ({"code": 6, "bits": 1}, TypeError, "code 6"),
    "bool of two bytes": ({"code": 6, "bits": 16}, TypeError, "code 6"),
    "float8": ({"code": 10, "bits": 8}, TypeError, "code 10"),
    "int4": ({"code": 0, "bits": 4}, TypeError, "4 bits"),
    "uint128": ({"code": 1, "bits": 128}, TypeError, "128 bits"),
    "lanes": ({"lanes": 4}, TypeError, "4 lanes"),
    "no lanes": ({"lanes": 0}, TypeError, "0 lanes"),
    "axes below none": ({"ndim": -1}, ValueError, "axes"),
    "65 axes": ({"ndim": 65, "shape": (1,) * 65, "strides": (1,) * 65}, ValueError, "axes"),
    "no shape": ({"shape": None}, ValueError, "shape"),
    "a negative length": ({"shape": (4, -6)}, ValueError, "negative"),
    "a shape beyond any memory": ({"shape": (1 << 62, 4)}, ValueError, "bytes"),
    "strides beyond any memory": ({"strides": (1 << 62, 1)}, ValueError, "strides"),
    "strides that leave the memory": ({"strides": (1 << 58, 1)}, ValueError, "memory"),
    "a null pointer": ({"data": None}, ValueError, "null"),
    "a pointer to nowhere": ({"data": 4096}, (ValueError, gk.CudaError), "memory"),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("role", ["from_dlpack", "operand", "out"])
def test_a_broken_tensor_is_refused_and_given_back(case, role, balanced):
    changes, exception, word = BROKEN[case]
    lender = Producer(there(), **changes)
    kept = lender.array.to_host()
    a = random(SHAPE, DTYPES["float32"], 2)
    with pytest.raises(exception) as raised:
        if role == "from_dlpack":
            gk.from_dlpack(lender)
        else:
            gk.add(lender, a) if role == "operand" else gk.add(a, a, out=lender)
    sentence = str(raised.value)
    assert sentence.startswith(("from_dlpack: ", "add: "))
    assert word in sentence
    taken = bool(lender.asked) and b"used" not in lender.name and lender.name != b"tensor"
    gc.collect()
    assert lender.ended == taken, "given back once if it was taken, and never if it was not"
    oracle.assert_same(lender.array.to_host(), kept, "unchanged")


def test_host_memory_is_refused_with_the_way_to_take_it():
    class OnHost:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **named):
            return np.ones(3).__dlpack__(**named)

    for call in (lambda: gk.from_dlpack(np.ones(3)), lambda: gk.add(OnHost(), 1)):
        with pytest.raises((BufferError, ValueError)) as raised:
            call()
        word = "numpy.from_dlpack" if on_gpu() else "not memory of the simulator"
        assert word in str(raised.value)


@pytest.mark.parametrize("thing", [1, None, "x", object(), [1.0]])
def test_what_is_no_array(thing):
    with pytest.raises(TypeError, match="from_dlpack: x has to be an array with __dlpack__"):
        gk.from_dlpack(thing)


def test_what_a_producer_raises_is_passed_on():
    class Broken(Producer):
        def __dlpack__(self, **named):
            raise BufferError("this tensor has gradients")

    with pytest.raises(BufferError, match="gradients"):
        gk.add(Broken(there()), 1)


@pytest.mark.parametrize("answer", [1, (1,), ("x", 0)])
def test_a_device_that_is_none(answer):
    class Nowhere(Producer):
        def __dlpack_device__(self):
            return answer

    for call, named in (
        (gk.from_dlpack, "from_dlpack: the DLPack tensor of x has"),
        (gk.to_device, "to_device: the DLPack tensor of a has"),
        (lambda x: gk.add(there(), x), "add: the DLPack tensor of b has"),
        (lambda x: gk.add(there(), there(), out=x), "add: the DLPack tensor of out has"),
    ):
        with pytest.raises((ValueError, TypeError)) as raised:
            call(Nowhere(there()))
        assert str(raised.value).startswith(named)


def test_a_producer_without_a_deleter():
    array = there()
    lender = Producer(array, deleter=False)  # it has to last by itself
    got = gk.from_dlpack(lender)
    oracle.assert_same(got.to_host(), array.to_host(), "borrowed")
    del got
    gc.collect()
    assert lender.ended == 0


# --- what we lend -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 3), (2, 0)])
def test_what_a_capsule_says(dtype, version):
    array = there(dtype)
    capsule = array.__dlpack__(max_version=version)
    versioned = version is not None and version[0] >= 1
    name = b"dltensor_versioned" if versioned else b"dltensor"
    assert capsule_name(capsule) == name
    kind = Versioned if versioned else Managed
    lent = kind.from_address(capsule_pointer(capsule, name))
    tensor = lent.tensor
    assert (tensor.kind, tensor.ordinal) == HERE == array.__dlpack_device__()
    assert tensor.data == array.__cuda_array_interface__["data"][0]
    assert tensor.shape[:2] == list(SHAPE)
    assert tensor.strides[:2] == [6, 1]
    assert (tensor.ndim, tensor.lanes, tensor.byte_offset) == (2, 1, 0)
    assert (tensor.code, tensor.bits) == (CODES[array.dtype.kind], 8 * array.itemsize)
    if versioned:
        assert (lent.major, lent.minor, lent.flags) == (1, 0, 0)


def test_nothing_has_no_pointer():
    capsule = gk.empty((0, 3)).__dlpack__()
    assert Managed.from_address(capsule_pointer(capsule, b"dltensor")).tensor.data is None


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_that_nobody_takes_gives_the_memory_back(version, balanced):
    capsule = there().__dlpack__(max_version=version)
    gc.collect()
    del capsule


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_consumer_gives_the_memory_back(version, elsewhere, balanced):
    """Without the GIL, from the thread that took it or from another."""
    capsule = there().__dlpack__(max_version=version)
    name = capsule_name(capsule)
    kind = Versioned if version else Managed
    lent = kind.from_address(capsule_pointer(capsule, name))
    used = b"used_" + name
    set_name(capsule, used)
    del capsule
    gc.collect()
    assert _core.live_bytes() > 0
    address = ctypes.addressof(lent)
    deleter = ctypes.CFUNCTYPE(None, c_void_p)(ctypes.cast(lent.deleter, c_void_p).value)
    if elsewhere:
        thread = threading.Thread(target=deleter, args=(address,))
        thread.start()
        join_all(thread)
    else:
        deleter(address)


def test_a_copy_is_lent_as_one():
    array = there()
    lent = array.__dlpack__(max_version=(1, 0), copy=True)
    lent = Versioned.from_address(capsule_pointer(lent, b"dltensor_versioned"))
    assert lent.flags == 2
    assert lent.tensor.data != array.__cuda_array_interface__["data"][0]


def test_where_it_may_be_lent():
    array = there()
    array.__dlpack__(dl_device=HERE)
    for device in ((2, 7), (4, 0), (1, 7)):
        with pytest.raises(BufferError, match="dl_device"):
            array.__dlpack__(dl_device=device)
    for named in ({"dl_device": 1}, {"max_version": 1}, {"max_version": ("1", 0)}):
        with pytest.raises(TypeError):
            array.__dlpack__(**named)
    with pytest.raises(TypeError, match="positional"):
        array.__dlpack__(None)


def test_which_streams_a_consumer_may_name():
    array = there()
    for stream in (None, 1, -1):
        assert capsule_name(array.__dlpack__(stream=stream)) == b"dltensor"
    with pytest.raises(ValueError, match="stream 0"):
        array.__dlpack__(stream=0)
    for stream in (-2, 1 << 70):
        with pytest.raises(ValueError, match="__dlpack__: "):
            array.__dlpack__(stream=stream)
    with pytest.raises(TypeError, match="__dlpack__: stream"):
        array.__dlpack__(stream="x")


@NUMPY
@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "bfloat16"])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (0, 3)])
def test_numpy_shares_the_simulators_memory(dtype, shape, balanced):
    array = there(dtype, shape)
    host = np.from_dlpack(array)
    oracle.assert_same(host, array.to_host(), dtype)
    assert host.flags.writeable
    host[...] = 1
    oracle.assert_same(array.to_host(), np.ones(shape, dtype), "the same memory")
    again = gk.from_dlpack(host)
    del array, host
    gc.collect()
    oracle.assert_same(again.to_host(), np.ones(shape, dtype), "there and back")
    assert not np.from_dlpack(gk.from_dlpack(Producer(there(), flags=1))).flags.writeable


# --- the real libraries -----------------------------------------------------------------------

GPU = pytest.mark.skipif(not on_gpu(), reason="other libraries' device arrays need a GPU")


@GPU
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "uint8"])
def test_torch(dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    array = there(dtype)
    tensor = torch.from_dlpack(array)
    assert tensor.data_ptr() == array.__cuda_array_interface__["data"][0]
    assert str(tensor.dtype) == f"torch.{dtype}"
    tensor += 1
    borrowed = gk.from_dlpack(tensor)
    assert borrowed.__cuda_array_interface__["data"][0] == tensor.data_ptr()
    del tensor
    one = np.ones((), DTYPES[dtype])
    want = oracle.add(random(SHAPE, DTYPES[dtype], 1), one)
    oracle.assert_same(borrowed.to_host(), want, "torch's sum")
    with pytest.raises(BufferError, match=r"numpy\.from_dlpack"):
        gk.from_dlpack(torch.ones(3))
    with pytest.raises(RuntimeError, match="grad"):
        gk.add(torch.ones(3, device="cuda", requires_grad=True), 1.0)


@GPU
@pytest.mark.parametrize("side", [False, True])
def test_torch_on_its_own_stream_needs_no_stream_from_us(side):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    stream = torch.cuda.Stream() if side else torch.cuda.current_stream()
    with torch.cuda.stream(stream):
        for turn in range(20):
            x = torch.full((1 << 22,), float(turn), device="cuda")
            torch.cuda._sleep(1_000_000)
            x += 1
            out = torch.empty_like(x)
            gk.add(x, x, out=out)
            assert bool((out == 2 * (turn + 1)).all()), turn
            got = gk.from_dlpack(x)
            del x
            assert (got.to_host()[::4097] == turn + 1).all()


@GPU
def test_cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    array = there()
    x = cupy.from_dlpack(array)
    assert x.data.ptr == array.__cuda_array_interface__["data"][0]
    x += 1
    borrowed = gk.from_dlpack(x)
    want = oracle.add(random(SHAPE, DTYPES["float32"], 1), np.float32(1))
    oracle.assert_same(borrowed.to_host(), want, "cupy's sum")
    with cupy.cuda.Stream(non_blocking=True):
        y = cupy.from_dlpack(gk.add(array, array))
        assert bool((y == 2 * x).all())
