"""The process: settings, wiring, the Celery application, embedded servers, the command line. Composition root;
nobody imports it.
"""
