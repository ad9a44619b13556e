%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_work).
-moduledoc "Does steps, in a process of its own. Each step may be repeated.".

-export([together/2, do/2, worded/1]).
-export_type([context/0, result/0]).

-import(sderl_clock, [now_ms/0]).
-import(sderl_ops_wire, [text/1]).

-doc "All that a step may need, as of its begin.".
-type context() :: #{
    desired := sderl_ops_desired:desired(),
    observed := sderl_ops_observed:observed(),
    memory := sderl_ops_memory:memory(),
    hosts := #{sderl_ops_desired:host_id() => sderl_ops_host:host()},
    providers := sderl_ops_made:providers(),
    context := sderl_ops_made:context(),
    archives := #{sderl_ops_desired:sha() => file:filename_all()},
    ours := [sderl_ops_desired:instance_id()],
    made := [Group :: binary()],
    envoy := pid(),
    cookie := sderl_ops_secret:value(),
    epoch := none | pos_integer()
}.

%% For an instance whose release the file no longer has.
-define(STOP_S, 30).
-define(LOOK_MS, 10_000).
-define(POLL_MS, 200).
%% A change may make the next one possible; after more rounds than this something undoes them.
-define(MOST_ROUNDS, 5).

-doc """
`seen` is the result of a step that lays out or starts an instance: it reports the instance's state.
An error is a term of `format_error/1`.
""".
-type result() ::
    ok | {ok, sderl_ops_machines:told()} | {seen, sderl_ops_sighted:sighting()} | {error, term()}.

-doc """
Groups steps for calls of `do/2`: all instances that are laid out on one host go together, every
other step goes alone.
""".
-spec together([sderl_ops_step:step()], sderl_ops_memory:memory()) ->
    [[sderl_ops_step:step(), ...]].
together(Steps, Memory) ->
    {Layouts, Others} = lists:partition(fun is_layout/1, Steps),
    ByHost = maps:groups_from_list(fun({lay_out, Id}) ->
        sderl_ops_memory:host_of(Id, Memory)
    end, Layouts),
    [[Step] || Step <- Others] ++ maps:values(ByHost).

is_layout({lay_out, _}) -> true;
is_layout(_) -> false.

-doc "Does one of the groups of `together/2`.".
-spec do([sderl_ops_step:step(), ...], context()) -> #{sderl_ops_step:step() => result()}.
do(Steps, #{epoch := Epoch} = Context) ->
    try
        %% A host refuses a member that no longer acts; nodes and programs do not know who acts.
        case sderl_ops_store:confirm(Epoch) of
            ok -> do_steps(Steps, Context);
            {error, _} = Error -> all(Steps, Error)
        end
    catch
        %% Without arguments and values, which may contain secrets.
        Class:Reason:Stack -> crashed(Steps, {Class, kind(Reason), places(Stack)}, Context)
    end.

%% If a group crashes, each of its steps is tried alone.
crashed([Step], Why, _) ->
    #{Step => {error, {crashed, Why}}};
crashed(Steps, _, Context) ->
    lists:foldl(fun(Step, Results) -> maps:merge(Results, do([Step], Context)) end, #{}, Steps).

all(Steps, Result) -> #{Step => Result || Step <- Steps}.

do_steps([{lay_out, Id} | _] = Steps, #{memory := Memory} = Context) ->
    case host(sderl_ops_memory:host_of(Id, Memory), Context) of
        {ok, Host} -> lay_out(Steps, Host, Context);
        {error, _} = Error -> all(Steps, Error)
    end;
do_steps([Step], Context) ->
    #{Step => do_step(Step, Context)}.

kind(Reason) when is_atom(Reason) -> Reason;
kind(Reason) when is_tuple(Reason), is_atom(element(1, Reason)) -> element(1, Reason);
kind(_) -> other.

places(Stack) ->
    [{Module, Function, proplists:get_value(line, Where, 0)}
     || {Module, Function, _, Where} <- lists:sublist(Stack, 4)].

do_step({fetch, HostId, Sha} = Step, #{archives := Archives, memory := Memory} = Context) ->
    maybe
        {ok, Host} ?= host(HostId, Context),
        service ?= sderl_ops_relay:source(Step, Memory),
        {ok, Archive} ?= find(Sha, Archives, {lost_archive, Sha}),
        ok ?= bring(Sha, Archive),
        sderl_ops_host:fetch(Host, Sha, Archive)
    else
        {error, _} = Error -> Error;
        GiverId -> give(GiverId, HostId, Sha, Context)
    end;
do_step({start, Id}, #{desired := Desired} = Context) ->
    maybe
        {ok, Instance, Host} ?= wanted(Id, Context),
        #{start_timeout_s := Seconds} = sderl_ops_desired:settings(Instance, Desired),
        Deadline = now_ms() + Seconds * 1000,
        {ok, Seen} ?= sderl_ops_host:start(Host, Id, Seconds),
        {ok, Node} ?= await_node(node_name(Id, Host, Context), Deadline, Seconds, Context),
        {seen, #{host => map_get(id, Host), id => Id, instance => Seen, node => Node}}
    end;
do_step({drain, Id}, #{memory := Memory, envoy := Envoy} = Context) ->
    maybe
        {ok, Host} ?= host(sderl_ops_memory:host_of(Id, Memory), Context),
        {ok, Result} ?= sderl_ops_envoy:call(Envoy, drain, [node_name(Id, Host, Context)]),
        Result
    end;
do_step({stop, Id}, #{memory := Memory, observed := Observed, envoy := Envoy} = Context) ->
    maybe
        {ok, Host} ?= host(sderl_ops_memory:host_of(Id, Memory), Context),
        Seconds = stop_timeout(Id, Context),
        true ?= sderl_ops_adopted:is_adopted(Id, Observed, Memory),
        {ok, Result} ?= sderl_ops_envoy:call(Envoy, stop,
                                             [node_name(Id, Host, Context), Seconds * 1000]),
        Result
    else
        false -> stop_laid_out(Id, Context);
        {error, _} = Error -> Error
    end;
do_step({remove, HostId, Id}, Context) ->
    maybe
        {ok, Host} ?= host(HostId, Context),
        sderl_ops_host:remove(Host, Id)
    end;
do_step({drop_release, HostId, Sha}, Context) ->
    maybe
        {ok, Host} ?= host(HostId, Context),
        sderl_ops_host:drop_release(Host, Sha)
    end;
do_step({create, HostId}, #{desired := Desired, memory := Memory} = Context) ->
    #{providers := Providers, context := Asking} = Context,
    Effective = sderl_ops_former:effective(Desired, Memory),
    sderl_ops_made:create(HostId, sderl_ops_machines:place(HostId, Effective, Memory), Providers,
                          Asking);
do_step({delete, HostId}, #{providers := Providers, context := Asking}) ->
    sderl_ops_made:delete(HostId, Providers, Asking);
do_step(groups, Context) ->
    change_groups(?MOST_ROUNDS, Context).

give(GiverId, HostId, Sha, Context) ->
    maybe
        {ok, Receiver} ?= host(HostId, Context),
        {ok, Giver} ?= host(GiverId, Context),
        sderl_ops_host:give(Giver, Receiver, Sha)
    end.

%% Another member may have the archive.
bring(Sha, Archive) ->
    case sderl_ops_membership:is_member() andalso not filelib:is_regular(Archive) of
        false ->
            ok;
        true ->
            Folder = sderl_ops_membership:folder(),
            case sderl_ops_share:pull(Folder, [Sha], sderl_ops_member:others()) of
                ok -> ok;
                {error, Sentence} -> {error, {says, Sentence}}
            end
    end.

%% ---------------------------------------------------------------- instances

wanted(Id, #{desired := Desired, memory := Memory} = Context) ->
    case sderl_ops_reconcile:wanted(Id, Desired, Memory) of
        {Instance, HostId} ->
            maybe
                {ok, Host} ?= host(HostId, Context),
                {ok, Instance, Host}
            end;
        undefined ->
            {error, {not_desired, Id}}
    end.

host(HostId, #{hosts := Hosts}) -> find(HostId, Hosts, {no_host, HostId}).

find(Key, Map, Why) ->
    case Map of
        #{Key := Value} -> {ok, Value};
        #{} -> {error, Why}
    end.

lay_out(Steps, #{id := HostId} = Host, Context) ->
    Prepared = #{Id => prepare(Id, Host, Context) || {lay_out, Id} <- Steps},
    Laid = sderl_ops_host:lay_out(Host, #{Id => Layout || Id := {ok, Layout} <- Prepared}),
    #{{lay_out, Id} => case Result of
          {ok, Seen} -> {seen, #{host => HostId, id => Id, instance => Seen}};
          {error, _} -> Result
      end || Id := Result <- maps:merge(Prepared, Laid)}.

prepare(Id, Host, #{desired := Desired, cookie := Cookie} = Context) ->
    maybe
        {ok, Instance, _} ?= wanted(Id, Context),
        {ok, Place} ?= place(Host, Context),
        Settings = sderl_ops_desired:settings(Instance, Desired),
        Named = Instance#{node := node_name(Id, Host, Context)},
        layout(Named, Settings, Place, Cookie)
    end.

%% The host's folder is known from the last look at it.
place(#{id := HostId, address := Address}, #{observed := #{hosts := Seen}}) ->
    case Seen of
        #{HostId := #{base := Base}} -> {ok, #{host => HostId, address => Address, base => Base}};
        #{} -> {error, {no_host, HostId}}
    end.

layout(Instance, Settings, Place, Cookie) ->
    case sderl_ops_prepare:layout(Instance, Settings, Place, Cookie) of
        {ok, _} = Ok -> Ok;
        {error, Sentence} -> {error, {says, Sentence}}
    end.

node_name(Id, #{address := Address}, #{memory := Memory}) ->
    sderl_ops_adopted:node_name(Id, Address, Memory).

stop_laid_out(Id, #{memory := Memory} = Context) ->
    maybe
        {ok, Host} ?= host(sderl_ops_memory:host_of(Id, Memory), Context),
        sderl_ops_host:stop(Host, Id, stop_timeout(Id, Context))
    end.

stop_timeout(Id, #{desired := Desired} = Context) ->
    case wanted(Id, Context) of
        {ok, Instance, _} -> map_get(stop_timeout_s, sderl_ops_desired:settings(Instance, Desired));
        {error, _} -> ?STOP_S
    end.

await_node(Node, Deadline, Seconds, #{envoy := Envoy} = Context) ->
    case sderl_ops_envoy:call(Envoy, look, [[Node], ?LOOK_MS]) of
        {ok, #{Node := #{state := up} = Seen}} ->
            {ok, Seen};
        {error, _} = Error ->
            Error;
        {ok, _} ->
            case now_ms() < Deadline of
                true ->
                    timer:sleep(?POLL_MS),
                    await_node(Node, Deadline, Seconds, Context);
                false ->
                    {error, {no_answer, Node, Seconds}}
            end
    end.

%% ---------------------------------------------------------------- groups

change_groups(0, _) ->
    {error, groups_unsteady};
change_groups(Rounds, #{desired := Desired, observed := Observed, memory := Memory, envoy := Envoy,
                        hosts := Hosts, ours := Ours, made := Made} = Context) ->
    Name = fun(Id) ->
        node_name(Id, map_get(sderl_ops_memory:host_of(Id, Memory), Hosts), Context)
    end,
    Placed = [Id || Id <- Ours, is_map_key(sderl_ops_memory:host_of(Id, Memory), Hosts)],
    Wanted = [Group#{members := [Name(Id) || Id <- Members, lists:member(Id, Placed)]}
              || #{members := Members} = Group
                     <- sderl_ops_reconcile:groups(Desired, Observed, Memory)],
    maybe
        {ok, Seen} ?= sderl_ops_envoy:call(Envoy, look, [[Name(Id) || Id <- Placed], ?LOOK_MS]),
        Groups = #{Node => Own || Node := #{state := up, groups := Own} <- Seen},
        [_ | _] = Changes ?=
            sderl_ops_regroup:changes(Wanted, Made, [Name(Id) || Id <- Placed], Groups),
        ok ?= change_each(Changes, Envoy),
        change_groups(Rounds - 1, Context)
    else
        [] -> ok;
        {error, _} = Error -> Error
    end.

change_each([], _) ->
    ok;
change_each([Change | Changes], Envoy) ->
    case sderl_ops_envoy:call(Envoy, change, [Change]) of
        {ok, ok} -> change_each(Changes, Envoy);
        {ok, {error, Why}} -> {error, {change, Change, Why}};
        {error, _} = Error -> Error
    end.

%% ---------------------------------------------------------------- errors

-doc "A result with its error as a sentence; for a relay also whose fault it is.".
-spec worded(ok | {ok, Told} | {error, term()}) ->
    ok | {ok, Told} | {error, binary() | {relay, sderl_ops_relay:side(), binary()}}.
worded(ok) -> ok;
worded({ok, _} = Told) -> Told;
worded({error, {relay, Side, _} = Why}) -> {error, {relay, Side, text(format_error(Why))}};
worded({error, Why}) -> {error, text(format_error(Why))}.

%% A sentence for a person.
format_error({lost_archive, Sha}) ->
    ["the archive of release ", Sha, " is no longer in the service's folder: apply the file again"];
format_error({not_desired, Id}) ->
    [Id, " is not wanted any more"];
format_error({no_host, undefined}) ->
    "no host was chosen yet";
format_error({no_host, HostId}) ->
    ["the host ", HostId, " is not known any more"];
format_error({says, Sentence}) ->
    Sentence;
format_error({no_answer, Node, Seconds}) ->
    io_lib:format("~ts runs and does not answer as an Erlang node within ~b s: look at its name, "
                  "cookie and log, and at -connect_all false", [Node, Seconds]);
format_error({does_not_stop, Node}) ->
    [Node, " does not stop: stop it by hand"];
format_error({started_again, Node}) ->
    [Node, " was stopped, and something has started it again at once: turn that off (heart, "
     "systemd), as the service starts it from now on"];
format_error(deposed) ->
    "another member of the service acts now: nothing was done";
format_error({unconfirmed, _}) ->
    "no majority of the ops members answers, so nothing was done";
format_error(groups_unsteady) ->
    "groups change while they are made as the file says: somebody else changes them";
format_error({change, {create, Node, #{name := Name}}, Why}) ->
    io_lib:format("~ts could not make the group ~ts: ~0tp", [Node, Name, Why]);
format_error({change, {What, Node, Name, Members}, Why}) ->
    io_lib:format("~ts could not ~ts ~ts in the group ~ts: ~0tp",
                  [Node, What, lists:join(", ", Members), Name, Why]);
format_error({change, {delete, Node, Name}, Why}) ->
    io_lib:format("~ts could not delete the group ~ts: ~0tp", [Node, Name, Why]);
format_error({leave, Group, Why}) ->
    io_lib:format("it could not leave the group ~ts: ~0tp", [Group, Why]);
format_error({envoy, _, _}) ->
    "the process that talks to the cluster's nodes ended; it is started again";
format_error({crashed, Why}) ->
    io_lib:format("this is a defect of the service: ~0tP", [Why, 20]);
format_error(Why) ->
    sderl_ops_host:format_error(Why).


