%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_past).
-moduledoc "`bin/sderl ops history --all`: what was done, by whom, and with which result.".

-export([wanted/1, fetch/2, show/1]).

%% The service gives at most so many entries at a time.
-define(PAGE, 500).
-define(LIMIT, 100).
-define(LATEST, 253_402_300_799_999).

-doc "The entries that the options of `history` ask for; `revisions` without `--all`.".
-spec wanted(Options :: #{atom() => term()}) ->
    revisions | {ok, map()} | {wrong, unicode:chardata()}.
wanted(#{all := false} = Options) ->
    case [Key || Key <- [since, until, who, kind, limit, before], is_map_key(Key, Options)] of
        [] -> revisions;
        [Key | _] -> {wrong, ["--", atom_to_list(Key), " is of \"history --all\""]}
    end;
wanted(Options) ->
    maybe
        {ok, Since} ?= sderl_command:time(since, Options),
        {ok, Until} ?= sderl_command:time(until, Options),
        Times = #{Key => min(?LATEST, max(0, At))
                  || {Key, At} <- [{since, Since}, {until, Until}], is_integer(At)},
        By = #{by => unicode:characters_to_binary(Who) || who := Who <- Options},
        Given = maps:merge(#{limit => ?LIMIT}, maps:with([kind, limit, before], Options)),
        {ok, maps:merge(maps:merge(Times, By), Given)}
    end.

-doc """
The wanted entries, with as many requests as necessary. Any other answer ends it.
""".
-spec fetch(Wanted :: map(), Ask :: fun((map()) -> Answer)) ->
    Answer | {done, #{binary() => term()}} when
    Answer :: {done, #{binary() => term()}} | {error, unicode:chardata(), [unicode:chardata()]}
        | not_running.
fetch(#{limit := Limit} = Wanted, Ask) -> fetch(Wanted, Limit, Ask, []).

fetch(Wanted, Left, Ask, Found) ->
    case Ask(Wanted#{do => record, limit := min(?PAGE, Left)}) of
        {done, #{~"entries" := Entries, ~"next" := Next}} when is_list(Entries) ->
            case Left - length(Entries) of
                More when is_integer(Next), More > 0 ->
                    fetch(Wanted#{before => Next}, More, Ask, Found ++ Entries);
                _ ->
                    {done, #{~"entries" => Found ++ Entries, ~"next" => Next}}
            end;
        {error, <<"the request is wrong: do: ", _/binary>>, _} ->
            {error, "the service is of an earlier version, which cannot list all that was done: "
                    "\"stop\" it, then start it again with \"serve\" or \"apply\" (the cluster "
                    "goes on meanwhile); \"history\" without --all tells its revisions", []};
        Other ->
            Other
    end.

-doc "Entries as text.".
-spec show(#{binary() => term()}) -> unicode:chardata().
show(#{~"entries" := []}) ->
    "nothing is known to have been done\n";
show(#{~"entries" := Entries} = Done) ->
    Rows = [[text(maps:get(Key, Entry, null))
             || Key <- [~"number", ~"at", ~"result", ~"who", ~"what", ~"why"]]
            || Entry <- Entries, is_map(Entry)],
    %% If nothing failed there are no reasons.
    Why = case lists:all(fun(Row) -> string:is_empty(lists:last(Row)) end, Rows) of
              true -> "";
              false -> "why"
          end,
    Header = ["number", "at", "result", "who", "what", Why],
    Widths = [lists:max([string:length(Cell) || Cell <- Column])
              || Column <- columns(lists:map(fun first_five/1, [Header | Rows]))],
    [[line(Row, Widths) || Row <- [Header | Rows]],
     [["older ones: --before ", integer_to_list(Next), "\n"]
      || #{~"next" := Next} <- [Done], is_integer(Next)]].

first_five(Row) -> lists:sublist(Row, 5).

columns([[] | _]) -> [];
columns(Rows) -> [[hd(Row) || Row <- Rows] | columns([tl(Row) || Row <- Rows])].

%% The last column is not padded.
line(Row, Widths) ->
    {Padded, [Why]} = lists:split(5, Row),
    Cells = [string:pad(Cell, Width) || {Cell, Width} <- lists:zip(Padded, Widths)],
    [string:trim(lists:join("  ", Cells ++ [Why]), trailing), $\n].

text(null) -> "";
text(Number) when is_integer(Number) -> integer_to_list(Number);
text(Text) when is_binary(Text) -> sderl_table:one_line(Text);
text(Other) -> json:encode(Other).
