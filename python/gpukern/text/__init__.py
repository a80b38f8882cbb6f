"""Numbers, errors and tables as a person reads them.

Imports nothing of gpukern.
"""
