"""setuptools as the build backend, with requirements that depend on what there is to do.

The compiler from PyPI is 100 MB, and NumPy is needed for its headers: a build that has a toolkit,
or nothing to compile, goes without.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

from build_tools import kept
from build_tools.toolkit import OLDEST_NUMPY, TOOLKIT_WHEELS, look_for_toolkit

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_Settings = Mapping[str, str | list[str] | None] | None


def compiling_takes() -> list[str]:
    """What has to be installed for what there is to compile."""
    if kept.is_kept(kept.state()):
        return []
    own, _ = look_for_toolkit(os.environ, [])
    wheels = [] if own else [f"{wheel}; sys_platform == 'linux'" for wheel in TOOLKIT_WHEELS]
    return [OLDEST_NUMPY, *wheels]


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """What a wheel takes."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *compiling_takes()]


def get_requires_for_build_editable(config_settings: _Settings = None) -> list[str]:
    """The same."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *compiling_takes()]
