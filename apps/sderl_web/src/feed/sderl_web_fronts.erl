%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_fronts).
-moduledoc """
Keeps the front pages (`m:sderl_web_front`) that people have put together, in a file if the setting
`fronts` names one, and answers what browsers ask of them. There are at most 100.

The file is JSON of at most 4 MiB and is replaced at once. One that cannot be read is left as it is:
the pages are then none, nothing can be saved, and the answers say why. Saving fails, and says why,
on a full disk, or where the file would become too large.
""".

-behaviour(gen_server).

-include_lib("kernel/include/logger.hrl").

-export([start_link/1, answer/3, is_operation/1, find/1, change/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(MOST, 100).
-define(MOST_BYTES, 4_194_304).
-define(VERSION, 1).

-record(fronts, {
    file :: none | file:filename(),
    pages = #{} :: #{Name :: binary() => sderl_web_front:front()},
    problem = none :: none | binary()
}).

-doc "With the pages of a file.".
-spec start_link(none | file:filename()) -> gen_server:start_ret().
start_link(File) -> gen_server:start_link({local, ?MODULE}, ?MODULE, File, []).

-doc "Whether an operation is one of front pages.".
-spec is_operation(atom()) -> boolean().
is_operation(Op) -> lists:member(Op, [fronts, save_front, delete_front]).

-doc "The answer to a checked request; JSON already.".
-spec answer(fronts | save_front | delete_front, map(), Writable :: boolean()) ->
    {ok, iodata()} | {error, sderl_web_protocol:code(), unicode:chardata()}.
answer(fronts, _, _) ->
    #{pages := Pages} = All = gen_server:call(?MODULE, all),
    {ok, sderl_web_json:term(All#{pages := maps:values(Pages)})};
answer(Op, _, false) -> {error, forbidden, sderl_web_protocol:read_only(Op)};
answer(Op, Args, true) ->
    case change(Op, Args) of
        {ok, Page} -> {ok, sderl_web_json:term(Page)};
        {error, Code, Why} -> {error, Code, [atom_to_binary(Op), ": ", Why]}
    end.

-doc "A page.".
-spec find(Name :: binary()) -> {ok, sderl_web_front:front()} | none.
find(Name) ->
    case gen_server:call(?MODULE, all) of
        #{pages := #{Name := Page}} -> {ok, Page};
        #{} -> none
    end.

-doc "Saves the page in `page`, or deletes that of a `name`, where it was saved `rev` times.".
-spec change(save_front | delete_front, map()) ->
    {ok, sderl_web_front:front() | null}
    | {error, sderl_web_protocol:code(), unicode:chardata()}.
change(Op, Args) -> gen_server:call(?MODULE, {Op, Args}).

-doc false.
-spec init(none | file:filename()) -> {ok, #fronts{}}.
init(none) -> {ok, #fronts{file = none}};
init(File) ->
    case read(File) of
        {ok, Pages} -> {ok, #fronts{file = File, pages = Pages}};
        {error, Why} ->
            Problem = sderl_mon_text:text("~ts: ~ts; mend or remove it, and start again",
                                          [File, Why]),
            ?LOG_ERROR("Front pages cannot be read: ~ts", [Problem]),
            {ok, #fronts{file = File, problem = Problem}}
    end.

read(File) ->
    maybe
        {ok, Text} ?= file:read_file(File),
        true ?= byte_size(Text) =< ?MOST_BYTES orelse {error, "it is too large"},
        {ok, #{~"version" := ?VERSION, ~"pages" := List}} ?= sderl_web_parse:object(Text),
        {ok, Pages} ?= checked(List),
        {ok, #{Name => Page || #{name := Name} = Page <- Pages}}
    else
        {error, enoent} -> {ok, #{}};
        {error, Why} when is_atom(Why) -> {error, file:format_error(Why)};
        {error, _} = Error -> Error;
        _ -> {error, "it holds no front pages of version 1"}
    end.

checked(List) when is_list(List), length(List) =< ?MOST ->
    Checked = [sderl_web_front:check(Page) || Page <- List],
    case [Why || {error, Why} <- Checked] of
        [] -> {ok, [Page || {ok, Page} <- Checked]};
        [Why | _] -> {error, Why}
    end;
checked(_) ->
    {error, "it has more than 100 pages"}.

-doc false.
-spec handle_call(term(), gen_server:from(), #fronts{}) -> {reply, term(), #fronts{}}.
handle_call(all, _From, #fronts{pages = Pages, file = File, problem = Problem} = F) ->
    {reply, #{pages => Pages, kept => File =/= none andalso Problem =:= none,
              problem => case Problem of none -> null; _ -> Problem end}, F};
handle_call(_, _From, #fronts{problem = Problem} = F) when Problem =/= none ->
    {reply, {error, unavailable, Problem}, F};
handle_call({save_front, #{page := #{name := Name, rev := Rev} = Page}}, _From,
            #fronts{pages = Pages} = F) ->
    case Pages of
        #{Name := #{rev := Rev}} -> save(Page, F);
        #{Name := _} when Rev =:= 0 ->
            {reply, {error, conflict, "there is a page of that name: choose another"}, F};
        #{Name := _} -> {reply, {error, conflict, changed()}, F};
        #{} when map_size(Pages) >= ?MOST ->
            {reply, {error, too_large, "there are 100 pages, which is the most: delete some"}, F};
        #{} when Rev > 0 -> {reply, {error, conflict, "somebody has deleted it meanwhile"}, F};
        #{} -> save(Page, F)
    end;
handle_call({delete_front, #{name := Name, rev := Rev}}, _From, #fronts{pages = Pages} = F) ->
    case Pages of
        #{Name := #{rev := Rev}} -> put_pages(maps:remove(Name, Pages), null, F);
        #{Name := _} -> {reply, {error, conflict, changed()}, F};
        #{} -> {reply, {error, not_found, "there is no page of that name"}, F}
    end;
handle_call(_, _From, F) ->
    {reply, {error, bad_request, "unknown"}, F}.

changed() -> "somebody has changed it meanwhile: open it again, and make the change anew".

save(#{name := Name, rev := Rev} = Page, #fronts{pages = Pages} = F) ->
    New = Page#{rev := Rev + 1},
    put_pages(Pages#{Name => New}, New, F).

put_pages(Pages, Answer, #fronts{file = File} = F) ->
    case write(File, Pages) of
        ok -> {reply, {ok, Answer}, F#fronts{pages = Pages}};
        {error, too_large} ->
            {reply, {error, too_large, "all pages together would have more than 4 MiB: delete "
                                       "some, or save fewer charts"}, F};
        {error, Why} ->
            {reply, {error, unavailable, [File, " cannot be written: ", file:format_error(Why)]}, F}
    end.

%% A larger file could not be read again.
write(File, Pages) ->
    Text = [sderl_web_json:term(#{version => ?VERSION, pages => maps:values(Pages)}), $\n],
    case iolist_size(Text) of
        Size when Size > ?MOST_BYTES -> {error, too_large};
        _ when File =:= none -> ok;
        _ -> sderl_mon_replace:write(File, Text)
    end.

-doc false.
-spec handle_cast(term(), #fronts{}) -> {noreply, #fronts{}}.
handle_cast(_, F) -> {noreply, F}.

-doc false.
-spec handle_info(term(), #fronts{}) -> {noreply, #fronts{}}.
handle_info(_, F) -> {noreply, F}.
