"""What ``gpukern.compile`` gives: a module and the kernels in it."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from gpukern import _core
from gpukern.frameworks.offer import check_backward, jax_function, torch_op
from gpukern.kernels.described import Call, OfSource, check_launch
from gpukern.kernels.signature import Parameter, variable
from gpukern.kernels.simulating import Recipe, Target, checked_seconds, give_back, simulated, take
from gpukern.text.calls import blamed_on, check_call, checked_count, checked_flag


class Found(NamedTuple):
    """A kernel in an image, by its symbol there."""

    image: _core.Image
    symbol: str
    parameters: tuple[Parameter, ...]
    spills: int | None
    recipe: Callable[[], Recipe] | None = None
    """The kernel for the simulator; None where there is no source of it."""


class Kernel(_core.Kernel):
    """A kernel of a compiled module, to be called: ``kernel(grid, block, *arguments)``.

    ``grid`` and ``block`` are numbers, or up to three of them. An array is given for a pointer: a
    NumPy array goes to the device and, unless the pointer is ``const``, back; ``gpukern.In``,
    ``Out`` and ``InOut`` say which way. A DeviceArray, or an array of PyTorch, CuPy or Numba, is
    used where it is. Numbers are Python's, or NumPy's of the parameter's own type; a structure is a
    scalar of a structured dtype, a ctypes structure or bytes; None is a null pointer. ``shared`` is
    bytes of dynamic shared memory, ``stream`` the CUDA stream, as for every operation.

    Raises TypeError, naming the parameter, for a wrong count, kind, size or dtype; ValueError for
    arrays that are not contiguous, aligned or writable, and for a launch that does not fit the
    device or the kernel; MemoryError, CudaError, and DeviceLostError after a kernel has faulted.
    """

    _image: _core.Image
    _recipe: Callable[[], Recipe] | None
    parameters: tuple[Parameter, ...]
    spills: int | None
    """Bytes that a thread spills from registers to memory; None where the module does not say."""

    @property
    def signature(self) -> str:
        """The kernel as it is declared, as far as it is known."""
        return f"{self.name}({', '.join(parameter.text for parameter in self.parameters)})"

    @property
    def target(self) -> Target:
        """The kernel as the simulator is asked to run it."""
        return Target(self, self._image, self.parameters, self._recipe)

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        return self.facts()["registers"]

    @property
    def shared(self) -> int:
        """Bytes of shared memory that a block has before any dynamic one."""
        return self.facts()["shared"]

    @property
    def local(self) -> int:
        """Bytes of memory of a thread's own: arrays and what is spilt."""
        return self.facts()["local"]

    @property
    def most_threads(self) -> int:
        """The threads that a block may have."""
        return self.facts()["most_threads"]

    @cached_property
    def _suggested(self) -> int:
        return self.suggest_block()

    def occupancy(self, block: Any, shared: int = 0) -> float:
        """The share of a multiprocessor's threads that run side by side, from 0 to 1.

        ``block`` and ``shared`` are those of a call.
        """
        sides = block if isinstance(block, tuple | list) else (block,)
        threads = self.active_blocks(block, shared=shared)
        for side in sides:
            threads *= side
        return threads / self.facts()["resident_threads"]

    def over(self, n: int, block: int | None = None) -> Callable[..., None]:
        """The kernel with one thread for each of n elements: ``kernel.over(n)(*arguments)``.

        ``block`` threads a block; None: as ``suggest_block`` has it. The last block reaches beyond
        n, so the kernel has to compare its index with n. Nothing is launched for n of 0.
        """
        with blamed_on(self.name):
            count = checked_count("n", n, 0, "a number of elements")
            threads = (
                self._suggested
                if block is None
                else checked_count("block", block, 1, "a number of threads")
            )
        blocks = -(-count // threads)

        def launch(*arguments: Any, shared: int = 0, stream: Any = None) -> None:
            if blocks:
                self(blocks, threads, *arguments, shared=shared, stream=stream)

        return launch

    def __getitem__(self, n: int) -> Callable[..., None]:
        return self.over(n)

    def as_torch_op(self, name: str, **how: Any) -> Any:
        """Make it an operation of PyTorch, ``torch.ops.mine.double``::

            double = kernel.as_torch_op("mine::double", out="x", over="x", given={"n": "x"})

        ``out`` says the shape of what is written: the name of an array that has it, a tuple, or a
        function of the arguments, each array with its ``shape``, ``size`` and ``dtype``; a dict of
        those by name where several pointers are not ``const``. The dtypes are the source's.
        ``over`` is how many elements have a thread each, in blocks of ``block``: those of an array,
        by its name, a number or a function of the arguments; or ``grid`` and ``block`` are those of
        a call. ``given`` says what parameters are that are no arguments of the operation: the size
        of an array, by its name, a value or a function. The others are its arguments, as the
        kernel has them: pointers are tensors, which are made contiguous. ``shared`` is bytes of
        dynamic shared memory; with ``zeroed`` what is written is zeros before.

        ``backward`` is called with the gradients of the results and the arguments, and returns the
        gradient of each array, None for one that has none. Without it there is no gradient.

        Raises TypeError and ValueError for what does not fit the kernel, ImportError where there is
        no PyTorch.
        """
        check_call("as_torch_op", self._described, (), how)
        return torch_op(name, lambda: self._described(**how))

    def as_jax(self, **how: Any) -> Any:
        """Make it a function for JAX, under ``jax.jit``, ``jax.vmap`` and ``jax.grad``::

            double = kernel.as_jax(out="x", over="x", given={"n": "x"}, backward=lambda g, x: 2 * g)

        Arguments are as of ``as_torch_op``; numbers of a call are Python's, and part of the
        compiled program. Under ``jax.vmap`` it runs once for each of the batch.

        Raises TypeError and ValueError for what does not fit the kernel, ImportError where there is
        no JAX.
        """
        check_call("as_jax", self._described, (), how)
        return jax_function(lambda: self._described(**how))

    def _described(
        self,
        *,
        out: Any,
        over: Any = None,
        grid: Any = None,
        block: Any = None,
        given: Mapping[str, Any] | None = None,
        shared: Any = 0,
        zeroed: bool = False,
        backward: Callable[..., Any] | None = None,
    ) -> OfSource:
        """What a framework has to know of it."""
        check_launch(over, grid, block)
        check_backward(backward)
        made = OfSource(
            self.name, self.parameters, out, given or {}, checked_flag("zeroed", zeroed), backward
        )
        made.check_said("over", over)

        def launch(call: Call, arguments: list[Any], stream: Any) -> None:
            threads, dynamic = call.value_of(block), call.value_of(shared)
            if over is None:
                self(call.value_of(grid), threads, *arguments, shared=dynamic, stream=stream)
            else:
                run = self.over(call.value_of(over), threads)
                run(*arguments, shared=dynamic, stream=stream)

        made.launch = launch
        return made

    def simulate(
        self, grid: Any, block: Any, /, *arguments: Any, shared: int = 0, seconds: float = 60.0
    ) -> None:
        """The call, on the simulator: ``kernel.simulate(grid, block, *arguments)``.

        The same source, compiled by the machine's C++ compiler, runs on copies of the arguments in
        a process of its own, whether this one has a GPU or not, and what it has written is copied
        back: to arrays of the host, of a device, and to the module's variables. What is wrong is a
        CudaError with block, thread and line, as is a kernel that takes longer than ``seconds``,
        and then nothing is written. ``gpukern.check`` gives a report of it.

        Raises what the call raises; CompileError for what cannot be simulated; ValueError for a
        kernel without a source and for arrays and variables that hold addresses.
        """
        with blamed_on(self.name):
            limit = checked_seconds(seconds)
        call = take(self.target, grid, block, arguments, shared)
        outcome = simulated(call, limit)
        if outcome.printed:
            print(outcome.printed, end="", flush=True)
        if outcome.results is None:
            raise _core.CudaError(outcome.fault)
        give_back(call, outcome.results)

    def __repr__(self) -> str:
        return f"<kernel {self.signature}>"


def make_kernel(name: str, found: Found) -> Kernel:
    """The kernel of that name."""
    numbers = tuple(parameter.numbers() for parameter in found.parameters)
    kernel = Kernel(found.image, found.symbol, name, numbers)
    kernel.parameters = found.parameters
    kernel.spills = found.spills
    kernel._image, kernel._recipe = found.image, found.recipe
    facts = kernel.facts()
    kernel.__doc__ = "\n".join(
        [
            kernel.signature,
            "",
            "Called as kernel(grid, block, *arguments, shared=0, stream=None).",
            "",
            f"registers a thread: {facts['registers']}",
            f"shared memory a block: {facts['shared']} bytes, up to {facts['most_shared']} more",
            f"local memory a thread: {facts['local']} bytes",
            f"threads a block: up to {facts['most_threads']}",
        ]
    )
    return kernel


class Variables(NamedTuple):
    """The variables of an image: of each its symbol there, and what its type is made of. None in
    place of those: it was not compiled here, and a variable is known by its symbol alone.
    ``may_use`` tells of a kernel and a variable whether it may be used there."""

    image: _core.Image
    known: dict[str, tuple[str, tuple[int, ...]]] | None
    may_use: Callable[[str, str], bool]


class Module:
    """The kernels of one source: ``module.add``, or ``module["add<float>"]`` of a template, and its
    variables: ``module.symbol("table")``.

    ``name`` is that of the source, ``kernels`` are the names that it shows, ``log`` is what the
    compiler warns of.
    """

    def __init__(
        self,
        name: str,
        log: str,
        kernels: Mapping[str, Found],
        find: Callable[[str], Found],
        variables: Variables,
    ) -> None:
        self.name = name
        self.log = log
        self.kernels = tuple(kernels)
        self._known = dict(kernels)
        self._find = find
        self._made: dict[str, Kernel] = {}
        self._variables = variables
        self._apart: list[str] = []  # kernels that are not in the module's own image
        self._shown: set[str] = set()  # variables that were handed out

    def symbol(self, name: str) -> _core.DeviceArray:
        """A ``__constant__`` or ``__device__`` variable as an array of its own memory::

            module.symbol("table")[...] = values  # a NumPy array of its dtype
            module.symbol("table").to_host()

        It has the dtype and the shape that the source declares, a vector's lanes as a last axis;
        what is like no dtype, and what was not compiled here, is bytes (uint8). The memory is the
        thread's device's, and lives as long as an array or a kernel of it.

        Raises ValueError for a variable that is not there, and where a kernel of a template is in
        use that has one of its own, or may have as far as the source shows: name that kernel in
        ``compile(..., names=[...])``.
        """
        if not isinstance(name, str):
            raise TypeError(f"symbol: the name of a variable is a text, not {name!r}")
        image, known, _ = self._variables
        shape: tuple[int, ...]
        if known is None:
            symbol, dtype, shape = name, "uint8", (image.symbol(name)[1],)
        elif name in known:
            for kernel in self._apart:
                self._check_one(kernel, name)
            symbol, numbers = known[name]
            dtype, shape = variable(numbers)
        else:
            raise ValueError(
                f"symbol: {self.name} has no variable {name!r}; it has {', '.join(known) or 'none'}"
            )
        array = image.array(symbol, dtype, shape)
        self._shown.add(name)
        return array

    def _check_one(self, kernel: str, name: str) -> None:
        """That a kernel that is compiled apart has no variable of that name, which were another."""
        if self._variables.may_use(kernel, name):
            raise ValueError(
                f"symbol: {kernel} is compiled apart from {self.name}, with a {name} of its own; "
                f"compile(..., names=[{kernel!r}]) compiles it with the rest"
            )

    def __getitem__(self, name: str) -> Kernel:
        if not isinstance(name, str):
            raise TypeError(f"compile: the name of a kernel is a text, not {name!r}")
        made = self._made.get(name)
        if made is None:
            found = self.found(name)
            if found.image is not self._variables.image and self._variables.known:
                for shown in self._shown:
                    self._check_one(name, shown)
                self._apart.append(name)
            made = self._made[name] = make_kernel(name, found)
        return made

    def found(self, name: str) -> Found:
        """What there is of a kernel, by its name."""
        return self._known.get(name) or self._find(name)

    @property
    def image(self) -> _core.Image | None:
        """The machine code of the kernels that the source shows; None where it shows none."""
        return next((found.image for found in self._known.values()), None)

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(
                f"{name} is no attribute of a module; module[{name!r}] is a kernel"
            )
        try:
            return self[name]
        except ValueError as error:
            raise AttributeError(str(error)) from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in self.kernels if name.isidentifier())})

    def __repr__(self) -> str:
        return f"<module {self.name}: {', '.join(self.kernels) or 'no kernels'}>"
