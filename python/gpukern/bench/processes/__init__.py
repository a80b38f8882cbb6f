"""Measuring in processes of their own: several for figures that hold between processes, and one for
a contender that nobody trusts. ``team`` is the side that asks, ``worker`` the one that measures.
"""
