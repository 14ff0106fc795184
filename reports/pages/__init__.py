"""Pages: the results of views, the notes under them, and renderers, which depend only on pages."""
