%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_ask).
-moduledoc """
Answers what browsers ask: of the hub's history, of a recording, or of the monitored nodes
themselves.

Runs in a process for each question, which may take its time. Answers are JSON already.
""".

-export([answer/3, live/2, state/1, no_node/1, no_group/1, no_metric/1]).
-export([replay/1, record/1, own/1, close/1]).
-export_type([source/0, settings/0, answer/0]).

%% The span of a frame excludes its beginning, so the first frame is found a millisecond after the
%% beginning of the range. The other steps are the lengths of the frames that old ones are merged
%% to.
-define(LATER_MS, [1, 1_000, 10_000, 60_000, 600_000]).

-doc "What a socket looks at: the present, or a recording by its name.".
-type source() :: live | {recording, binary(), pid()}.
-doc """
Of the server's settings what answers depend on: whether browsers may change anything, and where
recordings are.
""".
-type settings() :: #{
    writable := boolean(),
    recordings := none | file:filename(),
    replay => none | file:filename()
}.

-doc """
`opened`: a recording that has been opened, with what a socket sends first; it belongs to the
process that asked.
""".
-type answer() ::
    {ok, iodata()}
    | {opened, Name :: binary(), pid(), Messages :: [binary()]}
    | {error, sderl_web_protocol:code(), unicode:chardata()}.

-doc "The same about the present, as paths of `/api/v1` answer it.".
-spec live(sderl_web_protocol:request(), Writable :: boolean()) ->
    {ok, {json, iodata()}} | {error, sderl_web_protocol:code(), unicode:chardata()}.
live(Request, Writable) ->
    case answer(Request, live, #{writable => Writable, recordings => none}) of
        {ok, Json} -> {ok, {json, Json}};
        {error, Code, Why} -> {error, Code, Why}
    end.

-doc "The answer to a checked request.".
-spec answer(sderl_web_protocol:request(), source(), settings()) -> answer().
answer(Request, Source, Settings) ->
    try
        Op = element(1, Request),
        case sderl_web_alarms:is_operation(Op) of
            true -> of_alarms(Request, Source, Settings);
            false ->
                case sderl_web_fronts:is_operation(Op) of
                    true -> of_fronts(Request, Settings);
                    false -> ask(Request, Source, Settings)
                end
        end
    catch
        exit:{noproc, _} ->
            {error, unavailable, "the hub is not running, or just restarts: ask again"};
        exit:{timeout, _} -> {error, unavailable, "no answer in time: ask again"};
        %% The process that asked reports it, and not each time.
        Class:Reason:Stack ->
            exit({failed, Class, Reason, [{M, F} || {M, F, _, _} <- lists:sublist(Stack, 4)]})
    end.

of_alarms({Op, Args}, live, #{writable := Writable}) ->
    sderl_web_alarms:answer(Op, Args, Writable);
of_alarms({Op, _}, _, _) ->
    {error, unavailable,
     [atom_to_binary(Op), ": a recording holds no alarms; go back to the present first (live)"]}.

of_fronts({Op, Args}, #{writable := Writable}) ->
    sderl_web_fronts:answer(Op, Args, Writable).

ask({metrics, Args}, _, _) ->
    Tags = #{Name => Tags || #{name := Name, tags := Tags} <- sderl_mon_metrics:application()},
    ok(#{metrics => [(maps:remove(key, Metric))#{tags => maps:get(Name, Tags, [])}
                     || #{name := Name, for := For} = Metric <- sderl_mon_metrics:all(),
                        case Args of #{tag := Tag} -> lists:member(Tag, For); #{} -> true end]});
ask({series, #{'of' := {over, Place, Name}} = Args}, Source, Settings) ->
    case sderl_mon_metrics:find(Name) of
        {ok, #{key := Key, total := Total}} ->
            What = {over, place(Place), Key, Total},
            ask({series, Args#{'of' := What}}, Source, Settings);
        error ->
            {error, not_found, ["series: ", no_metric(Name)]}
    end;
ask({range, _}, Source, _) ->
    case sderl_mon_hub:range(of_hub(Source)) of
        {0, 0} -> ok(#{range => null});
        {From, To} -> ok(#{range => [From, To]})
    end;
ask({at, #{t := T}}, Source, _) ->
    Hub = of_hub(Source),
    case at(Hub, T, sderl_mon_hub:range(Hub)) of
        {ok, #{} = State} -> {ok, state(State)};
        {error, none} ->
            {error, not_found,
             "nothing is kept of that time: range tells from when to when there is something"}
    end;
ask({series, #{'of' := What, from := From, to := To, points := Points}}, Source, _) ->
    case of_past(Source, What, From, To, Points) of
        {ok, Series} -> {ok, sderl_web_json:series(Series)};
        {error, Reason} -> {error, not_found, ["series: ", reason(Reason)]}
    end;
ask({traffic, #{by := By, window_s := Window, t := T}}, Source, _) ->
    case sderl_mon_hub:traffic(of_hub(Source), #{by => By, window_s => Window, t => T}) of
        {ok, Rows} -> {ok, sderl_web_json:rows(Rows)};
        {error, Reason} -> {error, not_found, ["traffic: ", reason(Reason)]}
    end;
ask({events, Args}, Source, _) ->
    case sderl_mon_hub:events(of_hub(Source), Args) of
        {ok, Events} -> ok(#{events => Events})
    end;
ask({operations, _}, _, _) ->
    sderl_web_ops:answer(sderl_web_ops:folder());
ask({log, _}, {recording, _, _}, _) ->
    {error, unavailable, "log: a recording holds none; go back to the present first (live)"};
ask({log, Args}, live, _) ->
    sderl_web_log:answer(Args);
ask({Op, _}, {recording, _, _}, _) when Op =:= names; Op =:= lookup; Op =:= process; Op =:= trace ->
    {error, unavailable,
     [atom_to_binary(Op),
      ": a recording holds no names or processes; go back to the present first (live)"]};
ask({names, #{group := Group, prefix := Prefix, limit := Limit}}, live, _) ->
    of_place(names, Group, sderl_mon:names(Group, #{prefix => Prefix, limit => Limit}));
ask({lookup, #{group := Group, name := Name}}, live, _) ->
    of_place(lookup, Group, sderl_mon:lookup(Group, Name));
ask({process, #{node := Node, pid := Pid}}, live, _) ->
    of_place(process, Node, sderl_mon:process(Node, Pid));
ask({trace, #{node := Node, confirm := Confirm} = Args}, live, #{writable := Writable}) ->
    %% Without confirm the answer is the cost, measured only where tracing could be switched on.
    Options = (maps:without([node, confirm], Args))#{dry => not Confirm, measure => Writable},
    of_place(trace, Node, sderl_mon:trace(Node, Options));
ask({recordings, _}, _, #{recordings := Dir}) ->
    %% Browsers do not learn where the files are.
    ok(#{recordings => [maps:with([name, bytes, modified], Recording)
                        || Recording <- recordings(Dir)]});
ask({open, #{recording := Name}}, _, #{recordings := Dir}) ->
    open(Name, Dir);
ask({record, #{on := On}}, _, #{recordings := Dir}) ->
    record(On, Dir).

ok(Term) -> {ok, sderl_web_json:term(Term)}.

place(#{kind := ~"cluster"}) -> cluster;
place(#{kind := ~"node", name := Name}) -> {node, Name};
place(#{kind := ~"group", name := Name}) -> {group, Name};
place(#{kind := ~"family", name := Name}) -> {family, Name}.

%% The range begins where the first frame does; the state at a time is the frame in whose span it
%% is.
at(Hub, T, {From, To}) when T >= From ->
    Tries = [T | [min(T + Ms, To) || Ms <- ?LATER_MS]],
    lists:foldl(
        fun
            (At, {error, none}) -> sderl_mon_hub:at(Hub, At);
            (_, Found) -> Found
        end,
        {error, none},
        Tries
    );
at(_, _, _) ->
    {error, none}.

%% Of the present also what an archive has.
of_past(live, What, From, To, Points) -> sderl_mon_archive:series(What, From, To, Points);
of_past(Recording, What, From, To, Points) ->
    sderl_mon_hub:series(of_hub(Recording), What, From, To, Points).

of_hub(live) -> live;
of_hub({recording, _, Pid}) -> Pid.

-doc "A topology, a frame and findings of one moment, as browsers get them.".
-spec state(sderl_mon_types:moment() | sderl_web_latest:present()) -> iodata().
state(#{topology := Topology, frame := Frame} = State) ->
    Ids = sderl_web_feed:ids(Topology, Frame),
    [
        ~"{\"topology\":", optional(fun(T) -> sderl_web_json:topology(T, Ids) end, Topology),
        ~",\"frame\":", optional(fun(F) -> sderl_web_json:frame(F, Ids) end, Frame),
        ~",\"findings\":", sderl_web_json:term(maps:get(findings, State, [])), $}
    ].

optional(_, undefined) -> ~"null";
optional(Fun, Value) -> Fun(Value).

reason(none) -> "nothing is kept of that";
reason(Text) when is_binary(Text) -> Text;
reason(Reason) -> io_lib:format("~0tP", [Reason, 12]).

%% Of the nodes

of_place(_, _, {ok, Term}) ->
    ok(Term);
of_place(Function, Place, {error, Reason}) ->
    {Code, Why} = mon_error(Function, Place, Reason),
    {error, Code, [atom_to_binary(Function), ": ", Why]}.

mon_error(names, Group, not_found) -> {not_found, no_group(Group)};
mon_error(_, Group, no_group) -> {not_found, no_group(Group)};
mon_error(_, _, {unknown_group, Group}) -> {not_found, no_group(Group)};
mon_error(_, _, {unknown_node, Node}) -> {not_found, no_node(Node)};
mon_error(lookup, Group, not_found) -> {not_found, ["no such name is registered in ", Group]};
mon_error(process, Node, Reason) when Reason =:= not_found; Reason =:= dead ->
    {not_found, ["there is no such process on ", Node, "; it may have ended"]};
mon_error(process, _, bad_pid) ->
    {bad_request, "pid is the text of a process of that node, such as <0.123.0>"};
mon_error(_, _, {bad_option, Key, Value}) ->
    {bad_request, io_lib:format("~0tp cannot be ~0tP", [Key, Value, 12])};
mon_error(_, Place, not_running) ->
    {unavailable, ["s_groups do not run on ", Place, ", or it has no probe"]};
mon_error(_, Place, busy) ->
    {unavailable, ["as many as may ask ", Place, " at a time do so: ask again"]};
mon_error(lookup, Group, timeout) ->
    {unavailable, ["no such name was found in ", Group,
                   " in time, and not all were looked at: ask again, or list names by prefix"]};
mon_error(_, Place, timeout) -> {unavailable, [Place, " did not answer in time: ask again"]};
mon_error(_, _, Reason) -> {unavailable, sderl_mon:format_error(Reason)}.

-doc "The refusal for a group that is not there.".
-spec no_group(binary()) -> unicode:chardata().
no_group(Group) -> ["there is no group \"", Group, "\" here: the topology names all groups"].

-doc "The refusal for a node that is not watched.".
-spec no_node(binary()) -> unicode:chardata().
no_node(Node) -> ["there is no node \"", Node, "\" here: the topology names all nodes"].

-doc "The refusal for a metric that is not there.".
-spec no_metric(binary()) -> unicode:chardata().
no_metric(Name) -> ["there is no metric \"", Name, "\": metrics lists those that there are"].

%% Recordings

recordings(none) -> [];
recordings(Dir) -> sderl_mon_record:list(Dir).

%% A name from a browser is compared with what is there, and is never a path.
open(_, none) ->
    {error, not_found,
     "there is no folder of recordings: who starts the dashboard names it with --record"};
open(Name, Dir) ->
    case [File || #{name := Is, file := File} <- recordings(Dir), Is =:= Name] of
        [File] -> opened(Name, sderl_mon_replay:open(File));
        [] -> {error, not_found, ["there is no recording \"", Name, "\": recordings lists them"]}
    end.

-doc "Opens the recording of the setting `replay`, which no browser has chosen.".
-spec replay(file:filename()) -> answer().
replay(File) ->
    opened(unicode:characters_to_binary(filename:basename(File)), sderl_mon_replay:open(File)).

%% The replay is this process's until the socket makes it its own, so that it is closed where the
%% answer comes too late or fails.
opened(Name, {ok, Pid}) ->
    {_, To} = sderl_mon_hub:range(Pid),
    case sderl_mon_hub:at(Pid, To) of
        {ok, State} ->
            messages(Name, Pid, State);
        {error, none} ->
            ok = close(Pid),
            {error, unavailable, ["\"", Name, "\" cannot be opened: its last frame cannot be read"]}
    end;
opened(Name, {error, Reason}) ->
    {error, unavailable, ["\"", Name, "\" cannot be opened: ", reason(Reason)]}.

messages(Name, Pid, #{topology := Topology, frame := Frame} = State) ->
    Ids = sderl_web_feed:ids(Topology, Frame),
    Messages = [
        sderl_web_hello:recording(Pid, Name, Frame),
        sderl_web_json:topology(Topology, Ids),
        sderl_web_json:frame(Frame, Ids),
        sderl_web_json:findings(maps:get(findings, State, []))
    ],
    {opened, Name, Pid, [iolist_to_binary(Message) || Message <- Messages]}.

-doc """
The recording of an answer is the calling process's from now on, and closed when that ends. `false`:
it has ended.
""".
-spec own(pid()) -> boolean().
own(Pid) ->
    try
        ok = sderl_mon_replay:own(Pid),
        true
    catch
        exit:_ -> false
    end.

-doc "Ends the replay of a recording.".
-spec close(pid()) -> ok.
close(Pid) ->
    %% Not waited for: it may still be at work.
    _ = spawn(fun() -> sderl_mon_replay:close(Pid) end),
    ok.

record(_, none) ->
    {error, unavailable,
     "there is no folder for recordings: who starts the dashboard names it with --record"};
record(true, Dir) ->
    case record(Dir) of
        {ok, File} -> ok(#{recording => filename:basename(File)});
        {error, Why} -> {error, unavailable, ["record: ", Why]}
    end;
record(false, _) ->
    case sderl_mon_record:stop() of
        ok -> ok(#{recording => null});
        {error, not_recording} -> {error, not_found, "record: no recording is being made"}
    end.

-doc "Starts recording into a new file of a folder.".
-spec record(file:filename()) -> {ok, file:filename_all()} | {error, unicode:chardata()}.
record(Dir) ->
    case started(sderl_mon_record:status(), Dir) of
        {ok, #{file := File}} -> {ok, File};
        {error, already_recording} -> {error, "a recording is being made already"};
        {error, {file, File, Reason}} ->
            {error, [filename:basename(File), ": ", file:format_error(Reason)]};
        {error, {exists, File}} ->
            {error, [filename:basename(File), ": there is such a recording already"]};
        {error, Reason} -> {error, reason(Reason)}
    end.

%% The caller need not wait for the end of one that is being made.
started({ok, _}, _) -> {error, already_recording};
started({error, not_recording}, Dir) -> sderl_mon_record:start_in(Dir, #{}).
