"""Where the headers are that PyCUDA's sources include."""

from importlib.resources import files

FOLDER = str(files("gpukern.pycuda").joinpath("include"))
OPTION = f"-I{FOLDER}"
