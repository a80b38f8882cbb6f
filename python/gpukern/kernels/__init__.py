"""Kernels that users write in CUDA C++: compiled, kept on disk, checked, called.

``compiling`` is ``gpukern.compile``; ``source`` reads what the user wrote, ``signature`` has the
compiler tell what a kernel takes, ``headers`` has what NVRTC lacks, ``host`` and ``assembly`` have
g++ compile for the simulator, ``checking`` and ``simulating`` have that run one call of a kernel,
in a process (``simulator``, ``simulation``) of its own, ``diagnostics`` says what is wrong with a
source, ``cache`` keeps what was compiled, ``module`` is what a user gets.

Kernels made of an expression: ``declared`` reads their parameters, ``templates`` and
``reduction_template`` write the source, ``operands`` takes what they are called with,
``elementwise`` and ``reduction`` are the functions and classes, ``expression`` is what both have.
``raw`` has CuPy's other names. ``described`` tells frameworks of kernels.
"""
