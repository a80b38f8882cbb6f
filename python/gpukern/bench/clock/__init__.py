"""How every figure that is shown is taken, by a clock that is handed in; the machine's own one.

Nobody else waits for the device: synchronization is the harness's. Imports ``bench.model``, and
``gpukern.machine`` for what a device can do at most.
"""
