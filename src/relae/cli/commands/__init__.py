"""Every command, in three groups: a command parses, and calls one function that is imported when it is needed."""

from relae.cli.commands import making, paper, using

GROUPS = (making, using, paper)
