%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_status).
-moduledoc "The state, problems and history of a cluster, for people. Pure.".

-export([state/1, problems/1, status/1, adopted/1, history/3, time/1]).
-export_type([view/0]).

-import(sderl_ops_note, [reason/1]).
-import(sderl_ops_wire, [text/1]).

-doc """
What the server knows. `waiting` and `done` are from the last decision; `quiet_ms` is how long ago
the last step ended; `trouble` is why nothing at all can be done; `sent` is how much the service has
sent to hosts; `doing` are the steps under way, `progress` how many of the steps are done.
""".
-type view() :: #{
    store := none | {binary(), pos_integer()},
    desired := sderl_ops_desired:desired() | undefined,
    memory := sderl_ops_memory:memory(),
    observed := sderl_ops_observed:observed(),
    hosts := #{sderl_ops_desired:host_id() => sderl_ops_host:host()},
    running := [sderl_ops_step:step()],
    waiting := [{term(), Why :: term()}],
    done := boolean(),
    trouble := none | unicode:chardata(),
    quiet_ms := non_neg_integer() | infinity,
    sent => sderl_ops_sent:sent(),
    doing => [sderl_ops_step:step()],
    progress => none | #{done := non_neg_integer(), total := pos_integer()}
}.

%% After a start, links and groups need a moment; until then problems of nodes do not count.
-define(SETTLE_MS, 30_000).

-define(HISTORY, 100).

-doc "The state of the cluster in one word.".
-spec state(view()) -> sderl_ops_server:state().
state(#{store := none}) ->
    none;
state(#{trouble := Trouble}) when Trouble =/= none ->
    failed;
state(#{memory := #{upgrades := Upgrades} = Memory, done := Done} = View) ->
    #{waiting := Waiting, running := Running} = View,
    Paused = sderl_ops_memory:is_paused(Memory),
    %% An upgrade that has begun and is not stuck goes on, or is rolled back, whatever was given up.
    Stuck = Running =:= [] andalso Waiting =/= [] andalso lists:all(fun is_given_up/1, Waiting)
        andalso [Family || Family := #{taken := Taken} = Upgrade <- Upgrades,
                           Taken =/= #{}, not is_map_key(stuck, Upgrade)] =:= [],
    if
        Paused -> paused;
        not Done, not Stuck -> working;
        true -> ended(View)
    end.

is_given_up({_, {quarantined, _}}) -> true;
is_given_up({_, {upgrade, {refused, _}}}) -> true;
%% Other instances of that upgrade tell whether it goes on or is stuck.
is_given_up({_, {upgrade, {Why, _}}}) when Why =:= stuck; Why =:= alarms -> true;
is_given_up({_, {upgrade, batch}}) -> true;
is_given_up({_, {node, silent}}) -> true;
%% It waits for the step `groups`, which is itself waiting if it was not given up.
is_given_up({{instance, _}, {listed, _}}) -> true;
is_given_up({_, {not_startable, _}}) -> true;
is_given_up(_) -> false.

ended(#{desired := #{instances := Instances}, quiet_ms := Quiet} = View) ->
    case {lasting_problems(View), problems_of_nodes(View)} of
        {[], []} when map_size(Instances) =:= 0 -> destroyed;
        {[], []} -> steady;
        {[], _} when Quiet < ?SETTLE_MS -> working;
        _ -> failed
    end.

-doc "Problems that a person has to know of or to solve.".
-spec problems(view()) -> [unicode:chardata()].
problems(#{store := none}) -> [];
problems(#{desired := undefined, trouble := Trouble}) -> [text(Trouble)];
problems(View) ->
    [text(Trouble) || #{trouble := Trouble} <- [View], Trouble =/= none]
        ++ lasting_problems(View) ++ problems_of_nodes(View).

lasting_problems(#{memory := Memory, desired := #{revision := Revision},
                   observed := #{hosts := Hosts}, waiting := Waiting} = View) ->
    #{failed := Failed, upgrades := Upgrades} = Memory,
    providers(View) ++
    [text(sderl_ops_note:words({quarantined, Step, Why}))
     || {Step, Why} <- lists:sort(sderl_ops_memory:quarantined(Memory))]
        ++ [text(sderl_ops_note:words({roll_back, Family, From, To, Why}))
            || Family := #{revision := From, to := To, why := Why}
                   <- maps:iterator(Failed, ordered),
               From =:= Revision]
        ++ [text([sderl_ops_refusal:words(replace, {Id, Why}),
                  ": `apply --force` does it all the same"])
            || {Key, {upgrade, {refused, Why}}} <- lists:sort(Waiting), Id <- [waiting_id(Key)]]
        ++ [text(sderl_ops_note:words({upgrade_stuck, Family, Of, Why}))
            || Family := #{stuck := Why, revision := Of} <- maps:iterator(Upgrades, ordered)]
        ++ [text([Id, ": ", reason(Why)])
            || {{instance, Id}, {upgrade, {alarms, _}} = Why} <- lists:sort(Waiting)]
        ++ lists:usort([text(sderl_ops_note:reason({upgrade, Why}))
                        || {_, {upgrade, {alarms_unknown, Of} = Why}} <- Waiting, is_binary(Of)])
        ++ silent([Id || {{instance, Id}, {node, silent}} <- lists:sort(Waiting)], View)
        ++ [text(["it is not known how the release ", Name, " is started, which has to be: say so "
                  "in the file (archive or folder with start, or code, instead of running), and "
                  "apply it"])
            || Name <- lists:usort([Name || {_, {not_startable, Name}} <- Waiting])]
        ++ [text([Host, " is ", atom_to_list(State), [[": ", Why] || #{why := Why} <- [Seen]]])
            || Host := #{state := State} = Seen <- maps:iterator(Hosts, ordered), State =/= up].

silent([], _) -> [];
silent(Ids, #{memory := Memory, hosts := Hosts}) ->
    Nodes = sderl_ops_look:names(Memory, Hosts),
    [text([Id, " does not answer, and may run: is ", maps:get(Id, Nodes, Id), " alive, and is the "
           "cookie of the file its own?"]) || Id <- Ids].

%% Failures of programs that make hosts, and hosts that the service did not ask for.
providers(#{observed := Observed, memory := Memory, waiting := Waiting}) ->
    [text(["the provider ", Name, " fails: ", Why])
     || Name := #{state := failing, why := Why}
            <- maps:iterator(maps:get(providers, Observed, #{}), ordered)]
        ++ [text(["the provider ", Name, " has ", lists:join(", ", lists:sublist(Unknown, 5)),
                  [" and more" || length(Unknown) > 5], ", of which the service knows nothing: "
                  "take them away there if nobody needs them"])
            || Name := #{state := up, hosts := Listed}
                   <- maps:iterator(maps:get(providers, Observed, #{}), ordered),
               [_ | _] = Unknown <- [sderl_ops_machines:unknown(Name, Listed, Memory)],
               not lists:keymember({provider, Name}, 1, Waiting)]
        ++ [text(reason(Why)) || {{provider, _}, {too_many_lost, _} = Why} <- Waiting].

%% Problems that the library on a node sees, and that may go away by themselves.
problems_of_nodes(#{observed := #{nodes := Nodes}}) ->
    [text([Id, ": ", Problem])
     || Id := #{health := {problems, Texts}} <- maps:iterator(Nodes, ordered),
        Problem <- lists:sublist(Texts, 3)].

-doc "The answer to the request `status`.".
-spec status(view()) -> sderl_ops_wire:status().
status(#{store := {Cluster, Revision}, waiting := Waiting} = View0) ->
    #{desired := Desired, observed := Observed, memory := Memory} = View0,
    View = case Desired of
               undefined -> View0;
               #{} -> View0#{observed := sderl_ops_adopted:sight(Desired, Observed, Memory)}
           end,
    #{
        cluster => Cluster,
        revision => Revision,
        state => state(View),
        hosts => hosts(View),
        instances => instances(View),
        groups => groups(View),
        problems => problems(View),
        information => information(View),
        sent => maps:get(sent, View, #{}),
        doing => [text(sderl_ops_step:words(Step))
                  || Step <- lists:sort(maps:get(doing, View, []))],
        progress => progress(View),
        waiting => [waiting(Wait) || Wait <- lists:sublist(lists:sort(Waiting), 100)]
    }.

%% Steps that were given up are not under way any more.
progress(View) ->
    case {state(View), maps:get(progress, View, none)} of
        {working, #{} = Progress} -> Progress;
        _ -> undefined
    end.

%% Hints for a cluster that is well.
information(#{memory := Memory}) ->
    [text(sderl_ops_note:words({star, Provider, Why}))
     || {Provider, Why} <- sderl_ops_relay:stars(Memory)].

hosts(#{observed := #{hosts := Hosts}, memory := #{assigned := Assigned}}) ->
    Counts = maps:groups_from_list(fun({_, Host}) -> Host end, maps:to_list(Assigned)),
    [#{id => Id, state => State, why => maps:get(why, Seen, undefined),
       instances => length(maps:get(Id, Counts, []))}
     || Id := #{state := State} = Seen <- maps:iterator(Hosts, ordered)].

instances(#{desired := undefined}) ->
    [];
instances(#{desired := Desired, memory := #{assigned := Assigned} = Memory, hosts := Hosts,
            observed := Observed} = View) ->
    #{instances := Instances} = Desired,
    Nodes = sderl_ops_look:names(Memory, Hosts),
    Ids = lists:usort(maps:keys(Instances) ++ maps:keys(Assigned)),
    Failures = failures(Memory),
    [
        #{
            id => Id,
            node => maps:get(Id, Nodes, released(node, Id, Memory)),
            host => maps:get(Id, Assigned, released(host, Id, Memory)),
            release => release(Id, Seen, Desired),
            state => instance_state(Id, Seen, View),
            why => why(Id, Seen, Failures)
        }
     || Id <- sderl_ops_range:in_order(Ids),
        Seen <- [sderl_ops_observed:instance_at(maps:get(Id, Assigned, undefined), Id, Observed)]
    ].

release(_, #{release := Sha}, #{releases := Releases}) when Sha =/= <<>> ->
    case Releases of
        #{Sha := #{name := Name}} -> Name;
        #{} -> <<(binary:part(Sha, 0, min(12, byte_size(Sha))))/binary>>
    end;
release(_, _, _) ->
    undefined.

instance_state(Id, Seen, #{memory := Memory, observed := Observed, desired := Desired}) ->
    #{instances := All} = Desired,
    #{hosts := Hosts} = Observed,
    Up = sderl_ops_observed:is_up(Id, Observed),
    case Seen of
        _ when not is_map_key(Id, All) -> leaving;
        %% The service has just begun, and has not looked at the hosts yet.
        undefined when Hosts =:= #{} -> not_running(unknown, Id, Memory);
        undefined -> not_running(absent, Id, Memory);
        #{state := running, adopted := true} when Up -> adopted;
        #{state := running} when Up -> up;
        #{state := running} -> no_answer;
        #{state := laid_out} -> not_running(laid_out, Id, Memory);
        #{state := State} -> State
    end.

%% The error of the first failed step of each instance.
failures(#{attempts := Attempts}) ->
    #{sderl_ops_step:instance(Step) => Why
      || Step := #{why := Why} <- maps:iterator(Attempts, reversed)}.

not_running(State, Id, Memory) ->
    case {sderl_ops_released:is_released(Id, Memory), sderl_ops_memory:is_aside(Id, Memory)} of
        {true, _} -> released;
        {false, true} -> drained;
        {false, false} -> State
    end.

released(What, Id, Memory) ->
    case sderl_ops_released:all(Memory) of
        #{Id := #{What := Value}} -> Value;
        #{} -> undefined
    end.

why(Id, Seen, Failures) ->
    case {Failures, Seen} of
        {#{Id := Why}, _} -> text(reason(Why));
        {_, #{why := Why}} -> Why;
        _ -> undefined
    end.

groups(#{desired := undefined}) ->
    [];
groups(#{desired := Desired, memory := Memory, observed := #{groups := Seen}}) ->
    #{groups := Groups} = sderl_ops_released:without(Desired, Memory),
    [
        #{name => Name, members => length(Members), running => length(Running),
          state => group_state(lists:sort(Members), lists:sort(Running), Seen, Memory)}
     || #{name := Name, members := Members} <- Groups,
        Running <- [case Seen of #{Name := Ids} -> Ids; _ -> [] end]
    ].

group_state(_, _, unknown, _) -> unknown;
group_state(Members, Members, _, _) -> whole;
%% Drained: all members that are missing were drained by an operator.
group_state(Members, Running, _, Memory) ->
    case lists:all(fun(Id) -> sderl_ops_memory:is_aside(Id, Memory) end, Members -- Running)
         andalso Running -- Members =:= [] of
        true -> drained;
        false -> incomplete
    end.

waiting_id({instance, Id}) -> Id;
waiting_id({provider, _}) -> undefined;
waiting_id(Step) -> sderl_ops_step:instance(Step).

waiting({{provider, Name}, Why}) -> text(["hosts of ", Name, ": ", reason(Why)]);
waiting({groups, Why}) -> text(["groups: ", reason(Why)]);
waiting({{instance, Id}, Why}) -> text([Id, ": ", reason(Why)]);
waiting({Step, Why}) -> text([sderl_ops_step:words(Step), ": ", reason(Why)]).

-doc "The instances that run, or may run, as they were taken over.".
-spec adopted(view()) -> [sderl_ops_desired:instance_id()].
adopted(#{memory := Memory}) ->
    sderl_ops_range:in_order([Id || Id := #{as := _} <- sderl_ops_memory:adopted(Memory)]).

-doc "The last revisions of a cluster, the newest first, and how they ended if that is known.".
-spec history([{pos_integer(), sderl_ops_store:revision()}],
              #{pos_integer() => sderl_ops_entry:outcome()}, sderl_ops_memory:memory()) ->
    [sderl_ops_wire:revision()].
history([], _, _) ->
    [];
history(Revisions, Outcomes, Memory) ->
    {Newest, _} = lists:last(Revisions),
    [begin
        {Result, Because} = result(Number, Newest, Outcomes, Memory),
        #{revision => Number, at => time(At), who => By, what => Why, result => text(Result),
          why => case Because of undefined -> undefined; _ -> text(Because) end}
     end || {Number, #{at := At, by := By, why := Why}}
                <- lists:sublist(lists:reverse(Revisions), ?HISTORY)].

result(Number, Newest, Outcomes, #{failed := Failed, good := Good} = Memory) ->
    RolledBack = [{Family, Why} || Family := #{revision := Of, why := Why}
                                       <- maps:iterator(Failed, ordered), Of =:= Number],
    IsGood = lists:member(Number, maps:values(Good)),
    IsPaused = sderl_ops_memory:is_paused(Memory),
    case {RolledBack, Outcomes} of
        {[_ | _], _} ->
            {["rolled back: ", lists:join(", ", [Family || {Family, _} <- RolledBack])],
             lists:join("; ", [reason(Why) || {_, Why} <- RolledBack])};
        {[], #{Number := done}} -> {"good", undefined};
        {[], #{Number := {failed, Problems}}} -> {"failed", lists:join("; ", Problems)};
        {[], #{Number := {replaced, By}}} ->
            {"replaced", io_lib:format("by revision ~b before it was done", [By])};
        {[], #{}} when Number =:= Newest, IsPaused -> {"paused", undefined};
        {[], #{}} when Number =:= Newest -> {"running", undefined};
        {[], #{}} when IsGood -> {"good", undefined};
        %% An earlier version has made this revision.
        {[], #{}} -> {"not recorded", undefined}
    end.

-doc "Milliseconds of system time, in the format of RFC 3339.".
-spec time(At :: integer()) -> binary().
time(At) ->
    list_to_binary(calendar:system_time_to_rfc3339(At, [{unit, millisecond}, {offset, "Z"}])).
