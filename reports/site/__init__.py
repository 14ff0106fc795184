"""The site: one folder of pages with all records, claims and audits, readable without a server."""
