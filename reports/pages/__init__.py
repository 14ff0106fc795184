"""Pages: what views make, the notes under them, and renderers, which know pages alone."""
