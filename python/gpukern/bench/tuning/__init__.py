"""What ``gpukern tune`` measures: where a variant of matmul is faster than the one by the rule.

``products`` are what is multiplied, ``judging`` times one of them by several variants, ``search``
goes over the grid of sizes, ``proving`` draws shapes that are not on it, and ``table`` is the file.
"""
