%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_record).
-moduledoc """
Writes the record of a cluster (`m:sderl_ops_entry`), and how each revision ended.

A request is written when it is stored, and ends when the service has nothing more to do for it,
which is what `bin/sderl ops` waits for. Running requests are also stored beside the entries, so
that the next service ends them. Steps are written when they have ended, decisions when they are
made.
""".

-export([new/0, load/1, request/4, ended/3, write/2, state/4]).
-export([outcomes/1, page/3]).
-export_type([written/0]).

-record(record, {
    cluster = none :: none | binary(),
    %% Requests that have not ended, by the number of their entry.
    running = #{} :: #{pos_integer() => sderl_ops_entry:entry()},
    outcomes = #{} :: outcomes()
}).

-opaque written() :: #record{}.
-type outcomes() :: #{Revision :: pos_integer() => sderl_ops_entry:outcome()}.

%% The entry of a request that was written just before the service was killed is one of the newest.
-define(NEWEST, 64).
%% More than there are kept revisions.
-define(MOST_OUTCOMES, 1_000).

-doc "An empty record.".
-spec new() -> written().
new() -> #record{}.

-doc "Reads the stored record of a cluster that has a revision.".
-spec load(Cluster :: binary()) -> written().
load(Cluster) ->
    #{entries := Newest} = sderl_ops_store:history(Cluster, #{limit => ?NEWEST}),
    #record{running = Running} = Record = read(Cluster),
    Unstored = #{Number => Entry || {Number, Entry} <- Newest, sderl_ops_entry:is_running(Entry)},
    All = Record#record{running = maps:merge(Running, Unstored)},
    case stored(Cluster) of
        #{} -> write_newest(All);
        none when Newest =:= [] -> write_newest(All);
        %% An earlier version has written the entries.
        none -> All
    end.

read(Cluster) ->
    case stored(Cluster) of
        #{running := Running, outcomes := Outcomes} ->
            #record{cluster = Cluster, running = Running, outcomes = Outcomes};
        none ->
            #record{cluster = Cluster}
    end.

stored(Cluster) -> sderl_ops_store:part(Cluster, record, none).

%% The service may have been killed after it stored a revision and before it wrote its entry.
write_newest(#record{cluster = Cluster, running = Running, outcomes = Outcomes} = Record) ->
    {Number, #{by := By, why := Why}} = sderl_ops_store:latest(Cluster),
    Known = maps:keys(Outcomes) ++ [Of || _ := #{what := {revision, Of, _}} <- Running],
    case lists:member(Number, Known) of
        true -> Record;
        false -> request(By, {revision, Number, Why}, Cluster, Record)
    end.

-doc "Writes a request that is stored already.".
-spec request(By :: binary(), sderl_ops_entry:request(), Cluster :: binary(), written()) ->
    written().
request(By, What, Cluster, #record{cluster = Cluster} = Record) ->
    Entry = sderl_ops_entry:request(By, What, system_ms()),
    Number = sderl_ops_store:note(Cluster, Entry),
    case sderl_ops_entry:is_running(Entry) of
        false ->
            Record;
        true ->
            #record{running = Running} = Replaced = replace(What, Record),
            save(Replaced#record{running = Running#{Number => Entry}})
    end;
request(By, What, Cluster, _) ->
    request(By, What, Cluster, read(Cluster)).

%% A new revision ends the requests of earlier ones.
replace({revision, New, _}, #record{running = Running} = Record) ->
    maps:fold(fun
        (Number, #{what := {revision, Old, _}} = Entry, Acc) ->
            Outcome = {replaced, New},
            set_outcome(Old, Outcome, end_one(Number, Entry, Outcome, Acc));
        (_, _, Acc) ->
            Acc
    end, Record, Running);
replace(_, Record) ->
    Record.

end_one(Number, Entry, Outcome, #record{cluster = Cluster, running = Running} = Record) ->
    ok = sderl_ops_store:amend(Cluster, Number, sderl_ops_entry:ended(Outcome, Entry)),
    Record#record{running = maps:remove(Number, Running)}.

%% A revision that was done stays so, whatever happens later; one that failed may be mended.
set_outcome(Revision, Outcome, #record{outcomes = Outcomes} = Record) ->
    case {Outcomes, Outcome} of
        {#{Revision := {failed, _}}, done} -> put_outcome(Revision, Outcome, Record);
        {#{Revision := _}, _} -> Record;
        {#{}, _} -> put_outcome(Revision, Outcome, Record)
    end.

put_outcome(Revision, Outcome, #record{outcomes = Outcomes} = Record) ->
    Kept = #{Number => Of || Number := Of <- Outcomes, Number > Revision - ?MOST_OUTCOMES},
    Record#record{outcomes = Kept#{Revision => Outcome}}.

-doc "Entries for steps that have ended, and for decisions.".
-spec ended(Steps :: [{sderl_ops_step:step(), ok | {ok, term()} | {error, term()}}],
            [sderl_ops_note:note()], At :: integer()) -> [sderl_ops_entry:entry()].
ended(Steps, Notes, At) ->
    [sderl_ops_entry:step(Step, case Result of {ok, _} -> ok; _ -> Result end, At)
     || {Step, Result} <- Steps]
        ++ [Entry || Note <- Notes, #{} = Entry <- [sderl_ops_entry:note(Note, At)]].

-doc "Writes them.".
-spec write([sderl_ops_entry:entry()], Cluster :: binary()) -> ok.
write(Entries, Cluster) ->
    lists:foreach(fun(Entry) -> _ = sderl_ops_store:note(Cluster, Entry) end, Entries).

-doc "Ends the running requests if the state of the service says that nothing is left to do.".
-spec state(State :: atom(), Problems :: [unicode:chardata()], Revision :: pos_integer(),
            written()) -> written().
state(State, Problems, Revision, #record{running = Running} = Record) ->
    case sderl_ops_entry:outcome(State, Problems) of
        running ->
            Record;
        Outcome ->
            Ended = maps:fold(fun(Number, Entry, Acc) ->
                end_one(Number, Entry, Outcome, Acc)
            end, Record, Running),
            case set_outcome(Revision, Outcome, Ended) of
                Record -> Record;
                Changed -> save(Changed)
            end
    end.

save(#record{cluster = Cluster, running = Running, outcomes = Outcomes} = Record) ->
    ok = sderl_ops_store:put(Cluster, record, #{running => Running, outcomes => Outcomes}),
    Record.

%% ---------------------------------------------------------------- reading

-doc "How revisions ended, as far as it is known.".
-spec outcomes(Cluster :: binary()) -> outcomes().
outcomes(Cluster) ->
    #record{outcomes = Outcomes} = read(Cluster),
    Outcomes.

-doc """
Entries for people, the newest first. `AskPaused` is called if one of them is a running request.
""".
-spec page(Cluster :: binary(), sderl_ops_store:wanted(), AskPaused :: fun(() -> boolean())) ->
    #{entries := [sderl_ops_wire:entry()], next := pos_integer() | undefined}.
page(Cluster, Wanted, AskPaused) ->
    #{entries := Entries, next := Next} = sderl_ops_store:history(Cluster, Wanted),
    IsPaused = lists:any(fun({_, Entry}) -> sderl_ops_entry:is_running(Entry) end, Entries)
        andalso AskPaused(),
    #{
        entries => [entry(Number, Entry, IsPaused) || {Number, Entry} <- Entries],
        next => case Next of none -> undefined; _ -> Next end
    }.

entry(Number, #{at := At, by := By} = Entry, IsPaused) ->
    #{what := What, why := Why} = Told = sderl_ops_entry:tell(Entry, IsPaused),
    Told#{
        number => Number,
        at => sderl_ops_status:time(At),
        who => By,
        what := sderl_ops_wire:text(What),
        why := case Why of undefined -> undefined; _ -> sderl_ops_wire:text(Why) end
    }.

system_ms() -> erlang:system_time(millisecond).
