"""What the doctor knows: a file a part of the machine, from the system up to the devices.

Each check looks at the evidence and says in one line what it found and what cures it. A check that
has nothing to add returns None, so that one fault is one line and not ten.
"""
