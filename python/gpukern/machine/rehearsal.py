"""What ends the process that loads it, such as a library of which a part is missing.

It is tried in another process first, so that the doctor lives to say so.
"""

import signal
import subprocess
import sys

from gpukern.machine.install import AGAIN, Fault

# Says what comes next before it is done: the last line is about what ended the process.
_CODE = """
def next_is(what):
    print(what, flush=True)
next_is("extension")
from gpukern import _core
from gpukern.machine.libraries import nvrtc_report
next_is("driver library")
version = _core.driver_report()["version"]
looks = {"GPU": _core.backend, "cuBLAS": _core.cublas_report}
looks["NVRTC"] = lambda: nvrtc_report(version)
for what, look in looks.items():
    next_is(what)
    try:
        look()
    except Exception:
        pass
"""
_LIMIT = 120
_CURES = {
    "extension": AGAIN,
    "driver library": "install the NVIDIA driver again, and keep other libcuda.so.1 out of "
    "LD_LIBRARY_PATH",
    "GPU": "look at dmesg for NVRM lines, and reboot",
    "cuBLAS": 'pip install --force-reinstall "gpukern[cublas]" (or nvidia-cublas)',
    "NVRTC": 'pip install --force-reinstall "gpukern[jit]" (or nvidia-cuda-nvrtc)',
}


def find_crash() -> Fault | None:
    """What of the extension and the libraries that it opens ends a process, or never answers."""
    command = [sys.executable, "-W", "ignore", "-c", _CODE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        text = said.decode() if isinstance(said, bytes) else said
        return _fault(text, f"does not answer within {_LIMIT} s")
    except OSError:
        return None  # no process is to be had to try it in
    if done.returncode >= 0:
        return None
    name = signal.Signals(-done.returncode).name
    return _fault(done.stdout, f"ends the process that opens it ({name}): a file may be cut short")


def _fault(said: str, text: str) -> Fault:
    last = said.splitlines()[-1] if said else "extension"
    return Fault(last, text, _CURES[last])
