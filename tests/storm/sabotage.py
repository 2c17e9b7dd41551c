"""What can be broken on purpose, to see that the storm shows it: by name, and what it is.

How each is done stands in ``sabotaged.py``, which runs in the product's processes. Those that are *harsh* break no
promise by themselves: they make what is rare frequent, so that what is broken beside them shows.
"""

SABOTAGES: dict[str, str] = {
    "harsh-telling": "harsh: who tells dies now and then, before it is on record",
    "told-twice": "the same, and Redis does not know what was told",
    "harsh-ticks": "harsh: every tick finds again what the last one scheduled",
    "no-key": "the same, and rows have no unique key",
    "message-begins": "a message begins whatever it names",
    "harsh-lease": "harsh: leases end at once, so that two generate the same brief",
    "no-lease": "the same, and nobody's lease is looked at when he ends",
    "told-early": "what is ready is told at once, and not when it is due",
    "no-resend": "what was sent once is never sent again",
    "anybody": "a brief is about everybody's projects",
    "miscounted": "every total is one too high now and then",
    "no-copy": "nothing is copied to Redis",
}
"""By name."""

PREPARED: dict[str, tuple[str, ...]] = {"no-key": ("alter table fw_briefs drop constraint fw_briefs_pkey",)}
"""Statements without which one does not show."""
