%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_settle).
-moduledoc false.
%% How a batch decides clashes and settles them: which of two rows stays, with which version, and
%% which processes lost. `sderl_core_clash` keeps the clashes until then.

-include("sderl_core.hrl").
-include("sderl_core_overlay.hrl").

-export([decided/7, settle/5, alone/3, replaced/4, raised/3, left_clashes/2, unopposed/2,
         latest/2]).
-import(sderl_core_overlay, [name/2, kept/2, is_free/3, put_row/2, del_row/2]).

%% The clashes that are kept, by name.
-type clashes() :: #{Name :: term() => clash()}.

-doc "A resolver's decision on a clash, as it is kept until the clash is settled.".
-spec decided(Name :: term(), sderl_row:t(), sderl_row:t(), Keep :: pid() | none,
              Effects :: [term()], sderl_core_overlay:overlay(), #s{}) ->
    {clashes(), sderl_core_overlay:overlay()}.
%% The winner gets a version above both rows, so tokens of either process are lower. No row changes
%% yet: the winner's home must have the version before anybody reads it. The version is kept in our
%% row of the clash, whichever won.
decided(Name, A, B, Keep, Fx, #c{decided = Before} = C, #s{num = Num, d = #d{lineage = E}}) ->
    case replaced(Name, A, B, C) of
        false ->
            Version = {E, sderl_core_state:seq(Num + 1, Before + 1)},
            Ours = case Keep of
                none -> A;
                _ -> sderl_row:with_version(Version, A)
            end,
            {#{Name => {Ours, B, Keep, Fx}}, C#c{decided = Before + 1}};
        Again -> {Again, C}
    end.

-doc "Whether our row was replaced while the resolver ran, which then has to be asked again.".
-spec replaced(Name :: term(), sderl_row:t(), sderl_row:t(), sderl_core_overlay:overlay()) ->
    false | clashes().
replaced(_, ?ROW_OF(Pid), ?ROW_OF(Pid), _) -> false;
replaced(Name, ?ROW_OF(PidA), ?ROW_OF(PidB) = B, C) ->
    case kept(Name, C) of
        ?ROW_OF(Pid) = Held when Pid =/= PidA, Pid =/= PidB -> #{Name => {Held, B}};
        _ -> false
    end.

-doc "Settles a clash. The item tells the homes, even if no row changes.".
-spec settle(Name :: term(), clash(), Keep :: pid() | none | neither, Effects :: [term()],
             sderl_core_overlay:overlay()) -> {#settle{}, sderl_core_overlay:overlay()}.
settle(Name, Clash, Keep, Fx, #c{view = V} = C0) ->
    {?ROW_OF(PidA), ?ROW_OF_AT(PidB, HomeB) = B} = sderl_core_clash:rows(Clash),
    Here = PidA =/= PidB andalso is_map_key(HomeB, V)
        andalso not lists:member(HomeB, C0#c.drops) andalso is_free(PidB, Name, C0),
    {Lost, Stands, Now} = case kept(Name, C0) of
        %% Our row went while the resolver ran: nothing is left to decide.
        none when Here -> {[], B, []};
        none -> {[], none, []};
        ?ROW_OF(PidA) = Held when not Here -> {[], Held, []};
        ?ROW_OF(PidA) = Held when Keep =:= PidA -> {[PidB], Held, Fx};
        ?ROW_OF(PidA) when Keep =:= PidB -> {[PidA], B, Fx};
        ?ROW_OF(PidA) -> {[PidA, PidB], none, Fx};
        %% Ours went, and theirs came again.
        ?ROW_OF(PidB) = Held -> {[], latest(Held, B), []};
        Held -> {[], Held, []}
    end,
    Row = raised(Stands, Clash, C0),
    C1 = case name(Name, C0) of none -> C0; Old -> del_row(Old, C0) end,
    C = case Row of none -> C1; _ -> put_row(Row, C1) end,
    {#settle{name = Name, losers = Lost, row = Row, effects = Now}, C}.

-doc """
Settles the clashes of which one home leaves: the other row stays. If the decision was for that row
it gets the new version, which the home that went may have shown already.
""".
-spec left_clashes(Drops :: [node()], sderl_core_overlay:overlay()) ->
    {[sderl_op:item()], sderl_core_overlay:overlay()}.
left_clashes([], C) -> {[], C};
left_clashes(Drops, #c{clashes = Clashes} = C0) ->
    Left = [{Name, Clash}
            || Name := Clash <- maps:iterator(Clashes, ordered),
               {?ROW_AT(HomeA), ?ROW_AT(HomeB)} <- [sderl_core_clash:rows(Clash)],
               lists:member(HomeA, Drops) orelse lists:member(HomeB, Drops)],
    lists:foldl(fun({Name, Clash}, {Items, #c{clashes = Open} = C}) ->
        {A, ?ROW_AT(HomeB) = B} = sderl_core_clash:rows(Clash),
        case not lists:member(HomeB, Drops) andalso replaced(Name, A, raised(B, Clash, C), C) of
            false ->
                C1 = C#c{clashes = maps:remove(Name, Open)},
                {Item, C2} = settle(Name, Clash, neither, [], C1),
                alone(Item#settle{losers = []}, Clash, {Items, C2});
            %% The home of a row that was replaced leaves: the clash goes on with the present row.
            Again -> {[#clashes{clashes = Again} | Items], C#c{clashes = maps:merge(Open, Again)}}
        end
    end, {[], C0}, Left).

-doc """
The row with the version that the decision of a clash gave it. If its home is set aside it may not
have heard of the decision, and may go on without us with the old version: it gets the new one when
it counts again.
""".
-spec raised(sderl_row:t() | none, clash(), sderl_core_overlay:overlay()) -> sderl_row:t() | none.
raised(?ROW_AT(Home) = Row, Clash, #c{view = V}) when map_get(Home, V) =:= live ->
    sderl_core_clash:won(Row, Clash);
raised(Row, _, _) -> Row.

-doc """
Adds an item that settles a clash whose other row is gone. If the home of the row that stays has not
heard of the new version yet, it is to be told.
""".
-spec alone(#settle{}, clash(), {[sderl_op:item()], sderl_core_overlay:overlay()}) ->
    {[sderl_op:item()], sderl_core_overlay:overlay()}.
alone(#settle{row = none} = Item, _, {Items, C}) -> {[Item | Items], C};
alone(#settle{name = Name, row = Row} = Item, Clash, {Items, #c{clashes = Clashes} = C}) ->
    case sderl_core_clash:won(Row, Clash) of
        Row -> {[Item | Items], C};
        Won ->
            Owed = #{Name => {Won, Row, sderl_row:pid(Row), []}},
            {[#clashes{clashes = Owed}, Item | Items], C#c{clashes = maps:merge(Clashes, Owed)}}
    end.

-doc """
The row with its latest version: a registration that won a clash here has the version of the
decision, even if its home went before it knew.
""".
-spec latest(sderl_row:t(), Here :: sderl_row:t() | none) -> sderl_row:t().
latest(?ROW(_, Pid, _, Version, _) = Row, ?ROW(_, Pid, _, Here, _))
  when Here > Version, Here =/= new ->
    sderl_row:with_version(Here, Row);
latest(Row, _) -> Row.

-doc "The item for a row that stays, or none, without losers.".
-spec unopposed(Name :: term(), sderl_row:t() | none) -> #settle{}.
unopposed(Name, Row) -> #settle{name = Name, losers = [], row = Row, effects = []}.
