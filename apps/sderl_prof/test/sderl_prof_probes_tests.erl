%% SPDX-License-Identifier: Apache-2.0
%% Probes in the notes of a file: small files made here, damaged ones, and the emulator's own.
-module(sderl_prof_probes_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

kinds() -> [{Word, Order} || Word <- [32, 64], Order <- [little, big]].

%% A file with one section of notes, as a linker writes it.
elf(Word, Order, Notes) ->
    N = fun(Value, Bits) ->
        case Order of little -> <<Value:Bits/little>>; big -> <<Value:Bits>> end
    end,
    Names = <<0, ".shstrtab", 0, ".note.stapsdt", 0>>,
    HeaderSize = 40 + 3 * Word div 8,
    %% Code at 16#1000 is at 16#40 of the file, data at 16#2000 at 16#80.
    Segments = iolist_to_binary([segment(Word, N, Type, Offset, Address)
                                 || {Type, Offset, Address} <- [{6, 0, 0}, {1, 16#40, 16#1000},
                                                                {1, 16#80, 16#2000}]]),
    NamesAt = HeaderSize + byte_size(Segments),
    NotesAt = NamesAt + byte_size(Names),
    Table = NotesAt + byte_size(Notes),
    Width = 16 + 6 * Word div 8,
    Section = fun(Name, Offset, Size) ->
        Row = iolist_to_binary([N(Name, 32), N(0, 32), N(0, Word), N(0, Word), N(Offset, Word),
                                N(Size, Word)]),
        [Row, binary:copy(<<0>>, Width - byte_size(Row))]
    end,
    iolist_to_binary([
        <<16#7f, "ELF", (Word div 32), (case Order of little -> 1; big -> 2 end), 1, 0:72>>,
        N(2, 16), N(62, 16), N(1, 32), N(0, Word), N(HeaderSize, Word), N(Table, Word), N(0, 32),
        N(HeaderSize, 16), N(8 + 6 * Word div 8, 16), N(3, 16), N(Width, 16), N(3, 16), N(1, 16),
        Segments, Names, Notes,
        Section(0, 0, 0), Section(1, NamesAt, byte_size(Names)),
        Section(11, NotesAt, byte_size(Notes))
    ]).

segment(64, N, Type, Offset, Address) ->
    [N(Type, 32), N(5, 32), N(Offset, 64), N(Address, 64), N(0, 64), N(16, 64), N(16, 64),
     N(0, 64)];
segment(32, N, Type, Offset, Address) ->
    [N(Type, 32), N(Offset, 32), N(Address, 32), N(0, 32), N(16, 32), N(16, 32), N(5, 32),
     N(0, 32)].

note(Word, Order, Kind, Of, Parts) ->
    N = fun(Value, Bits) ->
        case Order of little -> <<Value:Bits/little>>; big -> <<Value:Bits>> end
    end,
    Desc = iolist_to_binary([N(Value, Word) || Value <- [16#1004, 0, 16#2008]] ++
                            [[Part, 0] || Part <- Parts]),
    iolist_to_binary([N(byte_size(Of), 32), N(byte_size(Desc), 32), N(Kind, 32), fill(Of),
                      fill(Desc)]).

fill(Bin) -> [Bin, binary:copy(<<0>>, (4 - byte_size(Bin) rem 4) rem 4)].

read(Elf) ->
    sderl_prof_probes:read(fun(Offset, Size) ->
        case Elf of
            <<_:Offset/binary, Part:Size/binary, _/binary>> -> {ok, Part};
            <<_:Offset/binary, Part/binary>> -> {ok, Part};
            _ -> eof
        end
    end).

probes_test_() ->
    [fun() ->
        Probes = [[~"erlang", ~"process-spawn", ~"8@%rax 8@%rdx"],
                  [~"erlang", ~"gc_major-start", ~""]],
        Notes = [note(Word, Order, 3, <<"stapsdt", 0>>, Parts) || Parts <- Probes] ++
            %% Notes of other tools.
            [note(Word, Order, 3, <<"GNU", 0>>, [~"x", ~"y", ~"z"]),
             note(Word, Order, 1, <<"stapsdt", 0>>, [~"x", ~"y", ~"z"])],
        {ok, Found} = read(elf(Word, Order, iolist_to_binary(Notes))),
        ?assertEqual(Probes, [[P, N, A] || #{provider := P, name := N, arguments := A} <- Found]),
        ?assertMatch([#{at := 16#44, semaphore := 16#88} | _], Found)
    end || {Word, Order} <- kinds()].

none_test_() ->
    [?_assertEqual({ok, []}, read(elf(Word, Order, <<>>))) || {Word, Order} <- kinds()].

foreign_test() ->
    [?assertEqual({error, no_elf}, read(Bin))
     || Bin <- [<<>>, ~"#!/bin/sh\nexec erl\n", <<16#7f, "ELF", 3, 1, 0:80>>]],
    ?assertEqual({error, enoent}, sderl_prof_probes:of_file("/nothing/here")),
    ?assertEqual({error, eisdir}, sderl_prof_probes:of_file("/")).

damaged_test_() ->
    sderl_prop:eunit("a damaged file is none, or reading it ends", 500, fun prop_damaged/0).

prop_damaged() ->
    ?FORALL({{Word, Order}, Cut, At, Byte}, {oneof(kinds()), range(0, 700), range(0, 699), byte()},
        begin
            Whole = elf(Word, Order, note(Word, Order, 3, <<"stapsdt", 0>>, [~"a", ~"b", ~"c"])),
            Place = At rem byte_size(Whole),
            <<Before:Place/binary, _, After/binary>> = Whole,
            Changed = binary:part(<<Before/binary, Byte, After/binary>>, 0,
                                  min(Cut, byte_size(Whole))),
            lists:member(element(1, read(Changed)), [ok, error])
        end).

%% The file of this emulator can be read, and has probes if it was built with them.
emulator_test() ->
    case sderl_prof_probes:of_emulator() of
        {ok, Probes} ->
            ?assertEqual(erlang:system_info(dynamic_trace) =:= systemtap,
                         [P || #{provider := ~"erlang"} = P <- Probes] =/= []);
        %% A system without these files, or of another kind.
        {error, Why} -> ?assert(lists:member(Why, [enoent, no_elf]))
    end.

%% ---------------------------------------------------------------- hooks

made(Name, At, Semaphore) ->
    #{provider => ~"erlang", name => Name, arguments => ~"", at => At, semaphore => Semaphore}.

lines_test() ->
    Probes = [made(~"gc-start", 16#40, none), made(~"gc-start", 16#50, 16#80),
              made(~"n1", 1, none)],
    ?assertEqual([{"g/gc_start", "p:g/gc_start /x/beam:0x40\n"},
                  {"g/gc_start__at2", "p:g/gc_start__at2 /x/beam:0x50(0x80)\n"},
                  {"g/n1", "p:g/n1 /x/beam:0x1\n"}],
                 [{lists:flatten(unicode:characters_to_list(Event)),
                   unicode:characters_to_list(Line)}
                  || {Event, Line} <- sderl_prof_hooks:lines("g", "/x/beam", Probes)]),
    ?assertEqual([~"gc-start", ~"gc-start"],
                 [Name || #{name := Name} <- sderl_prof_hooks:chosen(Probes, [~"gc", ~"wat"])]),
    ?assertEqual(#{~"gc_start" => 7, ~"n1" => 0}, sderl_prof_vm_perf:events(
        ~"5;;g:gc_start;1;100;;\n2;;g:gc_start__at2;1;100;;\n0;;g:n1;1;100;;\nwat\n;;;\n")).

too_many_test() ->
    {refused, Why} = sderl_prof_hooks:hook("g", lists:duplicate(501, made(~"x", 1, none))),
    ?assertNotEqual(nomatch, string:find(Why, "name fewer")).

%% The kernel has the hook until it is removed, or refuses it with a reason.
hook_test_() ->
    {timeout, 60, fun() ->
        Group = sderl_prof_hooks:group(),
        case sderl_prof_hooks:hook(Group, [made(~"sderl-test", 64, none)]) of
            {ok, Switch} ->
                Listed = fun() ->
                    lists:any(fun(Folder) ->
                        case file:read_file(filename:join(Folder, "uprobe_events")) of
                            {ok, Text} ->
                                string:find(Text, Group ++ "/sderl_test") =/= nomatch;
                            {error, _} -> false
                        end
                    end, ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"])
                end,
                ?assert(Listed()),
                ok = sderl_prof_switch:off(Switch),
                ?assertNot(Listed());
            {refused, Why} -> ?assertNotEqual(nomatch, string:find(Why, "uprobe_events: "))
        end
    end}.
