"""The comparison: every contender checked against float64, then timed by the same clock.

From the bottom up: ``model`` (what is compared and what came of it, as plain data), ``cases``
(inputs and right answers), ``checking`` (whether a result is right), ``clock`` (times),
``contenders`` (who takes part), ``showing`` (tables and pictures). The files here put them
together: ``measuring`` a case, ``filling`` all of them, ``rows`` what is told of each, and
``comparison`` what users call. A room imports only what is named before it here, ``machine``,
``text`` and ``catalogue``; tests/test_rooms.py has the table.
"""
