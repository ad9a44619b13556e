%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_style).
-moduledoc """
The report's style sheet: light and dark as the reader's system has it, narrow and wide, and paper.
""".

-export([css/0]).

-doc """
The style sheet. `--s1` to `--s6` are the colours of series, which plots refer to
(`sderl_report_spec:style/1`); they differ in lightness too, so that colour-blind readers can tell
them apart.
""".
-spec css() -> unicode:chardata().
css() ->
    """
    :root {
      color-scheme: light dark;
      --paper: #fff; --ink: #1c1e21; --quiet: #5b6168; --rule: #e3e5e8; --soft: #f5f6f7;
      --link: #0a58b0;
      --s1: #0b62b8; --s2: #c2500a; --s3: #1b7f5c; --s4: #8a3ea8; --s5: #7a6a00; --s6: #c0286a;
      --yes: #17663f; --yes-soft: #e4f3ea; --no: #a3241c; --no-soft: #fbe8e6; --open: #54595f;
      --open-soft: #eceef0;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --paper: #16181b; --ink: #e4e6e9; --quiet: #a2a8b0; --rule: #33373c; --soft: #1f2226;
        --link: #7fb6ff;
        --s1: #62a8f5; --s2: #f0934a; --s3: #4fc397; --s4: #cf92ea; --s5: #d6c04a; --s6: #f57fb0;
        --yes: #7fd6a6; --yes-soft: transparent; --no: #ff9d94; --no-soft: transparent;
        --open: #b6bcc4; --open-soft: transparent;
      }
    }
    * { box-sizing: border-box; }
    html { scroll-padding-top: 3.5rem; -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
    body {
      margin: 0; background: var(--paper); color: var(--ink);
      font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans",
        Arial, sans-serif;
    }
    nav {
      position: sticky; top: 0; z-index: 1; background: var(--paper);
      border-bottom: 1px solid var(--rule);
    }
    nav ul {
      display: flex; flex-wrap: wrap; gap: 0 1.4rem; max-width: 768px; margin: 0 auto;
      padding: .55rem 24px; list-style: none;
    }
    a { color: var(--link); text-decoration: none; }
    a:hover, a:focus { text-decoration: underline; }
    main { max-width: 768px; margin: 0 auto; padding: 0 24px 4rem; }
    section { padding-top: 2.5rem; }
    section.page { margin-top: 4rem; border-top: 1px solid var(--rule); }
    h1, h2, h3 { line-height: 1.25; font-weight: 600; text-wrap: balance; }
    h1 { margin: 0 0 1rem; font-size: 1.9rem; letter-spacing: -.01em; }
    h2 { margin: 0 0 .75rem; font-size: 1.5rem; letter-spacing: -.01em; }
    h3 { margin: 2.5rem 0 .5rem; font-size: 1rem; }
    p { margin: 0 0 1rem; }
    .id { color: var(--quiet); font-weight: 400; padding-right: .2em; }
    .lead { font-size: 1.1rem; }
    .claim { padding-left: 1rem; border-left: 3px solid var(--rule); white-space: pre-line; }
    .remark { padding: .6rem .9rem; background: var(--soft); }
    .small { color: var(--quiet); font-size: .875rem; }
    .chip {
      display: inline-block; padding: .05rem .6rem; border: 1px solid currentColor;
      border-radius: 1rem; font-size: .875rem; font-weight: 600; white-space: nowrap;
    }
    .confirmed { color: var(--yes); background: var(--yes-soft); }
    .refuted { color: var(--no); background: var(--no-soft); }
    .not-shown { color: var(--open); background: var(--open-soft); }
    .verdict { margin: 1.75rem 0; }
    .verdict p { margin: .6rem 0 0; white-space: pre-line; }
    .scroll { overflow-x: auto; margin: 0 0 1rem; }
    table { border-collapse: collapse; font-size: .9375rem; }
    th, td {
      padding: .4rem .9rem .4rem 0; border-bottom: 1px solid var(--rule); text-align: left;
      vertical-align: top; font-weight: 400;
    }
    thead th { color: var(--quiet); font-size: .875rem; vertical-align: bottom; }
    .verdicts { width: 100%; margin: 1.5rem 0; }
    .verdicts tbody th { width: 26%; font-weight: 600; }
    .verdicts td { width: 57%; }
    .verdicts td:nth-child(2) { width: 17%; }
    .unjudged tbody th { width: 50%; }
    .unjudged td:nth-child(2) { width: 50%; }
    .verdicts .chip { padding: 0; border: 0; background: none; white-space: normal; }
    .numbers { font-size: .875rem; font-variant-numeric: tabular-nums; }
    .numbers thead th { font-size: inherit; }
    .numbers th + th, .numbers td { text-align: right; padding: .3rem 0 .3rem 1.4rem; }
    .numbers td { white-space: nowrap; }
    .numbers th:first-child { padding-right: .5rem; white-space: nowrap; }
    dl { margin: 2rem 0 0; font-size: .9375rem; }
    dl div {
      display: grid; grid-template-columns: 9rem 1fr; border-bottom: 1px solid var(--rule);
      padding: .35rem 0;
    }
    dt { color: var(--quiet); }
    dd { margin: 0; overflow-wrap: anywhere; }
    figure { margin: 2.5rem 0; }
    figcaption { font-weight: 600; margin-bottom: .75rem; text-wrap: balance; }
    figure svg {
      display: block; max-width: 100%; height: auto; font-family: inherit; overflow: visible;
    }
    svg.narrow { display: none; }
    details { margin-top: .5rem; }
    summary { color: var(--quiet); font-size: .875rem; cursor: pointer; width: fit-content; }
    details .scroll { margin-top: .5rem; }
    .notes { padding-left: 1.1rem; }
    .notes li { margin-bottom: .5rem; }
    code { font: .9em/1 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; }
    .command {
      margin: 0; padding: .7rem .9rem; background: var(--soft); white-space: pre; overflow-x: auto;
      font: .875rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace;
      user-select: all; -webkit-user-select: all;
    }
    .command code { font: inherit; }
    .measured { margin-top: .75rem; }
    @media screen and (min-width: 800px) {
      section.page > .scroll { margin-right: calc((768px - 100vw) / 2); }
    }
    @media screen and (max-width: 640px) {
      body { font-size: 15px; }
      main, nav ul { padding-left: 16px; padding-right: 16px; }
      h1 { font-size: 1.55rem; }
      h2 { font-size: 1.3rem; }
      svg.wide { display: none; }
      svg.narrow { display: block; width: 100%; max-width: 430px; }
      dl div { grid-template-columns: 1fr; }
      .verdicts, .verdicts tbody, .verdicts tr, .verdicts tbody th, .verdicts td:nth-child(n) {
        display: block; width: 100%; border: 0; padding: 0;
      }
      .verdicts thead { display: none; }
      .verdicts tr { border-bottom: 1px solid var(--rule); padding: .75rem 0; }
      .verdicts td { margin-top: .35rem; }
    }
    @media print {
      :root {
        --paper: #fff; --ink: #000; --quiet: #444; --rule: #ccc; --soft: #f4f4f4; --link: #000;
        --s1: #0b62b8; --s2: #c2500a; --s3: #1b7f5c; --s4: #8a3ea8; --s5: #7a6a00; --s6: #c0286a;
        --yes: #17663f; --yes-soft: #fff; --no: #a3241c; --no-soft: #fff; --open: #444;
        --open-soft: #fff;
      }
      @page { margin: 15mm 18mm; }
      body { font-size: 10pt; line-height: 1.45; }
      h3, figure, dl { margin-top: 1.25rem; }
      figure { margin-bottom: 1.25rem; }
      figure svg { max-height: 88mm; }
      .verdict { margin: 1rem 0; }
      nav, details { display: none; }
      main { max-width: none; padding: 0; }
      section { padding-top: 0; }
      section.page { margin: 0; border: 0; break-before: page; }
      figure, tr, .verdict, .command { break-inside: avoid; }
      h2, h3, figcaption { break-after: avoid; }
      .scroll { overflow: visible; }
      .numbers { font-size: 7pt; }
      .numbers th:first-child, .numbers td { white-space: normal; }
      .numbers th + th, .numbers td { padding-left: .45rem; }
      .command { white-space: pre-wrap; }
    }

    """.
