"""What is compared and what came of it: plain data, and what is computed of it.

Imports ``gpukern.catalogue``, for the names of dtypes, and nothing else of gpukern.
"""
