"""The sections of a report's page, a module each."""
