"""What ``%load_ext gpukern`` brings to IPython and Jupyter: ``%%cuda`` and ``%gpukern``."""

import shlex
from typing import Any

from gpukern.kernels.compiling import compile
from gpukern.kernels.module import Module
from gpukern.text.calls import blamed_on


def load_ipython_extension(shell: Any) -> None:
    """Add ``%%cuda`` and ``%gpukern`` to the shell, as ``%load_ext gpukern`` asks for."""

    def cuda(line: str, cell: str) -> Module:
        """``%%cuda [name] [options]``: compile the cell by gpukern.compile.

        The module becomes the variable ``name``, ``module`` unless it says otherwise; the options
        are the compiler's, as -DN=16.
        """
        name, options = _words(line)
        made = compile(cell, options, f"{name}.cu")
        shell.push({name: made})
        return made

    shell.register_magic_function(cuda, "cell", "cuda")
    shell.register_magic_function(gpukern, "line", "gpukern")


def _words(line: str) -> tuple[str, list[str]]:
    """The name of the module, and the options."""
    with blamed_on("%%cuda"):
        words = shlex.split(line)
        named = words and not words[0].startswith("-")
        name = words.pop(0) if named else "module"
        if not name.isidentifier():
            raise ValueError(f"the name of the module has to be one of a variable, not {name!r}")
    return name, words


def gpukern(line: str) -> None:
    """``%gpukern compare add``: what the command does, here in the notebook's own process, with the
    contenders that it has been given."""
    import click

    from gpukern.cli.commands import main

    try:
        main(shlex.split(line), prog_name="%gpukern", standalone_mode=False)
    except click.ClickException as error:
        error.show()
