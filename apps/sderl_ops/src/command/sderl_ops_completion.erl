%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_completion).
-moduledoc "Completion of `sderl ops` for bash and zsh, made from the commands' own arguments.".

-export([script/2]).
-export_type([command/0]).

-doc "A command, its options with two dashes, and what its first argument is.".
-type command() :: {Name :: string(), Options :: [string()], file | shell | none}.

-spec script(bash | zsh, [command()]) -> unicode:chardata().
script(bash, Commands) ->
    ["# Completion of \"sderl ops\" for bash: eval \"$(bin/sderl ops completion bash)\"\n"
     "_sderl_ops() {\n"
     "    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} options=''\n"
     "    COMPREPLY=()\n"
     "    if ((COMP_CWORD == 1)); then\n"
     "        mapfile -t COMPREPLY < <(compgen -W ops -- \"$word\")\n"
     "        return\n"
     "    fi\n"
     "    [[ ${COMP_WORDS[1]} == ops ]] || return\n"
     "    if ((COMP_CWORD == 2)); then\n"
     "        mapfile -t COMPREPLY < <(compgen -W '", names(Commands), "' -- \"$word\")\n"
     "        return\n"
     "    fi\n"
     "    if [[ $last == --dir ]]; then\n"
     "        mapfile -t COMPREPLY < <(compgen -d -- \"$word\")\n"
     "        return\n"
     "    fi\n"
     "    case ${COMP_WORDS[2]} in\n",
     [["    ", Name, ")\n        options='", lists:join(" ", Options), "'\n",
       bash_values(First), "        ;;\n"]
      || {Name, Options, First} <- Commands],
     "    esac\n"
     "    [[ $word != -* ]] || mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
     "}\n"
     "complete -o filenames -F _sderl_ops sderl bin/sderl ./bin/sderl\n"];
script(zsh, Commands) ->
    ["#compdef sderl\n"
     "# Completion of \"sderl ops\" for zsh: source <(bin/sderl ops completion zsh)\n"
     "_sderl_ops() {\n"
     "    if ((CURRENT == 2)); then\n"
     "        compadd -- ops\n"
     "        return\n"
     "    fi\n"
     "    [[ $words[2] == ops ]] || return 1\n"
     "    if ((CURRENT == 3)); then\n"
     "        compadd -- ", names(Commands), "\n"
     "        return\n"
     "    fi\n"
     "    if [[ $words[CURRENT-1] == --dir ]]; then\n"
     "        _files -/\n"
     "        return\n"
     "    fi\n"
     "    case $words[3] in\n",
     [["    ", Name, ")\n        if [[ $PREFIX == -* ]]; then compadd -- ",
       lists:join(" ", Options), "\n        else ", zsh_values(First), "\n        fi\n",
       "        ;;\n"]
      || {Name, Options, First} <- Commands],
     "    esac\n"
     "}\n"
     "compdef _sderl_ops sderl bin/sderl ./bin/sderl\n"].

names(Commands) -> lists:join(" ", [Name || {Name, _, _} <- Commands]).

bash_values(file) -> "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n";
bash_values(shell) -> "        mapfile -t COMPREPLY < <(compgen -W 'bash zsh' -- \"$word\")\n";
bash_values(none) -> "".

zsh_values(file) -> "_files";
zsh_values(shell) -> "compadd -- bash zsh";
zsh_values(none) -> "true".
