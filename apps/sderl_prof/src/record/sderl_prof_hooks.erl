%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_hooks).
-moduledoc """
Hooks of the kernel (uprobes) on static probes of this node's emulator: while the process that asked
for them lives, `perf` can count and record them. Mostly the superuser alone may make them. If the
node is killed meanwhile, its hooks stay in the kernel and slow down the code that they are on,
until somebody removes them: `echo -:GROUP/EVENT >> uprobe_events`.

Needs `m:sderl_prof_switch` and no other module of this project, so that both can be loaded into any
node.
""".

-export([hook/2, group/0, lines/3, chosen/2]).

-define(FOLDERS, ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"]).
%% Places that are hooked at once.
-define(MOST, 500).
%% The kernel does not remove a hook that perf still reads: the time until the next try.
-define(AGAIN_MS, 50).
-define(TRIES, 200).

-doc "A group of this node's events in the kernel, which nobody else has.".
-spec group() -> string().
group() -> lists:concat(["sderl_", os:getpid(), "_", erlang:unique_integer([positive])]).

-doc "The probes whose names are, or begin with, one of these. Pure.".
-spec chosen([sderl_prof_probes:probe()], [binary()]) -> [sderl_prof_probes:probe()].
chosen(Probes, Wanted) ->
    [Probe || #{name := Name} = Probe <- Probes,
              lists:any(fun(Begin) -> string:prefix(Name, Begin) =/= nomatch end, Wanted)].

-doc "Hooks them; or why that is refused, in words.".
-spec hook(Group :: string(), [sderl_prof_probes:probe(), ...]) ->
    {ok, sderl_prof_switch:switch()} | {refused, binary()}.
hook(_, Probes) when length(Probes) > ?MOST ->
    {refused, told("these are ~b places, and at most ~b are hooked at once: name fewer probes",
                   [length(Probes), ?MOST])};
hook(Group, Probes) ->
    maybe
        {ok, Exe} ?= file:read_link_all("/proc/self/exe"),
        {ok, File} ?= events_file(?FOLDERS),
        hook_at(File, lines(Group, Exe, Probes))
    else
        {refused, _} = Refused -> Refused;
        {error, Why} -> {refused, told("/proc/self/exe: ~ts", [file:format_error(Why)])}
    end.

hook_at(File, Lines) ->
    Switch = sderl_prof_switch:on(fun() -> true end, fun() -> remove(File, Lines) end),
    case add(File, Lines) of
        ok -> {ok, Switch};
        {error, Why} ->
            ok = sderl_prof_switch:off(Switch),
            {refused, told("~ts: ~ts", [File, file:format_error(Why)])}
    end.

told(Format, Args) ->
    case unicode:characters_to_binary(io_lib:format(Format, Args)) of
        Text when is_binary(Text) -> Text
    end.

%% The kernel shows it in one of two folders, or in none.
events_file([Folder | Folders]) ->
    File = filename:join(Folder, "uprobe_events"),
    case file:open(File, [append, raw]) of
        {ok, Device} ->
            ok = file:close(Device),
            {ok, File};
        %% An empty mount point is a folder in which nothing can be made.
        {error, Why} when Folders =/= [], Why =/= eacces -> events_file(Folders);
        {error, eacces} when Folders =/= [] ->
            case filelib:is_file(File) of
                true -> {refused, told("~ts: ~ts", [File, file:format_error(eacces)])};
                false -> events_file(Folders)
            end;
        {error, Why} -> {refused, told("~ts: ~ts", [File, file:format_error(Why)])}
    end.

-doc """
The lines that make the hooks, each with the name of its event: where a probe has several places,
each has a name of its own. Pure.
""".
-spec lines(Group :: string(), file:filename_all(), [sderl_prof_probes:probe()]) ->
    [{Event :: unicode:chardata(), Line :: unicode:chardata()}].
lines(Group, Exe, Probes) ->
    {Lines, _} = lists:mapfoldl(fun(#{name := Name, at := At, semaphore := Semaphore}, Seen) ->
        N = maps:get(Name, Seen, 0) + 1,
        Event = [Group, $/, letters(Name), [["__at", integer_to_list(N)] || N > 1]],
        Counted = [["(0x", integer_to_list(Semaphore, 16), ")"] || is_integer(Semaphore)],
        Line = ["p:", Event, " ", Exe, ":0x", integer_to_list(At, 16), Counted, "\n"],
        {{Event, Line}, Seen#{Name => N}}
    end, #{}, Probes),
    Lines.

letters(Name) ->
    << <<(case C of
        _ when C >= $a, C =< $z; C >= $A, C =< $Z; C >= $0, C =< $9 -> C;
        _ -> $_
    end)>> || <<C>> <= Name >>.

add(_, []) -> ok;
add(File, [{_, Line} | Lines]) ->
    case append(File, Line) of
        ok -> add(File, Lines);
        Error -> Error
    end.

%% The kernel takes a line from one write.
append(File, Line) ->
    maybe
        {ok, Device} ?= file:open(File, [append, raw]),
        Written = file:write(Device, unicode:characters_to_binary(Line)),
        _ = file:close(Device),
        Written
    end.

%% The tries are for all lines together, because the process that switches them off waits.
remove(File, Lines) ->
    _ = lists:foldl(fun({Event, _}, Tries) -> remove_one(File, ["-:", Event, "\n"], Tries) end,
                    ?TRIES, Lines),
    ok.

remove_one(File, Line, Tries) ->
    case append(File, Line) of
        {error, ebusy} when Tries > 0 ->
            receive after ?AGAIN_MS -> ok end,
            remove_one(File, Line, Tries - 1);
        %% It is removed, or was never there.
        _ -> Tries
    end.
