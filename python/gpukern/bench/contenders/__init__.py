"""Who takes part: gpukern's variants and the libraries beside it, each behind a small adapter.

``registry`` names them all. A file ``NAME_.py`` is the adapter of NAME, imported only when it takes
part in a comparison. Imports ``bench.model``, ``gpukern.catalogue``, ``gpukern.text``, and
``gpukern.machine`` for what is installed.
"""
