%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_entry_tests).
-moduledoc "Entries of the record, as a person reads them.".

-include_lib("eunit/include/eunit.hrl").

tell_test_() ->
    Start = {start, ~"web1"},
    [
        ?_assertEqual({Kind, What, Result, Why}, told(Entry))
     || {Kind, What, Result, Why, Entry} <- [
            {request, "pause", done, none, request(pause)},
            {request, "drain web1", running, none, request({drain, ~"web1"})},
            {request, "drain web1 --force", done, none,
             sderl_ops_entry:ended(done, request({force_drain, ~"web1"}))},
            {request, "apply /f (revision 3)", failed, "one; two",
             sderl_ops_entry:ended({failed, [~"one", ~"two"]},
                                   request({revision, 3, ~"apply /f"}))},
            {request, "scale web to 2 (revision 3)", replaced,
             "by revision 4 before it was done",
             sderl_ops_entry:ended({replaced, 4}, request({revision, 3, ~"scale web to 2"}))},
            {request, "members add a@h.x", done, none, request({add_member, ~"a@h.x"})},
            {step, "start web1", done, none, sderl_ops_entry:step(Start, ok, 1)},
            {step, "start web1", failed, "no port free",
             sderl_ops_entry:step(Start, {error, ~"no port free"}, 1)},
            {step, "bring release 0123456789ab to here/h2", failed, "away",
             sderl_ops_entry:step({fetch, ~"here/h2", ~"0123456789abcdef"},
                                  {error, {relay, link, ~"away"}}, 1)},
            {note, "gave up to start web1", failed, "no port free",
             note({quarantined, Start, ~"no port free"})},
            {note, "web goes back from revision 2 to 1", noted, "web1 was not well in time",
             note({roll_back, ~"web", 2, 1, {no_good_health, ~"web1"}})},
            {note, "web runs as revision 2 says", done, none, note({good, ~"web", 2})},
            {note, "web1 is to be on here/h1", noted, none, note({assigned, ~"web1", ~"here/h1"})},
            %% As earlier versions have stored them.
            {request, "drain web1", accepted, none,
             #{at => 1, by => ~"ann", what => {drain, ~"web1"}, result => ok}},
            {step, "let web1 leave its groups", done, none,
             #{at => 1, by => ~"service", what => {drain, ~"web1"}, result => ok}},
            {note, "could not start web1", failed, "no",
             #{at => 1, by => ~"service", what => {failed, Start, ~"no"}, result => ok}},
            %% As a later one may.
            {step, "{fly,<<\"web1\">>}", noted, none,
             #{at => 1, by => ~"service", kind => step, what => {fly, ~"web1"}, result => ok}}
        ]
    ].

request(What) -> sderl_ops_entry:request(~"ann", What, 1).

note(Note) -> sderl_ops_entry:note(Note, 1).

told(Entry) -> told(Entry, false).

told(Entry, IsPaused) ->
    #{kind := Kind, what := What, result := Result, why := Why} =
        sderl_ops_entry:tell(Entry, IsPaused),
    {Kind, flat(What), Result, case Why of undefined -> none; _ -> flat(Why) end}.

flat(Text) -> unicode:characters_to_list(Text).

%% The entry of the step has the failure already.
failed_step_test() ->
    ?assertEqual(none, note({failed, {start, ~"web1"}, ~"no"})).

paused_test() ->
    ?assertEqual({request, "drain web1", running, "paused"},
                 told(request({drain, ~"web1"}), true)),
    ?assertEqual({request, "pause", done, none}, told(request(pause), true)).

outcome_test_() ->
    [?_assertEqual(Outcome, sderl_ops_entry:outcome(State, ["one", "two", "three", "four"]))
     || {State, Outcome} <- [{working, running}, {paused, running}, {none, running},
                             {steady, done}, {destroyed, done},
                             {failed, {failed, [~"one", ~"two", ~"three"]}}]].
