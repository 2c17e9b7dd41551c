"""What a bundle is worth: how much of what people ask a project can be answered from its text alone.

``facts`` asks the database what the answers are and ``truth`` what else is so, ``parser`` reads what a text says,
``judge`` compares; ``oracle`` says what a clairvoyant builder reaches, ``edits`` what a working day changes. None
of them uses how the product decides; only ``builders`` calls it. ``subjects``, ``measure``, ``stability``,
``report`` and ``plot`` make a run of it.
"""
