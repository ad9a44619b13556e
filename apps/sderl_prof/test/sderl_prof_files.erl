%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_files).
-moduledoc "Folders for tests, and traces as a tracer would have written them.".

-export([with_dir/1, frame/1, write/2, recording/3, events/1, pid/2]).

-doc "The result of a function with a folder of its own.".
-spec with_dir(fun((file:filename()) -> Result)) -> Result.
with_dir(Fun) ->
    Dir = filename:join(filename:basedir(user_cache, "sderl"),
                        lists:concat(["prof-test-", os:getpid(), "-",
                                      erlang:unique_integer([positive])])),
    ok = filelib:ensure_path(Dir),
    try Fun(Dir) after file:del_dir_r(Dir) end.

-doc "An event as the driver writes it.".
-spec frame(term()) -> binary().
frame(Term) ->
    Bin = term_to_binary(Term),
    <<0, (byte_size(Bin)):32, Bin/binary>>.

-spec write(file:filename(), iodata()) -> ok.
write(File, Data) -> ok = file:write_file(File, Data).

-doc "A recording of this node with these events.".
-spec recording(file:filename(), map(), [term()]) -> ok.
recording(Dir, Changes, Events) ->
    Info = #{version => 1, node => atom_to_binary(node()), otp => ~"29", schedulers => 2,
             items => [~"running"], scheduler_id => false, alias_bits => none, keep => first,
             bytes => 16_777_216, began => 0, began_wall => 0, ended => time, ended_at => undefined,
             written => 0, described => 0, undescribed => 0, own => [], system_profile => unused},
    ok = write(filename:join(Dir, "events.0.trace"), [frame(Event) || Event <- Events]),
    write(filename:join(Dir, "recording"), term_to_binary(maps:merge(Info, Changes))).

-doc "All events of a book, with labels in place of numbers.".
-spec events(sderl_prof_book:book()) -> [tuple()].
events(Book) ->
    lists:reverse(sderl_prof_book:fold(Book, #{}, fun(T, K, S, P, A, B, Acc) ->
        [{T, sderl_prof_event:kind(K), S, P, A, B} | Acc]
    end, [])).

-doc "A pid of this node with these numbers.".
-spec pid(non_neg_integer(), non_neg_integer()) -> pid().
pid(Id, Serial) -> list_to_pid(lists:concat(["<0.", Id, ".", Serial, ">"])).
