%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_net).
-moduledoc """
How the processes of the messenger reach one another: `rd` and `rsd` differ only in this module and
in the groups.

| | `rd`: full mesh, `global` | `rsd`: s_groups |
|---|---|---|
| a name for a supervised process | `{global, Name}` | `{via, s_group, {Group, Name}}` |
| to a name | `global:whereis_name/1`, `!` | `sderl_route:send/2`: straight in an own group, else over gateways |
| a call of a name | `gen_server:call/3` | `sderl_route:call/3` |
| to a pid | `!` | `sderl_route:send/2`: no new link |

A message to a name that no process has, or to a process that has just died, is lost: a process that
needs an answer asks again.
""".

-export([via/2, whereis/2, send/3, call/4, ask/4, to/3, backoff/2]).

-import(sderl_clock, [now_ms/0]).

%% Between two attempts at a database that is not there.
-define(AGAIN_MS, 5).

-doc "The name to start a server with.".
-spec via(sderl_im_layout:conf(), sderl_im_layout:role()) -> gen_server:server_name().
via(Conf, Role) ->
    case sderl_im_layout:name(Conf, Role) of
        {global, Name} -> {global, Name};
        Name -> {via, s_group, Name}
    end.

-doc "The process that has a name in a group of this node.".
-spec whereis(sderl_im_layout:conf(), sderl_im_layout:role()) -> pid() | undefined.
whereis(Conf, Role) ->
    case sderl_im_layout:name(Conf, Role) of
        {global, Name} -> global:whereis_name(Name);
        {Group, Name} -> s_group:whereis_name(Group, Name)
    end.

-doc "Sends a message to a process by its name, in any group.".
-spec send(sderl_im_layout:conf(), sderl_im_layout:role(), sderl_im_server:message()) ->
    ok | {error, term()}.
send(Conf, Role, Message) ->
    case sderl_im_layout:name(Conf, Role) of
        {global, Name} ->
            case global:whereis_name(Name) of
                undefined -> {error, no_name};
                Pid -> Pid ! Message, ok
            end;
        Name ->
            sderl_route:send(Name, Message)
    end.

-doc "Calls a server by its name, in any group.".
-spec call(sderl_im_layout:conf(), sderl_im_layout:role(), Request :: term(), Ms :: timeout()) ->
    {ok, term()} | {error, term()}.
call(Conf, Role, Request, Ms) ->
    case sderl_im_layout:name(Conf, Role) of
        {global, _} = Global ->
            try
                {ok, gen_server:call(Global, Request, Ms)}
            catch
                exit:{timeout, _} -> {error, timeout};
                exit:{Reason, _} -> {error, {down, Reason}}
            end;
        Name ->
            sderl_route:call(Name, Request, Ms)
    end.

-doc """
As `call/4`, repeated until there is an answer, for at most `Ms` milliseconds. So a request may be
carried out more than once, which those to databases allow.
""".
-spec ask(sderl_im_layout:conf(), sderl_im_layout:role(), Request :: term(),
          Ms :: non_neg_integer()) -> {ok, term()} | {error, term()}.
ask(Conf, Role, Request, Ms) -> ask_until(Conf, Role, Request, now_ms() + Ms).

ask_until(Conf, Role, Request, Deadline) ->
    case call(Conf, Role, Request, max(0, Deadline - now_ms())) of
        {ok, Answer} ->
            {ok, Answer};
        {error, Reason} ->
            case now_ms() + ?AGAIN_MS < Deadline of
                true ->
                    receive
                    after ?AGAIN_MS -> ask_until(Conf, Role, Request, Deadline)
                    end;
                false ->
                    {error, Reason}
            end
    end.

-doc "Sends a message to a process of any node.".
-spec to(sderl_im_layout:conf(), pid(), Message) -> ok when
    Message :: sderl_im_client:message() | sderl_im_monitor:message() | sderl_im_session:message().
to(#{mode := rd}, Pid, Message) ->
    Pid ! Message,
    ok;
to(#{mode := rsd}, Pid, Message) ->
    %% A request that cannot be sent now is repeated.
    _ = sderl_route:send(Pid, Message),
    ok.

-doc """
How many milliseconds to wait for the answer to the try of this number; `over` after the last one.
""".
-spec backoff(sderl_im_layout:conf(), Try :: pos_integer()) -> pos_integer() | over.
backoff(#{tries := Tries}, Try) when Try > Tries -> over;
backoff(#{retry_ms := Ms}, Try) -> Ms bsl min(Try - 1, 3).
