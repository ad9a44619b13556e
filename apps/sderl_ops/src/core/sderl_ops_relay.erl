%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_relay).
-moduledoc """
Which host, or the service, gives a release to a host that is to have it. Pure.

The service sends a release to a few hosts; these give it to others, near ones first, and those to
others in turn, so that the time grows with the logarithm of the hosts. Nothing depends on it: a
host that was not served by two givers is served by the service, and where hosts do not reach each
other the service soon serves all of them.

Hosts give within one provider, and only where its hosts say `relay`. A giver is a host that was
seen to have the release's archive. Each gives to so many at a time (`?GIVES`), and the service
sends no more archives of a release than `?SENT` while hosts can give it.

What has to be remembered is in the memory, under `relays`.
""".

-include("sderl_ops_view.hrl").

-export([new/0, sources/3, source/2, is_relayed/2]).
-export([begin_steps/3, tidy/3, succeeded/2, failed/4, forget/2, resume/1, stars/1]).
-export_type([relays/0, source/0, side/0]).

-type source() :: service | sderl_ops_desired:host_id().

-doc "Whose fault it is: the giver's, that of the link between the two, or the receiver's.".
-type side() :: giver | link | receiver.

-doc """
- `from`: the giver of each fetch that runs.
- `sent`: how many archives of each release the service has sent or is sending.
- `tried`: the givers that failed for each fetch.
- `bad`: hosts that failed to give a release, and until when they are not asked for it again.
- `failures`: how many times in a row hosts of a provider did not reach each other.
- `stars`: providers whose hosts do not reach each other, so that the service sends to each of them
  (a star), with the last error.
- `until`: when the hosts of such a provider are tried again.
""".
-type relays() :: #{
    from := #{sderl_ops_step:step() => source()},
    sent := #{sderl_ops_desired:sha() => non_neg_integer()},
    tried := #{sderl_ops_step:step() => [sderl_ops_desired:host_id()]},
    bad := #{{sderl_ops_desired:host_id(), sderl_ops_desired:sha()} =>
                 Until :: sderl_ops_memory:time()},
    failures := #{Provider :: binary() => pos_integer()},
    stars := #{Provider :: binary() => Why :: term()},
    until => #{Provider :: binary() => sderl_ops_memory:time()}
}.

%% How many a host gives to at a time.
-define(GIVES, 2).
%% Relays at a time: each takes a connection of the service, with little traffic.
-define(RELAYS, 128).
%% Archives of a release that the service sends while hosts can give it.
-define(SENT, 8).
%% Givers that are tried for one host.
-define(TRIES, 2).
%% Failures in a row after which the hosts of a provider count as ones that do not reach each other.
-define(FAILURES, 4).
-define(BAD_MS, 300_000).
%% The hosts may have failed because they were down together. After this time one of them is tried
%% again, and one more failure is enough.
-define(STAR_MS, 600_000).

-spec new() -> relays().
new() ->
    #{from => #{}, sent => #{}, tried => #{}, bad => #{}, failures => #{}, stars => #{},
      until => #{}}.

%% The memory of an earlier version has none.
relays(Memory) -> maps:get(relays, Memory, new()).

-doc "The giver of a fetch that runs.".
-spec source(sderl_ops_step:step(), sderl_ops_memory:memory()) -> source().
source(Step, Memory) ->
    #{from := From} = relays(Memory),
    maps:get(Step, From, service).

-doc """
Whether a step costs the service next to nothing: a fetch that a host gives, or that has ended and
whose host has not been looked at yet.
""".
-spec is_relayed(sderl_ops_step:step(), sderl_ops_memory:memory()) -> boolean().
is_relayed({fetch, _, _} = Step, Memory) ->
    #{from := From} = relays(Memory),
    maps:get(Step, From, ended) =/= service;
is_relayed(_, _) ->
    false.

-doc "Providers whose hosts do not reach each other, with the last error; sorted.".
-spec stars(sderl_ops_memory:memory()) -> [{Provider :: binary(), Why :: term()}].
stars(Memory) ->
    #{stars := Stars} = relays(Memory),
    lists:sort(maps:to_list(Stars)).

%% ---------------------------------------------------------------- who gives

-record(pool, {
    view :: sderl_ops_view:view(),
    relays :: relays(),
    %% How many more may be begun.
    relays_left :: integer(),
    service_left :: integer(),
    %% How many more each giver may give to.
    left :: #{sderl_ops_desired:host_id() => integer()},
    %% All givers of a release in a provider, by how near they are; and those that may be free.
    all :: #{key() => [sderl_ops_desired:host_id(), ...]},
    free :: #{key() => [sderl_ops_desired:host_id()]},
    %% Releases that are being brought to a host of a provider, which will be a giver.
    coming :: #{{Provider :: binary(), sderl_ops_desired:sha()} => []}
}).

-type key() :: {Provider :: binary(), sderl_ops_desired:sha(), Place :: term()}.

-doc """
The giver of each of these fetches that can be begun now. The service sends `Service` archives at a
time.
""".
-spec sources([sderl_ops_step:step()], Service :: pos_integer(), sderl_ops_view:view()) ->
    #{sderl_ops_step:step() => source()}.
sources([], _, _) -> #{};
sources(Steps, Service, View) ->
    Pool = pool(Steps, Service, View),
    %% Near givers are chosen for all fetches before a far one is: it may be near to another host.
    Levels = [fun(Step, Acc) -> given(Level, Step, Acc) end || Level <- [1, 2, 3, 4]]
        ++ [fun sent/2],
    {Found, _} = lists:foldl(fun(Choose, Acc) -> choose_each(Choose, lists:sort(Steps), Acc) end,
                             {#{}, Pool}, Levels),
    Found.

choose_each(Choose, Steps, Acc0) ->
    lists:foldl(fun
        (Step, {Found, _} = Acc) when is_map_key(Step, Found) -> Acc;
        (Step, {Found, Pool}) ->
            case Choose(Step, Pool) of
                {none, Next} -> {Found, Next};
                {Source, Next} -> {Found#{Step => Source}, take(Source, Step, Next)}
            end
    end, Acc0, Steps).

pool(Steps, Service, #view{memory = Memory, running = Running} = View) ->
    #{from := From} = Relays = relays(Memory),
    Fetches = [Step || {fetch, _, _} = Step := _ <- Running],
    Giving = [Giver || _ := Giver <- From, Giver =/= service],
    All = givers(#{Sha => [] || {fetch, _, Sha} <- Steps}, Relays, View),
    #pool{
        view = View,
        relays = Relays,
        relays_left = ?RELAYS - length(Giving),
        service_left = Service - length([Step || Step := service <- From]),
        left = lists:foldl(fun(Giver, Acc) ->
            Acc#{Giver => maps:get(Giver, Acc, ?GIVES) - 1}
        end, #{}, Giving),
        all = All,
        free = All,
        coming = #{{of_host(Host), Sha} => [] || {fetch, Host, Sha} <- Fetches}
    }.

givers(Wanted, #{bad := Bad}, #view{observed = #{hosts := Hosts}, now = Now} = View) ->
    maps:groups_from_list(
        fun({Key, _}) -> Key end,
        fun({_, Host}) -> Host end,
        [{{of_host(Host), Sha, Place}, Host}
         || Host := #{state := up} = Seen <- maps:iterator(Hosts, ordered),
            can_relay(Host, View),
            Sha <- maps:get(archives, Seen, []),
            is_map_key(Sha, Wanted),
            maps:get({Host, Sha}, Bad, Now) =< Now,
            Place <- places(Host, View)]).

%% From near to far. Labels are those of the host's domains, with its region and rack.
places(Host, #view{desired = #{hosts := Hosts}}) ->
    Labels = case Hosts of
        #{Host := #{labels := Of}} -> Of;
        #{} -> #{}
    end,
    Region = maps:get(~"region", Labels, none),
    [{labels, Labels}, {rack, Region, maps:get(~"rack", Labels, none)}, {region, Region}, anywhere].

can_relay(Host, #view{desired = #{hosts := Hosts}, memory = Memory}) ->
    #{stars := Stars} = relays(Memory),
    case Hosts of
        #{Host := #{relay := true}} -> not is_map_key(of_host(Host), Stars);
        #{} -> false
    end.

%% A giver at this distance. Givers without a free slot are dropped from the list, so its first one
%% is nearly always free.
given(_, _, #pool{relays_left = Left} = Pool) when Left =< 0 ->
    {none, Pool};
given(Level, {fetch, Host, Sha} = Step, #pool{view = View, free = Free, left = Left} = Pool) ->
    Key = {of_host(Host), Sha, lists:nth(Level, places(Host, View))},
    case {Free, tried(Step, Pool)} of
        {#{Key := [_ | _] = Givers}, Tried} when is_list(Tried) ->
            IsFree = fun(Giver) -> maps:get(Giver, Left, ?GIVES) > 0 end,
            Rest = lists:dropwhile(fun(Giver) -> not IsFree(Giver) end, Givers),
            Next = Pool#pool{free = Free#{Key := Rest}},
            case lists:search(fun(Giver) ->
                     IsFree(Giver) andalso not lists:member(Giver, Tried)
                 end, Rest) of
                {value, Giver} -> {Giver, Next};
                false -> {none, Next}
            end;
        {#{}, _} ->
            {none, Pool}
    end.

%% Givers that failed for that host; `enough` if no other is to be tried.
tried({fetch, Host, _} = Step, #pool{view = View, relays = #{tried := Tried}}) ->
    Not = maps:get(Step, Tried, []),
    case can_relay(Host, View) andalso length(Not) < ?TRIES of
        true -> Not;
        false -> enough
    end.

%% A host waits if a giver will be free, or will have the archive, soon: then the service does not
%% send more than ?SENT archives.
sent({fetch, Host, Sha} = Step, #pool{all = All, coming = Coming} = Pool) ->
    #pool{relays = #{sent := Sent}, service_left = Left} = Pool,
    Givers = maps:get({of_host(Host), Sha, anywhere}, All, []),
    IsGivenSoon = case tried(Step, Pool) of
        enough -> false;
        Tried ->
            is_map_key({of_host(Host), Sha}, Coming)
                orelse lists:sublist(Givers, length(Tried) + 1) -- Tried =/= []
    end,
    case Left =< 0 orelse (IsGivenSoon andalso maps:get(Sha, Sent, 0) >= ?SENT) of
        true -> {none, Pool};
        false -> {service, Pool}
    end.

take(Source, {fetch, Host, Sha}, #pool{coming = Coming} = Pool) ->
    take_from(Source, Sha, Pool#pool{coming = Coming#{{of_host(Host), Sha} => []}}).

take_from(service, Sha, #pool{relays = #{sent := Sent} = Relays} = Pool) ->
    Pool#pool{service_left = Pool#pool.service_left - 1,
              relays = Relays#{sent := Sent#{Sha => maps:get(Sha, Sent, 0) + 1}}};
take_from(Giver, _, #pool{left = Left} = Pool) ->
    Pool#pool{relays_left = Pool#pool.relays_left - 1,
              left = Left#{Giver => maps:get(Giver, Left, ?GIVES) - 1}}.

%% ---------------------------------------------------------------- what is remembered

-doc "Remembers who gives, for the fetches among the steps that begin.".
-spec begin_steps([sderl_ops_step:step()], #{sderl_ops_step:step() => source()},
                  sderl_ops_memory:memory()) -> sderl_ops_memory:memory().
begin_steps(Start, Sources, Memory) ->
    case [{Step, Sha, map_get(Step, Sources)} || {fetch, _, Sha} = Step <- Start] of
        [] -> Memory;
        Begun ->
            Memory#{relays => lists:foldl(fun begin_one/2, relays(Memory), Begun)}
    end.

begin_one({Step, Sha, service}, #{from := From, sent := Sent} = Relays) ->
    Relays#{from := From#{Step => service}, sent := Sent#{Sha => maps:get(Sha, Sent, 0) + 1}};
begin_one({Step, _, Giver}, #{from := From} = Relays) ->
    Relays#{from := From#{Step => Giver}}.

-doc """
Forgets fetches that a previous service had begun, and failures that are long ago.
""".
-spec tidy([sderl_ops_step:step()], Now :: sderl_ops_memory:time(), sderl_ops_memory:memory()) ->
    sderl_ops_memory:memory().
tidy(Running, Now, Memory) ->
    change(Memory, fun(#{from := From} = Relays) ->
        try_again(Now, Relays#{from := maps:with(Running, From)})
    end).

try_again(Now, #{until := Until, stars := Stars, failures := Failures} = Relays) ->
    case [Provider || Provider := At <- Until, At =< Now] of
        [] ->
            Relays;
        Over ->
            Relays#{until := maps:without(Over, Until), stars := maps:without(Over, Stars),
                    failures := maps:merge(Failures, #{Of => ?FAILURES - 1 || Of <- Over})}
    end;
try_again(_, Relays) ->
    Relays.

-doc "A fetch has succeeded.".
-spec succeeded(sderl_ops_step:step(), sderl_ops_memory:memory()) -> sderl_ops_memory:memory().
succeeded({fetch, Host, _} = Step, Memory) ->
    change(Memory, fun(#{from := From, tried := Tried, failures := Failures} = Relays) ->
        Relays#{
            from := maps:remove(Step, From),
            tried := maps:remove(Step, Tried),
            failures := case From of
                #{Step := Giver} when Giver =/= service -> maps:remove(of_host(Host), Failures);
                #{} -> Failures
            end
        }
    end);
succeeded(_, Memory) ->
    Memory.

-doc """
A fetch has failed. `again`: the giver's failure does not count as one of the fetch, because another
giver is asked at once. A note says if hosts were found not to reach each other.
""".
-spec failed(sderl_ops_step:step(), Why :: term(), sderl_ops_memory:memory(),
             sderl_ops_memory:time()) ->
    {again | counts, sderl_ops_memory:memory(), [sderl_ops_note:note()]}.
failed({fetch, _, Sha} = Step, Why, Memory, Now) ->
    #{from := From, sent := Sent} = Relays = relays(Memory),
    Ended = Relays#{from := maps:remove(Step, From)},
    case {From, Why} of
        {#{Step := service}, _} ->
            Fewer = Sent#{Sha => max(0, maps:get(Sha, Sent, 0) - 1)},
            {counts, Memory#{relays => Ended#{sent := Fewer}}, []};
        {#{Step := _}, {relay, receiver, _}} ->
            {counts, Memory#{relays => Ended}, []};
        {#{Step := Giver}, {relay, Side, _}} ->
            {After, Notes} = blame(Side, Giver, Step, Why, Now, Ended),
            {again, Memory#{relays => After}, Notes};
        {#{Step := Giver}, _} ->
            {After, _} = blame(giver, Giver, Step, Why, Now, Ended),
            {counts, Memory#{relays => After}, []};
        {#{}, _} ->
            {counts, Memory, []}
    end;
failed(_, _, Memory, _) ->
    {counts, Memory, []}.

blame(giver, Giver, {fetch, _, Sha} = Step, _, Now, Relays) ->
    #{bad := Bad} = After = add_tried(Step, Giver, Relays),
    {After#{bad := Bad#{{Giver, Sha} => Now + ?BAD_MS}}, []};
blame(link, Giver, {fetch, Host, _} = Step, {relay, link, Said}, Now, Relays) ->
    #{failures := Failures, stars := Stars} = After = add_tried(Step, Giver, Relays),
    Provider = of_host(Host),
    case maps:get(Provider, Failures, 0) + 1 of
        Count when Count >= ?FAILURES, not is_map_key(Provider, Stars) ->
            Until = maps:get(until, After, #{}),
            {After#{failures := maps:remove(Provider, Failures),
                    stars := Stars#{Provider => Said},
                    until => Until#{Provider => Now + ?STAR_MS}}, [{star, Provider, Said}]};
        Count ->
            {After#{failures := Failures#{Provider => Count}}, []}
    end.

add_tried(Step, Giver, #{tried := Tried} = Relays) ->
    Relays#{tried := Tried#{Step => lists:usort([Giver | maps:get(Step, Tried, [])])}}.

of_host(Host) -> hd(binary:split(Host, ~"/")).

-doc "Forgets what is known of releases that are no longer desired.".
-spec forget(#{sderl_ops_desired:sha() => term()}, sderl_ops_memory:memory()) ->
    sderl_ops_memory:memory().
forget(Releases, Memory) ->
    change(Memory, fun(#{sent := Sent, tried := Tried, bad := Bad} = Relays) ->
        Relays#{
            sent := maps:with(maps:keys(Releases), Sent),
            tried := #{Step => By || {fetch, _, Sha} = Step := By <- Tried,
                                     is_map_key(Sha, Releases)},
            bad := #{Of => Until || {_, Sha} = Of := Until <- Bad, is_map_key(Sha, Releases)}
        }
    end).

-doc "Everything is tried again.".
-spec resume(sderl_ops_memory:memory()) -> sderl_ops_memory:memory().
resume(Memory) ->
    change(Memory, fun(Relays) ->
        Relays#{tried := #{}, bad := #{}, failures := #{}, stars := #{}, until => #{}}
    end).

%% The memory of an earlier version has no relays.
change(#{relays := Relays} = Memory, Change) -> Memory#{relays := Change(Relays)};
change(Memory, _) -> Memory.
