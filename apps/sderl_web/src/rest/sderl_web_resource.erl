%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_resource).
-moduledoc """
What a module does that serves paths under `/api/v1`.

`routes/0` says which paths there are and what they take and answer, `schemas/0` names the shapes
that they share, and `answer/3` answers a request whose token, role, rate, parameters and body were
checked by that table. What changes something is answered in a process that goes on when the client
has gone, for two minutes at most. The setting `resources` of `sderl_web` adds modules of other
applications.
""".

-export_type([context/0, result/0, extra/0]).

-doc """
Who asks: the token's name, id, role and end, and where from. `if_match` are the tags of the header,
where there is one; `writable` is whether anything may be changed here at all.
""".
-type context() :: #{
    name := binary(),
    token := binary(),
    role := sderl_web_token:role() | nobody,
    expires := none | integer(),
    from := binary(),
    writable := boolean(),
    if_match := none | [binary()]
}.

-doc """
`json` is JSON already. `next` is where the next page begins, as a term that JSON can hold: the
request gets it back as the argument `cursor`. `tag` is what the entity tag is made of, where that
is not the whole answer. `location` is the path of what was created,
or of what tells how that goes which was begun. `made`: a route that `makes` has made something, and
answers 201. `detail` is what the audit log is told beside the arguments.

`busy` is answered with the status 429, and the seconds after which to ask again.
""".
-type extra() :: #{
    next => term(),
    tag => term(),
    location => iodata(),
    made => true,
    detail => unicode:chardata()
}.

-type result() ::
    {ok, map() | {json, iodata()}}
    | {ok, map() | {json, iodata()}, extra()}
    | done
    | {stream, fun((cowboy_req:req()) -> cowboy_req:req())}
    | {error, sderl_web_problem:code(), unicode:chardata()}
    | {busy, Seconds :: pos_integer(), unicode:chardata()}.

-callback routes() -> [sderl_web_route:given()].
-callback schemas() -> #{binary() => sderl_web_schema:schema()}.
-callback answer(Op :: atom(), Args :: #{atom() => term()}, context()) -> result().
