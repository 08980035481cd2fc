"""All commands, in three groups: a command parses, and calls one function that is imported when it is needed."""

from relae.cli.commands import data_commands, model_commands, paper_commands

GROUPS = (data_commands, model_commands, paper_commands)
