%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_table).
-moduledoc """
The table of routes of the running server, and its OpenAPI document. Both are made once at the start
and read by every request without a copy.
""".

-export([put/1, erase/0, routes/0, document/0]).

-define(KEY, ?MODULE).

-doc "Makes them of some modules.".
-spec put([module()]) -> ok.
put(Modules) ->
    Table = sderl_web_route:table(Modules),
    Schemas = lists:foldl(fun(Module, Acc) -> maps:merge(Acc, Module:schemas()) end, #{}, Modules),
    Document = iolist_to_binary(json:encode(sderl_web_openapi:document(Table, Schemas))),
    persistent_term:put(?KEY, {Table, Document}).

-doc "There is no server any more.".
-spec erase() -> ok.
erase() ->
    _ = persistent_term:erase(?KEY),
    ok.

-doc "The routes.".
-spec routes() -> sderl_web_route:table().
routes() -> element(1, persistent_term:get(?KEY)).

-doc "The document, as JSON.".
-spec document() -> binary().
document() -> element(2, persistent_term:get(?KEY)).
