"""Evidence: published numbers, records and traffic. This package neither judges nor shows anything."""
