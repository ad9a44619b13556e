%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_made).
-moduledoc """
Hosts that programs make (`m:sderl_ops_machines`), for the server: how they are reached, which have
to be looked at, and the requests to the programs.
""".

-export([hosts/3, asked/2, looked_at/1, is_there/3, without_deleted/3]).
-export([list/3, create/4, delete/3]).
-export_type([providers/0, context/0]).

-doc "Providers that are programs, of all revisions.".
-type providers() :: #{Name :: binary() => sderl_ops_provider:config()}.
-type context() :: #{cluster := binary(), names := long | short, folder := file:filename_all()}.

-doc "The hosts whose addresses are known, without those that their provider says are gone.".
-spec hosts(sderl_ops_memory:memory(), providers(), context()) ->
    #{sderl_ops_desired:host_id() => sderl_ops_host:host()}.
hosts(#{machines := Machines}, Providers, Context) ->
    #{Id => sderl_ops_exec:host(map_get(Provider, Providers), Context, Id, Told)
      || Id := #{provider := Provider, told := #{state := State} = Told} <- Machines,
         State =/= gone, is_map_key(Provider, Providers)}.

-doc "The providers that are asked for their list.".
-spec asked(sderl_ops_desired:desired(), sderl_ops_memory:memory()) -> [binary()].
asked(Desired, #{machines := Machines}) ->
    lists:usort([Name || _ := #{provider := Name} <- sderl_ops_machines:pools(Desired)]
                ++ [Name || _ := #{provider := Name} <- Machines]).

-doc "The hosts that are looked at.".
-spec looked_at(sderl_ops_memory:memory()) -> [sderl_ops_desired:host_id()].
looked_at(#{machines := Machines}) -> [Id || Id := #{told := _} <- Machines].

-doc "Whether the target of a look still exists: a host may have been deleted meanwhile.".
-spec is_there(sderl_ops_look:what(), sderl_ops_memory:memory(),
               Static :: #{sderl_ops_desired:host_id() => sderl_ops_host:host()}) -> boolean().
is_there({host, Id}, #{machines := Machines, assigned := Assigned}, Static) ->
    is_map_key(Id, Machines) orelse is_map_key(Id, Static)
        orelse lists:member(Id, maps:values(Assigned));
is_there(_, _, _) ->
    true.

-doc "Forgets what was seen of a host that a step has deleted.".
-spec without_deleted(sderl_ops_step:step(), Result :: term(), sderl_ops_observed:observed()) ->
    sderl_ops_observed:observed().
without_deleted({delete, Id}, ok, Observed) -> sderl_ops_observed:forget_host(Id, Observed);
without_deleted(_, _, Observed) -> Observed.

%% ---------------------------------------------------------------- requests to programs

-doc "Asks a program for its list of hosts.".
-spec list(Provider :: binary(), providers(), context()) -> sderl_ops_observed:provider_seen().
list(Provider, Providers, Context) ->
    case ask(Provider, #{do => list}, Providers, Context) of
        {ok, Told} ->
            #{state => up, hosts => #{Name => Host || #{name := Name} = Host <- Told}};
        {error, {says, Why}} ->
            #{state => failing, why => sderl_ops_wire:text(Why)}
    end.

-doc "Has a host made. The result says how it is reached.".
-spec create(sderl_ops_desired:host_id(), sderl_ops_machines:place(), providers(), context()) ->
    {ok, sderl_ops_machines:told()} | {error, {says, unicode:chardata()}}.
create(Id, Place, Providers, Context) ->
    [Provider, Name] = binary:split(Id, ~"/"),
    maybe
        {ok, [Told]} ?= ask(Provider, #{do => create, host => Name, place => Place}, Providers,
                            Context),
        {ok, Told}
    end.

-doc "Has a host deleted.".
-spec delete(sderl_ops_desired:host_id(), providers(), context()) ->
    ok | {error, {says, unicode:chardata()}}.
delete(Id, Providers, Context) ->
    [Provider, Name] = binary:split(Id, ~"/"),
    maybe
        {ok, []} ?= ask(Provider, #{do => delete, host => Name}, Providers, Context),
        ok
    end.

ask(Provider, Request, Providers, Context) ->
    case Providers of
        #{Provider := Config} ->
            case sderl_ops_exec:ask(Config, Context#{provider => Provider}, Request) of
                {ok, _} = Ok -> Ok;
                {error, Why} -> {error, {says, Why}}
            end;
        #{} ->
            {error, {says, ["no revision has a provider ", Provider, " that is a program"]}}
    end.
