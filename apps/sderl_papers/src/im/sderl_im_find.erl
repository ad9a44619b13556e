%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_find).
-moduledoc """
The processes of the messenger on a node, by class: what `m:sderl_chaos` may kill, and when it is
back.

| class | key | is there when |
|---|---|---|
| `clients`, `chats` | `{database, Kind, K, main \\| replica}` | it has its table |
| `server` | `{server, K}` | it takes requests |
| `serving` | `{supervisor, serving}` | all below it are there |
| `monitors` | `{supervisor, monitors}` | it starts monitors |
| `monitor` | `{monitor, Client}` | its client is in the database with it |
| `session` | `{session, Session}` | it has looked its clients up |
| `router` | `{router, I}` | it takes requests |
| `routing` | `{supervisor, routing}` | the router below it is there |

The weights are those of the published `rhesus`: 25 % of kills for routers and their supervisors; of
the others 12 parts in 60 each for the client database, the chat database, the supervisors of a
server (half each for `serving` and `monitors`), and a database of processes, which does not exist
here because of OTP's supervisors: its part is that of the process `server`; 6 each for client
monitors and sessions. The supervisor of a server's sessions is not killed, as that would kill all
of these.
""".

-export([find/1, classes/1, targets/2, all/0]).
-export_type([class/0]).

-doc "A class of processes, which has a weight.".
-type class() ::
    clients | chats | server | serving | monitors | monitor | session | router | routing.

-doc "The processes of a class on this node that are ready, with their keys.".
-spec find(class()) -> [{term(), pid()}].
find(Database) when Database =:= clients; Database =:= chats ->
    [{Role, Pid} || {{database, Kind, _, _} = Role, Pid} <- ready(serving), Kind =:= Database];
find(server) ->
    [Found || {{server, _}, _} = Found <- ready(serving)];
find(monitor) ->
    ready(monitors);
find(session) ->
    ready(sessions);
find(router) ->
    ready(routing);
find(monitors) ->
    local(monitors, sderl_im_monitors);
find(Supervisor) when Supervisor =:= serving; Supervisor =:= routing ->
    Children = sderl_im_sup:children(Supervisor),
    case Children =/= [] andalso length(ready(Supervisor)) =:= length(Children) of
        true ->
            local(Supervisor,
                  case Supervisor of serving -> sderl_im_serving; routing -> sderl_im_routing end);
        false -> []
    end.

local(Key, Name) -> [{{supervisor, Key}, Pid} || Pid <- [whereis(Name)], is_pid(Pid)].

ready(Part) ->
    [{Key, Pid}
     || Pid <- sderl_im_sup:children(Part), {sderl_im, ready, Key} <- [proc_lib:get_label(Pid)]].

-doc "What may be killed: `all`, or `databases` alone; with the weights.".
-spec classes(all | databases) -> [{class(), Weight :: number()}].
classes(databases) ->
    [{clients, 1}, {chats, 1}];
classes(all) ->
    [
        {router, 12.5}, {routing, 12.5}, {clients, 15}, {chats, 15}, {server, 15}, {serving, 7.5},
        {monitors, 7.5}, {monitor, 7.5}, {session, 7.5}
    ].

-doc "The same as targets for `sderl_chaos:start/1`.".
-spec targets(all | databases, sderl_im_layout:conf()) -> [sderl_chaos:target()].
targets(Which, #{routers := Routers, servers := Servers}) ->
    [
        #{
            kind => process,
            class => Class,
            weight => Weight,
            find => {?MODULE, find, [Class]},
            nodes => maps:values(
                case lists:member(Class, [router, routing]) of true -> Routers; false -> Servers end
            ),
            %% A session that was killed does not come back.
            await => Class =/= session
        }
     || {Class, Weight} <- classes(Which)
    ].

-doc "All processes of the messenger on this node, clients included.".
-spec all() -> [{Label :: tuple(), pid()}].
all() ->
    [{Label, Pid}
     || Pid <- processes(), Label <- [proc_lib:get_label(Pid)], is_tuple(Label),
        element(1, Label) =:= sderl_im] ++
        [
            {{sderl_im, supervisor, Name}, Pid}
         || Name <- [sderl_im_top, sderl_im_routing, sderl_im_serving, sderl_im_monitors,
                     sderl_im_sessions, sderl_im_traffic, sderl_im_routers],
            Pid <- [whereis(Name)],
            is_pid(Pid)
        ].
