# SPDX-License-Identifier: GPL-2.0-or-later
"""`kdelta completion`: what makes a shell complete command lines; cli/words.py has the words."""

from typing import Annotated

from kdelta.cli.output import emit
from kdelta.cli.reading import one_of
from kdelta.spec.option import Argument

_BASH = """\
_kdelta() {
    local IFS=$'\\n'
    COMPREPLY=($("$1" __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null))
    case ${#COMPREPLY[@]}:${COMPREPLY[0]-} in 1:*[:/=_]) compopt -o nospace ;; esac
}
complete -F _kdelta kdelta
"""

_ZSH = """\
_kdelta() {
    local -a found open
    found=("${(@f)$("${words[1]}" __complete words "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    found=("${(@)found:#}")
    open=("${(@M)found:#*[:/=_]}")
    found=("${(@)found:#*[:/=_]}")
    compadd -- "${(@)found}"
    compadd -S '' -- "${(@)open}"
}
compdef _kdelta kdelta
"""

_FISH = """\
function __kdelta_words
    set -l words (commandline -opc)
    $words[1] __complete words $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c kdelta -f -a '(__kdelta_words)'
"""

EPILOG = """\b
For this shell alone, or in its start file:
  source <(kdelta completion bash)       ~/.bashrc
  source <(kdelta completion zsh)        ~/.zshrc, after compinit
  kdelta completion fish | source        ~/.config/fish/config.fish

"""


SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def completion(
    shell: Annotated[
        str, Argument(metavar="|".join(SCRIPTS), help="The shell.", values="|".join(SCRIPTS))
    ],
) -> None:
    """Print what makes a shell complete kdelta's command lines.

    Completes commands, options and their values: kernel specs, workloads, operations, CPUs,
    architectures, and the ids of studies and runs. Nothing is fetched or built for it.
    """
    emit(SCRIPTS[one_of("SHELL", shell, [*SCRIPTS])])
