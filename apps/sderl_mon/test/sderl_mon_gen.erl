%% SPDX-License-Identifier: Apache-2.0
%% Frames to test with, made by hand and by PropEr, and a hub to test beside.
-module(sderl_mon_gen).

-include_lib("proper/include/proper.hrl").

-export([beside_hub/2]).
-export([frame/2, frame/3, topology/1, event/2]).
-export([frames/0, frames/1, term/0]).

-define(T0, 1_700_000_000_000).

beside_hub(Opts, Test) ->
    {ok, Hub} = sderl_mon_hub:start_link(Opts),
    try
        Test()
    after
        gen_server:stop(Hub)
    end.

frame(T, Links) -> frame(T, 1000, Links).

frame(T, Span, Links) ->
    #{seq => 1, t => T, span_ms => Span, epoch => 1, nodes => #{}, links => Links, kinds => #{},
      groups => #{}, lost => #{}}.

%% #{Group => [Node]}; nodes of no group are given with the group `free`.
topology(Groups) ->
    Nodes = lists:usort(lists:append(maps:values(Groups))),
    Known = maps:remove(free, Groups),
    #{
        epoch => 1,
        t => ?T0,
        nodes => #{
            N => #{status => up, groups => [G || G := In <- Known, lists:member(N, In)],
                   home => undefined, hidden => false, source => probe}
         || N <- Nodes
        },
        groups => #{G => #{nodes => In, coordinator => hd(In), names => 0, agent => undefined}
                    || G := In <- Known},
        monitors => []
    }.

event(T, Text) -> #{t => T, kind => node_down, level => warning, text => Text, node => ~"a"}.

%% Follow each other without a gap.
frames() -> frames(range(100, 3_000)).

frames(Span) ->
    ?LET(Parts, list({Span, samples(), links(), kinds(), lost()}), begin
        {Frames, _} = lists:mapfoldl(
            fun({I, {S, Nodes, Links, Kinds, Lost}}, T) ->
                {(frame(T + S, S, Links))#{seq := I, nodes := Nodes, groups := Nodes,
                                           kinds := Kinds, lost := Lost}, T + S}
            end,
            ?T0,
            lists:enumerate(Parts)
        ),
        Frames
    end).

id() -> elements([~"a@h", ~"b@h", ~"c@h", ~"d@h", ~"{group,\"ä\"}"]).

samples() -> map(id(), map(metric(), value())).

metric() ->
    elements([run_queue, util, procs, mem, mq_max, regs_s, ~"sessions", ~"orders{status=\"ok\"}"]).

links() -> map({id(), id()}, {rate(), rate()}).

kinds() -> map(elements([registration, replication, routing]), {rate(), rate()}).

lost() -> map(elements([links_cut, events_dropped]), range(0, 10)).

%% What the packed form keeps: integers, and floats of 32 bits.
value() -> oneof([range(0, 1 bsl 40), range(0, 9), rate()]).

rate() -> ?LET(N, range(0, 1 bsl 20), N / 16).

term() ->
    %% Larger ones take long to make and show nothing new.
    ?SIZED(Size, term(min(Size, 12))).

term(0) ->
    oneof([integer(), float(), binary(), elements([ok, undefined, node_down]), boolean(),
           range(-(1 bsl 61), 1 bsl 61)]);
term(Size) ->
    Less = Size div 3,
    oneof([
        term(0),
        ?LAZY(list(term(Less))),
        ?LAZY(?LET(L, list(term(Less)), list_to_tuple(L))),
        ?LAZY(map(term(0), term(Less)))
    ]).
