"""Renderers: one comparison as terminal tables, Markdown, LaTeX and CSV."""
