"""The one clock of the project: every figure that is shown comes from here.

Nobody else waits for the device: synchronization is the harness's. Imports ``bench.model``, and
``gpukern.machine`` for what a device can do at most.
"""
