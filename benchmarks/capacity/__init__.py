"""What one of everything costs, and how much of everything an account needs.

``measure`` and ``processes`` find the costs on real servers, in processor time and bytes; ``costs`` is what they
found, kept in ``measured.json``; ``model`` is a pure function from costs and assumptions to sizes; ``report``
writes both down, for a terminal and for docs/capacity.md.
"""
