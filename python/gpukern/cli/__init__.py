"""The command line.

``commands`` is what people call, ``options`` what the commands take, ``running`` what ``compare``
and ``bench`` do, ``tuning`` what ``tune`` does, ``outputs`` where results go, and ``faults`` how a
wrong command is answered.
"""
