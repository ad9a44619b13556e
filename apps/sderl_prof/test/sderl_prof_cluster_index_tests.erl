%% SPDX-License-Identifier: Apache-2.0 The index of a recording of several nodes: it is read as it
%% was written, and a damaged one does no harm.
-module(sderl_prof_cluster_index_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_prof_files, [with_dir/1]).

properties_test_() ->
    [
        sderl_prop:eunit("what is written is read", 50, fun prop_written/0),
        sderl_prop:eunit("a damaged index does no harm", 200, fun prop_damaged/0)
    ].

index() ->
    ?LET({Items, Entries}, {list(text()), list(entry())},
         #{began_wall => 1_800_000_000_000_000_000, items => Items, nodes => Entries}).

entry() ->
    ?LET({Node, State, Error, Groups, Clock, Bits, Began, Ended, Fetched},
         {oneof([~"a@h", ~"b1-x@10.0.0.1", <<"é@h"/utf8>>]),
          oneof([waiting, records, recorded, failed]), oneof([null, text()]), list(text()),
          oneof([null, ?LET({First, Last}, {sample(), oneof([none, sample()])},
                            #{first => First, last => Last})]),
          oneof([null, range(4, 28)]), oneof([null, integer()]), oneof([null, ~"time"]),
          boolean()},
         #{node => Node, state => State, error => Error, dir => ~"/tmp/x", groups => Groups,
           clock => Clock, alias_bits => Bits, began => Began, ended_at => Began, ended => Ended,
           written => null, fetched => Fetched}).

sample() ->
    ?LET({At, Ahead, Error}, {integer(), integer(), nat()},
         #{at => At, ahead => Ahead, error => Error}).

text() -> oneof([~"", ~"running", <<"größe"/utf8>>, ~"quote \" and \\ and \n"]).

prop_written() ->
    ?FORALL(Index, index(), with_dir(fun(Dir) ->
        ok = sderl_prof_cluster_index:write(Dir, Index),
        sderl_prof_cluster_index:is_cluster(Dir) andalso
            {ok, Index} =:= sderl_prof_cluster_index:read(Dir)
    end)).

prop_damaged() ->
    ?FORALL({Index, Places}, {index(), non_empty(list({nat(), byte()}))}, with_dir(fun(Dir) ->
        ok = sderl_prof_cluster_index:write(Dir, Index),
        File = filename:join(Dir, "cluster.json"),
        {ok, Text} = file:read_file(File),
        Damaged = lists:foldl(fun({At0, Byte}, Bin) ->
            At = At0 rem byte_size(Bin),
            <<Before:At/binary, _, After/binary>> = Bin,
            <<Before/binary, Byte, After/binary>>
        end, Text, Places),
        ok = file:write_file(File, Damaged),
        Atoms = erlang:system_info(atom_count),
        Read = sderl_prof_cluster_index:read(Dir),
        erlang:system_info(atom_count) =:= Atoms andalso
            case Read of
                {ok, #{nodes := _}} -> true;
                {error, Why} -> is_list(unicode:characters_to_list(
                    sderl_prof_cluster_index:format_error(Why)))
            end
    end)).

%% No name of a node leads out of the folder.
path_test() ->
    [with_dir(fun(Dir) ->
         Entry = #{node => Node, state => recorded, error => null, dir => ~"/tmp/x", groups => [],
                   clock => null, alias_bits => null, began => null, ended_at => null,
                   ended => null, written => null, fetched => false},
         ok = sderl_prof_cluster_index:write(Dir, #{began_wall => 0, items => [],
                                                    nodes => [Entry]}),
         ?assertMatch({error, {index, _, damaged}}, sderl_prof_cluster_index:read(Dir))
     end) || Node <- [~"../a@h", ~"a@h/..", ~"/etc@x", ~"nohost", ~".."]].

missing_test() ->
    with_dir(fun(Dir) ->
        ?assertNot(sderl_prof_cluster_index:is_cluster(Dir)),
        ?assertMatch({error, {index, _, enoent}}, sderl_prof_cluster_index:read(Dir))
    end).
