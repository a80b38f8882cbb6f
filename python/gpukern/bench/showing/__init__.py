"""A comparison as tables and pictures: for the terminal, notebooks, Markdown and matplotlib.

Imports ``bench.model``, ``gpukern.machine`` and ``gpukern.text``; it is given results, and measures
nothing.
"""
