%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_crash).
-moduledoc "A program of the VM laboratory that crashes.".

-export([summary/0, settings/2, run/2]).

summary() -> "crashes".

settings(_, _) -> #{}.

run(run, _) -> error(planned).
