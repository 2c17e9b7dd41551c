"""Words out: prompt templates, named and versioned, and their rendering. No I/O but this package's own files."""
