"""Loss forensics: the fate of lost records, and its causes."""
