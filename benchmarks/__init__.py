"""One question a file, run by one command, answered in ratios measured side by side in one run.

Absolute times say something about the machine of the day; ratios say something about the code.
"""
