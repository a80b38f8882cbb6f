"""What the machine is, and what is wrong with it: ``gpukern info`` and ``gpukern doctor``.

``devices``, ``inventory``, ``libraries`` and ``conditions`` say what is here; ``evidence`` gathers
what can break a CUDA install, ``checks`` and ``doctor`` judge it, ``information`` prints. Imports
``_core`` and ``gpukern.text``, and nothing of the comparison.
"""
