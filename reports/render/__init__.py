"""Renderers: a page as terminal tables, Markdown and LaTeX."""
