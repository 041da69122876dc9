"""Loss forensics: what became of lost records, and how."""
