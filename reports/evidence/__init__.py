"""Evidence: what papers print, what records hold and what crossed the wire. Judges nothing, shows nothing."""
