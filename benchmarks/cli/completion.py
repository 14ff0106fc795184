"""The command that prints a shell's completion: commands, their flags and benchmarks' ids, from the parser itself."""

from __future__ import annotations

import argparse

from benchmarks.cli.arguments import build_parser

_BASH = """\
_fedbert_bench() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" flags=""
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "{commands}" -- "$word")); return; fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -W "$({program} list --ids 2>/dev/null)" -- "$word")) ;;
  esac
}}
complete -F _fedbert_bench {program}
"""
_PROGRAM = "fedbert-bench"


def completion_command(words: argparse.Namespace) -> int:
    """Print the script; zsh reads bash's."""
    if words.shell == "zsh":
        print("autoload -Uz compinit bashcompinit && compinit && bashcompinit")
    flags = flags_by_command()
    cases = "\n".join(f'    {name}) flags="{" ".join(own)}" ;;' for name, own in flags.items())
    print(_BASH.format(commands=" ".join(flags), cases=cases, program=_PROGRAM), end="")
    return 0


def flags_by_command() -> dict[str, list[str]]:
    """Every command's flags, as the parser knows them."""
    (commands,) = (action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    return {
        name: sorted(flag for action in parser._actions for flag in action.option_strings if flag.startswith("--"))
        for name, parser in commands.choices.items()
    }
