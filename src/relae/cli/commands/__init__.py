"""All commands, in three groups. A command parses its options and calls one function, which it imports late."""

from relae.cli.commands import data_commands, model_commands, paper_commands

GROUPS = (data_commands, model_commands, paper_commands)
