"""What GPUKERN_SANITIZE asks for: the flags that objects are compiled with and linked by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from build_tools.steps import stop

# Compiled in the time of -Os, run in three quarters of it; -O2 takes 1.7 times as long for no more.
BODY_OPTIMIZATION = ["-O1", "-fno-asynchronous-unwind-tables"]
# What a GPU would fault on; cuda/sim/checks.c turns each into an error that names the line.
BODY_CHECKS = ["-fsanitize=alignment,bounds,null,integer-divide-by-zero"]
# The lines alone of what a debugger wants: a quarter less to compile.
READABLE = ["-fno-omit-frame-pointer", "-g1", "-O1"]
# These leave the stack that they run on for another one, which ThreadSanitizer cannot follow from
# within. It does not look into the kernels, which run on those stacks.
SWITCHING = frozenset(Path("cuda/sim", name) for name in ("block.c", "fiber.c", "explain.c"))


@dataclass(frozen=True)
class Sanitizer:
    """The flags of one kind of build; `name` is empty for that which people use."""

    name: str
    c: list[str]
    switching: list[str]
    bodies: list[str]
    link: list[str]

    @property
    def suffix(self) -> str:
        """What tells a folder of its objects from others."""
        return f"-{self.name}" if self.name else ""

    def flags(self, source: Path) -> list[str]:
        """Those of a file in C."""
        return self.switching if source in SWITCHING else self.c


ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", *READABLE]
# Of kernels what they may do wrong: two thirds of the time. The simulator looks after their
# accesses anyway, so that this is worth a run by hand.
ADDRESS_BODIES = [*BODY_CHECKS, "-fsanitize=address,signed-integer-overflow,shift"]
ADDRESS_BODIES += ["-fno-sanitize-recover=all", *READABLE]
THREAD = ["-fsanitize=thread", *READABLE]
PLAIN = Sanitizer("", ["-O2"], ["-O2"], [*BODY_CHECKS, *BODY_OPTIMIZATION], [])
SANITIZERS = {
    "0": PLAIN,
    "1": Sanitizer("address", ADDRESS, ADDRESS, PLAIN.bodies, ADDRESS),
    "kernels": Sanitizer("kernels", ADDRESS, ADDRESS, ADDRESS_BODIES, ADDRESS),
    "thread": Sanitizer("thread", THREAD, READABLE, PLAIN.bodies, THREAD),
}
SANITIZERS |= {"": SANITIZERS["0"], "address": SANITIZERS["1"]}


def chosen_sanitizer(asked: str) -> Sanitizer:
    """The one that the variable names."""
    if asked not in SANITIZERS:
        stop(f"GPUKERN_SANITIZE is '{asked}', not one of 0, 1, address, kernels, thread")
    return SANITIZERS[asked]
