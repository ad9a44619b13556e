%% SPDX-License-Identifier: Apache-2.0
-module(sderl_completion).
-moduledoc """
Completion for bash and zsh of a command of `bin/sderl` that has commands of its own, made from
their arguments. The scripts of several commands go together.
""".

-export([script/3]).
-export_type([command/0]).

-doc "A command, its options with two dashes, and what its first argument is.".
-type command() :: {Name :: string(), Options :: [string()], file | none | {words, [string()]}}.

-doc "The script for a shell.".
-spec script(bash | zsh, Name :: string(), [command()]) -> unicode:chardata().
script(bash, Of, Commands) ->
    ["# Completion of \"sderl ", Of, "\" for bash: eval \"$(bin/sderl ", Of, " completion bash)\"\n"
     "_sderl_", Of, "() {\n"
     "    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} options=''\n"
     "    COMPREPLY=()\n"
     "    if ((COMP_CWORD == 1)); then\n"
     "        mapfile -t COMPREPLY < <(compgen -W ", Of, " -- \"$word\")\n"
     "        return\n"
     "    fi\n"
     "    [[ ${COMP_WORDS[1]} == ", Of, " ]] || return\n"
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
     "_sderl() {\n"
     "    local all=() one\n"
     "    for one in $(compgen -A function _sderl_); do\n"
     "        \"$one\"\n"
     "        all+=(\"${COMPREPLY[@]}\")\n"
     "    done\n"
     "    COMPREPLY=(\"${all[@]}\")\n"
     "}\n"
     "complete -o filenames -F _sderl sderl bin/sderl ./bin/sderl\n"];
script(zsh, Of, Commands) ->
    ["#compdef sderl\n"
     "# Completion of \"sderl ", Of, "\" for zsh: source <(bin/sderl ", Of, " completion zsh)\n"
     "_sderl_", Of, "() {\n"
     "    if ((CURRENT == 2)); then\n"
     "        compadd -- ", Of, "\n"
     "        return\n"
     "    fi\n"
     "    [[ $words[2] == ", Of, " ]] || return 1\n"
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
     "_sderl() {\n"
     "    local one\n"
     "    for one in ${(k)functions[(I)_sderl_*]}; do $one; done\n"
     "}\n"
     "compdef _sderl sderl bin/sderl ./bin/sderl\n"].

names(Commands) -> lists:join(" ", [Name || {Name, _, _} <- Commands]).

bash_values(file) -> "        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n";
bash_values({words, Words}) ->
    ["        mapfile -t COMPREPLY < <(compgen -W '", lists:join(" ", Words), "' -- \"$word\")\n"];
bash_values(none) -> "".

zsh_values(file) -> "_files";
zsh_values({words, Words}) -> ["compadd -- ", lists:join(" ", Words)];
zsh_values(none) -> "true".
