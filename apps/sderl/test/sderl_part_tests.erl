-module(sderl_part_tests).
-include_lib("eunit/include/eunit.hrl").

-behaviour(sderl_part).

-export([create_tables/0, handle_group_changed/1, handle_group_moved/3]).

create_tables() -> tell(created).

handle_group_changed(Group) -> tell({changed, Group}).

handle_group_moved(Group, Old, New) -> tell({moved, Group, Old, New}).

tell(What) ->
    self() ! {?MODULE, What},
    ok.

%% A part hears of what it has a callback for, in the process that changed the group.
told_test() ->
    Key = {sderl, parts},
    Before = persistent_term:get(Key, []),
    try
        ok = sderl_part:register_all([?MODULE, sderl_check]),
        ok = sderl_part:group_changed(g),
        ok = sderl_part:group_left(g, [node()]),
        ok = sderl_part:group_ended(<<"uid">>),
        ok = sderl_part:group_moved(g, <<"old">>, <<"new">>),
        ?assertEqual([created, {changed, g}, {moved, g, <<"old">>, <<"new">>}], heard())
    after
        persistent_term:put(Key, Before)
    end.

%% Without an application nobody is told, and a group may change all the same.
nobody_test() ->
    Before = persistent_term:get({sderl, parts}, []),
    try
        ok = persistent_term:put({sderl, parts}, []),
        ok = sderl_part:group_changed(g),
        ?assertEqual([], heard())
    after
        persistent_term:put({sderl, parts}, Before)
    end.

heard() ->
    receive {?MODULE, What} -> [What | heard()]
    after 0 -> []
    end.
