%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_api).
-moduledoc """
Answers requests under `/api` by the table of routes (`m:sderl_web_route`).

In this order: the token and its rate, the path and its method, the role, the parameters, the body,
the idempotency key. Only what has passed all of them comes to the module that answers. Errors are
problems (`m:sderl_web_problem`).

The process of a request ends when its client goes away. So what changes something is answered, kept
by its idempotency key and told the audit log in a process of `m:sderl_web_work`, and the request
waits for it for 30 seconds.
""".

-export([init/2]).
-export_type([options/0]).

-doc "What handlers know of the settings.".
-type options() :: #{
    writable := boolean(),
    max_sockets := pos_integer(),
    recordings := none | file:filename(),
    replay := none | file:filename(),
    audit := sderl_web_audit:hook()
}.

-record(call, {
    req :: cowboy_req:req(),
    options :: options(),
    who :: sderl_web_tokens:who() | nobody,
    route :: sderl_web_route:route(),
    query = [] :: [{binary(), binary()}],
    args = #{} :: #{atom() | binary() => term()},
    %% The tags of If-Match and If-None-Match.
    if_match = none :: none | [binary()],
    if_none_match = [] :: [binary()],
    %% Tells whether a request that comes again is the same.
    digest = ~"" :: binary(),
    began :: integer()
}).

%% A status with headers and JSON, a code with a detail and headers, or a function that streams.
-type answer() ::
    sderl_web_answers:answer()
    | {sderl_web_problem:code(), unicode:chardata(), #{binary() => iodata()}}
    | {stream, fun((cowboy_req:req()) -> cowboy_req:req())}.

-define(MOST_KEY, 128).
-define(WAIT_MS, 30_000).

-doc false.
-spec init(cowboy_req:req(), options()) -> {ok, cowboy_req:req(), options()}.
init(Req, Options) ->
    Parts = binary:split(cowboy_req:path(Req), ~"/", [global, trim_all]),
    {ok, found(Parts, Req, Options), Options}.

found([~"api", ~"v1" | Path], Req, Options) ->
    Chosen = [decoded(Part) || Part <- Path],
    case sderl_web_route:match(cowboy_req:method(Req), Chosen, sderl_web_table:routes()) of
        {ok, #{role := nobody} = Route, Texts} ->
            case sderl_web_auth:admit_anybody(Req) of
                ok -> routed(Route, Texts, nobody, Req, Options);
                {refused, Why} -> sderl_web_auth:refuse(Why, Req)
            end;
        Match -> known(Match, Req, Options)
    end;
found(_, Req, Options) ->
    known(none, Req, Options).

%% A part that is no UTF-8 when it is decoded names nothing, and is a text all the same.
decoded(Part) ->
    try
        uri_string:percent_decode(Part)
    catch
        throw:{error, _, _} -> sderl_web_json:text(Part)
    end.

%% Strangers do not learn which paths there are.
known(Match, Req, Options) ->
    case sderl_web_auth:admit(Req) of
        {refused, Why} -> sderl_web_auth:refuse(Why, Req);
        {ok, Who} ->
            case Match of
                {ok, Route, Texts} -> routed(Route, Texts, Who, Req, Options);
                {wrong_method, Methods} ->
                    Allowed = iolist_to_binary(lists:join(~", ", Methods)),
                    sderl_web_reply:refuse(wrong_method, ["this path takes ", Allowed],
                                           #{~"allow" => Allowed}, Req);
                none ->
                    sderl_web_reply:refuse(not_found,
                                           "there is no such path: all are under /api/v1, and "
                                           "/api/v1/openapi.json lists them", Req)
            end
    end.

routed(Route, Texts, Who, Req0, Options) ->
    maybe
        {ok, Call1} ?= permitted(#call{req = Req0, options = Options, who = Who, route = Route,
                                       args = unchecked(Texts),
                                       began = sderl_mon_clock:now_ms()}),
        {ok, Call2} ?= with_query(Call1),
        {ok, Call3} ?= with_arguments(Texts, Call2),
        {ok, Call4} ?= with_tags(Call3),
        {ok, Call} ?= with_body(Call4),
        begun(Call)
    else
        {error, Code, Why, Headers, #call{} = Refused} -> refused(Code, Why, Headers, Refused)
    end.

%% The names in the path, for the audit log of requests that are refused before they are checked.
unchecked(Texts) -> #{Name => sderl_mon_text:cut(Text, 255) || Name := Text <- Texts}.

permitted(#call{who = nobody} = Call) -> {ok, Call};
permitted(#call{who = #{role := Role}, route = #{role := Needed} = Route,
                options = #{writable := Writable}} = Call) ->
    Changes = changes(Route),
    case sderl_web_token:allows(Role, Needed) of
        false ->
            Scope = atom_to_binary(Needed),
            {error, forbidden,
             ["this needs the role ", Scope, ", and the token has ", atom_to_binary(Role),
              ": ask an admin for a token of that role"],
             #{~"www-authenticate" => <<"Bearer realm=\"sderl\", error=\"insufficient_scope\", "
                                        "scope=\"", Scope/binary, "\"">>}, Call};
        true when Changes, not Writable ->
            {error, read_only,
             sderl_web_protocol:read_only(map_get(op, Route)), #{}, Call};
        true -> {ok, Call}
    end.

%% A request that its module judges may as well only look.
changes(#{own_rights := Own} = Route) -> not Own andalso sderl_web_route:changes(Route).

%% The token may be among the fields.
with_query(#call{req = Req} = Call) ->
    try
        Query = [{Key, case Value of true -> ~""; _ -> Value end}
                 || {Key, Value} <- cowboy_req:parse_qs(Req), Key =/= ~"token"],
        case lists:all(fun({Key, Value}) -> is_utf8(Key) andalso is_utf8(Value) end, Query) of
            true -> {ok, Call#call{query = Query}};
            false -> unreadable(Call)
        end
    catch
        exit:{request_error, _, _} -> unreadable(Call)
    end.

unreadable(Call) ->
    {error, bad_request,
     "the query cannot be read: it is name=value&name=value, percent-encoded UTF-8", #{}, Call}.

is_utf8(Text) -> is_binary(unicode:characters_to_binary(Text)).

with_arguments(Texts, #call{route = #{op := Op} = Route, query = Query} = Call) ->
    maybe
        {ok, Args} ?= sderl_web_route:arguments(Route, Texts, maps:from_list(Query)),
        {ok, Key} ?= cursor(Op, Args),
        {ok, Call#call{args = maps:merge(Args, Key)}}
    else
        {error, Why} -> {error, bad_request, Why, #{}, Call}
    end.

cursor(Op, #{cursor := Text}) ->
    case sderl_web_page:decode(Op, Text) of
        {ok, Key} -> {ok, #{cursor => Key}};
        error ->
            {error, "cursor is no text of this path: take it from next of the page before, or "
                    "leave it out for the first page"}
    end;
cursor(_, _) -> {ok, #{}}.

with_tags(#call{req = Req} = Call) ->
    maybe
        {ok, Match} ?= tags(~"if-match", none, Req),
        {ok, NoneMatch} ?= tags(~"if-none-match", [], Req),
        ok ?= conditional(Match, Call),
        {ok, Call#call{if_match = Match, if_none_match = NoneMatch}}
    else
        no_version ->
            {error, bad_request,
             "what this changes has no version, so that If-Match cannot hold it back: leave it out",
             #{}, Call};
        {error, Name} ->
            {error, bad_request,
             ["the header ", Name, " is no UTF-8: it is entity tags as they were read, in quotes"],
             #{}, Call}
    end.

%% A condition that nobody looks at would let a change pass that was to be held back.
conditional(Match, _) when Match =:= none; Match =:= [~"*"] -> ok;
conditional(_, #call{route = #{conditional := Conditional} = Route}) ->
    case Conditional orelse not sderl_web_route:changes(Route) of
        true -> ok;
        false -> no_version
    end.

tags(Name, Default, Req) ->
    case cowboy_req:header(Name, Req) of
        undefined -> {ok, Default};
        Header ->
            case is_utf8(Header) of
                true -> {ok, sderl_web_tag:listed(Header)};
                false -> {error, Name}
            end
    end.

with_body(#call{route = #{body := none}, req = Req} = Call) ->
    {ok, Call#call{digest = digest(~"", Req)}};
with_body(#call{route = #{body := Fields, body_bytes := Most}, req = Req0, args = Args} = Call) ->
    case sderl_web_body:read(Most, Req0) of
        {ok, Object, Text, Req} ->
            case sderl_web_fields:check(Fields, Object) of
                {ok, Given} ->
                    {ok, Call#call{req = Req, args = maps:merge(Given, Args),
                                   digest = digest(Text, Req)}};
                {error, Why} -> {error, bad_request, Why, #{}, Call#call{req = Req}}
            end;
        {error, Code, Why, Req} -> {error, Code, Why, #{}, Call#call{req = Req}}
    end.

digest(Body, Req) ->
    crypto:hash(sha256, [cowboy_req:method(Req), 0, cowboy_req:path(Req), 0, Body]).

%% ---------------------------------------------------------------- changes

begun(#call{route = Route} = Call) ->
    case sderl_web_route:changes(Route) of
        true -> changed(Call);
        false ->
            {Answer, _} = answer(Call),
            reply(Answer, Call)
    end.

changed(Call) ->
    case key(Call) of
        {ok, Key} ->
            Work = fun() -> once(Key, Call) end,
            Lost = fun(Reason) -> tell(lost(Reason), ~"", Call) end,
            case sderl_web_work:run(Work, Lost, ?WAIT_MS) of
                {ok, Outcome} -> reply(Outcome, Call);
                full ->
                    refused(unavailable, "as many changes as can be made at a time are being "
                                         "made: ask again", #{}, Call);
                %% How it ends is told the audit log then.
                late ->
                    reply({late, "no answer within 30 s, and it goes on: ask again with the same "
                                 "Idempotency-Key, or look whether it is done", #{}}, Call);
                {lost, Reason} -> reply(lost(Reason), Call)
            end;
        error ->
            refused(bad_request, "Idempotency-Key is 1 to 128 visible characters of ASCII", #{},
                    Call)
    end.

key(#call{route = #{creates := true}, who = #{id := Id}, req = Req}) ->
    case cowboy_req:header(~"idempotency-key", Req) of
        undefined -> {ok, none};
        Given ->
            case re:run(Given, "\\A[!-~]{1," ++ integer_to_list(?MOST_KEY) ++ "}\\z",
                        [{capture, none}]) of
                match -> {ok, {Id, Given}};
                nomatch -> error
            end
    end;
key(_) ->
    {ok, none}.

once(none, Call) ->
    {Answer, Detail} = answer(Call),
    told(Answer, Detail, Call);
once(Key, #call{digest = Digest} = Call) ->
    case start(Key, Digest) of
        new ->
            {Answer, Detail} = answer(Call),
            ok = keep(Key, Answer),
            told(Answer, Detail, Call);
        {again, Answer} -> {again, Answer};
        busy ->
            told_here({conflict, "the same request is still being answered: ask again", #{}},
                      Call);
        other ->
            told_here({key_reused,
                       "this Idempotency-Key came before with another request: take a new key",
                       #{}}, Call);
        full ->
            told_here({unavailable,
                       "as many requests as can be kept are being answered: ask again", #{}}, Call)
    end.

start(Key, Digest) ->
    try
        sderl_web_idempotency:start(Key, Digest, kept(lost(killed)))
    catch
        exit:_ -> full
    end.

%% A request that was not done may come again, and be done then. Where the keys begin anew, there is
%% nobody to keep it.
keep(Key, Answer) ->
    try
        case Answer of
            {unavailable, _, _} -> sderl_web_idempotency:forget(Key);
            {too_many_requests, _, _} -> sderl_web_idempotency:forget(Key);
            {stream, _} -> sderl_web_idempotency:forget(Key);
            _ -> sderl_web_idempotency:finish(Key, kept(Answer))
        end
    catch
        exit:_ -> ok
    end.

kept({Code, Why, Headers}) when is_atom(Code) ->
    {sderl_web_problem:status(Code), maps:merge(sderl_web_reply:problem_headers(), Headers),
     sderl_web_problem:make(Code, Why)};
kept({Status, Headers, Body}) ->
    {Status, Headers#{~"content-type" => ~"application/json", ~"cache-control" => ~"no-store"},
     Body}.

lost(Reason) ->
    {late, ["it ended before it had answered", case Reason of
        killed -> ", because it took too long or too much memory";
        shutdown -> ", because the dashboard stopped";
        _ -> ""
    end, unknown()], #{}}.

unknown() ->
    "; whether it was done is not known: look before you ask again, with another Idempotency-Key "
    "where there was one".

%% ---------------------------------------------------------------- answers

%% The answer, and what the audit log is told beside the arguments.
-spec answer(#call{}) -> {answer(), Detail :: unicode:chardata()}.
answer(#call{route = #{module := Module, op := Op} = Route, args = Args} = Call) ->
    try
        Result = Module:answer(Op, Args, context(Call)),
        {shown(Result, Call), detail(Result)}
    catch
        Class:Reason:Stack ->
            {ended(Class, Reason, Stack, Op, sderl_web_route:changes(Route)), ~""}
    end.

detail({ok, _, #{detail := Detail}}) -> Detail;
detail(_) -> ~"".

ended(exit, {noproc, {_, _, _}}, _, _, _) ->
    {unavailable, "what answers this is not running: ask again", #{}};
ended(exit, {Why, {_, _, _}}, _, _, true) when Why =:= timeout; Why =:= shutdown ->
    {late, ["what does this did not answer in time, or stopped", unknown()], #{}};
ended(exit, {Why, {_, _, _}}, _, _, false) when Why =:= timeout; Why =:= shutdown ->
    {unavailable, "what answers this is not running, or did not answer in time: ask again", #{}};
%% Not with the request, which holds the token.
ended(Class, Reason, Stack, Op, Changes) ->
    sderl_web_notes:note(failed, io_lib:format("~ts: ~0tP at ~0tP", [
        Op, {Class, shape(Reason)}, 12, [{M, F} || {M, F, _, _} <- lists:sublist(Stack, 4)], 30
    ])),
    {failed, ["the request ended by an error; the log of the dashboard says which",
              [unknown() || Changes]], #{}}.

shape({Reason, {M, F, A}}) when is_list(A) -> {Reason, {M, F, length(A)}};
shape({failed, Class, Reason, Places}) -> {failed, Class, shape(Reason), Places};
shape(Reason) -> Reason.

context(#call{who = nobody}) ->
    #{name => ~"", token => ~"", role => nobody, expires => none, from => ~"", writable => false,
      if_match => none};
context(#call{who = #{id := Id, name := Name, role := Role, expires := Expires}, req = Req,
              if_match = Tags, options = #{writable := Writable}}) ->
    #{name => Name, token => Id, role => Role, expires => Expires, writable => Writable,
      from => sderl_web_auth:client(Req), if_match => Tags}.

shown({ok, Result}, Call) -> shown({ok, Result, #{}}, Call);
shown({ok, Result, Extra}, Call) ->
    Status = status(Extra, Call),
    {Next, WithNext} = with_next(Result, Extra, Call),
    Json = iolist_to_binary(case WithNext of
        {json, Text} -> Text;
        Term -> sderl_web_json:term(Term)
    end),
    {Status, maps:merge(Next, headers(Status, Extra, Json)), Json};
shown(done, _) -> {204, #{}, ~""};
shown({error, Code, Why}, _) -> {Code, Why, #{}};
shown({busy, Seconds, Why}, _) ->
    {too_many_requests, Why, #{~"retry-after" => integer_to_binary(Seconds)}};
shown({stream, _} = Stream, _) -> Stream.

status(#{made := true}, #call{route = #{makes := true}}) -> 201;
status(_, #call{route = #{answer := {Status, _}}}) -> Status.

with_next(Result, #{next := none}, _) -> {#{}, Result#{next => null}};
with_next(Result, #{next := Key}, #call{route = #{op := Op}, query = Query, req = Req}) ->
    Cursor = sderl_web_page:encode(Op, Key),
    {#{~"link" => sderl_web_page:link(cowboy_req:path(Req), Query, Cursor)},
     Result#{next => Cursor}};
with_next(Result, _, _) -> {#{}, Result}.

headers(Status, Extra, Json) ->
    maps:from_list(
        [{~"etag", case Extra of
            #{tag := Tag} -> sderl_web_tag:of_term(Tag);
            #{} -> sderl_web_tag:of_body(Json)
        end} || Status =:= 200 orelse is_map_key(tag, Extra)] ++
        [{~"location", iolist_to_binary([~"/api/v1/", Path])}
         || Status =/= 200, {ok, Path} <- [maps:find(location, Extra)]]
    ).

told(Answer, Detail, Call) ->
    ok = tell(Answer, Detail, Call),
    Answer.

told_here(Answer, Call) ->
    ok = tell_here(Answer, ~"", Call),
    Answer.

%% A module that judges rights itself tells the audit log of what came to it.
tell(_, _, #call{route = #{own_rights := true}}) -> ok;
tell(Answer, Detail, Call) -> tell_here(Answer, Detail, Call).

tell_here({Code, Why, _}, _, Call) when is_atom(Code) ->
    audited(case sderl_web_problem:status(Code) of
        Status when Status >= 500 -> failed;
        _ -> refused
    end, Why, Call);
tell_here(_, Detail, Call) ->
    audited(ok, Detail, Call).

reply({stream, Fun}, #call{req = Req}) ->
    Fun(Req);
reply({again, {Status, Headers, Body}}, #call{req = Req}) ->
    cowboy_req:reply(Status, Headers#{~"idempotency-replayed" => ~"true"}, Body, Req);
reply({Code, Why, Headers}, #call{req = Req}) when is_atom(Code) ->
    sderl_web_reply:refuse(Code, Why, Headers, Req);
reply({204, Headers, _}, #call{req = Req}) ->
    cowboy_req:reply(204, Headers, Req);
reply({Status, Headers, Json}, #call{req = Req, route = Route, if_none_match = Tags}) ->
    IsKnown = not sderl_web_route:changes(Route) andalso case Headers of
        #{~"etag" := Tag} -> sderl_web_tag:is_listed(Tag, Tags);
        #{} -> false
    end,
    case IsKnown of
        true -> cowboy_req:reply(304, Headers#{~"cache-control" => ~"no-store"}, Req);
        false -> sderl_web_reply:json(Status, Headers, Json, Req)
    end.

%% The log may have to wait for its disk, and the client may go away meanwhile.
refused(Code, Why, Headers, #call{route = Route} = Call) ->
    Answer = {Code, Why, Headers},
    Tell = fun() -> tell_here(Answer, ~"", Call) end,
    Changes = sderl_web_route:changes(Route),
    _ = case Changes andalso sderl_web_work:run(Tell, fun(_) -> ok end, ?WAIT_MS) of
        full -> Tell();
        _ -> ok
    end,
    reply(Answer, Call).

audited(Result, Why, #call{route = #{op := Op} = Route, who = #{id := _} = Who, args = Args,
                           req = Req, began = Began, options = #{audit := Hook}}) ->
    case sderl_web_route:changes(Route) of
        true ->
            sderl_web_audit:note(#{
                who => sderl_web_audit:who(Who, sderl_web_auth:client(Req)),
                what => <<"rest.", (atom_to_binary(Op))/binary>>,
                result => Result, args => kept_args(Route, Args), detail => Why,
                ms => max(0, sderl_mon_clock:now_ms() - Began)
            }, Hook);
        false -> ok
    end;
audited(_, _, _) ->
    ok.

%% Only an action's module knows which of its arguments are secrets.
kept_args(#{own_rights := true}, Args) -> maps:remove(args, Args);
kept_args(_, Args) -> Args.
