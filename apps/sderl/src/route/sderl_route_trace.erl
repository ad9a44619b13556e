%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_trace).
-moduledoc false.
%% How a trace session learns what becomes of routed messages: functions of `sderl_route_send` and
%% `sderl_forward` with match specifications. Only this module, and no tracer, knows the positions
%% in their arguments and in frames (`sderl_route_send` describes the frames).

-export([calls/0]).
-export_type([calls/0]).

-type calls() :: [{mfa(), Specification :: [tuple()]}].

%% The positions of the group or the node, the receivers there, and the message in a frame.
-define(WHERE, 5).
-define(WHAT, 6).
-define(MESSAGE, 8).

%% The number of deliveries among the counts of `sderl_forward:count/3`.
-define(DELIVERED, 1).

-doc "The functions and their match specifications, whose messages `m:sderl_observed` describes.".
-spec calls() -> calls().
calls() ->
    [
        {{sderl_route_send, send_first, 5}, [
            {['$1', '_', '_', '$2', '_'], [],
             [{message, {{routed, '$1', {element, ?WHERE, '$2'}, {element, ?WHAT, '$2'},
                          {element, ?MESSAGE, '$2'}}}}]}
        ]},
        {{sderl_route_send, each_way, 3}, [
            {[{'_', '$1'}, '_', '_'], [], [{message, {{every_way, '$1'}}}]}
        ]},
        {{sderl_forward, forwarded, 4}, [
            {['$1', '$2', '$3', '_'], [{'orelse', {is_pid, '$2'}, {is_reference, '$2'}}],
             [{message, {{passed, {node, '$2'}, '$1', '$3'}}}]},
            {['$1', '_', '$3', '_'], [], [{message, {{passed, none, '$1', '$3'}}}]}
        ]},
        {{sderl_forward, count, 3}, [
            {[?DELIVERED, '$1', '_'], [{'>', '$1', 0}], [{message, {{delivered, '$1'}}}]}
        ]},
        {{sderl_forward, failed, 4}, [
            {['_', {'$1', '$2'}, '$3', '_'], [], [{message, {{undelivered, '$1', '$2', '$3'}}}]}
        ]}
    ].
