%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_profiles_resource).
-moduledoc """
Profiles of a running cluster under `/api/v1/profiles`: begun, followed, stopped and deleted
(`m:sderl_cli_profiles`). Below each of them are the paths that `bin/sderl prof open` has of one
recording (`m:sderl_cli_prof_resource`, `m:sderl_cli_prof_samples_resource`).
""".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, list/1, text/0, whole/0, number/0, flag/0, null_or/1, map/1,
                           ref/1, word/1, any/0, unix_ms/0]).

-define(ID, 64).
-define(SECONDS, 10).
-define(MIB, 32).
-define(MODULES, 50).
-define(MOST, 86_400).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    One = [~"profiles", {~"id", id, {text, ?ID}, required}],
    [
        #{op => profiles, method => get, path => [~"profiles"], role => viewer,
          summary => ~"Profiles of the cluster, the newest first, and what may be begun",
          answer => {200, object(#{
              now => unix_ms(), profiles => list(ref(~"LiveProfile")), bytes => whole(),
              most_bytes => whole(),
              limits => map(any()), may => list(text())
          })}},
        #{op => begin_profile, method => post, path => [~"profiles"], role => viewer,
          own_rights => true, creates => true, problems => [not_found, conflict],
          summary => ~"Begins to sample nodes, or to try what a recording of them costs",
          body => [
              {~"kind", kind, {word, sderl_prof_live_request:kinds()}, sampling},
              {~"on", on,
               {checked, fun is_object/1, "an object with node, nodes, group or family"}, required},
              {~"seconds", seconds, {whole, 1, ?MOST}, ?SECONDS},
              {~"mib", mib, {whole, 1, ?MOST}, ?MIB},
              {~"modules", modules, {texts, ?MODULES, 255}, []}
          ],
          answer => {201, object(#{id => text()})}},
        #{op => live_profile, method => get, path => One, role => viewer,
          summary => ~"How a profile goes, or went",
          answer => {200, ref(~"LiveProfile")}},
        #{op => record_profile, method => post, path => One ++ [~"begin"], role => viewer,
          own_rights => true, problems => [conflict],
          summary => ~"Begins to record, after the trial has shown the cost",
          body => [{~"force", force, flag, false}],
          answer => {200, object(#{ok => flag()})}},
        #{op => stop_profile, method => post, path => One ++ [~"stop"], role => viewer,
          own_rights => true, problems => [conflict], summary => ~"Ends a profile before its time",
          answer => {200, object(#{ok => flag()})}},
        #{op => delete_profile, method => delete, path => One, role => viewer, own_rights => true,
          problems => [conflict], summary => ~"Deletes a profile that is over", answer => 204}
        | [below(One, Route)
           || Route <- sderl_cli_prof_resource:routes() ++ sderl_cli_prof_samples_resource:routes()]
    ].

%% A path of one recording, below the profile.
below(One, #{path := Path} = Route) ->
    Problems = maps:get(problems, Route, []),
    in_role(Route#{path := One ++ Path, problems => lists:usort([conflict, not_found | Problems])}).

%% Not everybody who may look at profiles may read source files of this machine.
in_role(#{op := profile_source} = Route) -> Route#{role := admin};
in_role(Route) -> Route.

is_object(Given) when is_map(Given) -> {ok, Given};
is_object(_) -> {error, "it is an object"}.

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    Own = #{~"LiveProfile" => object(#{
        id => text(), kind => word(sderl_prof_live_request:kinds()), on => map(any()),
        nodes => list(text()), who => text(), at => unix_ms(), seconds => whole(), mib => whole(),
        modules => list(text()),
        state => word([preparing, ready, running, ending, ended, failed, lost]),
        began => null_or(unix_ms()), ended_at => null_or(unix_ms()), dear => flag(),
        costs => list(object(#{
            node => text(), events_s => number(), bytes_s => number(), event_ns => number(),
            cores => number(), full => flag()
        })),
        problems => list(object(#{node => text(), why => text()})), why => null_or(text()),
        stopped => flag(), bytes => whole(), book => null_or(text())
    })},
    lists:foldl(fun maps:merge/2, Own,
                [sderl_cli_prof_resource:schemas(), sderl_cli_prof_samples_resource:schemas()]).

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(profiles, _, Context) ->
    {ok, (sderl_prof_live:list())#{may => [Kind || Kind <- sderl_prof_live_request:kinds(),
                                                   sderl_cli_profiles:may(Kind, Context)]}};
answer(begin_profile, Args, Context) ->
    case sderl_cli_profiles:begin_(Args, Context) of
        {ok, Id} -> {ok, #{id => Id}, #{location => [~"profiles/", Id]}};
        Error -> Error
    end;
answer(live_profile, #{id := Id}, _) ->
    case sderl_prof_live:find(Id) of
        {ok, Profile} -> {ok, Profile};
        {error, Why} -> {error, not_found, sderl_prof_live:format_error(Why)}
    end;
answer(record_profile, #{id := Id, force := Force}, Context) ->
    ok(sderl_cli_profiles:confirm(Id, Force, Context));
answer(stop_profile, #{id := Id}, Context) ->
    ok(sderl_cli_profiles:stop(Id, Context));
answer(delete_profile, #{id := Id}, Context) ->
    case sderl_cli_profiles:delete(Id, Context) of
        ok -> done;
        Error -> Error
    end;
answer(Op, #{id := Id} = Args, _) ->
    Asked = maps:remove(id, Args),
    case {sderl_prof_live:viewer(Id), is_of_samples(Op)} of
        {{ok, sampling, Viewer}, true} ->
            sderl_cli_prof_samples_resource:answer_of(Viewer, Op, Asked);
        {{ok, Kind, Viewer}, false} when Kind =/= sampling ->
            sderl_cli_prof_resource:answer_of(Viewer, Op, Asked);
        {{ok, Kind, _}, _} ->
            {error, not_found, io_lib:format("this profile is one of ~ts: ask below its path ~ts",
                                             [Kind, part(Kind)])};
        {{error, not_found}, _} ->
            {error, not_found, sderl_prof_live:format_error(not_found)};
        {{error, Why}, _} ->
            {error, conflict, sderl_prof_live:format_error(Why)}
    end.

ok(ok) -> {ok, #{ok => true}};
ok(Error) -> Error.

is_of_samples(Op) -> Op =:= samples orelse Op =:= samples_shares.

part(sampling) -> ~"samples";
part(_) -> ~"profile".
