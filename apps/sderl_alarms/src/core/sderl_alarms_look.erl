%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_look).
-moduledoc """
One check of a cluster: which thresholds are passed where, by the numbers of a hub. Pure.

An observation is made only where a threshold is passed, or the value would keep a raised alarm
raised. For any other alarm `absent/2` says whether it is over, or whether nothing is known.
""".

-export([rules/1, take/2, passed/1, absent/2]).
-export_type([rules/0, input/0, look/0, observation/0, level/0, said/0]).

-import(sderl_mon_text, [text/2]).

-doc "The level of a value: `none`, or a severity.".
-type level() :: none | minor | major.

-doc """
What is known of a cluster at one moment. `standing` is that of `sderl_mon_hub:standing/0`, and
`versions` were counted from it.
""".
-type input() :: #{
    topology := sderl_mon_types:topology(),
    frame := sderl_mon_types:frame() | none,
    findings := [sderl_mon_types:finding()],
    standing := #{sderl_mon_types:id() => sderl_mon_types:standing()},
    versions := sderl_alarms_versions:versions()
}.

-doc "The texts and numbers of an alarm.".
-type said() :: #{
    text := binary(),
    cause := binary(),
    remedy := binary(),
    tags := [binary()],
    value := number() | null,
    threshold := number() | null,
    unit := binary()
}.

-doc """
`over` is the level whose threshold the value has passed; `holds` the level at which a raised alarm
stays, by thresholds that are relaxed by the hysteresis.
""".
-type observation() :: #{
    alarm := binary(),
    place := #{node | group | family | from | to => binary()},
    nodes := [binary()],
    groups := [binary()],
    over := level(),
    holds := level(),
    for_ms := non_neg_integer(),
    say := fun(() -> said())
}.

-doc "By alarm, its rules, the last one first: the first that matches a place holds there.".
-opaque rules() :: #{binary() => [sderl_alarms_rule:rule()]}.

-opaque look() :: #{
    input := input(),
    rules := rules(),
    groups_of := #{binary() => [binary()]},
    families := #{Family :: binary() => [Node :: binary()]}
}.

-doc "Prepares rules for checks.".
-spec rules([sderl_alarms_rule:rule()]) -> rules().
rules(Rules) ->
    maps:groups_from_list(fun(#{alarm := Alarm}) -> Alarm end, lists:reverse(Rules)).

-doc "Begins a check.".
-spec take(input(), rules()) -> look().
take(#{topology := #{nodes := Nodes}} = Input, Rules) ->
    #{input => Input, rules => Rules,
      groups_of => #{Id => maps:get(groups, Info, []) || Id := Info <- Nodes},
      families => maps:remove(~"", maps:groups_from_list(fun sderl_mon_types:family/1,
                                                         maps:keys(Nodes)))}.

-doc "The observations, by id of the alarm.".
-spec passed(look()) -> #{binary() => observation()}.
passed(#{input := #{topology := #{nodes := Nodes, groups := Groups}, findings := Findings},
         families := Families, rules := Rules} = Look) ->
    maps:from_list(
        [Found || {Kind, Places} <- [{node, Nodes}, {group, Groups}, {family, Families}],
                  Alarms <- [[{Alarm, Of} || Alarm := Of <- Rules, is_of(Kind, Of)]],
                  Place := _ <- Places, Found <- observe(Kind, Place, Alarms, Look)] ++
        [Found || Finding <- Findings, Found <- finding(Finding, Look)]
    ).

is_of(Kind, Rules) ->
    lists:any(fun
        (#{kind := value, 'of' := Of}) -> Of =:= Kind;
        (_) -> false
    end, Rules).

observe(Kind, Id, Alarms, Look) ->
    Where = where(Kind, Id, Look),
    [
        {id(Alarm, Id), observation(Rule, Kind, Id, Value, Over, Holds, Look)}
     || {Alarm, Rules} <- Alarms,
        #{on := true, 'of' := Of, key := Key, settings := Settings} = Rule
            <- [holding(Rules, Kind, Where)],
        Of =:= Kind,
        {ok, Value} <- [measure(Kind, Key, Id, Look)],
        {Over, Holds} <- [{over(Value, Settings), holds(Value, Settings)}],
        Over =/= none orelse Holds =/= none
    ].

%% A node is also known by its groups.
where(node, Id, #{groups_of := GroupsOf}) -> {Id, maps:get(Id, GroupsOf, [])};
where(_, Id, _) -> {Id, []}.

%% The rule that holds at a place.
holding([#{where := Where} = Rule | Rules], Kind, At) ->
    case sderl_alarms_rule:holds_for(Where, Kind, At) of
        true -> Rule;
        false -> holding(Rules, Kind, At)
    end;
holding([], _, _) ->
    none.

%% The nodes and groups that an alarm concerns. The ends of an edge may be either. In some findings
%% `to` is neither, but a part of the node.
nodes_of(#{node := Node}, _) -> [Node];
nodes_of(Where, #{groups_of := GroupsOf}) ->
    [End || End <- ends(Where), is_map_key(End, GroupsOf)].

groups_of(#{group := Group}, _) -> [Group];
groups_of(#{node := Node}, #{groups_of := GroupsOf}) -> maps:get(Node, GroupsOf, []);
groups_of(#{family := Family}, #{groups_of := GroupsOf} = Look) ->
    lists:usort(lists:append([maps:get(Node, GroupsOf, []) || Node <- family(Family, Look)]));
groups_of(Where, #{groups_of := GroupsOf, input := #{topology := #{groups := Groups}}}) ->
    lists:usort(lists:append([
        case GroupsOf of
            #{End := Of} -> Of;
            #{} -> [End || is_map_key(End, Groups)]
        end
     || End <- ends(Where)
    ])).

ends(Where) -> maps:values(maps:with([from, to], Where)).

id(Alarm, Place) -> <<Alarm/binary, $|, Place/binary>>.

over(Value, #{'when' := When, minor := Minor, major := Major}) -> level(When, Value, Minor, Major).

%% Called for all values of all nodes at each frame, so no new settings are made here.
holds(Value, #{'when' := When, minor := Minor, major := Major, hysteresis := Share}) ->
    level(When, Value, relaxed(When, Minor, Share), relaxed(When, Major, Share)).

level(above, Value, _, Major) when Major =/= none, Value >= Major -> major;
level(above, Value, Minor, _) when Minor =/= none, Value >= Minor -> minor;
level(below, Value, _, Major) when Major =/= none, Value =< Major -> major;
level(below, Value, Minor, _) when Minor =/= none, Value =< Minor -> minor;
level(_, _, _, _) -> none.

relaxed(_, none, _) -> none;
relaxed(above, Level, Share) -> Level - abs(Level) * Share;
relaxed(below, Level, Share) -> Level + abs(Level) * Share.

observation(#{alarm := Alarm, settings := #{for_s := ForS} = Settings} = Rule, Kind, Id, Value,
            Over, Holds, Look) ->
    #{
        alarm => Alarm,
        place => #{Kind => Id},
        nodes => nodes_of(#{Kind => Id}, Look),
        groups => groups_of(#{Kind => Id}, Look),
        over => Over,
        holds => Holds,
        for_ms => round(1000 * ForS),
        say => fun() ->
            Level = case Over of none -> Holds; _ -> Over end,
            #{Level := Threshold} = Settings,
            Said = maps:with([cause, remedy, tags], Settings),
            Said#{text => sentence(Rule, Id, Value, Threshold, Look), value => Value,
                  threshold => Threshold, unit => map_get(unit, Rule)}
        end
    }.

sentence(#{key := down}, Id, _, _, #{input := #{topology := #{nodes := Nodes}}}) ->
    #{Id := #{status := Status} = Info} = Nodes,
    case {Status, Info} of
        %% Such a reason says by itself that the node does not answer.
        {unreachable, #{why := <<"connected", _/binary>> = Why}} -> text("~ts is ~ts", [Id, Why]);
        {unreachable, #{why := Why}} -> text("~ts does not answer: ~ts", [Id, Why]);
        {unreachable, _} -> text("~ts does not answer", [Id]);
        {_, #{why := Why}} -> text("~ts is down: ~ts", [Id, Why]);
        _ -> text("~ts is down", [Id])
    end;
sentence(#{settings := #{metric := Metric}, unit := Unit, 'of' := Of}, Id, Value, Threshold, _) ->
    text("~ts~ts: ~ts is ~ts, the limit is ~ts",
         [case Of of family -> "family "; _ -> "" end, Id, Metric, number(Value, Unit),
          number(Threshold, Unit)]).

number(Value, ~"share") -> [decimals(100 * Value), " %"];
number(Value, ~"") -> decimals(Value);
number(Value, Unit) -> [decimals(Value), $\s, Unit].

decimals(N) when is_integer(N) -> integer_to_list(N);
decimals(F) when abs(F) >= 100 -> integer_to_list(round(F));
decimals(F) -> float_to_list(F, [{decimals, 2}, compact]).

%% ---------------------------------------------------------------- values

measure(node, down, Id, #{input := #{topology := #{nodes := Nodes}}}) -> down(Id, Nodes);
%% A node that does not answer has no other value.
measure(node, Key, Id, #{input := #{topology := #{nodes := Nodes}}} = Look) ->
    case down(Id, Nodes) of
        {ok, 0} -> of_node(Key, Id, Look);
        _ -> unknown
    end;
measure(group, Key, Id, Look) ->
    of_group(Key, Id, Look);
measure(family, Key, Id, Look) ->
    of_family(Key, Id, Look).

down(Id, Nodes) ->
    case Nodes of
        #{Id := #{status := up}} -> {ok, 0};
        #{Id := Node} ->
            %% A monitoring node that has just begun has not tried all nodes yet.
            case maps:get(why, Node, undefined) =:= sderl_mon_types:untried() of
                true -> unknown;
                false -> {ok, 1}
            end;
        #{} -> unknown
    end.

of_node(process_share, Id, Look) -> limit(procs, Id, Look);
of_node(port_share, Id, Look) -> limit(ports, Id, Look);
of_node(atom_share, Id, Look) -> limit(atoms, Id, Look);
of_node(ets_share, Id, Look) -> limit(ets, Id, Look);
of_node(file_share, Id, Look) -> limit(files, Id, Look);
of_node(module_share, Id, Look) -> limit(modules, Id, Look);
of_node(disk_share, Id, Look) -> limit(disk, Id, Look);
of_node(mem_share, Id, Look) -> share(mem, host_mem_total, Id, Look);
of_node(host_mem_share, Id, Look) -> share(host_mem, host_mem_total, Id, Look);
of_node(old_code, Id, Look) -> stands(old_code, Id, Look);
of_node(shell_bytes, Id, Look) -> stands(shell_bytes, Id, Look);
of_node(clock_diff_s, Id, #{input := #{standing := Standing}}) ->
    case Standing of
        #{Id := #{t := T, node_t := Its}} when is_number(T), is_number(Its) ->
            {ok, abs(T - Its) / 1000};
        #{} -> unknown
    end;
of_node({Series, Total}, Id, #{input := #{frame := Frame}}) ->
    case Frame of
        #{nodes := #{Id := Sample}} ->
            case sderl_mon_app_metrics:value(Series, Total, Sample) of
                {ok, Value} -> {ok, Value};
                none -> unknown
            end;
        _ -> unknown
    end;
of_node(Key, Id, #{input := #{frame := Frame}}) ->
    case Frame of
        #{nodes := #{Id := #{Key := Value}}} -> {ok, Value};
        _ -> unknown
    end.

of_group(members_down, Id, Look) ->
    {ok, length([down || Node <- members(Id, Look), is_down(Node, Look)])};
of_group(live_share, Id, Look) ->
    case members(Id, Look) of
        [] -> unknown;
        Nodes ->
            {ok, length([up || Node <- Nodes, not is_down(Node, Look)]) / length(Nodes)}
    end;
of_group(group_names, Id, #{input := #{topology := #{groups := Groups}}}) ->
    case Groups of
        #{Id := #{names := Names}} -> {ok, Names};
        #{} -> unknown
    end;
of_group(group_regs_s, Id, #{input := #{frame := Frame}}) ->
    case Frame of
        #{groups := #{Id := #{regs_s := Rate}}} -> {ok, Rate};
        _ -> unknown
    end;
of_group(otp_versions, Id, #{input := #{topology := #{nodes := Nodes}}} = Look) ->
    different([Otp || Node <- members(Id, Look),
                      #{Node := #{status := up, otp := Otp}} <- [Nodes]]);
of_group(app_versions, Id, #{input := #{versions := Versions}}) ->
    sderl_alarms_versions:find({group, Id}, Versions);
of_group(utc_offsets, Id, Look) ->
    time_zones(members(Id, Look), Look).

of_family(family_app_versions, Id, #{input := #{versions := Versions}}) ->
    sderl_alarms_versions:find({family, Id}, Versions);
of_family(family_utc_offsets, Id, Look) ->
    time_zones(family(Id, Look), Look).

time_zones(Nodes, Look) ->
    different([Offset || Node <- Nodes, not is_down(Node, Look),
                         {ok, Offset} <- [stands(utc_offset_s, Node, Look)]]).

is_down(Node, #{input := #{topology := #{nodes := Nodes}}}) -> down(Node, Nodes) =:= {ok, 1}.

limit(What, Id, #{input := #{standing := Standing}}) ->
    case Standing of
        #{Id := #{limits := #{What := [Used, Most]}}} when is_number(Used), is_number(Most),
                                                           Most > 0 ->
            {ok, Used / Most};
        #{} -> unknown
    end.

share(Part, Whole, Id, #{input := #{frame := Frame}}) ->
    case Frame of
        #{nodes := #{Id := #{Part := Used, Whole := All}}} when All > 0 -> {ok, Used / All};
        _ -> unknown
    end.

stands(Key, Id, #{input := #{standing := Standing}}) ->
    case Standing of
        #{Id := #{Key := Value}} when is_number(Value) -> {ok, Value};
        #{} -> unknown
    end.

different([]) -> unknown;
different(Values) -> {ok, length(lists:usort(Values))}.

members(Group, #{input := #{topology := #{groups := Groups}}}) ->
    case Groups of
        #{Group := #{nodes := Nodes}} -> Nodes;
        #{} -> []
    end.

family(Family, #{families := Families}) -> maps:get(Family, Families, []).

%% ---------------------------------------------------------------- findings

finding(#{kind := Kind, id := Id, severity := Severity, where := Where} = Finding, Look) ->
    Alarm = name(Kind),
    case rule_of_finding(Alarm, Where, Look) of
        #{kind := finding, on := true, tags := Tags} ->
            Level = case Severity of critical -> major; _ -> minor end,
            [{Id, #{
                alarm => Alarm, place => Where, nodes => nodes_of(Where, Look),
                groups => groups_of(Where, Look), over => Level, holds => Level, for_ms => 0,
                say => fun() ->
                    #{text := Text, remedy := Remedy, evidence := Evidence} = Finding,
                    #{text => Text, cause => cause(Evidence), remedy => Remedy, tags => Tags,
                      value => null, threshold => null, unit => ~""}
                end
            }}];
        _ -> []
    end.

name(Kind) when is_atom(Kind) -> atom_to_binary(Kind);
name(Kind) -> Kind.

rule_of_finding(Alarm, Where, #{rules := Rules, groups_of := GroupsOf}) ->
    Of = maps:get(Alarm, Rules, []),
    case Where of
        #{node := Node} -> holding(Of, node, {Node, maps:get(Node, GroupsOf, [])});
        #{group := Group} -> holding(Of, group, {Group, []});
        #{from := From} -> holding(Of, group, {From, []});
        #{} -> holding(Of, group, {~"", []})
    end.

%% The evidence, in a sentence.
cause(Evidence) ->
    text("~ts", [lists:join("; ", [said(One) || One <- lists:sublist(Evidence, 4)])]).

said(#{label := Label, value := Value} = Evidence) ->
    Shown = case Value of
        _ when is_binary(Value) -> Value;
        _ -> decimals(Value)
    end,
    [Label, ": ", Shown, case Evidence of #{unit := <<_, _/binary>> = Unit} -> [$\s, Unit];
                                          #{} -> "" end].

%% ---------------------------------------------------------------- without an observation

-doc """
Why an alarm has no observation in `passed/1`: its value is back (`clear`), nothing is known now
(`unknown`), its place is gone (`gone`), or no rule is for it any more (`off`).
""".
-spec absent(Alarm, look()) -> clear | unknown | gone | off when
    Alarm :: #{alarm := binary(), place := map(), _ => _}.
absent(#{alarm := Alarm, place := Place},
       #{input := #{topology := #{nodes := Nodes, groups := Groups}}, families := Families,
         rules := Rules} = Look) ->
    case {maps:get(Alarm, Rules, []), Place} of
        {[], _} -> off;
        {[#{kind := finding} | _], _} ->
            case rule_of_finding(Alarm, Place, Look) of
                #{on := true} -> clear;
                _ -> off
            end;
        {Of, #{node := Node}} when is_map_key(Node, Nodes) ->
            value_absent(node, Node, Of, Look);
        {Of, #{group := Group}} when is_map_key(Group, Groups) ->
            value_absent(group, Group, Of, Look);
        {Of, #{family := Family}} when is_map_key(Family, Families) ->
            value_absent(family, Family, Of, Look);
        {_, _} -> gone
    end.

value_absent(Kind, Id, Rules, Look) ->
    case holding(Rules, Kind, where(Kind, Id, Look)) of
        #{on := true, key := Key, 'of' := Kind} ->
            case measure(Kind, Key, Id, Look) of
                {ok, _} -> clear;
                unknown -> unknown
            end;
        _ -> off
    end.
