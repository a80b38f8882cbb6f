"""Imported before NumPy: its products are of one thread, here and in the processes of tests. The
threads of OpenBLAS wait for more by turning round, on cores that the tests run on."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
