%% SPDX-License-Identifier: Apache-2.0
-module(sderl_frames_wire).

%% What a node of protocol version 2 understands: the kinds and shapes of everything that nodes of
%% that version send each other. They were written down from the code of the version, and are
%% checked against the recordings, in which every kind occurs. What the present library sends to a
%% node of that version is checked against them. So this module does not change; a later version of
%% the protocol has another such module.
%%
%% Groups that decide by majority were added within the version. A node without such groups does not
%% understand the messages that only they send. So the shapes depend on the mode: that of
%% `available` groups, or of `majority` groups too.
%%
%% A shape is `{tuple, Shapes}`, `{list, Shape}`, `{map, Key, Value}`, `{fields, Needed, Optional}`,
%% `{any_of, Shapes}`, `{is, Term}`, or the name of one (`shape/1`) or of a plain type;
%% `{majority, Shape}` is of majority groups only.
%%
%% The routers of the version's first nodes knew `news`, `digest` and two beats. They ignore other
%% messages, and learn what those said by their own digests (`sderl_route_tests:older_test_/0`). So
%% `change`, `summary` and `changes` could be added within the version, and no other message may be
%% sent.

-export([core/2, frame/3, kinds/0, routes/1, kind/1]).

%% A message between processes of a group.
core(Mode, Msg) -> check(Msg, core, Mode).

%% What goes to a process of another node, `To` being where it is sent.
frame(Mode, To, Msg) -> check(Msg, to(To), Mode).

to({sderl_node, _}) -> to_node;
to({sderl_ask, _}) -> to_ask;
to({sderl_router, _}) -> to_router;
to(To) when is_pid(To); is_reference(To) -> to_process.

check(Term, Shape, Mode) ->
    case fits(Term, Shape, Mode) of
        true -> ok;
        false -> {error, {Mode, Shape, Term}}
    end.

%% All kinds of messages between processes of a group.
kinds() -> lists:usort([kind_of(S) || S <- element(2, shape(core))]).

kind_of({is, Kind}) -> Kind;
kind_of({tuple, [{is, Kind} | _]}) -> Kind;
kind_of({majority, Shape}) -> kind_of(Shape);
kind_of(Name) -> kind_of(shape(Name)).

%% All kinds of messages between routers: those of the first nodes of the version, or of the whole
%% version.
routes(first) -> [beat, beaten, digest, news];
routes(all) -> [beat, beaten, change, changes, digest, news, summary].

kind(Msg) when is_tuple(Msg) -> element(1, Msg);
kind(Msg) -> Msg.

%% ---------------------------------------------------------------- shapes

shape(core) ->
    {any_of,
     [hello, {is, bye}, {is, away}, {is, query},
      msg(gone, [{any_of, [{is, removed}, {is, deleted}]}, membership]),
      msg(req, [epoch, list_of_operations]),
      msg(ack, [epoch, count, {any_of, [{is, none}, list_of_operations]}]),
      msg(batch, [epoch, count, count, {list, item}]),
      msg(commit, [epoch, count]),
      msg(answers, [epoch, count, answers]),
      msg(gap, [epoch, count]),
      msg(dropped, [epoch]),
      msg(refused, [epoch, lead]),
      msg(not_lead, [epoch]),
      msg(hb, [epoch, count]),
      msg(hb_ack, [epoch, {list, node}]),
      msg(low, [epoch, lead]),
      msg(found, [node, epoch]),
      msg(follow, [node, epoch]),
      msg(collect, [epoch, epoch, {fields, #{}, #{handover => {is, true}, learns => {is, true}}}]),
      msg(joined, [epoch, count, {list, item}]),
      {majority, msg(promised, [epoch, position, {list, item}, standing])},
      msg(apart, [epoch, epoch, lead]),
      msg(nack, [epoch, epoch, lead]),
      msg(lead, [epoch, count, {list, item}, {fields, log(), before()}]),
      msg(lost, [epoch, node]),
      msg(handover, [epoch]),
      msg(mem, [membership]),
      msg(state, [epoch, lead]),
      msg(join, [epoch, count]),
      msg(bring, [epoch, piece]),
      msg(shard,
          [epoch, piece, {list, row}, {any_of, [{is, more}, {tuple, [{is, last}, own_session]}]}]),
      msg(adopt, [epoch, count, {fields, (log())#{sessions => sessions, sync => count}, before()}]),
      msg(chunk, [epoch, count, count, {list, row}, boolean]),
      msg(chunk_ok, [epoch, count, count]),
      msg(synced, [epoch, count])]};
shape(hello) ->
    msg(hello, [address, incarnation, membership,
                {fields, #{epoch => epoch, lineage => epoch, num => count, lead => lead,
                           syncing => boolean},
                 #{ask => {is, true}, mode => {majority, {is, majority}}}}]);
%% What a promise counts for: a vote, a whole table, or a part of one. `learns` is sent only to a
%% coordinator whose `collect` has that flag.
shape(standing) -> {any_of, [{is, votes}, {is, whole}, {is, learns}, {is, partial}]};
shape(item) ->
    {any_of,
     [msg(seg, [node, integer, count, {list, operation}, answers]),
      %% The view, members whose names go, members that count from now on, and operations whose
      %% answers stay unknown.
      msg(view, [view, {list, node}, {list, node},
                 {list, {tuple, [node, integer, count, {list, count}]}}]),
      msg(mem, [membership, {list, node}]),
      msg(shard, [node, boolean, {list, new_row},
                  {any_of, [{is, more}, {tuple, [position, own_session]}]}]),
      msg(settle, [term, {list, pid}, {any_of, [{is, none}, new_row]}, {list, clash_effect}]),
      msg(clashes, [clashes]),
      {is, delete}]};
shape(list_of_operations) -> {tuple, [node, integer, count, {list, operation}]};
shape(operation) ->
    {any_of, [pair, {tuple, [term]}, {is, delete},
              msg(r, [term, pid, options]),
              msg(x, [term, pid, pid, options]),
              msg(rr, [term, pid, options]),
              msg(d, [term, pid]),
              {majority, msg(read, [term])},
              msg(add, [{list, node}]),
              msg(remove, [{list, node}, count])]};
shape(answers) -> {any_of, [{is, default}, {list, operation_answer}]};
shape(operation_answer) ->
    {any_of, [{is, yes}, {is, ok}, {is, unknown},
              {tuple, [{is, no}, atom]},
              {tuple, [{is, ok}, {list, node}]},
              {majority, msg(read, [found])},
              %% The name has another home, or two, which acknowledged the operation.
              {tuple, [{any_of, [{is, yes}, {is, ok}]}, {any_of, [node, {list, node}]}]}]};
shape(options) -> {any_of, [{is, []}, {fields, #{}, #{meta => term, resolver => term}}]};
shape(epoch) -> {tuple, [integer, node]};
shape(lead) -> {any_of, [{is, undefined}, node]};
shape(position) -> {tuple, [epoch, count]};
shape(place) -> {any_of, [{is, live}, position, {is, {partial, 0}}]};
%% The numbers of a reading of a shard and of a piece of it.
shape(piece) -> {tuple, [count, count]};
shape(view) -> {map, node, place};
shape(version) -> {tuple, [epoch, integer]};
shape(row) -> {tuple, [term, pid, node, version, options]};
%% A row that the batch itself decides has the version `new`: its version is its place in the batch.
shape(new_row) -> {any_of, [row, {tuple, [term, pid, node, {is, new}, options]}]};
%% A clash that is found has two rows. One that is decided also has the process that keeps the name,
%% and what the homes are to do.
shape(clashes) ->
    {map, term, {any_of, [{tuple, [row, row]},
                          {tuple, [row, row, {any_of, [{is, none}, pid]}, {list, clash_effect}]}]}};
%% `exit` and `send`. The protocol takes any effect of a resolver, and the simulator's has others.
shape(clash_effect) -> {tuple, [atom, pid, term]};
shape(sessions) -> {map, node, session};
shape(session) -> {tuple, [integer, count, answers]};
shape(own_session) -> {any_of, [{is, none}, session]};
shape(membership) -> {map, node, {tuple, [count, count]}};
%% The incarnation of the library on a node, and the address of its group process. Other nodes only
%% compare the first and send to the second.
shape(incarnation) -> term;
shape(address) -> term;

shape(to_process) ->
    {any_of, [{tuple, [{is, sderl}, {is, 2}, uid, node, core]}, {tuple, [tag, answer]}]};
shape(to_node) ->
    {any_of, [{tuple, [{is, sderl_hello}, {is, 2}, term, uid, node, hello]},
              {tuple, [{is, sderl_known}, {is, 2}, node,
                       {any_of, [{list, known}, {tuple, [known, {list, known}]}]}]},
              {tuple, [{is, sderl_conflict}, {is, 2}, term, uid, node, uid]},
              {tuple, [{is, sderl_free}, {is, 2}, node,
                       {any_of, [{is, freed}, msg(meet, [uid, {list, node}])]}]},
              {tuple, [{is, sderl_tell}, {is, 2}, node]},
              call({any_of, [msg(invite, [{is, 2}, term, uid, node]),
                             msg(enter, [{is, 2}, term, node]),
                             {majority, msg(invite, [{is, 2}, term, uid, node, invitation])},
                             {majority, msg(withdraw, [{is, 2}, term, uid])},
                             {majority,
                              msg(recover, [{is, 2}, term, uid, {list, node}, step, node])}]})]};
shape(to_router) ->
    {tuple, [{is, sderl_route}, {is, 1}, node,
             {any_of, [{is, beat}, {is, beaten},
                       msg(news, [{list, advertisement}]),
                       msg(digest, [boolean, {list, {tuple, [node, route_version]}}]),
                       %% Added within the version.
                       msg(change, [route_change]),
                       msg(changes, [{list, route_change}]),
                       msg(summary, [count])]}]};
%% A gateway, its groups with their members, and the gateways beside it.
shape(advertisement) -> {tuple, [node, route_version, {list, route_group}, {list, node}]};
shape(route_group) -> {tuple, [term, uid, {list, node}]};
%% The life of the node, and the number of versions that it had before.
shape(route_version) -> {tuple, [integer, integer, count]};
shape(route_change) ->
    {tuple, [node, route_version, route_version, {list, route_group}, {list, node}]};
%% An invitation into a majority group, which may still have to be made.
shape(invitation) -> {fields, #{mode => {is, majority}, new => boolean}, #{}};
shape(step) -> {any_of, [{is, check}, {is, do}]};
%% A group with its members; the list is empty if the node has left the group.
shape(known) -> {tuple, [term, {list, node}]};
shape(to_ask) ->
    call({any_of, [{is, hello}, {is, names},
                   msg(alive, [pid]),
                   msg(reach, [term, pid]),
                   msg(whereis, [term, term]),
                   msg(send, [term, term, term]),
                   msg(whereis_at, [term, term]),
                   msg(send_at, [term, term, term]),
                   {majority, msg(read, [term, term])},
                   msg(names, [term])]});
shape(answer) ->
    {any_of, [{is, ok}, {is, hello}, boolean,
              msg(ok, [term, {list, node}]),
              msg(ok, [boolean]),
              msg(error, [term]),
              msg(found, [found]),
              msg(found, [found, {any_of, [{is, s_group}, {is, free_normal}, {is, free_hidden}]}]),
              msg(names, [{list, term}]),
              {list, {tuple, [term, {list, term}]}}]};
shape(found) -> {any_of, [{is, undefined}, pid]};
shape(uid) -> binary.

msg(Kind, Shapes) -> {tuple, [{is, Kind} | Shapes]}.

call(Question) -> {tuple, [{is, '$gen_call'}, {tuple, [pid, tag]}, Question]}.

log() ->
    #{prev => epoch, history => {list, {tuple, [epoch, count]}}, view => view, mem => membership,
      clashes => clashes}.

%% The membership before the last batch, which changes it and may not be committed.
before() -> #{before => {majority, membership}}.

%% ---------------------------------------------------------------- does it fit

fits(T, {is, Term}, _) -> T =:= Term;
fits(T, {majority, Shape}, Mode) -> Mode =:= majority andalso fits(T, Shape, Mode);
fits(T, {any_of, Shapes}, Mode) -> lists:any(fun(S) -> fits(T, S, Mode) end, Shapes);
fits(T, {tuple, Shapes}, Mode) ->
    is_tuple(T) andalso tuple_size(T) =:= length(Shapes)
        andalso lists:all(fun({E, S}) -> fits(E, S, Mode) end, lists:zip(tuple_to_list(T), Shapes));
fits(T, {list, Shape}, Mode) ->
    is_list(T) andalso length(T) >= 0 andalso lists:all(fun(E) -> fits(E, Shape, Mode) end, T);
fits(T, {map, Key, Value}, Mode) ->
    is_map(T) andalso lists:all(fun({K, V}) -> fits(K, Key, Mode) andalso fits(V, Value, Mode) end,
                                maps:to_list(T));
fits(T, {fields, Needed, Optional}, Mode) ->
    is_map(T) andalso maps:keys(maps:without(maps:keys(T), Needed)) =:= []
        andalso lists:all(fun({K, V}) ->
            case {Needed, Optional} of
                {#{K := S}, _} -> fits(V, S, Mode);
                {_, #{K := S}} -> fits(V, S, Mode);
                _ -> false
            end
        end, maps:to_list(T));
fits(T, Name, Mode) when is_atom(Name) ->
    case is_plain(T, Name) of
        unknown -> fits(T, shape(Name), Mode);
        Fits -> Fits
    end.

is_plain(_, term) -> true;
is_plain(T, node) -> is_atom(T) andalso lists:member($@, atom_to_list(T));
is_plain(T, atom) -> is_atom(T);
is_plain(T, pid) -> is_pid(T);
is_plain(T, pair) -> is_list(T) andalso T =/= [] andalso is_pid(tl(T));
is_plain(T, count) -> is_integer(T) andalso T >= 0;
is_plain(T, integer) -> is_integer(T);
is_plain(T, boolean) -> is_boolean(T);
is_plain(T, binary) -> is_binary(T);
is_plain(T, tag) ->
    is_reference(T)
        orelse (is_list(T) andalso T =/= [] andalso hd(T) =:= alias andalso is_reference(tl(T)));
is_plain(_, _) -> unknown.
