"""``python -m gpukern`` is the same as the command ``gpukern``."""

from gpukern.cli import main

if __name__ == "__main__":
    main(prog_name="gpukern")
