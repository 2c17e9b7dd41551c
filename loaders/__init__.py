"""Rows in: tables and migrations, the project loader, import, handles, the ledger. Talks to PostgreSQL only.

Knows nothing of Redis, Celery or the settings; connections come from the caller.
"""
