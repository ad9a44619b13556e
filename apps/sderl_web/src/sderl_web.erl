%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web).
-moduledoc """
The dashboard: a monitored cluster of s_groups in a browser.

The application serves pages and a WebSocket beside the hub of `sderl_mon` on the same node;
`docs/dashboard.md` describes the pages, the protocol and the safety. Its environment:

| key | value | default |
|---|---|---|
| `port` | 0 for any that is free | 8090 |
| `ip` | what it listens on | `{127,0,0,1}` |
| `token` | what every browser must bring: `auto` (128 random bits), or a binary of 8 to 256 letters, digits and `._~-` | `auto` |
| `writable` | whether browsers may switch tracing and recording on and off | `false` |
| `tls` | `off`, or options of `ssl` as a map with `certfile` and `keyfile` | `off` |
| `source` | `hub`, or `synthetic`: a cluster that is made up | `hub` |
| `synthetic` | options of `sderl_mon_synthetic:start/1` | `#{}` |
| `hosts` | names besides this machine's that a browser may call it by (`[binary()]`) | `[]` |
| `origins` | pages elsewhere that may use it, such as `~"https://watch.example"` | `[]` |
| `max_sockets` | browsers at a time | 1000 |
| `cluster` | what the page calls the cluster | `~""` |
| `ops` | the folder of the service of operations whose cluster this is, or `default` for where a service is by default | `default` |
| `recordings` | the folder whose recordings browsers may open, or `none` | `none` |
| `tokens_file` | a file of tokens with roles, which `bin/sderl tokens` makes, or `none` | `none` |
| `rate` | requests over HTTP with one token: so many a second, and so many at once | `{100, 200}` |
| `strangers_rate` | the same of one address, without a token that holds | `{10, 50}` |
| `resources` | modules of other applications with paths under `/api/v1` (the behaviour `sderl_web_resource`) | `[]` |
| `audit` | a function that is told of each request which was to change something (`sderl_web_audit` says what), or `none` | `none` |
| `replay` | a recording that each browser shows at first, in place of the present | `none` |
| `profile` | whether browsers show what one of `resources` knows of a profiler's recording, and no cluster; `samples` where it is one of samples; `live` where one of `resources` makes profiles of the cluster | `false` |
""".

-export([address/0, info/0]).
-export_type([address/0]).

-doc "`link` is `url` with the token in its fragment, which browsers send to nobody.".
-type address() ::
    #{url := binary(), link := binary(), port := inet:port_number(), token := binary()}.

-doc "Where the dashboard is. `{error, not_running}` where the application does not run.".
-spec address() -> {ok, address()} | {error, not_running}.
address() ->
    try
        {ok, sderl_web_server:address()}
    catch
        exit:{noproc, _} -> {error, not_running}
    end.

-doc """
How many sockets there are, how many frames slow ones missed, and what was refused, since the start.
""".
-spec info() -> #{sockets := non_neg_integer(), missed := non_neg_integer(),
                  refused := #{sderl_web_notes:kind() => pos_integer()}, atom() => term()}.
info() -> (sderl_web_feed:info())#{refused => sderl_web_notes:counts()}.
