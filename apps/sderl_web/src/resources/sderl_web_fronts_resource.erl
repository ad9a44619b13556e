%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_fronts_resource).
-moduledoc """
The pages of charts that people have put together (`m:sderl_web_fronts`), under `/api/v1`.

A page is written as a whole. Without `If-Match` it is a new one; the tag of the page that was read
lets it be changed where nobody else has, and `*` writes over whatever there is, and makes none.
""".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3]).

-import(sderl_web_schema, [object/1, object/2, list/1, text/0, whole/0, flag/0, null_or/1, ref/1]).

-define(NAME_BYTES, 60).
-define(WINDOW_BYTES, 5).
-define(CHARTS, 24).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    One = [~"fronts", {~"name", name, {text, ?NAME_BYTES}, required}],
    [
        #{op => fronts, method => get, path => [~"fronts"], role => viewer,
          summary => ~"The pages of charts that people have put together",
          answer => {200, object(#{pages => list(ref(~"Front")), kept => flag(),
                                   problem => null_or(text())})}},
        #{op => front, method => get, path => One, role => viewer,
          summary => ~"A page of charts",
          answer => {200, ref(~"Front")}},
        #{op => put_front, method => put, path => One, role => operator,
          summary => ~"Makes a page of charts, or writes it anew",
          body => [{~"window", window, {text, ?WINDOW_BYTES}, required},
                   {~"charts", charts, {list, ?CHARTS}, required}],
          %% Names of 640 and of 255 bytes in each chart, where each letter is an escape of JSON.
          body_bytes => 102_400,
          conditional => true, makes => true, problems => [conflict],
          answer => {200, ref(~"Front")}},
        #{op => remove_front, method => delete, path => One, role => operator,
          summary => ~"Deletes a page of charts",
          conditional => true, problems => [conflict],
          answer => 204}
    ].

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    #{~"Front" => object(#{
        name => text(), window => text(), rev => whole(),
        charts => list(object(#{metric => text(),
                                place => object(#{kind => text()}, #{name => text()})}))
    })}.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(fronts, Args, #{writable := Writable}) ->
    sderl_web_ask:live({fronts, Args}, Writable);
answer(front, #{name := Name}, _) ->
    case sderl_web_fronts:find(Name) of
        {ok, Page} -> shown(Page);
        none -> unknown(Name)
    end;
answer(put_front, #{name := Name, window := Window, charts := Charts}, #{if_match := Tags}) ->
    Given = #{~"name" => Name, ~"window" => Window, ~"charts" => Charts},
    maybe
        {ok, Page} ?= checked(sderl_web_front:check(Given)),
        {ok, Rev} ?= written_over(sderl_web_fronts:find(Name), Tags),
        {ok, #{rev := _} = New} ?= changed(save_front, #{page => Page#{rev := Rev}}, Tags),
        made(New)
    end;
answer(remove_front, #{name := Name}, #{if_match := Tags}) ->
    maybe
        {ok, Page} ?= sderl_web_fronts:find(Name),
        {ok, Rev} ?= as_read(Page, Tags),
        {ok, _} ?= changed(delete_front, #{name => Name, rev => Rev}, Tags),
        done
    else
        none -> unknown(Name);
        {error, _, _} = Error -> Error
    end.

shown(Page) -> {ok, Page, #{tag => Page}}.

made(#{rev := 1, name := Name} = Page) ->
    {ok, Page, #{tag => Page, made => true, location => [~"fronts/", uri_string:quote(Name)]}};
made(Page) ->
    shown(Page).

checked({ok, _} = Ok) -> Ok;
checked({error, Why}) -> {error, bad_request, Why}.

%% How often the page was saved that is written over.
written_over(none, none) -> {ok, 0};
written_over(none, [~"*"]) ->
    {error, changed, "there is no page of that name to write over: leave If-Match out to make one"};
written_over(none, _) -> {error, changed, "there is no page of that name any more"};
written_over({ok, _}, none) ->
    {error, conflict, "there is a page of that name: send its ETag as If-Match to change it, or * "
                      "to write over whatever there is"};
written_over({ok, Page}, Tags) -> as_read(Page, Tags).

as_read(#{rev := Rev}, none) -> {ok, Rev};
as_read(#{rev := Rev} = Page, Tags) ->
    case sderl_web_tag:is_listed(sderl_web_tag:of_term(Page), Tags) of
        true -> {ok, Rev};
        false -> {error, changed, "the page is not what If-Match says any more: read it again"}
    end.

%% Somebody may have come between.
changed(Op, Args, Tags) ->
    case sderl_web_fronts:change(Op, Args) of
        {error, conflict, Why} when Tags =/= none -> {error, changed, Why};
        Result -> Result
    end.

unknown(Name) -> {error, not_found, ["there is no page \"", Name, "\": GET /fronts lists them"]}.
