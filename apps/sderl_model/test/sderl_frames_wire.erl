%% SPDX-License-Identifier: Apache-2.0
-module(sderl_frames_wire).

%% What a node of protocol version 2 understands: the kinds and shapes of everything that nodes of
%% that version send each other. It was written down from the code of the version and is held against
%% the recordings, in which every kind occurs; what the present library sends to a node of that version is
%% held against it. So it does not change. A later version of the protocol has another such module.
%%
%% A shape is `{tuple, Shapes}`, `{list, Shape}`, `{map, Key, Value}`, `{fields, Needed, Optional}`, `{any_of, Shapes}`,
%% `{is, Term}`, or the name of one (`shape/1`) or of a plain type.

-export([core/1, frame/2, kinds/0, kind/1]).

%% A message between processes of a group.
core(Msg) -> check(Msg, core).

%% What goes to a process of another node, `To` being where it is sent.
frame(To, Msg) -> check(Msg, to(To)).

to({sderl_node, _}) -> to_node;
to({sderl_ask, _}) -> to_ask;
to(To) when is_pid(To); is_reference(To) -> to_process.

check(Term, Shape) ->
    case fits(Term, Shape) of
        true -> ok;
        false -> {error, {Shape, Term}}
    end.

%% All kinds of messages between processes of a group.
kinds() -> lists:usort([kind_of(S) || S <- element(2, shape(core))]).

kind_of({is, Kind}) -> Kind;
kind_of({tuple, [{is, Kind} | _]}) -> Kind;
kind_of(Name) -> kind_of(shape(Name)).

kind(Msg) when is_tuple(Msg) -> element(1, Msg);
kind(Msg) -> Msg.

%% ---------------------------------------------------------------- shapes

shape(core) ->
    {any_of, [hello, {is, bye}, {is, away}, {is, query},
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
              msg(collect, [epoch, epoch, {fields, #{}, #{handover => {is, true}}}]),
              msg(joined, [epoch, count, {list, item}]),
              msg(apart, [epoch, epoch, lead]),
              msg(nack, [epoch, epoch, lead]),
              msg(lead, [epoch, count, {list, item}, {fields, log(), #{}}]),
              msg(lost, [epoch, node]),
              msg(handover, [epoch]),
              msg(mem, [membership]),
              msg(state, [epoch, lead]),
              msg(join, [epoch, count]),
              msg(bring, [epoch, piece]),
              msg(shard, [epoch, piece, {list, row}, {any_of, [{is, more}, {tuple, [{is, last}, own_session]}]}]),
              msg(adopt, [epoch, count, {fields, (log())#{sessions => sessions, sync => count}, #{}}]),
              msg(chunk, [epoch, count, count, {list, row}, boolean]),
              msg(chunk_ok, [epoch, count, count]),
              msg(synced, [epoch, count])]};
shape(hello) ->
    msg(hello, [address, incarnation, membership,
                {fields, #{epoch => epoch, lineage => epoch, num => count, lead => lead, syncing => boolean},
                 #{ask => {is, true}}}]);
shape(item) ->
    {any_of, [msg(seg, [node, integer, count, {list, operation}, answers]),
              %% Whose names go, who counts from now on, and which answers nobody will know.
              msg(view, [view, {list, node}, {list, node}, {list, {tuple, [node, integer, count, {list, count}]}}]),
              msg(mem, [membership, {list, node}]),
              msg(shard, [node, boolean, {list, new_row}, {any_of, [{is, more}, {tuple, [position, own_session]}]}]),
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
              msg(add, [{list, node}]),
              msg(remove, [{list, node}, count])]};
shape(answers) -> {any_of, [{is, default}, {list, operation_answer}]};
shape(operation_answer) ->
    {any_of, [{is, yes}, {is, ok}, {is, unknown},
              {tuple, [{is, no}, atom]},
              {tuple, [{is, ok}, {list, node}]},
              %% About a name of another home, or of two, which acknowledged it.
              {tuple, [{any_of, [{is, yes}, {is, ok}]}, {any_of, [node, {list, node}]}]}]};
shape(options) -> {any_of, [{is, []}, {fields, #{}, #{meta => term, resolver => term}}]};
shape(epoch) -> {tuple, [integer, node]};
shape(lead) -> {any_of, [{is, undefined}, node]};
shape(position) -> {tuple, [epoch, count]};
shape(place) -> {any_of, [{is, live}, position, {is, {partial, 0}}]};
%% Which reading of a shard, and which piece of it.
shape(piece) -> {tuple, [count, count]};
shape(view) -> {map, node, place};
shape(version) -> {tuple, [epoch, integer]};
shape(row) -> {tuple, [term, pid, node, version, options]};
%% One that this batch decides: its version is its place there.
shape(new_row) -> {any_of, [row, {tuple, [term, pid, node, {is, new}, options]}]};
%% Found, or decided as well: who keeps the name, and what the homes are to do.
shape(clashes) ->
    {map, term, {any_of, [{tuple, [row, row]},
                          {tuple, [row, row, {any_of, [{is, none}, pid]}, {list, clash_effect}]}]}};
%% `exit` and `send`; to the protocol it is the resolver's word, and the simulator's has others.
shape(clash_effect) -> {tuple, [atom, pid, term]};
shape(sessions) -> {map, node, session};
shape(session) -> {tuple, [integer, count, answers]};
shape(own_session) -> {any_of, [{is, none}, session]};
shape(membership) -> {map, node, {tuple, [count, count]}};
%% A life of the library on a node, and where its process is: others compare and send to them.
shape(incarnation) -> term;
shape(address) -> term;

shape(to_process) ->
    {any_of, [{tuple, [{is, sderl}, {is, 2}, uid, node, core]}, {tuple, [tag, answer]}]};
shape(to_node) ->
    {any_of, [{tuple, [{is, sderl_hello}, {is, 2}, term, uid, node, hello]},
              {tuple, [{is, sderl_known}, {is, 2}, node, {any_of, [{list, known}, {tuple, [known, {list, known}]}]}]},
              {tuple, [{is, sderl_conflict}, {is, 2}, term, uid, node, uid]},
              {tuple, [{is, sderl_free}, {is, 2}, node, {any_of, [{is, freed}, msg(meet, [uid, {list, node}])]}]},
              {tuple, [{is, sderl_tell}, {is, 2}, node]},
              call({any_of, [msg(invite, [{is, 2}, term, uid, node]), msg(enter, [{is, 2}, term, node])]})]};
%% A group with its members, none of one that the node left.
shape(known) -> {tuple, [term, {list, node}]};
shape(to_ask) ->
    call({any_of, [{is, hello}, {is, names},
                   msg(alive, [pid]),
                   msg(reach, [term, pid]),
                   msg(whereis, [term, term]),
                   msg(send, [term, term, term]),
                   msg(whereis_at, [term, term]),
                   msg(send_at, [term, term, term]),
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

log() -> #{prev => epoch, history => {list, {tuple, [epoch, count]}}, view => view, mem => membership, clashes => clashes}.

%% ---------------------------------------------------------------- does it fit

fits(T, {is, Term}) -> T =:= Term;
fits(T, {any_of, Shapes}) -> lists:any(fun(S) -> fits(T, S) end, Shapes);
fits(T, {tuple, Shapes}) ->
    is_tuple(T) andalso tuple_size(T) =:= length(Shapes)
        andalso lists:all(fun({E, S}) -> fits(E, S) end, lists:zip(tuple_to_list(T), Shapes));
fits(T, {list, Shape}) -> is_list(T) andalso length(T) >= 0 andalso lists:all(fun(E) -> fits(E, Shape) end, T);
fits(T, {map, Key, Value}) ->
    is_map(T) andalso lists:all(fun({K, V}) -> fits(K, Key) andalso fits(V, Value) end, maps:to_list(T));
fits(T, {fields, Needed, Optional}) ->
    is_map(T) andalso maps:keys(maps:without(maps:keys(T), Needed)) =:= []
        andalso lists:all(fun({K, V}) ->
            case {Needed, Optional} of
                {#{K := S}, _} -> fits(V, S);
                {_, #{K := S}} -> fits(V, S);
                _ -> false
            end
        end, maps:to_list(T));
fits(_, term) -> true;
fits(T, node) -> is_atom(T) andalso lists:member($@, atom_to_list(T));
fits(T, atom) -> is_atom(T);
fits(T, pid) -> is_pid(T);
fits(T, pair) -> is_list(T) andalso T =/= [] andalso is_pid(tl(T));
fits(T, count) -> is_integer(T) andalso T >= 0;
fits(T, integer) -> is_integer(T);
fits(T, boolean) -> is_boolean(T);
fits(T, binary) -> is_binary(T);
fits(T, tag) -> is_reference(T) orelse (is_list(T) andalso T =/= [] andalso hd(T) =:= alias andalso is_reference(tl(T)));
fits(T, Name) -> fits(T, shape(Name)).
