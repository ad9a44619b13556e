%% SPDX-License-Identifier: Apache-2.0
-module(sderl_completion).
-moduledoc """
Completion for bash and zsh of `bin/sderl`, made from the arguments of its commands. A shell may
load the scripts of several commands.
""".

-export([script/2, script/3, command/1, command/2]).
-export_type([completed/0, command/0, option/0, first/0]).

-doc "What may follow a command of `bin/sderl`: commands of its own, or options and an argument.".
-type completed() :: {commands, [command()]} | {options, [option()], first()}.

-doc "A command, its options, and what its first argument is.".
-type command() :: {Name :: string(), Options :: [option()], first()}.

-doc "An option with its two dashes, and the words that it takes where only these are allowed.".
-type option() :: string() | {string(), Words :: [string()]}.

-type first() :: file | none | {words, [string()]}.

-doc "The options and the first argument of a command.".
-spec command(argparse:command()) -> {options, [option()], first()}.
command(#{arguments := Arguments}) ->
    {options, [option(Argument) || #{long := _} = Argument <- Arguments] ++ ["--help"],
     case [Argument || Argument <- Arguments, not is_map_key(long, Argument)] of
         [#{type := {atom, [_ | _] = Words}} | _] ->
             {words, [atom_to_list(Word) || Word <- Words]};
         _ -> none
     end}.

-doc "The same of a subcommand.".
-spec command(Name :: atom() | string(), argparse:command()) -> command().
command(Name, Command) when is_atom(Name) -> command(atom_to_list(Name), Command);
command(Name, Command) ->
    {options, Options, First} = command(Command),
    {Name, Options, First}.

option(#{long := Long, type := {atom, [_ | _] = Words}}) ->
    {[$- | Long], [atom_to_list(Word) || Word <- Words]};
option(#{long := Long}) -> [$- | Long].

-doc "The script of all commands for a shell.".
-spec script(bash | zsh, [{Name :: string(), completed()}]) -> unicode:chardata().
script(bash, Commands) ->
    ["# Completion of sderl for bash: eval \"$(bin/sderl completion bash)\"\n",
     [bash(Name, Completed) || {Name, Completed} <- Commands], bash_end()];
script(zsh, Commands) ->
    ["#compdef sderl\n"
     "# Completion of sderl for zsh: source <(bin/sderl completion zsh)\n",
     [zsh(Name, Completed) || {Name, Completed} <- Commands], zsh_end()].

-doc "The script of one command, which has subcommands.".
-spec script(bash | zsh, Name :: string(), [command()]) -> unicode:chardata().
script(bash, Of, Commands) ->
    ["# Completion of \"sderl ", Of, "\" for bash: eval \"$(bin/sderl ", Of,
     " completion bash)\"\n",
     bash(Of, {commands, Commands}), bash_end()];
script(zsh, Of, Commands) ->
    ["#compdef sderl\n"
     "# Completion of \"sderl ", Of, "\" for zsh: source <(bin/sderl ", Of, " completion zsh)\n",
     zsh(Of, {commands, Commands}), zsh_end()].

%% ---------------------------------------------------------------- bash

bash(Of, Completed) ->
    ["_sderl_", Of, "() {\n"
     "    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} options=''\n"
     "    COMPREPLY=()\n"
     "    if ((COMP_CWORD == 1)); then\n"
     "        mapfile -t COMPREPLY < <(compgen -W ", Of, " -- \"$word\")\n"
     "        return\n"
     "    fi\n"
     "    [[ ${COMP_WORDS[1]} == ", Of, " ]] || return\n",
     bash_words(Completed),
     "    [[ $word != -* ]] || mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
     "}\n"].

bash_words({options, Options, First}) ->
    ["    options='", names(Options), "'\n", bash_options("    ", Options),
     bash_first("    ", First)];
bash_words({commands, Commands}) ->
    ["    if ((COMP_CWORD == 2)); then\n"
     "        mapfile -t COMPREPLY < <(compgen -W '", names(Commands), "' -- \"$word\")\n"
     "        return\n"
     "    fi\n"
     "    case ${COMP_WORDS[2]} in\n",
     [["    ", Name, ")\n        options='", names(Options), "'\n",
       bash_options("        ", Options), bash_first("        ", First), "        ;;\n"]
      || {Name, Options, First} <- Commands],
     "    esac\n"].

%% The words that may follow an option.
bash_options(Indent, Options) ->
    [Indent, "case $last in\n",
     [[Indent, Name, ") mapfile -t COMPREPLY < <(compgen -W '", lists:join(" ", Words),
       "' -- \"$word\"); return ;;\n"] || {Name, Words} <- Options],
     Indent, "--dir) mapfile -t COMPREPLY < <(compgen -d -- \"$word\"); return ;;\n",
     Indent, "esac\n"].

bash_first(Indent, file) -> [Indent, "mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"];
bash_first(Indent, {words, Words}) ->
    [Indent, "mapfile -t COMPREPLY < <(compgen -W '", lists:join(" ", Words), "' -- \"$word\")\n"];
bash_first(_, none) -> "".

%% Where nothing fits, file names are offered: the values of most options.
bash_end() ->
    "_sderl() {\n"
    "    local all=() one\n"
    "    for one in $(compgen -A function _sderl_); do\n"
    "        \"$one\"\n"
    "        all+=(\"${COMPREPLY[@]}\")\n"
    "    done\n"
    "    COMPREPLY=(\"${all[@]}\")\n"
    "}\n"
    "complete -o filenames -o bashdefault -o default -F _sderl sderl bin/sderl ./bin/sderl\n".

%% ---------------------------------------------------------------- zsh

zsh(Of, Completed) ->
    ["_sderl_", Of, "() {\n"
     "    if ((CURRENT == 2)); then\n"
     "        compadd -- ", Of, "\n"
     "        return\n"
     "    fi\n"
     "    [[ $words[2] == ", Of, " ]] || return 1\n",
     zsh_words(Completed),
     "}\n"].

zsh_words({options, Options, First}) -> zsh_rest("    ", Options, zsh_first(First, "_files"));
zsh_words({commands, Commands}) ->
    ["    if ((CURRENT == 3)); then\n"
     "        compadd -- ", names(Commands), "\n"
     "        return\n"
     "    fi\n"
     "    case $words[3] in\n",
     [["    ", Name, ")\n", zsh_rest("        ", Options, zsh_first(First, "true")),
       "        ;;\n"] || {Name, Options, First} <- Commands],
     "    esac\n"].

zsh_rest(Indent, Options, First) ->
    [Indent, "case $words[CURRENT-1] in\n",
     [[Indent, Name, ") compadd -- ", lists:join(" ", Words), "; return ;;\n"]
      || {Name, Words} <- Options],
     Indent, "--dir) _files -/; return ;;\n",
     Indent, "esac\n",
     Indent, "if [[ $PREFIX == -* ]]; then compadd -- ", names(Options), "\n",
     Indent, "else ", First, "\n",
     Indent, "fi\n"].

zsh_first(file, _) -> "_files";
zsh_first({words, Words}, _) -> ["compadd -- ", lists:join(" ", Words)];
zsh_first(none, Else) -> Else.

zsh_end() ->
    "_sderl() {\n"
    "    local one\n"
    "    for one in ${(k)functions[(I)_sderl_*]}; do $one; done\n"
    "}\n"
    "compdef _sderl sderl bin/sderl ./bin/sderl\n".

names(Of) ->
    lists:join(" ", [case One of
        {Name, _, _} -> Name;
        {Name, _} -> Name;
        Name -> Name
    end || One <- Of]).
