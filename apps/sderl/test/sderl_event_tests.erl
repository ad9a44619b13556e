%% SPDX-License-Identifier: Apache-2.0
-module(sderl_event_tests).
-include_lib("eunit/include/eunit.hrl").

-export([log/2]).

%% A logger handler that passes our events to the test.
log(#{meta := #{library := sderl}} = LogEvent, #{config := #{to := Pid}}) ->
    Pid ! {logged, LogEvent};
log(_LogEvent, _Config) -> ok.

%% A stand-in for the library `telemetry`: forms, compiled here, so that no file of that name
%% is on anybody's path.
telemetry(Body) ->
    Source =
        "-module(telemetry). -export([execute/3]). execute(Name, Measurements, Meta) -> " ++ Body ++
            ".",
    {ok, telemetry, Code} = compile:forms(forms(Source), []),
    {module, telemetry} = code:load_binary(telemetry, "stand-in", Code).

forms(Source) ->
    {ok, Tokens, _} = erl_scan:string(Source),
    [
        begin
            {ok, Form} = erl_parse:parse_form(Part),
            Form
        end
     || Part <- split(Tokens, [])
    ].

split([], []) -> [];
split([{dot, _} = Dot | Rest], Form) -> [lists:reverse(Form, [Dot]) | split(Rest, [])];
split([Token | Rest], Form) -> split(Rest, [Token | Form]).

%% The real library, where the code path has it, must not be touched.
no_telemetry() ->
    case code:is_loaded(telemetry) of
        {file, "stand-in"} ->
            code:purge(telemetry),
            code:delete(telemetry),
            code:purge(telemetry);
        false ->
            false
    end.

event_test_() ->
    [
        {Name, {spawn, fun() -> with_handler(Test) end}}
     || {Name, Test} <- [
            {"a log event", fun logs/0},
            {"levels", fun levels/0},
            {"an event that is not in the table", fun unknown/0},
            {"many of one cause", fun limited/0},
            {"many causes", fun causes/0},
            {"telemetry", fun telemetry/0},
            {"telemetry that fails", fun failing_telemetry/0}
        ]
    ].

with_handler(Test) ->
    register(?MODULE, self()),
    Primary = logger:get_primary_config(),
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => #{to => self()}}),
    _ = logger:add_handler_filter(default, ?MODULE, quiet()),
    try
        Test()
    after
        no_telemetry(),
        logger:remove_handler_filter(default, ?MODULE),
        ok = logger:remove_handler(?MODULE),
        ok = logger:set_primary_config(Primary),
        logger:unset_module_level(sderl_event),
        unregister(?MODULE)
    end.

%% Keeps our events off the console.
quiet() ->
    {fun(#{meta := Meta}, _) -> case Meta of #{library := sderl} -> stop; _ -> ignore end end,
     none}.

logged() ->
    receive
        {logged, Event} -> Event
    after 0 -> nothing
    end.

text(#{msg := {report, Report}, meta := #{report_cb := Callback}}) ->
    {Format, Args} = Callback(Report),
    lists:flatten(io_lib:format(Format, Args)).

logs() ->
    ok = sderl_event:emit(members_added, #{group => {g, 1}, nodes => ['a@h', 'b@h']}),
    Event = logged(),
    ?assertMatch(
        #{level := notice, msg := {report, #{event := members_added, group := {g, 1}}}}, Event
    ),
    ?assertEqual("s_group {g,1} has the new members [a@h,b@h]", text(Event)).

levels() ->
    Meta = #{group => g, name => n, pid => self()},
    ok = logger:set_primary_config(level, notice),
    ok = sderl_event:emit(name_registered, Meta),
    ?assertEqual(nothing, logged()),
    ok = sderl_event:emit(warning, name_registered, Meta),
    ?assertMatch(#{level := warning}, logged()),
    ok = logger:set_module_level(sderl_event, debug),
    ok = sderl_event:emit(name_registered, Meta),
    ?assertMatch(#{level := debug}, logged()).

unknown() ->
    ok = sderl_event:emit(comet_seen, #{tail => long}),
    Event = logged(),
    ?assertMatch(#{level := notice}, Event),
    ?assertEqual("comet_seen: #{tail => long}", text(Event)).

limited() ->
    sderl_logged = sderl_event:new(),
    Clash = #{group => g, name => n, pids => [self()]},
    [ok = sderl_event:emit(name_clash, Clash) || _ <- lists:seq(1, 30)],
    Lines = all_logged(),
    ?assertEqual(10, length(Lines)),
    %% Another group is another cause, and so is another event.
    ok = sderl_event:emit(name_clash, Clash#{group := h}),
    ok = sderl_event:emit(group_created, #{group => g, nodes => []}),
    ?assertEqual(2, length(all_logged())),
    later(),
    ok = sderl_event:emit(name_clash, Clash),
    [Told] = all_logged(),
    ?assertMatch(#{msg := {report, #{suppressed := 20}}}, Told),
    ?assertEqual(text(hd(Lines)) ++ "; 20 more like it were not logged", text(Told)),
    later(),
    ok = sderl_event:emit(name_clash, Clash),
    [Next] = all_logged(),
    ?assertEqual(text(hd(Lines)), text(Next)).

%% However many there are, the table stays small, and so does the log.
causes() ->
    sderl_logged = sderl_event:new(),
    [ok = sderl_event:emit(uid_conflict, #{group => G, node => node()}) || G <- lists:seq(1, 3000)],
    ?assertEqual(1000 + 10, length(all_logged())),
    ?assertEqual(1000 + 1, ets:info(sderl_logged, size)),
    later(),
    ok = sderl_event:emit(uid_conflict, #{group => g, node => node()}),
    ?assertEqual(1, ets:info(sderl_logged, size)).

%% The window of every cause is over.
later() ->
    [true = ets:update_element(sderl_logged, Cause, {2, Since - 10_001})
     || {Cause, Since, _} <- ets:tab2list(sderl_logged)].

all_logged() ->
    case logged() of
        nothing -> [];
        Event -> [Event | all_logged()]
    end.

telemetry() ->
    telemetry("sderl_event_tests ! {Name, Measurements, Meta}"),
    ok = sderl_event:emit(name_registered, #{group => g, measurements => #{duration_us => 7}}),
    receive
        Told ->
            ?assertEqual(
                {[sderl, name, registered], #{count => 1, duration_us => 7}, #{group => g}}, Told
            )
    after 0 -> error(not_told)
    end.

failing_telemetry() ->
    [
        begin
            telemetry(Body),
            ?assertEqual(ok, sderl_event:emit(name_registered, #{group => g}))
        end
     || Class <- ["throw", "exit", "error"],
        Body <- [Class ++ "({Name, Measurements, Meta})"]
    ],
    telemetry("{Name, Measurements, Meta}"),
    ?assertEqual(ok, sderl_event:emit(name_registered, #{measurements => no_map})).

%% Every sentence is whole with the keys that the documentation lists, and printable without.
sentences_test_() ->
    [
        {atom_to_list(Event), fun() ->
            Keys = documented_keys(Event),
            Full = sentence(Event, #{Key => {value_of, Key} || Key <- Keys}),
            ?assertEqual(nomatch, string:find(Full, "?")),
            [
                ?assertNotEqual({Key, nomatch}, {Key, string:find(Full, atom_to_list(Key))})
             || Key <- Keys
            ],
            ?assert(io_lib:printable_unicode_list(sentence(Event, #{})))
        end}
     || {Event, _Level, _Telemetry} <- sderl_event:events()
    ].

sentence(Event, Meta) ->
    {Format, Args} = sderl_event:format(Meta#{event => Event}),
    lists:flatten(io_lib:format(Format, Args)).

%% The rows of the table in the module's documentation, by event.
documented() ->
    {ok, {docs_v1, _, erlang, _, #{<<"en">> := Doc}, _, _}} = code:get_doc(sderl_event),
    maps:from_list([
        {Event, {Level, Telemetry, Keys}}
     || Line <- string:split(Doc, "\n", all),
        {match, [Event, Level, Telemetry, Keys]} <- [
            re:run(Line, "^\\| `(\\w+)` \\| (\\w+) \\| `(.*?)` \\| (.*?) \\|", [
                {capture, all_but_first, binary}
            ])
        ]
    ]).

documented_keys(Event) ->
    {_Level, _Telemetry, Keys} = maps:get(atom_to_binary(Event), documented()),
    [
        list_to_existing_atom(string:trim(Key, both, "[] "))
     || Key <- string:split(binary_to_list(Keys), ",", all)
    ].

%% Whoever names a group or registers a name does not write what the log looks like.
hidden_test() ->
    Report = #{event => name_registered, group => 'a\x{202e}b', name => ~"x\x{2066}\x{200b}",
               pid => 'é'},
    {Format, Args} = sderl_event:format(Report),
    Text = unicode:characters_to_list(io_lib:format(Format, Args)),
    ?assertEqual([], [C || C <- Text, C >= 16#200b andalso C =< 16#206f]),
    ?assertNotEqual(nomatch, string:find(Text, "'a\\u{202e}b'")),
    ?assertNotEqual(nomatch, string:find(Text, "é")).

documentation_test() ->
    InCode = #{
        atom_to_binary(Event) =>
            {atom_to_binary(Level), iolist_to_binary(io_lib:format("~0p", [Telemetry]))}
     || {Event, Level, Telemetry} <- sderl_event:events()
    },
    InDoc = #{
        Event => {Level, binary:replace(Telemetry, <<" ">>, <<>>, [global])}
     || Event := {Level, Telemetry, _} <- documented()
    },
    ?assertEqual(InCode, InDoc).
