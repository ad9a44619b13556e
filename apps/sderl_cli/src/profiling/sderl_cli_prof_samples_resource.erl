%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_samples_resource).
-moduledoc "The samples that `bin/sderl prof open` shows, under `/api/v1/samples`; only to read.".

-behaviour(sderl_web_resource).

-export([routes/0, schemas/0, answer/3, answer_of/3]).

-import(sderl_web_schema, [object/1, list/1, text/0, whole/0, number/0, map/1, ref/1, word/1,
                           unix_ms/0, null_or/1]).

%% Times are nanoseconds since the begin: a browser's whole numbers hold three months of them.
-define(MOST_NS, 9_007_199_254_740_991).
-define(MOST_ROWS, 1_000).

-doc false.
-spec routes() -> [sderl_web_route:given()].
routes() ->
    [
        #{op => samples, method => get, path => [~"samples"], role => viewer,
          summary => ~"Samples of nodes: how long, how many, of what",
          query => [], answer => {200, ref(~"Samples")}, problems => []},
        #{op => samples_shares, method => get, path => [~"samples", ~"shares"], role => viewer,
          summary => ~"Shares of processes and functions in a part of the time, and curves",
          query => [
              {~"from", from, {whole, 0, ?MOST_NS}, 0},
              {~"to", to, {whole, 1, ?MOST_NS}, ?MOST_NS},
              {~"node", node, {text, 255}, none},
              {~"kind", kind, {text, 1000}, none},
              {~"limit", limit, {whole, 1, ?MOST_ROWS}, 200}
          ],
          answer => {200, ref(~"SampleShares")}, problems => [not_found]}
    ].

-doc false.
-spec schemas() -> #{binary() => sderl_web_schema:schema()}.
schemas() ->
    Place = list(object(#{function => text(), caller => text(), looks => whole(),
                          processes => number(), share => ref(~"SampleShare"),
                          groups => list(text())})),
    #{
        ~"Samples" => object(#{
            duration => whole(),
            nodes => list(object(#{
                node => text(), otp => text(), duration => whole(), began => unix_ms(),
                schedulers => whole(), looks => whole(), rounds => whole(), own_share => number(),
                counted_share => number(), processes => whole(), kinds => whole()
            }))
        }),
        ~"SampleShare" => object(#{share => number(), low => number(), high => number()}),
        ~"SampleShares" => object(#{
            duration => whole(),
            covers => object(#{from => whole(), to => whole()}),
            states => list(object(#{state => text(), looks => whole(), processes => number()})),
            kinds => list(object(#{
                group => text(), seen => whole(), looks => whole(), reductions => whole(),
                of_reductions => number(), processes => number(), busy => number(),
                share => ref(~"SampleShare"), share_busy => ref(~"SampleShare"),
                queue => number(), most_queue => whole()
            })),
            kinds_all => whole(), functions => Place, functions_all => whole(), waits => Place,
            waits_all => whole(),
            schedulers => list(object(#{node => text(), type => word([normal, cpu, io]),
                                        number => whole(), awake => number()})),
            threads => list(object(#{node => text(), type => text(), states => map(number())})),
            nodes => list(object(#{
                node => text(), processes => number(), busy => number(),
                share_busy => ref(~"SampleShare"), awake => number(), queue => number(),
                reductions_s => number()
            })),
            curves => list(object(#{
                at => whole(), running => number(), runnable => number(), collecting => number(),
                queue => number(), awake => number()
            })),
            overall => object(#{
                columns => list(object(#{
                    at => whole(), run_queue => null_or(number()),
                    most_run_queue => null_or(number()), processes => null_or(number()),
                    memory => null_or(object(#{total => number(), processes => number(),
                                               binary => number(), ets => number()}))
                })),
                mailboxes => list(object(#{node => text(), name => text(),
                                           mean => list(null_or(number())),
                                           most => null_or(number())})),
                run_queues => list(list(null_or(number())))
            })
        })
    }.

-doc false.
-spec answer(atom(), map(), sderl_web_resource:context()) -> sderl_web_resource:result().
answer(Op, Args, _) -> answer_of(sderl_prof_viewer:own(), Op, Args).

-doc "The answer of samples that are open beside others.".
-spec answer_of(sderl_prof_viewer:viewer(), atom(), map()) -> sderl_web_resource:result().
answer_of(Viewer, samples, _) ->
    {ok, _} = sderl_prof_viewer:ask(Viewer, about);
answer_of(_, samples_shares, #{from := From, to := To}) when From >= To ->
    {error, bad_request, "from is to be less than to: both are nanoseconds since the begin"};
answer_of(Viewer, samples_shares, Args) ->
    Request = (maps:with([from, to, limit], Args))#{
        node => maps:get(node, Args, all),
        group => maps:get(kind, Args, all)
    },
    case sderl_prof_viewer:ask(Viewer, {samples, Request}) of
        {ok, Answer} -> {ok, Answer};
        {error, Why} -> {error, not_found, sderl_prof_samples:format_error(Why)}
    end.
