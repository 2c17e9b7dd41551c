"""``make load``: an account like production's against the real system, for a stated time.

Thousands of projects of mixed sizes, a stream of edits over few hot ones and many cold ones (Zipf), chats that
read, people whose briefs are due at their hours, each process restarted in turn meanwhile; then more and more
edits until something binds; then silence, and an audit. ``run`` is the order of things, ``judge`` what bound and
what grew, ``report`` what must hold.
"""
