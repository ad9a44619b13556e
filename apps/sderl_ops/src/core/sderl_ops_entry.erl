%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_entry).
-moduledoc """
Entries of the record of a cluster: who did what, when, and what came of it. Pure.

| kind | what | its result |
|---|---|---|
| `request` | what somebody asked for | `running` until the service has nothing more to do for it |
| `step` | a step that has ended (`m:sderl_ops_step`) | `ok`, or why it failed |
| `note` | what the service decided (`m:sderl_ops_note`) | `ok` |
""".

-export([request/3, step/3, note/2, outcome/2, ended/2, is_running/1, kind/1, tell/2]).
-export_type([entry/0, kind/0, request/0, result/0, outcome/0, told/0]).

-doc """
`at` is in milliseconds of system time. Entries of an earlier version have no kind, and their
requests had the result `ok` as soon as they were accepted.
""".
-type entry() :: #{
    at := integer(),
    by := binary(),
    kind => kind(),
    what := request() | sderl_ops_step:step() | sderl_ops_note:note(),
    result := result()
}.
-type kind() :: request | step | note.
-type request() ::
    pause
    | resume
    | {drain | force_drain | undrain | release | adopt, sderl_ops_desired:instance_id()}
    | {revision, Number :: pos_integer(), Why :: binary()}
    | {add_member | remove_member, Member :: binary()}.
-type result() ::
    ok
    | running
    | outcome()
    | {error, Why :: term()}.
-doc "How a request ended; `done` if the cluster is as it was requested.".
-type outcome() :: done | {failed, Problems :: [binary()]} | {replaced, By :: pos_integer()}.
-doc "For a person.".
-type told() :: #{
    kind := kind(),
    what := unicode:chardata(),
    result := running | done | failed | replaced | accepted | noted,
    why := unicode:chardata() | undefined
}.

-define(MOST_PROBLEMS, 3).

-doc "Somebody asks for something.".
-spec request(By :: binary(), request(), At :: integer()) -> entry().
request(By, What, At) ->
    #{at => At, by => By, kind => request, what => What,
      result => case is_at_once(What) of true -> ok; false -> running end}.

-doc "A step has ended.".
-spec step(sderl_ops_step:step(), ok | {error, Why :: term()}, At :: integer()) -> entry().
step(Step, Result, At) ->
    #{at => At, by => ~"service", kind => step, what => Step, result => Result}.

-doc "An entry for a decision of the service; `none` if the entry of a step says the same.".
-spec note(sderl_ops_note:note(), At :: integer()) -> entry() | none.
note({failed, _, _}, _) -> none;
note(Note, At) -> #{at => At, by => ~"service", kind => note, what => Note, result => ok}.

%% Requests that are done as soon as they are stored.
is_at_once(pause) -> true;
is_at_once({release, _}) -> true;
is_at_once({add_member, _}) -> true;
is_at_once({remove_member, _}) -> true;
is_at_once(_) -> false.

-doc "How a running request ends, by the state of the service; `running` while it goes on.".
-spec outcome(State :: atom(), Problems :: [unicode:chardata()]) -> running | outcome().
outcome(State, _) when State =:= steady; State =:= destroyed ->
    done;
outcome(failed, Problems) ->
    {failed, [unicode:characters_to_binary(Problem)
              || Problem <- lists:sublist(Problems, ?MOST_PROBLEMS)]};
outcome(_, _) ->
    running.

-doc "A request that ran has ended.".
-spec ended(outcome(), entry()) -> entry().
ended(Outcome, Entry) -> Entry#{result := Outcome}.

-spec is_running(entry()) -> boolean().
is_running(#{result := running}) -> true;
is_running(_) -> false.

%% ---------------------------------------------------------------- telling

-doc "An entry for a person, while the service is paused or not.".
-spec tell(entry(), IsPaused :: boolean()) -> told().
tell(#{what := What, result := Result} = Entry, IsPaused) ->
    Kind = kind(Entry),
    try
        {Words, Word, Why} = of_kind(Kind, What, Result, IsPaused),
        #{kind => Kind, what => Words, result => Word, why => Why}
    catch
        %% A member of a later version has written an entry that this one does not know.
        error:_ ->
            #{kind => Kind, what => io_lib:format("~0tP", [What, 20]), result => noted,
              why => undefined}
    end.

-spec kind(entry()) -> kind().
kind(#{kind := Kind}) -> Kind;
kind(#{by := ~"service", what := What}) -> kind_of(What);
kind(_) -> request.

kind_of(groups) -> step;
kind_of(What) when is_tuple(What) ->
    case lists:member(element(1, What), [fetch, lay_out, start, drain, stop, remove, drop_release,
                                         create, delete]) of
        true -> step;
        false -> note
    end;
kind_of(_) -> note.

of_kind(request, What, Result, IsPaused) ->
    {Word, Why} = of_request(What, Result, IsPaused),
    {request_words(What), Word, Why};
of_kind(step, Step, ok, _) ->
    {sderl_ops_step:words(Step), done, undefined};
of_kind(step, Step, {error, {relay, _, Why}}, _) ->
    {sderl_ops_step:words(Step), failed, sderl_ops_note:reason(Why)};
of_kind(step, Step, {error, Why}, _) ->
    {sderl_ops_step:words(Step), failed, sderl_ops_note:reason(Why)};
of_kind(note, Note, _, _) ->
    of_note(Note).

of_request(_, running, true) -> {running, "paused"};
of_request(_, running, false) -> {running, undefined};
of_request(_, done, _) -> {done, undefined};
of_request(_, {failed, Problems}, _) -> {failed, lists:join("; ", Problems)};
of_request(_, {replaced, By}, _) ->
    {replaced, io_lib:format("by revision ~b before it was done", [By])};
of_request(What, ok, _) ->
    {case is_at_once(What) of true -> done; false -> accepted end, undefined}.

request_words(pause) -> "pause";
request_words(resume) -> "resume";
request_words({drain, Id}) -> ["drain ", Id];
request_words({force_drain, Id}) -> ["drain ", Id, " --force"];
request_words({undrain, Id}) -> ["undrain ", Id];
request_words({release, Id}) -> ["release ", Id];
request_words({adopt, Id}) -> ["adopt ", Id];
request_words({add_member, Member}) -> ["members add ", Member];
request_words({remove_member, Member}) -> ["members remove ", Member];
request_words({revision, Number, Why}) -> [Why, io_lib:format(" (revision ~b)", [Number])].

of_note({failed, Step, Why}) ->
    {["could not ", sderl_ops_step:words(Step)], failed, sderl_ops_note:reason(Why)};
of_note({quarantined, Step, Why}) ->
    {["gave up to ", sderl_ops_step:words(Step)], failed, sderl_ops_note:reason(Why)};
of_note({upgrade_stuck, Family, Revision, Why}) ->
    {io_lib:format("~ts cannot be replaced, revision ~b", [Family, Revision]), failed,
     sderl_ops_note:reason(Why)};
of_note({upgrade_held, Family, Revision, Why}) ->
    {io_lib:format("~ts is held up, revision ~b", [Family, Revision]), noted,
     sderl_ops_note:reason(Why)};
of_note({roll_back, Family, From, To, Why}) ->
    {io_lib:format("~ts goes back from revision ~b to ~b", [Family, From, To]), noted,
     sderl_ops_note:reason(Why)};
of_note({good, _, _} = Note) ->
    {sderl_ops_note:words(Note), done, undefined};
of_note(Note) ->
    {sderl_ops_note:words(Note), noted, undefined}.
