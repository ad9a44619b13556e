%% SPDX-License-Identifier: Apache-2.0
-module(sderl_links).
-moduledoc """
Why this node has each of its links, and since when.

A partial mesh decays silently: a link that nobody needs stays, one that somebody needs is
missing, and nobody can tell which. So whoever needs a link says so before it opens the link
(`note/2`) and when it is done (`forget/2`), the node server reports links that come and go
(`nodeup/1`, `nodedown/1`), and this module can explain them all.

## Reasons

| reason | who notes it | ends |
|---|---|---|
| `{group, Group}` | membership, here or as `t:needs/0` | `forget/2` |
| `free_island` | islands of free nodes, likewise | `forget/2` |
| `group` | whoever opens a link for a member | by itself: see below |
| `caller` | `s_group:connect/1` | `forget/2`, or with the link |
| `stock` | the same, for a node without this application | `forget/2`, or with the link |
| `route` | routing | `forget/2`, or with the link |
| `{place, Keeper}` | a process that `sderl_place` keeps there | `forget/2`, or with the link |
| `{monitor, Group}` | pids on non-members that have names in a group | `forget/2`, or with the link |
| `{lookup, Group}` | lookups and sends that asked another node | by itself: see below |
| `plan` | whoever applies a plan of groups (`m:sderl_plan_apply`) | `forget/2`, or by itself: see below |

`{group, _}` and `free_island` are kept while the link is down: it is still needed then. A
caller that can tell all of these at any time gives them as `t:needs/0` instead of noting them. A
lookup, `group` and `plan` are uses, not needs: they keep the link needed for the idle time only,
counted from the last note, and are forgotten then (`forget_uses/1`), or later where there is no
link yet. A reason is there or not; whoever has several needs of one kind for one node counts them.

A link is *the library's* when a reason was there before the link was, and *another's* when not:
then the code of the application or the node at the other end opened it, and whether it is needed
is not ours to say.

## Table

The table is made by the supervisor (`new/0`) and public: every process notes for itself.

| row | for |
|---|---|
| `{Node, Visible, Since, OpenedBy, Free}` | a link; `Since` in system seconds, `Free`: when its last reason went, in monotonic milliseconds |
| `{{Node, Reason}, Noted}` | a reason; when it was noted last, in monotonic milliseconds |

Two races are harmless: `nodedown/1` of one link that runs after the `note/2` for the next takes the
reason with it, whereupon the next link counts as another's and is never closed; and a reason that
is noted while `forget/2` runs for the last one leaves a `Free` that nobody reads, as the link has a
reason.
""".

-export([new/0]).
-export([note/2, note/3, forget/2, forget/3, forget_uses/1, forget_monitors/2]).
-export([nodeup/1, nodeup/3, nodedown/1, is_up/1]).
-export([connections/0, connected/2]).
-export([list/0, list/1, list/3, reasons/1]).
-export([unneeded/3]).
-export([view/5, close_candidate/3]).
-import(sderl_clock, [now_ms/0]).

-export_type([reason/0, needs/0, link/0, view/0, connection/0]).

-define(TABLE, ?MODULE).
-define(IDLE_MS, 600_000).
%% Nobody takes longer to open a link: `net_setuptime` is 120 s at most.
-define(OPENING_MS, 130_000).

-doc "Tells one link to a node from the next, as the runtime numbers them.".
-type connection() :: integer().

-doc "What a link is for; see the table above.".
-type reason() ::
    {group, Group :: term()}
    | free_island
    | group
    | caller
    | stock
    | route
    | {place, Keeper :: pid()}
    | {monitor, Group :: term()}
    | {lookup, Group :: term()}
    | plan.

-doc """
Reasons that the caller can tell and nobody noted: which groups, or the island, need the link to
a node.
""".
-type needs() :: #{node() => [reason()]}.

-doc """
A link as `s_group:links/0` shows it. `since` is system time in seconds
(`calendar:system_time_to_rfc3339/1` makes it readable).
""".
-type link() :: #{
    node := node(),
    visible := boolean(),
    since := integer(),
    reasons := [reason()],
    opened_by := library | other,
    needed := boolean()
}.

-doc """
One end's view of a link, for the decision to close it. `names` counts names known at this
end whose pid is at the other, `idle_ms` is how long no traffic of the application was seen.
""".
-type view() :: #{
    visible := boolean(),
    opened_by := library | other,
    needed := boolean(),
    names := non_neg_integer(),
    idle_ms := non_neg_integer()
}.

-doc "Makes the table. Called once by the process that shall own it.".
-spec new() -> ets:table().
new() ->
    ets:new(?TABLE,
            [named_table, public, set, {read_concurrency, true}, {write_concurrency, true}]).

%% Reasons
-doc """
Notes that the link to a node has a reason, whether it is up or not. Call it before opening
the link. For this node itself it does nothing.
""".
-spec note(node(), reason()) -> ok.
note(Node, Reason) ->
    note(Node, Reason, now_ms()).

-doc "As `note/2`, at the monotonic time `Now` (milliseconds).".
-spec note(node(), reason(), Now :: integer()) -> ok.
note(Node, _Reason, _Now) when Node =:= node() ->
    ok;
note(Node, Reason, Now) when is_atom(Node) ->
    true = ets:insert(?TABLE, {{Node, Reason}, Now}),
    ok.

-doc "Takes a reason away; `ok` also when it was not there. The link stays.".
-spec forget(node(), reason()) -> ok.
forget(Node, Reason) ->
    forget(Node, Reason, now_ms()).

-doc "As `forget/2`, at the monotonic time `Now` (milliseconds).".
-spec forget(node(), reason(), Now :: integer()) -> ok.
forget(Node, Reason, Now) ->
    case ets:take(?TABLE, {Node, Reason}) of
        [_] ->
            _ = ets:update_element(?TABLE, Node, {5, Now}),
            ok;
        [] ->
            ok
    end.

-doc """
Forgets the uses noted last before this monotonic time (milliseconds): whoever asks for many groups
would leave a reason for each. While there is no link they stay 130 s longer: whoever noted one
may be opening it, and it is the library's when it comes up, however long that takes.
""".
-spec forget_uses(Before :: integer()) -> ok.
forget_uses(Before) ->
    Uses = ets:select(?TABLE, [{{{'$1', Use}, '$2'}, [{'<', '$2', Before}], ['$_']}
                               || Use <- [{lookup, '_'}, group, plan]]),
    forget_rows([Row || {{Node, _Use}, At} = Row <- Uses,
                        is_up(Node) orelse At < Before - ?OPENING_MS]).

-doc """
Forgets, of what was noted before this monotonic time (milliseconds), the reasons `{monitor, Group}`
but for these nodes and groups.
""".
-spec forget_monitors(Watched :: [{node(), Group :: term()}], Before :: integer()) -> ok.
forget_monitors(Watched, Before) ->
    forget_rows(ets:select(
        ?TABLE,
        [{{{'$1', {monitor, '$3'}}, '$2'},
          [{'<', '$2', Before}, list_to_tuple(['andalso', true
              | [{'orelse', {'=/=', '$1', N}, {'=/=', '$3', {const, G}}} || {N, G} <- Watched]])],
          ['$_']}]
    )).

%% Only as they are: one that is noted again in this moment stays.
forget_rows(Rows) ->
    lists:foreach(fun({{Node, _}, At} = Row) ->
        Free = ets:lookup_element(?TABLE, Node, 5, At),
        true = ets:delete_object(?TABLE, Row),
        _ = ets:update_element(?TABLE, Node, {5, max(Free, At)})
    end, Rows).

%% The node server's view
-doc "The links that are up.".
-spec connections() -> #{node() => connection()}.
connections() ->
    Links = nodes(connected, #{connection_id => true}),
    #{N => Id || {N, #{connection_id := Id}} <- Links}.

-doc "Whether this very link to the node is up.".
-spec connected(node(), connection() | undefined) -> boolean().
connected(Node, Connection) -> maps:get(Node, connections(), none) =:= Connection.

-doc """
Records that a link came up. A link that is known already stays as it is.

For links that were there before the library, call it before any reason is noted, or they
count as the library's.
""".
-spec nodeup(node()) -> ok.
nodeup(Node) ->
    nodeup(Node, lists:member(Node, nodes(visible)), now_ms()).

-doc """
As `nodeup/1`, for a link that is visible or not, at the monotonic time `Now` (milliseconds).
""".
-spec nodeup(node(), Visible :: boolean(), Now :: integer()) -> ok.
nodeup(Node, Visible, Now) when is_boolean(Visible) ->
    OpenedBy =
        case reasons(Node) of
            [] -> other;
            [_ | _] -> library
        end,
    _ = ets:insert_new(?TABLE, {Node, Visible, erlang:system_time(second), OpenedBy, Now}),
    ok.

-doc "Whether there is a link to a node, as it was reported last.".
-spec is_up(node()) -> boolean().
is_up(Node) -> ets:member(?TABLE, Node).

-doc "Records that a link went down, and with it the reasons that end with the link.".
-spec nodedown(node()) -> ok.
nodedown(Node) ->
    true = ets:delete(?TABLE, Node),
    lists:foreach(
        fun(Reason) -> outlives(Reason) orelse ets:delete(?TABLE, {Node, Reason}) end,
        reasons(Node)
    ).

outlives({group, _Group}) -> true;
outlives(free_island) -> true;
outlives(_Reason) -> false.

%% Lists of links
-doc "The links that are up, with nothing needed but what was noted. See `list/3`.".
-spec list() -> [link()].
list() ->
    list(#{}).

-doc "The links that are up, with ten minutes as the idle time of uses. See `list/3`.".
-spec list(needs()) -> [link()].
list(Needs) ->
    list(Needs, now_ms(), ?IDLE_MS).

-doc """
The links that are up, by node. `needed` is false only for links of the library that have no
reason left but uses at least `IdleMs` ago. `Now` is monotonic time in milliseconds.
""".
-spec list(needs(), Now :: integer(), IdleMs :: non_neg_integer()) -> [link()].
list(Needs, Now, IdleMs) ->
    Noted = noted(Needs, Now),
    lists:sort(
        fun(#{node := A}, #{node := B}) -> A =< B end,
        [describe(Row, maps:get(element(1, Row), Noted, []), Now, IdleMs) || Row <- links()]
    ).

describe({Node, Visible, Since, OpenedBy, _Free}, Noted, Now, IdleMs) ->
    #{
        node => Node,
        visible => Visible,
        since => Since,
        reasons => lists:sort([Reason || {Reason, _At} <- Noted]),
        opened_by => OpenedBy,
        needed => OpenedBy =:= other orelse needed(Noted, Now, IdleMs)
    }.

needed(Noted, Now, IdleMs) ->
    lists:any(fun({Reason, At}) -> not is_use(Reason) orelse Now - At < IdleMs end, Noted).

is_use({lookup, _Group}) -> true;
is_use(group) -> true;
is_use(plan) -> true;
is_use(_Reason) -> false.

-doc "The reasons noted for the link to a node, sorted, whether it is up or not.".
-spec reasons(node()) -> [reason()].
reasons(Node) ->
    lists:sort([Reason || [Reason] <- ets:match(?TABLE, {{Node, '$1'}, '_'})]).

-doc """
The nodes to which the library opened a link that nobody needs, and how many milliseconds ago
it was last needed, by node. What the policy `report` reports.

`Now` is monotonic time in milliseconds. A link that has just come up, or has just lost its
last noted reason, is not listed before `IdleMs` have passed.
""".
-spec unneeded(needs(), Now :: integer(), IdleMs :: non_neg_integer()) ->
    [{node(), non_neg_integer()}].
unneeded(Needs, Now, IdleMs) ->
    Noted = noted(Needs, Now),
    lists:sort([
        {Node, Idle}
     || {Node, _Visible, _Since, library, Free} <- links(),
        Reasons <- [maps:get(Node, Noted, [])],
        not needed(Reasons, Now, IdleMs),
        Idle <- [Now - lists:max([Free | [At || {_Reason, At} <- Reasons]])],
        Idle >= IdleMs
    ]).

links() -> ets:match_object(?TABLE, {'_', '_', '_', '_', '_'}).

noted() ->
    maps:groups_from_list(
        fun({{Node, _Reason}, _At}) -> Node end,
        fun({{_Node, Reason}, At}) -> {Reason, At} end,
        ets:match_object(?TABLE, {{'_', '_'}, '_'})
    ).

%% With what the caller gave; a reason that was noted too is not listed twice.
noted(Needs, Now) ->
    maps:merge_with(
        fun(_Node, Noted, Given) ->
            Noted ++ [G || {Reason, _} = G <- Given, not has_reason(Reason, Noted)]
        end,
        noted(),
        #{Node => [{Reason, Now} || Reason <- lists:uniq(Reasons)] || Node := Reasons <- Needs}
    ).

%% Not keymember, which takes {group, 1} and {group, 1.0} for one.
has_reason(Reason, Noted) -> lists:any(fun({R, _At}) -> R =:= Reason end, Noted).

%% Closing (protocol rule 25), decided at the end that opened the link

-doc """
This end's view of a link, to be sent to the other end.

`Now` is monotonic time and `IdleMs` the policy's idle time, in milliseconds. `Measured` is what the
caller counted: the names that it knows with a pid across the link, and how long no traffic
of the application was seen.
""".
-spec view(node(), needs(), Now :: integer(), IdleMs :: non_neg_integer(), Measured) ->
    {ok, view()} | {error, no_link}
when
    Measured :: #{names := non_neg_integer(), idle_ms := non_neg_integer()}.
view(Node, Needs, Now, IdleMs, #{names := Names, idle_ms := Idle}) ->
    case ets:lookup(?TABLE, Node) of
        [{Node, Visible, _Since, OpenedBy, _Free}] ->
            %% Unlike in `list/2`: who opened it is judged over both ends, what it is needed for
            %% at each.
            {ok, #{
                visible => Visible,
                opened_by => OpenedBy,
                needed => needed(maps:get(Node, noted(Needs, Now), []), Now, IdleMs),
                names => Names,
                idle_ms => Idle
            }};
        [] ->
            {error, no_link}
    end.

-doc """
Whether both ends' views allow the policy `close` to close a link that has been idle for
`IdleMs` milliseconds: the library opened it at one end or both, neither end needs it, no name's
pid is across it, and both saw it idle.

Otherwise the first rule that forbids it. Source: protocol rule 25.
""".
-spec close_candidate(Here :: view(), There :: view(), IdleMs :: non_neg_integer()) ->
    close | {keep, not_opened_by_library | needed | names | not_idle}.
close_candidate(Here, There, IdleMs) ->
    Both = [Here, There],
    case {
        lists:any(fun(#{opened_by := By}) -> By =:= library end, Both),
        lists:any(fun(#{needed := Needed}) -> Needed end, Both),
        lists:any(fun(#{names := Names}) -> Names > 0 end, Both),
        lists:all(fun(#{idle_ms := Idle}) -> Idle >= IdleMs end, Both)
    } of
        {false, _, _, _} -> {keep, not_opened_by_library};
        {_, true, _, _} -> {keep, needed};
        {_, _, true, _} -> {keep, names};
        {_, _, _, false} -> {keep, not_idle};
        {true, false, false, true} -> close
    end.
