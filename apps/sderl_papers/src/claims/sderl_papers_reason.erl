%% SPDX-License-Identifier: Apache-2.0
-module(sderl_papers_reason).
-moduledoc """
Why a run of one of the published programs did not work, in words. Other reasons are those of
`m:sderl_bench_reason`.
""".

-export([text/1]).

-doc "A reason as text.".
-spec text(term()) -> unicode:chardata().
text({orbit, Reason}) -> sderl_orbit:text(Reason);
text({aco, Reason}) -> sderl_aco:text(Reason);
text({im, Reason}) -> sderl_im:text(Reason);
text({city, Reason}) -> sderl_city:text(Reason);
text({vm, Text}) -> Text;
text(Reason) -> sderl_bench_reason:text(Reason).
