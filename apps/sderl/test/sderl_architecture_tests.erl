-module(sderl_architecture_tests).
-moduledoc """
The folders of `src` are rooms, and a room calls only those below it. Each folder's row names the
folders that its modules may call.
""".
-include_lib("eunit/include/eunit.hrl").

-define(FACADE, src).

%% Who may call whom. The public modules, the application and its configuration are in `src` itself.
allowed() ->
    #{
        core => [],
        base => [core],
        group => [core, base],
        node => [core, base, group],
        pg => [base],
        route => [base, group, node],
        attribute => [base, route],
        distance => [base, route, attribute],
        place => [base, route, attribute, distance],
        follow => [core, base, route],
        ?FACADE => [core, base, group, node, pg, route, attribute, distance, place, follow],
        %% Plans use the public interface as any program does.
        plan => [base, ?FACADE]
    }.

%% Named all the same, and not called.
named() ->
    [
        %% Whether the library runs, or until when: the process of that name.
        {sderl_attr_client, sderl_sup},
        {sderl_follower, sderl_sup},
        {sderl_stand_in, sderl_sup},
        {sderl_twin, sderl_sup},
        %% Processes of other nodes, and the first element of what they are sent.
        {sderl_group, sderl_hello},
        {sderl_group, sderl_node},
        %% A word: in reasons, as a class of nodes, and in constraints.
        {sderl_client, s_group},
        {sderl_ask, s_group},
        {sderl_via, s_group},
        {sderl_place_published, s_group},
        %% Another node is asked by the public module.
        {sderl_place_keeper, s_group}
    ].

architecture_test_() ->
    {setup, fun() -> sderl_architecture:read(sderl) end,
     fun(#{folders := Folders, calls := Calls} = Read) ->
         sderl_architecture:test_rooms(#{allowed => allowed(), named => named()}, Read) ++
             [
                 {"nothing in the core calls sderl_core",
                  ?_test(nobody_calls_the_entrance(Folders, Calls))},
                 {"the bottom of the core", ?_test(the_bottom_of_the_core(Folders, Calls))}
             ]
     end}.

%% The application's description names the processes that it registers.
registered_test_() ->
    {timeout, 120, fun() ->
        {ok, Peer, _} = peer:start_link(#{
            connection => standard_io,
            wait_boot => 60_000,
            args => ["-pa", filename:dirname(code:which(sderl_app))]
        }),
        try
            Call = fun(M, F, A) -> peer:call(Peer, M, F, A, 60_000) end,
            Before = Call(erlang, registered, []),
            {ok, _} = Call(application, ensure_all_started, [sderl]),
            Names = Call(erlang, registered, []) -- Before,
            {ok, Named} = Call(application, get_key, [sderl, registered]),
            ?assertEqual(lists:sort(Named), lists:sort(Names))
        after
            peer:stop(Peer)
        end
    end}.

%% A trace tells the library's messages from the application's by their first element.
message_tags_test_() ->
    Known = sderl_observed:message_tags(),
    Beams = filelib:wildcard(filename:join([code:lib_dir(sderl), "ebin", "*.beam"])),
    {timeout, 60, ?_assertEqual([], [Handled || Beam <- Beams, {_, Tag} = Handled <- handled(Beam),
                                                not lists:member(Tag, Known)])}.

handled(Beam) ->
    {ok, {Module, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(Beam, [abstract_code]),
    [{Module, Tag}
     || {function, _, Name, _, Clauses} <- Forms,
        Name =:= handle_info orelse Name =:= event,
        {clause, _, [{tuple, _, [{atom, _, Tag} | _]} | _], _, _} <- Clauses,
        lists:prefix("sderl", atom_to_list(Tag))].

%% The modules of the protocol have the state in common and not its entrance: `sderl_core` takes an
%% event apart and hands it on.
nobody_calls_the_entrance(Folders, Calls) ->
    ?assertEqual([], [Caller || {Caller, sderl_core} <- Calls, map_get(Caller, Folders) =:= core]).

%% What is below all of the protocol: these call at most each other and memberships.
the_bottom_of_the_core(Folders, Calls) ->
    Bottom = [
        sderl_core_state,
        sderl_core_answer,
        sderl_core_clash,
        sderl_core_clients,
        sderl_core_decide,
        sderl_core_operate,
        sderl_core_overlay,
        sderl_core_settle,
        sderl_membership,
        sderl_op,
        sderl_row
    ],
    ?assertEqual([], [Call || {Caller, Callee} = Call <- Calls, lists:member(Caller, Bottom),
                              map_get(Callee, Folders) =:= core, not lists:member(Callee, Bottom)]).
