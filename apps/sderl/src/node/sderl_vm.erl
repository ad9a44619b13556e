%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm).
-moduledoc "The flags of this node's virtual machine, and facts that only it knows.".

-export([precondition/0, is_hidden/0, new_uid/1]).

-doc "Whether this VM runs with `connect_all` false, which OTP reads once when it starts.".
-spec precondition() -> ok | {error, {connect_all, string()}}.
precondition() ->
    case is_alive() andalso connect_all() of
        true ->
            {error,
             {connect_all,
              "sderl needs a node that does not connect to every other by itself: start it with "
              "`-connect_all false` (vm.args, or `erl -connect_all false`) or with "
              "{kernel, [{connect_all, false}]} in sys.config, and start it again"}};
        false -> ok
    end.

connect_all() ->
    case application:get_env(kernel, connect_all) of
        {ok, false} -> false;
        {ok, _} -> true;
        undefined ->
            case init:get_argument(connect_all) of {ok, [["false" | _] | _]} -> false; _ -> true end
    end.

-doc "Whether this node was started with `-hidden`.".
-spec is_hidden() -> boolean().
is_hidden() -> init:get_argument(hidden) =/= error.

-doc "The uid of a group that is about to be made at run time.".
-spec new_uid(Group :: term()) -> sderl_hello:uid().
new_uid(Group) ->
    %% A value that no other node has, nor this one again, in this run or another.
    Unique = {node(), erlang:unique_integer(), erlang:system_time(), erlang:monotonic_time(),
              self(), rand:uniform(1 bsl 58)},
    sderl_hello:founded(Group, Unique).
