"""The site: one folder of pages that shows everything that records, claims and audits say, without a server."""
