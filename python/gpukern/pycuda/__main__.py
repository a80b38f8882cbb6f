"""``python -m gpukern.pycuda script.py arguments``: a script that imports pycuda, run as it is."""

import runpy
import sys
from pathlib import Path

from gpukern.pycuda import install

_USAGE = "usage: python -m gpukern.pycuda script.py [arguments of the script]"


def main() -> None:
    """Run the script that the command line names."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_USAGE)
        raise SystemExit(0 if arguments else 2)
    script = Path(arguments[0])
    if not script.is_file():
        raise SystemExit(f"gpukern.pycuda: there is no script {script}\n{_USAGE}")
    install()
    sys.argv = arguments
    sys.path[0] = str(script.resolve().parent)
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
