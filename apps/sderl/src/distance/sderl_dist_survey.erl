%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_survey).
-moduledoc false.
%% One node's part in one survey, in a process of its own, which lives until the survey is done or
%% its time is over.
%%
%% It passes the request on to the members of those of its groups that were not asked yet, so that
%% the request reaches every group once, or once for each gateway; it has its mates probed; it sends
%% its report to the node that asked it, and passes on the reports of the nodes that it asked. So
%% all messages go over links that groups have anyway. A report names the nodes that were asked, so
%% that the node that began the survey knows for which nodes to wait.
%%
%% The time to report shrinks at each hop: a report must be back before the nodes that pass it on
%% give up.

-export([run/3, valid/1, request/4, send/2]).
-export_type([spec/0, report/0]).

-import(sderl_clock, [now_ms/0]).

%% The prober answers with its exit reason.
-dialyzer({nowarn_function, [run/3]}).

-define(SHARE, 0.85).
-define(GRACE, 1000).

-doc """
`groups`: `own` are the groups of the asking node, `all` those of other nodes too, or a list of
names. `asked`: uids of groups whose members were asked already. `left_ms`: until the report is due.
The rest is for the prober.
""".
-type spec() :: #{
    groups := own | all | [term()],
    asked := [binary()],
    left_ms := pos_integer(),
    peers := pos_integer(),
    batches := pos_integer(),
    batch := pos_integer(),
    window := pos_integer(),
    spread_ms := pos_integer()
}.

-type report() ::
    #{
        node := node(),
        groups := [{Uid :: binary(), Name :: term(), [node()]}],
        asked := [node()],
        unlinked := [node()],
        legs := [{node(), Ns :: pos_integer()}],
        silent := [node()],
        messages := non_neg_integer(),
        bytes := non_neg_integer()
    }
    | #{node := node(), refused := busy}.

-doc """
Whether a term from another node is such a specification, within limits that protect a node from
being flooded.
""".
-spec valid(term()) -> boolean().
valid(#{groups := Groups, asked := Asked, left_ms := Left, peers := Peers, batches := Batches,
        batch := Batch, window := Window, spread_ms := Spread}) ->
    (Groups =:= own orelse Groups =:= all orelse is_proper(Groups)) andalso is_proper(Asked) andalso
        lists:all(fun({N, Most}) -> is_integer(N) andalso N > 0 andalso N =< Most end,
                  [{Left, 600_000}, {Peers, 10_000}, {Batches, 1000}, {Batch, 1000}, {Window, 1000},
                   {Spread, 600_000}]);
valid(_) ->
    false.

is_proper(List) when length(List) >= 0 -> true;
is_proper(_) -> false.

-doc "Asks a node to take part.".
-spec request(node(), Id :: reference(), ReplyTo :: pid(), spec()) -> ok | noconnect.
request(Node, Id, ReplyTo, Spec) ->
    send({sderl_dist_probe, Node}, {sderl_dist, 1, survey, Id, ReplyTo, Spec}).

-spec run(reference(), pid(), spec()) -> ok.
run(Id, ReplyTo, #{left_ms := Left} = Spec) ->
    _ = process_flag(async_dist, true),
    Until = now_ms() + Left,
    Groups = groups(Spec),
    New = [{Uid, Name, Members}
           || {Uid, Name, Members} <- Groups, not lists:member(Uid, maps:get(asked, Spec))],
    {Asked, Unlinked} = ask(Id, Groups, New, Spec),
    Mates = lists:usort(lists:append([Members || {_, _, Members} <- Groups])) -- [node()],
    Linked = [Node || Node <- Mates, lists:member(Node, nodes(connected))],
    Peers = sderl_dist_estimate:peers(node(), Linked, maps:get(peers, Spec)),
    %% Not linked, because its failure is no reason not to pass on reports. It is ended when its
    %% time is over.
    {Pid, Ref} = spawn_monitor(fun() ->
        exit({outcome, sderl_dist_prober:run(Peers, Spec#{until => Until})})
    end),
    Report = #{node => node(), groups => New, asked => Asked, unlinked => Unlinked},
    _ = erlang:start_timer(Until + ?GRACE, self(), Id, [{abs, true}]),
    relay(Id, ReplyTo, Asked, {Pid, Ref, Report}).

%% The groups in the survey, with members; the free nodes of an island are a group here too.
groups(#{groups := Wanted}) ->
    [{Uid, Name, Members} || {Name, #{uid := Uid, members := Members}} <- sderl_dir:all(),
                             not is_list(Wanted) orelse lists:member(Name, Wanted)].

%% Each member once, and none that an earlier node asked.
ask(Id, Groups, New, #{asked := Before, left_ms := Left} = Spec) ->
    Next = Spec#{asked := lists:usort(Before ++ [Uid || {Uid, _, _} <- Groups]),
                 left_ms := max(1, floor(?SHARE * Left)), groups := inner(Spec, Groups)},
    Earlier = lists:append([Members || {Uid, _, Members} <- Groups, lists:member(Uid, Before)]),
    Members = lists:usort(lists:append([Ms || {_, _, Ms} <- New])) -- [node() | Earlier],
    lists:partition(fun(Node) -> request(Node, Id, self(), Next) =:= ok end, Members).

%% The names of the asking node's groups, which the others know, too.
inner(#{groups := own}, Groups) -> [Name || {_, Name, _} <- Groups];
inner(#{groups := Wanted}, _) -> Wanted.

relay(Id, ReplyTo, Asked, {Pid, Ref, Report} = Prober) ->
    receive
        {sderl_dist, 1, report, Id, Theirs} ->
            _ = send(ReplyTo, {sderl_dist, 1, report, Id, Theirs}),
            relay(Id, ReplyTo, Asked, Prober);
        {'DOWN', Ref, process, Pid, Why} ->
            Outcome = case Why of
                {outcome, Found} -> Found;
                _ -> #{legs => [], silent => [], messages => 0, bytes => 0}
            end,
            _ = send(ReplyTo, {sderl_dist, 1, report, Id, maps:merge(Report, Outcome)}),
            relay(Id, ReplyTo, Asked, Prober);
        {done, Id} ->
            lists:foreach(fun(Node) ->
                send({sderl_dist_probe, Node}, {sderl_dist, 1, done, Id})
            end, Asked),
            stop(Pid);
        {timeout, _, Id} ->
            stop(Pid);
        _ ->
            ok = sderl_refused:note_message(sderl_dist_probe),
            relay(Id, ReplyTo, Asked, Prober)
    end.

stop(Pid) ->
    true = exit(Pid, kill),
    ok.

-doc "Sends if there is a link. The caller has the flag `async_dist`, so this never waits.".
-spec send(pid() | {atom(), node()}, term()) -> ok | noconnect.
send(To, Message) ->
    case erlang:send(To, Message, [noconnect]) of
        noconnect -> noconnect;
        _ -> ok
    end.
