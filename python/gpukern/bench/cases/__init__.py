"""Which cases there are, and their inputs with the right answers and how far off a result may be.

Imports ``bench.model`` and ``gpukern.catalogue``.
"""
