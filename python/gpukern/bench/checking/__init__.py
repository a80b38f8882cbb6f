"""Whether a result is right, what is wrong with it, and whether a contender keeps off other memory.

Imports ``bench.model`` and ``bench.cases``.
"""
