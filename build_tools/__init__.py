"""What setup.py builds the extension with; no part of the package that is installed."""
