"""What can be broken on purpose, to see that the torture test shows it: by name, and what it is.

How each is done stands in ``sabotaged.py``, which runs in the product's processes.
"""

SABOTAGES: dict[str, str] = {
    "no-fence": "publications are accepted whatever stands there",
    "version-after-content": "the snapshot on the stamp is taken after the content was read",
    "stamp-not-capped": "a stamp claims transaction ids that a crash of PostgreSQL may give away again",
    "ledger-before-cache": "the log forgets before the bundle is published",
    "delete-all-rows": "a finished build deletes every log row of its project, also those it did not see",
    "no-echoes": "a project is not told when what its edges end in comes or goes elsewhere",
    "no-marker": "nobody looks whether Redis was emptied",
    "foreign-rows": "a bundle holds a row of another project",
    "finish-when-refused": "a build whose publication was refused is put on record all the same",
    "no-resend": "what was sent once is never sent again",
}
"""By name."""
