"""``python -m gpukern`` is the same as the command ``gpukern``."""

import sys

from gpukern.machine.install import AGAIN


def main() -> None:
    """Run the command; one sentence where a library that it needs is not here."""
    try:
        from gpukern.cli.commands import main as command

        command(prog_name="gpukern")
    except ModuleNotFoundError as error:
        name = error.name or str(error)
        cure = AGAIN if name.startswith("gpukern") else f'pip install "{name}"'
        sys.exit(f"gpukern: the command needs {name}, which is not here; {cure}")


if __name__ == "__main__":
    main()
