"""Commands, one a file. Each opens what it needs, does one thing through a room below, and prints."""
