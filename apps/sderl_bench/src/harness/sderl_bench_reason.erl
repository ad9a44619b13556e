%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_reason).
-moduledoc "Why a run failed, in words that say what to do about it.".

-export([text/1, said/3]).

-doc """
A reason of a benchmark or of `sderl_fleet:start/1` as text. `{said, Text}` is a reason that is text
already.
""".
-spec text(term()) -> unicode:chardata().
text({memory, #{needed_mib := Needed, available_mib := Available}}) ->
    io_lib:format("the nodes need ~w MiB of memory and ~w are free; start fewer nodes",
                  [Needed, Available]);
text({start_failed, [{Node, Why} | Others]}) ->
    [
        io_lib:format("node ~ts did not start: ~0tp", [Node, Why]),
        [io_lib:format(" (nor did ~w others)", [length(Others)]) || Others =/= []]
    ];
text({no_program, Name}) ->
    io_lib:format("the program ~ts is not on the PATH", [Name]);
text({fleet_ended, Why}) ->
    io_lib:format("the nodes were stopped: ~0tp", [Why]);
text({group_not_made, Group, {Node, {error, down}}}) when is_atom(Node) ->
    io_lib:format("node ~ts, which was to make the group ~0tp, went down", [Node, Group]);
text({group_not_made, Group, {[], [_ | _] = Missing}}) ->
    io_lib:format("these nodes did not join the group ~0tp, because they went down or could not be "
                  "reached: ~ts",
                  [Group, lists:join(", ", [atom_to_list(Node) || Node <- Missing])]);
text({group_not_made, Group, Answer}) ->
    io_lib:format("the group ~0tp could not be made: ~0tp", [Group, Answer]);
text({group_not_ready, Node, {ok, {error, timeout}}}) ->
    io_lib:format("the group of node ~ts was not ready in time", [Node]);
text({group_not_ready, Node, Answer}) ->
    io_lib:format("node ~ts could not wait for its group: ~0tp", [Node, Answer]);
text({not_connected, Node, Answer}) ->
    io_lib:format("node ~ts could not connect to the others: ~0tp", [Node, Answer]);
text({not_loaded, Node, {late, Ms}}) ->
    io_lib:format(
        "the machine is too slow for so many nodes or clients: node ~ts began ~w ms late; "
        "try fewer of them",
        [Node, Ms]
    );
text({not_preloaded, Node, {ok, {Failures, Reasons}}}) ->
    io_lib:format("~w names could not be registered on ~ts beforehand: ~0tp",
                  [Failures, Node, Reasons]);
text({What, Node, {error, timeout}}) when is_atom(Node) ->
    io_lib:format("node ~ts did not answer in time (~ts)", [Node, What]);
text({What, Node, Answer}) when is_atom(Node) ->
    io_lib:format("node ~ts failed (~ts): ~0tp", [Node, What, Answer]);
text({said, Text}) ->
    Text;
text({prof, Why}) ->
    sderl_bench_profile:format_error(Why);
text({monitoring, {not_monitoring, Node, Answer}}) ->
    io_lib:format("monitoring did not start on ~ts: ~0tP", [Node, Answer, 20]);
text({monitoring, {timeout, Missing}}) ->
    io_lib:format("monitoring did not see all nodes in time; missing: ~0tP", [Missing, 20]);
text({monitoring, Reason}) ->
    io_lib:format("monitoring did not start: ~ts", [text(Reason)]);
text({timeout, Last}) ->
    io_lib:format("it did not happen in time; last seen: ~0tP", [Last, 20]);
text(Reason) ->
    io_lib:format("~0tp", [Reason]).

-doc """
The outcome of a program whose own reasons are `{Tag, Reason}`: its reason as text, so that the
harness need not know it.
""".
-spec said(Tag :: atom(), Text :: fun((Reason :: term()) -> unicode:chardata()), Outcome) ->
    Outcome when
    Outcome :: {ok, Metrics :: #{atom() => term()}} | {error, term()}.
said(Tag, Text, {error, {Tag, Reason}}) -> {error, {said, Text(Reason)}};
said(_, _, Outcome) -> Outcome.
