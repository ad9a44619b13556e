%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_log_resource).
-moduledoc "The nodes' log under `/api/v1`.".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, list/1, text/0, whole/0, unix_ms/0, word/1, null_or/1, map/1,
                           ref/1]).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    Fields = [Field || {Name, _, _, _} = Field <- sderl_web_protocol:fields(log),
                       Name =/= ~"limit", Name =/= ~"before"],
    [#{op => log, method => get, path => [~"log"], role => viewer,
       summary => ~"Events of the nodes' logs, newest first",
       query => Fields, pages => {500, 100},
       answer => {200, object(#{events => list(ref(~"LogEvent")), log => ref(~"LogState"),
                                next => null_or(text())})}}].

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    Level = word(sderl_mon_log_message:levels()),
    #{
        ~"LogEvent" => object(#{
            id => whole(), t => unix_ms(), node_t => unix_ms(), level => Level, node => text(),
            groups => list(text()), mfa => text(), pid => text(), text => text(), lost => whole()
        }),
        ~"LogState" => object(#{
            events => map(whole()), place => word([memory, files]), problem => null_or(text()),
            range => null_or(list(unix_ms())), last => whole(), bytes => whole(),
            lost => list(object(#{reason => text(), level => text(), events => whole()}))
        })
    }.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(log, Args, _) ->
    Options = case Args of
        #{cursor := Id} when is_integer(Id) -> (maps:remove(cursor, Args))#{before => Id};
        #{} -> maps:remove(cursor, Args)
    end,
    case sderl_web_log:page(Options) of
        {ok, #{next := null} = Page} -> {ok, maps:remove(next, Page), #{next => none}};
        {ok, #{next := Next} = Page} -> {ok, maps:remove(next, Page), #{next => Next}};
        {error, Code, Why} -> {error, Code, Why}
    end.
