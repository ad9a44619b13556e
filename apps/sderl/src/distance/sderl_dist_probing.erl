%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_probing).
-moduledoc false.
%% In what order a node probes others: pure, `m:sderl_dist_prober` sends and measures.
%%
%% A batch is a number of round trips to one peer, one after the other. Every peer has its first
%% batch before any has its second, so that a spell of load does not hit all batches of one peer,
%% and so that there is something of each should time run out. Batches are released little by
%% little, so that many nodes that probe at once do not measure each other's probing. A few batches
%% to different peers may be under way at a time, or far peers would take long.

-export([new/4, release/2, pong/3, late/2, finished/1, results/1]).
-export_type([t/0, step/0]).

%% `planned`: batches in their order, how many that are, and how many there were; `todo`: those
%% released; `active`: those under way, by peer, with the number of the message that is out.
-opaque t() :: #{
    batch := pos_integer(),
    window := pos_integer(),
    next := pos_integer(),
    planned := {[node()], Left :: non_neg_integer(), All :: non_neg_integer()},
    todo := [node()],
    active := #{node() => {Number :: pos_integer(), [integer()]}},
    done := #{node() => [[integer()]]},
    silent := [node()]
}.

-doc "Messages to send, each with its number.".
-type step() :: {[{node(), Number :: pos_integer()}], t()}.

-doc """
Plans `Batches` batches of `Batch` round trips to each peer, at most `Window` at a time. The peers'
order is that of each round.
""".
-spec new([node()], Batches :: pos_integer(), Batch :: pos_integer(), Window :: pos_integer()) ->
    t().
new(Peers, Batches, Batch, Window) ->
    All = Batches * length(Peers),
    #{batch => Batch,
      window => Window,
      next => 1,
      planned => {lists:append(lists:duplicate(Batches, Peers)), All, All},
      todo => [],
      active => #{},
      done => #{Peer => [] || Peer <- Peers},
      silent => []}.

-doc "Of all batches so many may have begun by now: a part from 0 to 1.".
-spec release(Part :: number(), t()) -> step().
release(Part, #{planned := {Planned, Left, All}, todo := Todo, silent := Silent} = State) ->
    {Released, Rest} = lists:split(min(Left, max(0, ceil(Part * All) - (All - Left))), Planned),
    New = [Peer || Peer <- Released, not lists:member(Peer, Silent)],
    fill([], State#{planned := {Rest, length(Rest), All}, todo := Todo ++ New}).

-doc """
The answer to a message has come after so long. A late answer changes nothing.
""".
-spec pong({node(), Number :: integer()}, Ns :: integer(), t()) -> step().
pong({Peer, Number}, Ns, #{active := Active, batch := Batch, next := Next} = State) ->
    case Active of
        #{Peer := {Number, Times}} when length(Times) + 1 < Batch ->
            {[{Peer, Next}],
             State#{next := Next + 1, active := Active#{Peer := {Next, [Ns | Times]}}}};
        #{Peer := {Number, Times}} ->
            fill([], closed(Peer, [Ns | Times], State));
        #{} ->
            {[], State}
    end.

-doc "No answer has come in time: the peer is asked no more. What it answered before counts.".
-spec late({node(), Number :: integer()}, t()) -> step().
late({Peer, Number}, #{active := Active, todo := Todo, silent := Silent} = State) ->
    case Active of
        #{Peer := {Number, Times}} ->
            fill([], closed(Peer, Times, State#{todo := [P || P <- Todo, P =/= Peer],
                                                silent := [Peer | Silent]}));
        #{} ->
            {[], State}
    end.

closed(Peer, Times, #{active := Active, done := Done} = State) ->
    State#{active := maps:remove(Peer, Active),
           done := Done#{Peer := [Times | map_get(Peer, Done)]}}.

%% Batches are begun until the window is full. A peer has one at a time.
fill(Sends, #{active := Active, window := Window} = State) when map_size(Active) >= Window ->
    {lists:reverse(Sends), State};
fill(Sends, #{active := Active, todo := Todo, next := Next} = State) ->
    case lists:search(fun(Peer) -> not is_map_key(Peer, Active) end, Todo) of
        {value, Peer} ->
            fill([{Peer, Next} | Sends],
                 State#{next := Next + 1, active := Active#{Peer => {Next, []}},
                        todo := lists:delete(Peer, Todo)});
        false ->
            {lists:reverse(Sends), State}
    end.

-doc "Whether nothing is planned or under way.".
-spec finished(t()) -> boolean().
finished(#{planned := {_, Left, _}, todo := Todo, active := Active}) ->
    Left =:= 0 andalso Todo =:= [] andalso map_size(Active) =:= 0.

-doc """
The times by peer and batch, also of batches under way, those who did not answer, and the number of
messages sent.
""".
-spec results(t()) -> {#{node() => [[integer()]]}, Silent :: [node()], Sent :: non_neg_integer()}.
results(#{active := Active, done := Done, silent := Silent, next := Next}) ->
    {maps:merge_with(fun(_, [Times], Batches) -> [Times | Batches] end,
                     #{P => [Times] || P := {_, Times} <- Active}, Done),
     Silent, Next - 1}.
