"""Operations of frameworks: a kernel or a built-in operation as one of PyTorch's or JAX's.

``operation`` says what a framework has to know of an operation, ``builtin`` says that of the
built-in ones, ``gradients`` how those are differentiated; ``pytorch`` makes an operation of PyTorch
of it and ``jax_`` a function for JAX, ``offer`` is what users call. Kernels say it of
themselves, in ``gpukern.kernels``.
"""
