"""What tests of users' kernels on the simulator have in common."""

from __future__ import annotations

import os
import shutil

import pytest

from gpukern import _core

ON_THE_SIMULATOR = [
    pytest.mark.skipif(_core.backend() != "sim", reason="this process has a GPU"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ is here"),
    pytest.mark.usefixtures("kept"),
]

# Lazily a launch is looked at when somebody waits for it, which may be another call.
AT_ONCE = pytest.mark.skipif(
    os.environ.get("GPUKERN_SIM_LAZY", "0") != "0", reason="launches run later"
)
